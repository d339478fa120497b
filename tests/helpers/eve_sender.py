# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
python3 eve_sender.py SOCKET: sends each line of standard input to a socket as Suricata 7 does (filetype: unix_stream): it
does not wait, connects again when a write fails, repeats that line once, and tries to connect at most every 0.5 s. At
the end it prints how many lines it dropped.
"""
import socket
import sys
import time

RECONNECT_S = 0.5


class Sender:
    def __init__(self, path):
        self.path = path
        self.stream = None
        self.tried = -RECONNECT_S
        self.dropped = 0

    def connect(self):
        if time.monotonic() - self.tried < RECONNECT_S:
            return
        self.tried = time.monotonic()
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(self.path)
            self.stream = stream
        except OSError:
            stream.close()

    def send(self, line):
        for _ in range(2):
            if not self.stream:
                self.connect()
            if not self.stream:
                break
            try:
                # What the buffer has no room for is lost, and Suricata does not notice.
                self.stream.send(line, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                return
            except BlockingIOError:
                break
            except OSError:
                self.stream.close()
                self.stream = None
                self.tried = -RECONNECT_S
        self.dropped += 1


sender = Sender(sys.argv[1])
for event in sys.stdin.buffer:
    sender.send(event)
print("dropped", sender.dropped)
