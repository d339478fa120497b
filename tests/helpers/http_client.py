# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client of an HTTP server, as rude as a test wants it.

http_client.py get HOST PORT COUNT           as many connections at once, each a whole request; prints how many got a 200
http_client.py hold HOST PORT COUNT BYTES    so many connections that send the bytes and no more; a line when all have, and one
                                      when the server has closed them all
"""
import select
import socket
import sys

TIMEOUT_S = 60


def connect(host, port):
    return socket.create_connection((host, int(port)), timeout=TIMEOUT_S)


def read_all(connection):
    """What comes until the end, also where that is a reset."""
    received = b""
    try:
        while chunk := connection.recv(65536):
            received += chunk
    except ConnectionError:
        pass
    return received


def get(host, port, count):
    connections = [connect(host, port) for _ in range(int(count))]
    for connection in connections:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    print(sum(read_all(connection).startswith(b"HTTP/1.1 200 ") for connection in connections))


def hold(host, port, count, text):
    connections = {}
    for _ in range(int(count)):
        connection = connect(host, port)
        connection.sendall(text.encode())
        connections[connection.fileno()] = connection
    print("held", flush=True)
    while connections:
        readable, _, _ = select.select(list(connections), [], [], TIMEOUT_S)
        if not readable:
            sys.exit("not closed: %d" % len(connections))
        for fd in readable:
            read_all(connections.pop(fd))
    print("closed", flush=True)


{"get": get, "hold": hold}[sys.argv[1]](*sys.argv[2:])
