#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""flowspec_peer.py PEER AS COUNT [RATE]: a BGP speaker that announces COUNT flows `destination 10.x.x.x/32 protocol udp` to
PEER, 40 a message, with a traffic rate (default: 0; nan is what no daemon sends). It then stays until it is killed."""
import socket
import struct
import sys
import threading
import time

FLOWSPEC = 133


def message(kind, body=b""):
    return b"\xff" * 16 + struct.pack("!HB", 19 + len(body), kind) + body


def attribute(flags, kind, value):
    return struct.pack("!BBH", flags | 0x10, kind, len(value)) + value


def nlri(number):
    flow = b"\x01\x20" + struct.pack("!I", 0x0A000000 + number) + b"\x03\x81\x11"
    return bytes([len(flow)]) + flow


def update(local_as, rate, numbers):
    attributes = attribute(0x40, 1, b"\x00")
    attributes += attribute(0x40, 2, struct.pack("!BBI", 2, 1, local_as))
    attributes += attribute(0xC0, 16, b"\x80\x06\x00\x00" + struct.pack("!f", rate))
    attributes += attribute(0x80, 14, struct.pack("!HBBB", 1, FLOWSPEC, 0, 0) + b"".join(map(nlri, numbers)))
    return message(2, struct.pack("!HH", 0, len(attributes)) + attributes)


def main():
    peer, local_as, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rate = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    while True:
        try:
            link = socket.create_connection((peer, 179), 1)
            link.settimeout(None)
            capabilities = struct.pack("!BBHBB", 1, 4, 1, 0, FLOWSPEC) + struct.pack("!BBI", 65, 4, local_as)
            parameter = bytes([2, len(capabilities)]) + capabilities
            link.sendall(message(1, struct.pack("!BHHIB", 4, local_as, 90, 0x0A630001, len(parameter)) + parameter))
            if link.recv(4096)[18:19] != b"\x01":
                raise OSError("no OPEN")
            break
        except OSError:
            time.sleep(0.2)
    link.sendall(message(4))

    def read():
        while link.recv(65536):
            pass

    threading.Thread(target=read, daemon=True).start()
    time.sleep(0.5)
    for first in range(0, count, 40):
        link.sendall(update(local_as, rate, range(first, min(first + 40, count))))
    while True:
        time.sleep(1)
        link.sendall(message(4))


main()
