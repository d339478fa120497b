#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Sends from this network namespace, and says what the kernel answers to the sender.
outgoing.py udp|udp-errors|icmp|raw DESTINATION PORT: one packet; prints "sent", or the error.
outgoing.py tcp DESTINATION PORT: tries to connect for half a second; prints "connected", or the error.
outgoing.py serve PORT: takes connections, reads them to their end, prints their bytes.
outgoing.py push DESTINATION PORT BYTES: connects and sends so many bytes; prints how many seconds it took.
outgoing.py receive PORT: prints "came" for each datagram.
outgoing.py detach IFACE: takes the first program off its egress, of tcx or of clsact, as another tool would.
outgoing.py tun NAME ADDRESS...: makes the interface; for each line of hexadecimal of standard input a packet comes from it,
    for "N hexadecimal" one of which the driver leaves only N bytes in the first buffer, as it may where a packet is larger than a
    page; for each line "read", prints how many packets have been sent to it. Ends with its input.
"""
import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
import time

IP_RECVERR, IPV6_RECVERR = 11, 25
TUNSETIFF, IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x400454ca, 1, 0x1000, 0x4000


def family(destination):
    return socket.AF_INET6 if ":" in destination else socket.AF_INET


def answer(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno, "ETIMEDOUT" if isinstance(error, TimeoutError) else str(error))
    return "sent"


def udp(destination, port, errors=False):
    sock = socket.socket(family(destination), socket.SOCK_DGRAM)
    if errors and family(destination) == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    elif errors:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
    return answer(lambda: sock.sendto(b"x", (destination, int(port))))


def icmp(destination, _):
    v6 = family(destination) == socket.AF_INET6
    sock = socket.socket(family(destination), socket.SOCK_RAW, socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
    body = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0 if v6 else 0xf7fe, 1, 0)
    return answer(lambda: sock.sendto(body, (destination, 0)))


def raw(destination, port):
    """The sender writes the IP header, too."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28, 7, 0, 64, 17, 0) + bytes(4) + socket.inet_aton(destination)
    return answer(lambda: sock.sendto(head + struct.pack("!HHHH", 1234, int(port), 8, 0), (destination, 0)))


def tcp(destination, port):
    sock = socket.socket(family(destination), socket.SOCK_STREAM)
    sock.settimeout(0.5)
    said = answer(lambda: sock.connect((destination, int(port))))
    return "connected" if said == "sent" else said


def serve(port):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("::", int(port)))
    sock.listen(8)
    print("listening", flush=True)
    while True:
        connection, _ = sock.accept()
        count = 0
        with connection:
            while data := connection.recv(1 << 20):
                count += len(data)
        print(count, flush=True)


def push(destination, port, count):
    sock = socket.create_connection((destination, int(port)), 20)
    sock.settimeout(20)
    chunk, left, start = bytes(1 << 20), int(count), time.monotonic()
    while left:
        left -= sock.send(chunk[:min(left, len(chunk))])
    sock.shutdown(socket.SHUT_WR)
    sock.recv(1)
    return f"{time.monotonic() - start:.3f}"


def receive(port):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", int(port)))
    print("listening", flush=True)
    while True:
        sock.recv(2048)
        print("came", flush=True)


def detach(name):
    flags_before = 8
    attributes = ctypes.create_string_buffer(struct.pack("IIIIIIQ", socket.if_nametoindex(name), 0, 47, flags_before, 0, 0, 0), 128)
    if ctypes.CDLL(None).syscall(321, 9, attributes, 128):
        os.system(f"tc filter del dev {name} egress")


# Puts a program that passes all packets (TCX_PASS) before those that see sent packets.
def before(name):
    libc, flags_before = ctypes.CDLL(None), 8
    code = ctypes.create_string_buffer(b"\xb7" + bytes(7) + b"\x95" + bytes(7))
    licence = ctypes.create_string_buffer(b"GPL")
    program = struct.pack("IIQQ", 3, 2, ctypes.addressof(code), ctypes.addressof(licence))
    fd = libc.syscall(321, 5, ctypes.create_string_buffer(program, 128), 128)
    place = struct.pack("IiIIIIQ", socket.if_nametoindex(name), fd, 47, flags_before, 0, 0, 0)
    sys.exit(libc.syscall(321, 8, ctypes.create_string_buffer(place, 128), 128) != 0)


def tun(name, *addresses):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
    for address in addresses:
        os.system(f"ip address add {address} dev {name} nodad")
    os.system(f"ip link set {name} up")
    print("ready", flush=True)
    count = 0
    for line in sys.stdin:
        try:
            while True:
                os.read(fd, 65536)
                count += 1
        except BlockingIOError:
            pass
        if line.strip() == "read":
            print(count, flush=True)
            count = 0
        else:
            *linear, packet = line.split()
            os.write(fd, struct.pack("BBHHHH", 0, 0, int(linear[0]) if linear else 0, 0, 0, 0) + bytes.fromhex(packet))


if __name__ == "__main__":
    kinds = {"udp": udp, "icmp": icmp, "raw": raw, "tcp": tcp, "serve": serve, "push": push, "receive": receive, "tun": tun, "detach": detach,
             "before": before,
             "udp-errors": lambda destination, port: udp(destination, port, True)}
    result = kinds[sys.argv[1]](*sys.argv[2:])
    if result is not None:
        print(result)
