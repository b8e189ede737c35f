"""A serial line between two machines, of two pseudo-terminals. `serial.py far COMMAND…` runs a shell at its far end and prints the near
device; `serial.py near DEVICE WORDS…` is a command for --client or --server: it has the shell run its words."""

import os
import shlex
import subprocess
import sys
import threading
import tty


def relay(source, sink):
    while data := os.read(source, 4096):
        while data:
            data = data[os.write(sink, data) :]


def far(command):
    (near, near_end), (there, there_end) = os.openpty(), os.openpty()
    tty.setraw(near_end)
    tty.setraw(there_end)
    print(os.ttyname(near_end), flush=True)
    for ends in [(near, there), (there, near)]:
        threading.Thread(target=relay, args=ends, daemon=True).start()
    subprocess.run([*command, "sh"], stdin=there_end, stdout=there_end, stderr=subprocess.DEVNULL)


def near(device, words):
    line = os.open(device, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(line)
    os.write(line, f"{shlex.join(words)}\n".encode())
    threading.Thread(target=relay, args=(line, 1), daemon=True).start()
    relay(0, line)


if __name__ == "__main__":
    far(sys.argv[2:]) if sys.argv[1] == "far" else near(sys.argv[2], sys.argv[3:])
