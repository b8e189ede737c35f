"""Times first packets, knowing nothing of hopyard.

reference.py server tcp|udp HOST PORT           answers until it is ended; prints "ready"
reference.py client tcp|udp HOST PORT COUNT     prints the median time in ns
"""

import socket
import statistics
import sys
import time

role, protocol, host, port = sys.argv[1:5]
address = (host, int(port))
kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM


def server():
    own = socket.socket(socket.AF_INET, kind)
    own.bind(address)
    if protocol == "tcp":
        own.listen(64)
    print("ready", flush=True)
    while True:
        if protocol == "tcp":
            peer, _ = own.accept()
            peer.recv(1)
            peer.send(b"x")
            peer.close()
        else:
            _, peer = own.recvfrom(16)
            own.sendto(b"answered", peer)


def once():
    own = socket.socket(socket.AF_INET, kind)
    if protocol == "tcp":
        began = time.perf_counter_ns()
        own.connect(address)
        took = time.perf_counter_ns() - began
        own.send(b"x")
        while own.recv(1):
            pass
    else:
        own.connect(address)
        began = time.perf_counter_ns()
        own.send(b"question")
        own.recv(16)
        took = time.perf_counter_ns() - began
    own.close()
    return took


if role == "server":
    server()
print(int(statistics.median(once() for _ in range(int(sys.argv[5])))))
