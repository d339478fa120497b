#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Passes connections on to a server, and cuts the first one in which a client says all the words at once.

cut_once.py PORT HOST:PORT WORD...: listens at PORT of 127.0.0.1. Prints "ready", and "cut" when it has cut.
"""
import select
import socket
import sys
import threading


def serve(client, server, words, cuts):
    """Copies both ways until one side closes, or until it cuts."""
    with client, server:
        while True:
            for one in select.select([client, server], [], [])[0]:
                data = one.recv(65536)
                if not data:
                    return
                if one is client and not cuts and all(word in data for word in words):
                    cuts.append(1)
                    print("cut", flush=True)
                    return
                (server if one is client else client).sendall(data)


def main():
    host, port = sys.argv[2].rsplit(":", 1)
    words, cuts = [word.encode() for word in sys.argv[3:]], []
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    while True:
        client = listener.accept()[0]
        server = socket.create_connection((host, int(port)))
        threading.Thread(target=serve, args=(client, server, words, cuts), daemon=True).start()


main()
