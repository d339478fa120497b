# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
python3 escalate.py COUNT [STATE]: blocks whole networks, by libxdp-cuckoo and ctypes alone.

It watches the packets that the filter drops. If at least COUNT blocked addresses of one network (/24, for IPv6 /48)
keep sending, it blocks the network for an hour, in a list of its own. `xdp-cuckoo lists` shows the list, and
`xdp-cuckoo lists delete escalated` takes it back without touching any other rule. When the program ends, it prints
how many packets each network has sent since.
"""

import collections
import ctypes
import ipaddress
import select
import signal
import socket
import sys
import time

LIST = b"escalated"
BLOCKED_MS = 60 * 60 * 1000
PREFIX = {4: 24, 6: 48}
CHANGE = 1  # XDP_CUCKOO_CHANGE


# These structures are as in xdp-cuckoo.h.
class Rule(ctypes.Structure):
    _fields_ = [
        ("family", ctypes.c_uint16), ("action", ctypes.c_uint8), ("fields", ctypes.c_uint8), ("proto", ctypes.c_uint8),
        ("src_bits", ctypes.c_uint8), ("dst_bits", ctypes.c_uint8), ("reserved", ctypes.c_uint8),
        ("sport", ctypes.c_uint16), ("dport", ctypes.c_uint16),
        ("src", ctypes.c_uint8 * 16), ("dst", ctypes.c_uint8 * 16), ("reserved2", ctypes.c_uint8 * 4),
        ("timeout_ms", ctypes.c_int64), ("comment", ctypes.c_char * 256),
    ]


class Sample(ctypes.Structure):
    _fields_ = [
        ("time_ns", ctypes.c_int64), ("outcome", ctypes.c_char_p), ("frame", ctypes.POINTER(ctypes.c_uint8)),
        ("frame_bytes", ctypes.c_uint32), ("packet_bytes", ctypes.c_uint32), ("interface", ctypes.c_uint32),
        ("cause", ctypes.c_uint8), ("is_dropped", ctypes.c_bool), ("has_flow", ctypes.c_bool),
        ("reserved", ctypes.c_uint8), ("flow", Rule), ("rule", Rule),
    ]


class Matched(ctypes.Structure):
    _fields_ = [("packets", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


VISIT_SAMPLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Sample), ctypes.c_void_p)
VISIT_COUNTED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Rule), ctypes.POINTER(Matched), ctypes.c_void_p)

library = ctypes.CDLL("libxdp-cuckoo.so.1")
library.xdp_cuckoo_error.restype = ctypes.c_char_p
handle = ctypes.c_void_p()


def check(result):
    """Ends the program with the library's reason if a call has failed."""
    if result < 0:
        sys.exit("escalate: " + library.xdp_cuckoo_error(handle).decode())


def source(rule):
    length = 4 if rule.family == socket.AF_INET else 16
    return ipaddress.ip_address(bytes(rule.src[:length]))


def rule_of(network):
    rule = Rule(family=socket.AF_INET if network.version == 4 else socket.AF_INET6, src_bits=network.prefixlen,
                timeout_ms=BLOCKED_MS)
    for i, byte in enumerate(network.network_address.packed):
        rule.src[i] = byte
    return rule


def block(networks):
    """All networks in one change. Errors of one rule do not matter; fatal errors show at the commit."""
    check(library.xdp_cuckoo_begin(handle))
    for network in networks:
        library.xdp_cuckoo_list_add(handle, LIST, ctypes.byref(rule_of(network)))
    check(library.xdp_cuckoo_commit(handle))


def print_counts():
    def visit(rule, matched, _):
        print(f"{source(rule[0])}/{rule[0].src_bits}: {matched[0].packets} packets, {matched[0].bytes} bytes")
        return 0

    check(library.xdp_cuckoo_each_counted(handle, LIST, VISIT_COUNTED(visit), None))


def watch(fd, wanted):
    blocked = {}  # when the rule of a network ends
    senders = collections.defaultdict(set)

    # An exception cannot pass through the library. So this function only collects.
    def visit(sample, _):
        if sample[0].has_flow:
            address = source(sample[0].flow)
            network = ipaddress.ip_network((address, PREFIX[address.version]), strict=False)
            if network not in blocked:
                senders[network].add(address)
        return 0

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    visit_sample = VISIT_SAMPLE(visit)
    while True:
        poll.poll()
        now = time.monotonic()
        blocked = {network: end for network, end in blocked.items() if end > now}
        check(library.xdp_cuckoo_samples_read(handle, visit_sample, None))
        new = [network for network, addresses in senders.items() if len(addresses) >= wanted]
        if new:
            block(new)
        for network in new:
            blocked[network] = now + BLOCKED_MS / 1000
            del senders[network]


def end(*_):
    raise KeyboardInterrupt


def main():
    if len(sys.argv) < 2 or not sys.argv[1].isdigit():
        sys.exit("usage: escalate.py COUNT [STATE]")
    fd = ctypes.c_int()
    state = sys.argv[2].encode() if len(sys.argv) > 2 else None
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    check(library.xdp_cuckoo_open(None, state, CHANGE, ctypes.byref(handle)))
    check(library.xdp_cuckoo_samples_open(handle, 1, 0, ctypes.byref(fd)))
    try:
        block([])  # finds out now whether rules can be changed
        print("watching", flush=True)
        watch(fd.value, int(sys.argv[1]))
    except KeyboardInterrupt:
        print_counts()
    library.xdp_cuckoo_close(handle)


main()
