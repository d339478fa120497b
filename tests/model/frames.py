# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Frames of a flow, in the many forms that a flow comes in. Who builds a frame knows what is in it: build() returns
what a filter can read of it, so that no parser is needed here.
"""
import struct

from rules import BITS, ICMP, PORTS, Flow

NO_RULE, FRAGMENT, NOT_IP, TRUNCATED, MALFORMED = "no-rule", "later-fragment", "not-ip", "truncated", "malformed"
HOPOPTS, ROUTING, FRAGMENT_HEADER, AH, DSTOPTS = 0, 43, 44, 51, 60
EXTENSIONS = (HOPOPTS, ROUTING, FRAGMENT_HEADER, AH, DSTOPTS, 135, 139, 140)
EXTENSIONS_MAX = 2  # that are drawn: how many the filter looks behind has tests of its own
TAGS_MAX = 2


def transport(rng, flow):
    first, second = flow.ports or (0, 0)
    if flow.proto in PORTS:
        head = struct.pack("!HH", first, second)
        return head + (struct.pack("!IIBBHHH", 1, 0, 0x50, 2, 1024, 0, 0) if flow.proto == 6 else bytes(8))
    if flow.proto in ICMP:
        return struct.pack("!BBHI", first, second, 0, 1)
    return rng.randbytes(16)


def ipv4(rng, flow, data, fragment, stated):
    words = rng.choice((5, 5, 5, 6, 15))
    total = 4 * words + len(data) if stated is None else 4 * words + stated
    return struct.pack("!BBHHHBBH", 0x40 | words, 0, total, 7, fragment, 64, flow.proto, 0) + \
        flow.src.to_bytes(4, "big") + flow.dst.to_bytes(4, "big") + b"\1" * (4 * words - 20) + data


def extension(rng, kind, following):
    if kind == AH:
        return struct.pack("!BBHII", following, 2, 0, 1, 1) + bytes(4)
    units = rng.choice((0, 0, 1, 3))
    body = bytes((1, 8 * units + 4)) + bytes(8 * units + 4)
    return struct.pack("!BB", following, units) + body


def ipv6(rng, flow, data, fragment, stated):
    kinds = [rng.choice((ROUTING, AH, DSTOPTS, 135)) for _ in range(rng.choice((0, 0, 0, 1, EXTENSIONS_MAX)))]
    if kinds and rng.random() < 0.3:
        kinds[0] = HOPOPTS
    if fragment is not None:
        kinds.append(FRAGMENT_HEADER)
    heads = b""
    for kind, following in zip(kinds, kinds[1:] + [flow.proto]):
        heads += struct.pack("!BBHI", following, 0, fragment, 9) if kind == FRAGMENT_HEADER else \
            extension(rng, kind, following)
    length = len(heads) + (len(data) if stated is None else stated)
    return struct.pack("!IHBB", 6 << 28, length, (kinds + [flow.proto])[0], 64) + \
        flow.src.to_bytes(16, "big") + flow.dst.to_bytes(16, "big") + heads + data


def ethernet(rng, number, ethertype, data):
    """`number` is the source address, by which a frame is known where it arrives."""
    head = b"\2\0\0\0\0\1" + b"\6" + number.to_bytes(5, "big")
    for _ in range(rng.choice((0, 0, 0, 0, 1, TAGS_MAX))):
        head += struct.pack("!HH", rng.choice((0x8100, 0x88a8)), rng.randrange(4095))
    return head + struct.pack("!H", ethertype) + data


def build(rng, flow, number):
    """(frame, what a filter can read of it, what it is where no rule decides). The flow is None where none is there."""
    form = rng.choices(("whole", "first", "later", "cut", "short", "malformed", "other"), (80, 4, 6, 3, 3, 2, 2))[0]
    is_ipv4 = flow.family == 4
    make, ethertype = (ipv4, 0x800) if is_ipv4 else (ipv6, 0x86dd)
    data = transport(rng, flow) + rng.randbytes(rng.choice((0, 1, 30)))
    fragment = (rng.choice((0, 0x4000)) if is_ipv4 else None)
    outcome, stated = NO_RULE, None
    unread = flow._replace(ports=None)
    if form == "other":
        kind = rng.choice((0x806, 0x8847, 0x88cc))
        return ethernet(rng, number, kind, rng.randbytes(46)), None, NOT_IP
    if form == "malformed":
        packet = make(rng, flow, data, fragment, None)
        bad = rng.choice((0x43, 0x55, 0x05) if is_ipv4 else (0x50, 0x40, 0))
        return ethernet(rng, number, ethertype, bytes((bad,)) + packet[1:]), None, MALFORMED
    if form == "first":
        fragment = 0x2000 if is_ipv4 else 1
    if form == "later":
        fragment = rng.choice((1, 0x2001, 0x1fff)) if is_ipv4 else rng.choice((8, 9, 0xfff8))
        flow, outcome = unread, FRAGMENT
        data = rng.randbytes(24)
    if form in ("cut", "short") and flow.proto in PORTS + tuple(ICMP):
        # Ends among the ports, or says so.
        size = rng.randrange(4 if flow.proto in PORTS else 2)
        if form == "short" and not is_ipv4:
            size = max(size, 1)  # a length of 0 says nothing: BIG TCP
        flow, outcome = unread, TRUNCATED
        if form == "cut":
            return ethernet(rng, number, ethertype, make(rng, flow, b"", fragment, 20) + data[:size]), flow, outcome
        stated = size
    return ethernet(rng, number, ethertype, make(rng, flow, data, fragment, stated)), flow, outcome


# ---- flows ----

def near(rng, family, net):
    """An address in the network, at its ends, or just beside it."""
    width = BITS[family] - net[1]
    low, high = net[0], net[0] | (1 << width) - 1
    number = rng.choice((low, high, low + rng.getrandbits(width) if width else low, low, high, low - 1, high + 1,
                         low ^ 1 << rng.randrange(BITS[family])))
    return number & (1 << BITS[family]) - 1


def number_near(rng, value, limit):
    if value is None:
        return rng.choice((0, limit, rng.randint(0, limit), 53, 80 & limit))
    return (value + rng.choice((0, 0, 0, 0, 0, 1, -1, 256))) % (limit + 1)


def draw(rng, rules, universe):
    """A flow that is like one of the rules, or nearly."""
    one = rng.choice(rules) if rules and rng.random() < 0.93 else universe.rule(rng)
    other = rng.choice(rules) if rules else one
    family = one.family or rng.choice((4, 6))
    src = near(rng, family, one.src) if one.src[1] else universe.address(rng, family)
    if one.dst[1]:
        dst = near(rng, family, one.dst)
    elif other.dst[1] and other.family == family:
        dst = near(rng, family, other.dst)
    else:
        dst = universe.address(rng, family)
    if not one.src[1] and other.src[1] and other.family == family:
        src = near(rng, family, other.src)
    proto = one.proto
    if proto is None:
        proto = rng.choice((1, 58)) if one.kind == "icmp" else \
            rng.choice(PORTS) if one.kind or rng.random() < 0.6 else rng.choice((1, 58, 47, 50, 89, other.proto or 6))
    elif rng.random() < 0.08:
        proto = rng.choice((6, 17, 1, 58, 132, (proto + 1) % 255))
    if family == 6 and proto in EXTENSIONS:
        proto = 89
    limit = 255 if proto in ICMP else 65535
    ports = None
    if proto in PORTS or proto in ICMP:
        like = one if one.kind else other
        ports = (number_near(rng, like.first, limit), number_near(rng, like.second, limit))
    return Flow(family, src, dst, proto, ports)
