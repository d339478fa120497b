# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two hosts that talk, for tests of `state new`. Waits are long; nothing is judged by a time that passed.

serve tcp|BYTES      says ready; serves 100,000 bytes by TCP at port 8080, or answers a datagram at port 53, once
fetch ADDRESS        prints how many bytes came by TCP
ask ADDRESS PORT connected|open    prints how many bytes the answer has, or nothing
hear tcp|udp PORT    says ready; prints the address of the first that reaches it
reach tcp|udp ADDRESS PORT FROM...    tries from each of these addresses, in this order
"""
import os
import socket
import sys

WAIT_S = 5 * int(os.environ.get("SLOWER", "1"))
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def listen(kind, port):
    here = socket.socket(socket.AF_INET6, kind)
    here.settimeout(10 * WAIT_S)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    here.bind(("::", port))
    if kind == TCP:
        here.listen()
    print("ready", flush=True)
    return here


def serve(what):
    if what == "tcp":
        peer, _ = listen(TCP, 8080).accept()
        peer.sendall(b"x" * 100000)
        peer.close()
    else:
        here = listen(UDP, 53)
        _, sender = here.recvfrom(100)
        here.sendto(b"y" * int(what), sender)


def fetch(address):
    peer = socket.create_connection((address, 8080), 10 * WAIT_S)
    count = 0
    while data := peer.recv(65536):
        count += len(data)
    print(count)


def ask(address, port, how):
    asks = socket.socket(family_of(address), UDP)
    asks.settimeout(WAIT_S)
    asks.bind(("", int(port)))
    if how == "connected":
        asks.connect((address, 53))
        asks.send(b"?")
    else:
        asks.sendto(b"?", (address, 53))
    try:
        print(len(asks.recv(65535)))
    except TimeoutError:
        print("nothing")


def hear(kind, port):
    if kind == "tcp":
        _, sender = listen(TCP, int(port)).accept()
    else:
        _, sender = listen(UDP, int(port)).recvfrom(100)
    print(sender[0].removeprefix("::ffff:"))


def reach(kind, address, port, *sources):
    for source in sources:
        there = socket.socket(family_of(address), TCP if kind == "tcp" else UDP)
        there.settimeout(2)
        there.bind((source, 0))
        try:
            there.connect((address, int(port)))
            there.send(b"!")
        except OSError:
            pass


globals()[sys.argv[1]](*sys.argv[2:])
