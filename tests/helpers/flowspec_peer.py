#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""flowspec_peer.py PEER AS COUNT [RATE,...|random:SEED]: a BGP speaker that announces COUNT flows `destination 10.x.x.x/32
protocol udp` to PEER, 40 a message, with a traffic rate (default: 0; nan is what no daemon sends). With several rates, flow
N has rate N, again from the first. `random`: all kinds of components and communities. It then stays until it is killed."""
import random
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


def random_flow(number):
    flow = b"\x01\x20" + struct.pack("!I", 0x0A000000 + number)
    if random.random() < 0.3:
        flow += b"\x02\x18" + random.randbytes(3)
    for kind in range(3, 13):
        if random.random() > (0.7 if kind == 3 else 0.08):
            continue
        flow += bytes([kind])
        count = random.choice((1, 1, 1, 2, 3))
        low = random.randrange(60000)
        for i in range(count):
            value = random.choice((6, 17, 17, 6, 47, 94, 200)) if kind == 3 else low + i if kind in (4, 5, 6) else low & 255
            size = value > 255 or random.random() < 0.2
            operator = random.choice((1,) * 12 + (0, 2, 3, 4, 5, 6, 7))
            if count == 2 and kind != 3 and random.random() < 0.5:
                operator = 0x45 if i else 3
            operator |= random.choice((0, 0, 0, 0, 0x40)) | size << 4 | (i == count - 1) << 7
            flow += bytes([operator]) + value.to_bytes(1 + size, "big")
    return (bytes([len(flow)]) if len(flow) < 240 else struct.pack("!H", 0xF000 | len(flow))) + flow


def random_communities():
    rate = b"\x80\x06\x00\x00"
    drops = (rate + b"\0" * 4, rate + struct.pack("!f", -1), b"\x80\x0c" + b"\0" * 6)
    others = (rate + struct.pack("!f", 1e-9), b"\x80\x0c\0\0" + struct.pack("!f", 5), b"\x80\x08\xfd\xe9\0\0\0\x64",
              b"\x80\x09" + b"\0" * 5 + b"\x0a", b"\x81\x08\x01\x02\x03\x04\0\x05", b"\x82\x08\0\1\0\2\0\3")
    nothing = (b"\x43\0" + b"\0" * 6, b"\x03\x0b" + b"\0" * 5 + b"\x01", b"\x40\x04\xfd\xe8" + b"\0" * 4, b"\0\x02\xfd\xe8\0\0\0\1",
               b"\x99\x01" + b"\0" * 6, b"\x80\x07" + b"\0" * 5 + b"\x03", b"\x80\x55" + b"\0" * 6)
    chosen = [random.choice(drops)] * (random.random() < 0.9) + [random.choice(others)] * (random.random() < 0.1)
    chosen += random.sample(nothing, random.randrange(3))
    return random.sample(chosen, len(chosen))


def update(local_as, communities, flows):
    attributes = attribute(0x40, 1, b"\x00")
    attributes += attribute(0x40, 2, struct.pack("!BBI", 2, 1, local_as))
    attributes += attribute(0xC0, 16, communities)
    attributes += attribute(0x80, 14, struct.pack("!HBBB", 1, FLOWSPEC, 0, 0) + b"".join(flows))
    return message(2, struct.pack("!HH", 0, len(attributes)) + attributes)


def main():
    peer, local_as, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rates = sys.argv[4] if len(sys.argv) > 4 else "0"
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
    if rates.startswith("random:"):
        random.seed(rates)
        for number in range(count):
            link.sendall(update(local_as, b"".join(random_communities()), [random_flow(number)]))
    else:
        rates = [b"\x80\x06\0\0" + struct.pack("!f", float(rate)) for rate in rates.split(",")]
        for i, rate in enumerate(rates):
            flows = [nlri(number) for number in range(i, count, len(rates))]
            for first in range(0, len(flows), 40):
                link.sendall(update(local_as, rate, flows[first:first + 40]))
    while True:
        time.sleep(1)
        link.sendall(message(4))


main()
