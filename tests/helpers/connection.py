#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
One end of a TCP connection that stays, in this network namespace. Waits for a signal.
connection.py connect ADDRESS PORT [--from PORT] [--sent BYTES]: begins it, also if nobody answers; prints "begun".
connection.py listen ADDRESS PORT [--from PORT] [--sent BYTES]: prints "listening"; sends BYTES to who connects; prints "taken".
"""
import argparse
import signal
import socket
import time

options = argparse.ArgumentParser()
options.add_argument("end")
options.add_argument("address")
options.add_argument("port", type=int)
options.add_argument("--from", type=int, default=0, dest="own")
options.add_argument("--sent", type=int, default=0)
given = options.parse_args()

sock = socket.socket(socket.AF_INET6 if ":" in given.address else socket.AF_INET)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if given.end == "listen":
    sock.bind((given.address, given.port))
    sock.listen()
    print("listening", flush=True)
    peer, _ = sock.accept()
    peer.send(bytes(given.sent))
    # struct tcp_info: tcpi_unacked is the number of packets that the peer has not confirmed.
    while int.from_bytes(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)[24:28], "little"):
        time.sleep(0.01)
    print("taken", flush=True)
else:
    if given.own:
        sock.bind(("", given.own))
    sock.setblocking(False)
    sock.connect_ex((given.address, given.port))
    print("begun", flush=True)
signal.pause()
