"""The part of a Kubernetes API server that `kubectl get pods` and `kubectl exec -i` talk to. A stand-in: pods are commands.

api.py PODS.json: a list of {"name", "node", "index", "address", "prefix": [words]}. A pod whose prefix is empty is cut: its stream ends
without a status after half a second, as when the node or a proxy goes. Prints the port it listens on (127.0.0.1).

Streams are those of v5.channel.k8s.io over WebSocket (RFC 6455): the first byte of a message names the channel, 0 stdin, 1 stdout,
2 stderr, 3 a Status at the end; 255 with a channel's number closes that channel.
"""

import base64
import hashlib
import http.server
import json
import struct
import subprocess
import sys
import threading
import urllib.parse

PODS = json.load(open(sys.argv[1]))
JOB = "night"


def pod(p):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": p["name"],
            "namespace": "lab",
            "labels": {"job-name": JOB, "batch.kubernetes.io/job-name": JOB},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(p["index"])},
        },
        "spec": {"nodeName": p["node"], "containers": [{"name": "endpoint", "image": "none"}]},
        "status": {"phase": "Running", "podIP": p["address"]},
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, what, status=200):
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        parts = [part for part in url.path.split("/") if part]
        if parts == ["api"]:
            self.say({"kind": "APIVersions", "versions": ["v1"]})
        elif parts == ["apis"]:
            self.say({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        elif parts == ["api", "v1"]:
            verbs = ["get", "list", "create"]
            pods = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": verbs}
            self.say({"kind": "APIResourceList", "groupVersion": "v1", "resources": [pods]})
        elif parts == ["api", "v1", "namespaces", "lab", "pods"]:
            wanted = query.get("labelSelector", [""])[0] == f"job-name={JOB}"
            items = [pod(p) for p in PODS] if wanted else []
            self.say({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
        elif parts[:5] == ["api", "v1", "namespaces", "lab", "pods"] and len(parts) in (6, 7):
            found = [p for p in PODS if p["name"] == parts[5]]
            if not found:
                self.say({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}, 404)
            elif len(parts) == 6:
                self.say(pod(found[0]))
            else:
                self.execute(found[0], query["command"])
        else:
            self.say({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}, 404)

    def execute(self, p, command):
        if "v5.channel.k8s.io" not in self.headers.get("Sec-WebSocket-Protocol", ""):
            self.say({"kind": "Status", "status": "Failure", "code": 400}, 400)
            return
        salt = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        key = base64.b64encode(hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + salt).digest())
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", key.decode())
        self.send_header("Sec-WebSocket-Protocol", "v5.channel.k8s.io")
        self.end_headers()
        self.close_connection = True
        if not p["prefix"]:
            threading.Event().wait(0.5)
            return
        lock = threading.Lock()
        child = subprocess.Popen(
            p["prefix"] + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )

        def send(opcode, data):
            head = bytes([0x80 | opcode])
            if len(data) < 126:
                head += bytes([len(data)])
            elif len(data) < 1 << 16:
                head += struct.pack("!BH", 126, len(data))
            else:
                head += struct.pack("!BQ", 127, len(data))
            with lock:
                self.wfile.write(head + data)
                self.wfile.flush()

        def carry(channel, stream):
            try:
                while data := stream.read(32768):
                    send(2, bytes([channel]) + data)
            except OSError:
                pass

        readers = [threading.Thread(target=carry, args=a) for a in ((1, child.stdout), (2, child.stderr))]
        send(2, b"\1")
        for reader in readers:
            reader.start()

        def end():
            status = child.wait()
            for reader in readers:
                reader.join()
            said = {"metadata": {}, "status": "Success"}
            if status:
                causes = [{"reason": "ExitCode", "message": str(status)}]
                said = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
            try:
                send(2, b"\3" + json.dumps(said).encode())
                send(8, struct.pack("!H", 1000))
            except (OSError, ValueError):
                pass

        threading.Thread(target=end).start()
        try:
            while True:
                opcode, data = self.frame()
                if opcode == 8:
                    break
                if opcode == 9:
                    send(10, data)
                elif data[:1] == b"\0":
                    child.stdin.write(data[1:])
                elif data == b"\xff\0":
                    child.stdin.close()
        except (OSError, EOFError, ValueError):
            pass
        finally:
            # A cluster may leave the process with its stdin open; this one closes it.
            try:
                child.stdin.close()
            except OSError:
                pass

    def frame(self):
        first, second = self.exactly(2)
        length = second & 127
        if length == 126:
            (length,) = struct.unpack("!H", self.exactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.exactly(8))
        mask = self.exactly(4) if second & 128 else bytes(4)
        data = self.exactly(length)
        return first & 15, bytes(b ^ mask[i & 3] for i, b in enumerate(data))

    def exactly(self, count):
        data = self.rfile.read(count)
        if len(data) < count:
            raise EOFError
        return data


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
