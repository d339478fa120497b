#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Reads a pcapng file strictly by its specification (draft-ietf-opsawg-pcapng), and prints a line for each
packet: interface, seconds since 1970, length on the wire, bytes captured, their hexadecimal digits, comment;
between tabs. Shares nothing with the tool's writer. Status 1, with what is wrong, where a block is not sound.
"""
import struct
import sys

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
END, COMMENT, NAME, RESOLUTION = 0, 1, 2, 9
ETHERNET = 1


def need(holds, what):
    if not holds:
        sys.exit(f"pcapng: {what}")


def padded(size):
    return (size + 3) // 4 * 4


def blocks(data):
    at = 0
    while at < len(data):
        need(len(data) - at >= 12, f"{len(data) - at} bytes at the end are no block")
        kind, size = struct.unpack_from("=II", data, at)
        need(size % 4 == 0 and 12 <= size <= len(data) - at, f"a block of {size} bytes at {at}")
        need(struct.unpack_from("=I", data, at + size - 4)[0] == size, f"two lengths of the block at {at}")
        yield kind, data[at + 8 : at + size - 4]
        at += size


def options(data):
    found = {}
    at = 0
    while at < len(data):
        code, size = struct.unpack_from("=HH", data, at)
        need(at + 4 + padded(size) <= len(data), "an option runs past its block")
        if code == END:
            need(size == 0 and at + 4 == len(data), "something is behind the end of options")
            return found
        found[code] = data[at + 4 : at + 4 + size]
        need(not any(data[at + 4 + size : at + 4 + padded(size)]), "padding that is not 0")
        at += 4 + padded(size)
    need(not found, "options without an end")
    return found


def read_section(body):
    magic, major, minor, length = struct.unpack_from("=IHHq", body)
    need(magic == 0x1A2B3C4D and (major, minor) == (1, 0) and length == -1, "not a section")
    options(body[16:])


def read_interface(body):
    link, _, snap = struct.unpack_from("=HHI", body)
    found = options(body[8:])
    need(link == ETHERNET, f"link type {link}")
    need(found[RESOLUTION] == b"\x09", "times are not in nanoseconds")
    return found[NAME].decode(), snap


def print_packet(body, interfaces):
    number, high, low, captured, length = struct.unpack_from("=5I", body)
    need(number < len(interfaces), f"interface {number} has not come")
    name, snap = interfaces[number]
    need(captured <= snap and captured <= length, f"{captured} of {length} bytes, at most {snap}")
    comment = options(body[20 + padded(captured) :])[COMMENT].decode()
    time = (high << 32 | low) / 1e9
    print(name, f"{time:.6f}", length, captured, body[20 : 20 + captured].hex(), comment, sep="\t")


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    interfaces = []
    kinds = []
    for kind, body in blocks(data):
        kinds.append(kind)
        need(kinds[0] == SECTION and kind in (SECTION, INTERFACE, PACKET), f"a block of type {kind}")
        if kind == SECTION:
            need(len(kinds) == 1, "a second section")
            read_section(body)
        elif kind == INTERFACE:
            interfaces.append(read_interface(body))
        else:
            print_packet(body, interfaces)
    need(kinds, "nothing")
    need(len(set(interfaces)) == len(interfaces), "an interface comes twice")


main()
