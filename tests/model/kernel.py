# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's side: the program that an interface runs, test runs of it, and real frames. Linux on 64 bits alone."""
import ctypes
import errno
import os
import platform
import select
import socket
import struct
import time

XDP_DROP, XDP_PASS = 1, 2
PROG_TEST_RUN, PROG_GET_FD_BY_ID = 10, 13
BPF = {"x86_64": 321}.get(platform.machine(), 280)
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr, size):
    result = libc.syscall(BPF, command, attr, size)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf(%d): %s" % (command, os.strerror(ctypes.get_errno())))
    return result


def attributes(data, kind=0):
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        if length < 4:
            return
        yield kind & 0x3fff, data[4:length]
        data = data[(length + 3) & ~3:]


def program_of(interface):
    """The id of the XDP program that the interface runs, or None."""
    RTM_GETLINK, IFLA_XDP, IFLA_XDP_PROG_ID = 18, 43, 4
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        head = struct.pack("BBHiII", 0, 0, 0, socket.if_nametoindex(interface), 0, 0)
        link.send(struct.pack("IHHII", 16 + len(head), RTM_GETLINK, 1, 1, 0) + head)
        answer = link.recv(1 << 16)
    for kind, value in attributes(answer[32:]):
        if kind == IFLA_XDP:
            for inner, number in attributes(value):
                if inner == IFLA_XDP_PROG_ID:
                    return struct.unpack("I", number)[0]
    return None


class Program:
    """The program with that id; run() gives its verdict on a frame, and counts it as any other."""
    def __init__(self, number):
        attr = ctypes.create_string_buffer(struct.pack("I", number).ljust(120, b"\0"))
        self.fd = bpf(PROG_GET_FD_BY_ID, attr, 120)
        self.attr = ctypes.create_string_buffer(120)

    def close(self):
        os.close(self.fd)

    def run(self, frame):
        struct.pack_into("IIIIQQIIIIQQIII", self.attr, 0, self.fd, 0, len(frame), 0,
                         ctypes.cast(ctypes.c_char_p(frame), ctypes.c_void_p).value, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
        while True:
            try:
                bpf(PROG_TEST_RUN, self.attr, 80)
                return struct.unpack_from("I", self.attr, 4)[0]
            except OSError as error:
                if error.errno not in (errno.EINTR, errno.EAGAIN):
                    raise


class Wire:
    """Frames from an interface of another namespace to one of ours."""
    def __init__(self, namespace, sender, receiver):
        self.receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        self.receiver.bind((receiver, 3))
        ours, theirs = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(namespace, os.O_RDONLY)
        if libc.setns(theirs, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        self.sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sender.bind((sender, 0))
        libc.setns(ours, CLONE_NEWNET)
        os.close(ours)
        os.close(theirs)

    def drain(self, arrived, wait_s):
        while select.select([self.receiver], [], [], wait_s)[0]:
            frame = self.receiver.recv(2048)
            if frame[6:7] == b"\6":
                arrived.add(int.from_bytes(frame[7:12], "big"))
            wait_s = 0

    def send(self, frames, awaited):
        """The numbers of those that arrived: `awaited` are waited for, and whatever came meanwhile."""
        arrived = set()
        self.drain(set(), 0)
        for at in range(0, len(frames), 32):
            for frame in frames[at:at + 32]:
                self.sender.send(frame)
            self.drain(arrived, 0)
        end = time.monotonic() + 5
        while not awaited <= arrived and time.monotonic() < end:
            self.drain(arrived, 0.05)
        self.drain(arrived, 0.002)
        return arrived
