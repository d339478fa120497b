#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""flapping_broker.py HOST PORT SEQ REPLIES: answers as a replica on which the empty list `bad` ends at 1000-SEQ.

Closes each connection after so many replies. Writes a line when it listens.
"""
import socketserver
import sys
import time

HOST, PORT, SEQ, REPLIES = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])


def array(*texts):
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(t), t) for t in map(str.encode, texts))


def reply(command, key):
    if command == "ROLE":
        return b"*5\r\n$5\r\nslave\r\n$9\r\n192.0.2.9\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n"
    if command == "TIME":
        return array(str(int(time.time())), "0")
    if command == "HMGET" and key == "xc:default:meta":
        return array("0123456789abcdef", "1", "off")
    if command == "HMGET" and key == "xc:default:L:bad:meta":
        return array("1000", SEQ, "0", "1")
    if command == "XREAD":
        time.sleep(0.05)
        return b"*-1\r\n"
    return b"*0\r\n" if command in ("HGETALL", "XREVRANGE") else b"$-1\r\n" if command == "HGET" else b":0\r\n"


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        for _ in range(REPLIES):
            count = self.rfile.readline()
            if not count:
                return
            words = [self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2].decode() for _ in range(int(count[1:]))]
            self.wfile.write(reply(words[0], words[1] if len(words) > 1 else ""))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


with Server((HOST, PORT), Client) as server:
    print("listening", flush=True)
    server.serve_forever()
