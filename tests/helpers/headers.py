#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
headers.py SENDER RECEIVER [back|bypass]: sends UDP packets behind headers of many kinds, from the interface vtx of one network
namespace to vrx of the other, and says for each whether it got to a socket there, which listens on PORT. back: SENDER has
vrx and RECEIVER vtx; bypass: so too, and the packets go past the queues of the interface (PACKET_QDISC_BYPASS).
"""
import ctypes
import errno
import os
import socket
import struct
import sys

PORT = 5300  # what the rule of the test is about; the next one is for a packet of each case that no rule is about
IPV4 = socket.inet_aton("10.99.0.1") + socket.inet_aton("10.99.0.2")
IPV6 = socket.inet_pton(socket.AF_INET6, "fd99::1") + socket.inet_pton(socket.AF_INET6, "fd99::2")
UDP, ROUTING, FRAGMENT, OPTIONS = 17, 43, 44, 60
CLONE_NEWNET = 0x40000000
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def udp(addresses, text, port=PORT):
    length = 8 + len(text)
    head = struct.pack("!HHH", 1234, port, length)
    pseudo = addresses + struct.pack("!HH", UDP, length)
    return head + struct.pack("!H", checksum(pseudo + head + bytes(2) + text) or 0xffff) + text


def ipv4(payload, fragment=0):
    head = struct.pack("!BBHHHBB", 0x45, 0, 20 + len(payload), 7, fragment, 64, UDP)
    return b"\x08\0" + head + struct.pack("!H", checksum(head + bytes(2) + IPV4)) + IPV4 + payload


def ipv6(kind, payload):
    return b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(payload), kind, 64) + IPV6 + payload


def tags(count, packet, kind=0x8100):
    return struct.pack("!HH", kind, 0) * count + packet


def options(following):
    return bytes((following, 0, 1, 4, 0, 0, 0, 0))


def fragment(following, units, more):
    return struct.pack("!BBHI", following, 0, units << 3 | more, 77)


def many_options(count, text):
    return ipv6(OPTIONS, options(OPTIONS) * (count - 1) + options(UDP) + udp(IPV6, text))


def split_headers(text):
    """The first fragment has the first options, the second one the second options and the ports."""
    return (ipv6(FRAGMENT, fragment(OPTIONS, 0, 1) + options(OPTIONS)),
            ipv6(FRAGMENT, fragment(OPTIONS, 1, 0) + options(UDP) + udp(IPV6, text)))


CASES = {
    "plain": lambda text: [ipv4(udp(IPV4, text))],
    "fragments of 8 bytes": lambda text: [ipv4(udp(IPV4, text)[:8], 0x2000), ipv4(udp(IPV4, text)[8:], 1)],
    "3 tags": lambda text: [tags(3, ipv4(udp(IPV4, text)))],
    "7 tags of 802.1ad": lambda text: [tags(7, ipv4(udp(IPV4, text)), 0x88a8)],
    "64 tags": lambda text: [tags(64, ipv6(UDP, udp(IPV6, text)))],
    "65 tags": lambda text: [tags(65, ipv4(udp(IPV4, text)))],
    "350 tags": lambda text: [tags(350, ipv4(udp(IPV4, text)))],
    "8 options": lambda text: [many_options(8, text)],
    "9 options": lambda text: [many_options(9, text)],
    "100 options": lambda text: [many_options(100, text)],
    "178 options": lambda text: [many_options(178, text)],
    "atomic fragment": lambda text: [ipv6(FRAGMENT, fragment(UDP, 0, 0) + udp(IPV6, text))],
    "routing": lambda text: [ipv6(ROUTING, bytes((UDP, 0, 253, 0, 0, 0, 0, 0)) + udp(IPV6, text))],
    "split headers": split_headers,
}


def enter(namespace):
    fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), namespace)
    os.close(fd)


def listen(port):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", port))
    return sock


def main(sender, receiver, way="to"):
    global IPV4, IPV6
    there, here = ("vrx", "vtx")
    if way != "to":
        there, here, IPV4, IPV6 = here, there, IPV4[4:] + IPV4[:4], IPV6[16:] + IPV6[:16]
    enter(receiver)
    sock, last = listen(PORT), listen(PORT + 1)
    sock.setblocking(False)
    last.settimeout(30)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.bind((there, 0))
    destination = link.getsockname()[4]
    enter(sender)
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    out.bind((here, 0))
    if way == "bypass":
        out.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    for case, packets in CASES.items():
        text = case.encode()
        for packet in (*packets(text), ipv4(udp(IPV4, text, PORT + 1))):
            try:
                out.send(destination + out.getsockname()[4] + packet)
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # the filter at tc says so to the sender
                    raise
        while last.recv(100) != text:
            pass
        try:
            got = sock.recv(100) == text
        except BlockingIOError:
            got = False
        print(f"{case}: {'delivered' if got else 'stopped'}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
