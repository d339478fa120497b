#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The parser beside other dissectors, scapy and tshark. Frames are lines of hexadecimal digits:

    dissect.py generate SEED COUNT  # frames of many kinds, whole, cut, with lies and random changes
    dissect.py pcap FILE|DIR...     # those of captures of Ethernet; of a folder: *.pcap, *.pcapng and *.cap
    dissect.py scapy DISSECT FRAMES # compares. DISSECT: build/tests/helpers/dissect; FRAMES: a file of such lines
    dissect.py tshark DISSECT FRAMES

A comparison prints how many frames were the same, and the others by reason. Those are listed in DIFFERENCES; any
other is a failure, and so is where the other one has no opinion too often.
"""
import collections
import os
import random
import struct
import subprocess
import sys
import tempfile

NO_OPINION_MAX = 0.15  # of frames

# What the two see differently, by design, or where scapy says nothing of what the parser looks at.
DIFFERENCES = {
    "jumbogram": "where the IPv6 payload length is 0 the frame's end decides, be there a jumbo option (RFC 2675) or "
                 "not (BIG TCP); scapy then reads nothing",
    "depth": "tshark follows only some 30 VLAN tags",
    "0x9100": "tshark takes this ethertype for a VLAN tag; Linux does not, and delivers no such packet",
    "unknown": "the other one has no such header, or fails on what is in it: options, addresses, checks",
}

# ---- frames ----

HOPOPTS, ICMP, TCP, UDP, DCCP, ROUTING, FRAGMENT, GRE, ESP, AH = 0, 1, 6, 17, 33, 43, 44, 47, 50, 51
ICMPV6, NONE, DSTOPTS, SCTP, MOBILITY, UDPLITE, HIP, SHIM6 = 58, 59, 60, 132, 135, 136, 139, 140
IPIP, IPV6 = 4, 41
EXTENSIONS = (HOPOPTS, ROUTING, FRAGMENT, AH, DSTOPTS, MOBILITY, HIP, SHIM6)
PORTS = (TCP, UDP, DCCP, SCTP, UDPLITE)
TAGS = (0x8100, 0x88a8)
PPPOE = 0x8864
LINKTYPE_ETHERNET = 1
TSHARK_DEPTH = 50  # layers: two for each tag
TAGS_MAX, EXTENSIONS_MAX = 64, 182  # that the parser follows


def transport(rng, proto):
    ports = struct.pack("!HH", rng.choice((0, 53, 443, rng.getrandbits(16))), rng.getrandbits(16))
    if proto == TCP:
        return ports + rng.randbytes(8) + struct.pack("!BBHHH", 0x50, rng.getrandbits(8), 1024, 0, 0) + payload(rng)
    if proto == UDP:
        data = payload(rng)
        return ports + struct.pack("!HH", 8 + len(data), 0) + data
    if proto in (SCTP, UDPLITE, DCCP):
        return ports + rng.randbytes(8) + payload(rng)
    if proto in (ICMP, ICMPV6):
        return bytes((rng.choice((0, 3, 8, 11, 128, 129, 135, rng.getrandbits(8))), rng.choice((0, 1, 255)))) + \
            rng.randbytes(6) + payload(rng)
    if proto == GRE:
        return struct.pack("!HH", 0, 0x800) + ipv4(rng, 0)
    if proto in (ESP, NONE):
        return rng.randbytes(24)
    if proto == AH:
        return struct.pack("!BBH", TCP, 4, 0) + rng.randbytes(20) + transport(rng, TCP)
    if proto == IPIP:
        return ipv4(rng, 0)
    if proto == IPV6:
        return ipv6(rng, 0)
    return payload(rng)


def payload(rng):
    return rng.randbytes(rng.choice((0, 0, 1, 4, 18, 64)))


def protocol(rng, depth):
    usual = (TCP, UDP, ICMP, ICMPV6, SCTP, UDPLITE, DCCP, ESP, AH, NONE)
    tunnels = (GRE, IPIP, IPV6) if depth else ()
    return rng.choice(usual + tunnels + (rng.getrandbits(8) or 255,))


def ipv4(rng, depth=1, proto=None):
    proto = protocol(rng, depth) if proto is None else proto
    words = rng.choice((5, 5, 5, 5, rng.randint(6, 15)))
    fragment = rng.choice((0, 0, 0, 0x4000, 0x2000, 0x2001, 0x1fff, rng.getrandbits(16)))
    data = transport(rng, proto)
    length = lie(rng, 4 * words + len(data), (0, 19, 20, 23, 24, 4 * words, 4 * words + 1, 65535))
    options = bytes(rng.choice((0, 1)) for _ in range(4 * words - 20))
    return struct.pack("!BBHHHBBH", 0x40 | words, 0, length, rng.getrandbits(16), fragment, 64, proto, 0) + \
        rng.randbytes(8) + options + data


def extension(rng, kind, following):
    if kind == FRAGMENT:
        return struct.pack("!BBHI", following, 0, rng.choice((0, 0, 1, 8, 0xfff8, rng.getrandbits(16))), 1)
    if kind == AH:
        words = rng.choice((1, 2, 4))
        return struct.pack("!BBH", following, words, 0) + rng.randbytes(4 * (words + 2) - 4)
    units = rng.choice((0, 0, 1, 2, 5))
    head = struct.pack("!BB", following, lie(rng, units, (255, units + 1, 0)))
    if kind in (HOPOPTS, DSTOPTS):
        return head + bytes((1, 8 * units + 4)) + bytes(8 * units + 4)
    if kind == ROUTING:
        return head + bytes((rng.choice((0, 2, 3, 253)), 0)) + rng.randbytes(8 * units + 4)
    return head + rng.randbytes(8 * units + 6)


def ipv6(rng, depth=1):
    proto = protocol(rng, depth)
    kinds = [rng.choice(EXTENSIONS[:5]) if rng.random() < 0.9 else rng.choice(EXTENSIONS)
             for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 3, 8, 9, rng.choice((40, EXTENSIONS_MAX, EXTENSIONS_MAX + 1)))))]
    data = transport(rng, proto)
    for kind, following in reversed(list(zip(kinds, kinds[1:] + [proto]))):
        data = extension(rng, kind, following) + data
    length = lie(rng, len(data), (0, 1, 3, 4, 8, len(data) - 1, 65535))
    return struct.pack("!IHBB", 0x6 << 28 | rng.getrandbits(28), length & 0xffff, (kinds + [proto])[0], 64) + \
        rng.randbytes(32) + data


def lie(rng, truth, lies):
    return max(0, rng.choice(lies)) if rng.random() < 0.1 else truth


def frame(rng):
    kind, data = rng.choice(((0x800, ipv4), (0x800, ipv4), (0x86dd, ipv6), (0x86dd, ipv6), (0x806, payload),
                             (0x8847, payload), (rng.randint(0, 1600), payload)))
    if rng.random() < 0.3:
        kind, data = 0x800, lambda rng: ipv4(rng, 1, rng.choice((TCP, UDP)))
    tags = [rng.choice(TAGS) for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2, 3, rng.choice((7, TAGS_MAX, TAGS_MAX + 1)))))]
    head = rng.randbytes(12)
    for tag in tags:
        head += struct.pack("!HH", tag, rng.getrandbits(16))
    whole = head + struct.pack("!H", kind) + data(rng)
    return whole.ljust(60, rng.choice((b"\0", b"\xa5"))) if rng.random() < 0.5 else whole


def changed(rng, whole):
    whole = bytearray(whole)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 5))):
        at = min(rng.randrange(len(whole)), rng.randrange(len(whole)))  # rather in the headers
        whole[at] = rng.choice((0, 255, whole[at] ^ 1 << rng.randrange(8), rng.getrandbits(8)))
    if rng.random() < 0.25:
        del whole[rng.randrange(len(whole) + 1):]
    return bytes(whole)


def generate(seed, count):
    rng = random.Random(seed)
    print(frame(rng).hex())
    # One of each is cut at every length.
    for make in (ipv4, ipv6):
        whole = rng.randbytes(12) + (b"\x08\0" if make is ipv4 else b"\x86\xdd") + make(rng)
        for length in range(min(len(whole), count // 8) + 1):
            print(whole[:length].hex())
            count -= 1
    for _ in range(count - 1):
        print(changed(rng, frame(rng)).hex())


def captures(path):
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith((".pcap", ".pcapng", ".cap"))]


def from_captures(paths):
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapReader
    counts = collections.Counter()
    for path in (one for each in paths for one in captures(each)):
        try:
            reader = RawPcapReader(path)
            for data, about in reader:
                is_ethernet = getattr(about, "linktype", getattr(reader, "linktype", None)) == LINKTYPE_ETHERNET
                counts[is_ethernet] += 1
                if is_ethernet and data:
                    print(bytes(data).hex())
        except (Scapy_Exception, EOFError, struct.error) as error:
            print(f"{path}: {error}", file=sys.stderr)
    print(f"{counts[True]} frames of captures; {counts[False]} of other links are left out", file=sys.stderr)


# ---- what scapy says ----

Said = collections.namedtuple("Said", "result family src dst proto first second")


def nothing(result):
    return Said(result, "-", "-", "-", "-", "-", "-")


class NoOpinion(Exception):
    """With a reason that is a key of DIFFERENCES."""


def field(layer, name):
    """A field of the layer itself, not of those within."""
    return layer.getfieldval(name) if any(one.name == name for one in layer.fields_desc) else None


def content(layer):
    """The bytes of a layer; what stands behind the packet is none of it."""
    return layer.original if layer and layer.name != "Padding" else b""


def say_transport(said, proto, layer, first_fragment=None):
    """first_fragment: how many bytes of it stand behind the headers, by IP's length."""
    data = content(layer)
    first = second = "-"
    if proto in PORTS:
        if len(data) < 4:
            return said._replace(result="truncated")
        # scapy wants a whole header, or knows none: the ports are its first four bytes.
        first, second = field(layer, "sport"), field(layer, "dport")
        if first is None:
            first, second = struct.unpack("!HH", data[:4])
    elif proto in (ICMP, ICMPV6):
        if len(data) < 2:
            return said._replace(result="truncated")
        first, second = field(layer, "type"), field(layer, "code")
        if first is None or second is None:
            first, second = data[0], data[1]
    said = said._replace(proto=str(proto), first=str(first), second=str(second))
    # Linux takes whole units of 8 bytes of a first fragment, and the flags of TCP are in the second.
    if proto == TCP and first_fragment is not None and (first_fragment < 16 or len(data) < 14):
        return said._replace(result="too-many-headers")
    return said


def say_ipv4(scapy, layer, data):
    if len(data) < 20:
        return nothing("truncated")
    if data[0] >> 4 != 4 or data[0] & 15 < 5:  # scapy goes on with what contradicts itself
        return nothing("malformed")
    if not isinstance(layer, scapy.IP):
        if len(data) < 4 * (data[0] & 15):
            layer = scapy.IP(bytes((0x45,)) + data[1:20])
        else:
            raise NoOpinion("unknown")
    said = Said("ok", "4", layer.src, layer.dst, str(layer.proto), "-", "-")
    head = 4 * (data[0] & 15)
    if 0 < layer.len < head:
        return said._replace(result="malformed")
    if len(data) < head:
        return said._replace(result="truncated")
    if layer.frag:
        return said._replace(result="later-fragment")
    by_ip = layer.len - head if layer.len else len(content(layer.payload))
    return say_transport(said, layer.proto, layer.payload, by_ip if layer.flags.MF else None)


def extension_bytes(kind, data):
    if kind == FRAGMENT:
        return 8
    return 4 * (data[1] + 2) if kind == AH else 8 * (data[1] + 1)


def say_ipv6(scapy, layer, data):
    if len(data) < 40:
        return nothing("truncated")
    if data[0] >> 4 != 6:
        return nothing("malformed")
    if not isinstance(layer, scapy.IPv6):
        raise NoOpinion("unknown")
    said = Said("ok", "6", layer.src, layer.dst, "-", "-", "-")
    if layer.plen == 0:
        raise NoOpinion("jumbogram")
    left, kind, layer, is_first_fragment = layer.plen, layer.nh, layer.payload, False
    for _ in range(EXTENSIONS_MAX):
        if kind not in EXTENSIONS:
            break
        data = content(layer)
        if len(data) < 4 or len(data) < extension_bytes(kind, data):
            return cut_off(said, is_first_fragment)
        if field(layer, "nh") is None or len(data) - len(content(layer.payload)) != \
                extension_bytes(kind, data):
            raise NoOpinion("unknown")
        if kind == FRAGMENT and layer.offset:
            return said._replace(result="later-fragment", proto=str(layer.nh))
        is_first_fragment |= kind == FRAGMENT and layer.m
        left -= extension_bytes(kind, data)
        kind, layer = layer.nh, layer.payload
    if kind in EXTENSIONS:
        return said._replace(result="too-many-headers", proto=str(kind))
    said = say_transport(said, kind, layer, left if is_first_fragment else None)
    return cut_off(said, is_first_fragment) if said.result == "truncated" else said


def cut_off(said, is_first_fragment):
    return said._replace(result="too-many-headers" if is_first_fragment else "truncated")


def say(scapy, whole):
    if len(whole) < 14:
        return nothing("truncated")
    layer = scapy.Ether(whole)
    tags = 0
    while isinstance(layer, (scapy.Ether, scapy.Dot1Q, scapy.Dot1AD)) and layer.type in TAGS:
        tags += 1
        if tags > TAGS_MAX:
            return nothing("too-many-headers")
        if len(content(layer.payload)) < 4:
            return nothing("truncated")
        layer = layer.payload
    kind = field(layer, "type")
    data = content(layer.payload)
    if kind == PPPOE:  # as a frame without it; scapy does not know protocols of one byte
        if len(data) < 8:
            return nothing("truncated")
        carried = {0x21: b"\x08\x00", 0x57: b"\x86\xdd"}.get(data[6] or data[7])
        return say(scapy, whole[:12] + carried + data[8 - (data[6] & 1):]) if carried else nothing("not-ip")
    if isinstance(layer, scapy.Dot3) or kind not in (0x800, 0x86dd):
        return nothing("not-ip")
    return (say_ipv4 if kind == 0x800 else say_ipv6)(scapy, layer.payload, data)


# ---- what tshark says ----

TRANSPORTS = {"tcp": TCP, "udp": UDP, "udplite": UDPLITE, "sctp": SCTP, "dccp": DCCP, "icmp": ICMP, "icmpv6": ICMPV6}
FIELDS = ["frame.protocols", "ip.src", "ip.dst", "ip.frag_offset", "ipv6.src", "ipv6.dst", "ipv6.fraghdr.offset"]
FIELDS += [f"{name}.{side}port" for name in ("tcp", "udp", "sctp", "dccp") for side in ("src", "dst")]
FIELDS += [f"{name}.{what}" for name in ("icmp", "icmpv6") for what in ("type", "code")]


def write_capture(path, lines):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 19, LINKTYPE_ETHERNET))
        for line in lines:
            data = bytes.fromhex(line)
            out.write(struct.pack("<IIII", 0, 0, len(data), len(data)) + data)


def ask_tshark(lines):
    with tempfile.TemporaryDirectory() as scratch:
        write_capture(f"{scratch}/frames.pcap", lines)
        command = ["tshark", "-n", "-r", f"{scratch}/frames.pcap", "-T", "fields", "-E", "separator=|", "-E", "occurrence=a",
                   "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
        rows = subprocess.run(command + [word for name in FIELDS for word in ("-e", name)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.decode().split("\n")
    for line, row in zip(lines, rows):
        yield lambda ours, line=line, row=row: say_tshark(line, row, ours)


def ethertype(line):
    """Behind the tags that the parser knows."""
    at = 24
    while line[at:at + 4] in ("8100", "88a8"):
        at += 8
    return line[at:at + 4]


def say_tshark(line, row, ours):
    """What tshark says nothing of is as the parser says."""
    values = {name: text.split(",") if text else [] for name, text in zip(FIELDS, row.split("|"))}
    layers = row.split("|")[0].split(":")
    depth = len(layers)
    while layers and layers[0] in ("eth", "ethertype", "vlan", "ieee8021ad", "pppoes", "ppp"):
        layers.pop(0)
    name = layers.pop(0) if layers else ""
    if depth > TSHARK_DEPTH:
        raise NoOpinion("depth")
    if ethertype(line) == "9100":
        raise NoOpinion("0x9100")
    if name == "ip" and not values["ip.dst"] and ours.result in ("malformed", "truncated"):
        return ours
    if name not in ("ip", "ipv6") or not values[name + ".dst"]:
        return ours if ours.family == "-" else nothing("not-ip")
    said = ours._replace(family="4" if name == "ip" else "6", src=values[name + ".src"][0], dst=values[name + ".dst"][0])
    offsets = values["ip.frag_offset"][:1] if name == "ip" else []
    while name == "ipv6" and layers and (layers[0].startswith("ipv6.") or layers[0] in ("ah", "mip6", "hip", "shim6")):
        if layers.pop(0) == "ipv6.fraghdr":
            offsets += values["ipv6.fraghdr.offset"][len(offsets):len(offsets) + 1]
    if any(int(offset) for offset in offsets):
        if ours.result == "truncated":  # in the options before
            return said
        return said._replace(result="later-fragment", first="-", second="-")
    layer = layers[0] if layers else ""
    sides = (".type", ".code") if layer.startswith("icmp") else (".srcport", ".dstport")
    first, second = (values.get(layer.replace("udplite", "udp") + side) for side in sides)
    if layer in TRANSPORTS and first and second:
        return said._replace(result="ok", proto=str(TRANSPORTS[layer]), first=first[0], second=second[0])
    if ours.first != "-" or ours.result == "later-fragment":
        raise NoOpinion("unknown")
    return said


# ---- comparing ----

def same(ours, theirs):
    """What a truncated packet's protocol is, is told by how far one reads."""
    if ours.result in ("truncated", "too-many-headers"):
        ours, theirs = ours._replace(proto="-"), theirs._replace(proto="-")
    return ours == theirs


def ask_scapy(lines):
    import scapy.all as scapy
    scapy.conf.ipv6_enabled = True
    for line in lines:
        yield lambda _, line=line: say(scapy, bytes.fromhex(line))


def compare(name, dissect, path):
    with open(path, "rb") as frames:
        text = frames.read()
    lines = text.decode().split("\n")[:-1]
    answers = subprocess.run([dissect], input=text, stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    counts = collections.Counter()
    for line, answer, ask in zip(lines, answers, {"scapy": ask_scapy, "tshark": ask_tshark}[name](lines)):
        ours = Said(*answer.split())
        try:
            theirs = ask(ours)
            counts["same, " + ours.result if same(ours, theirs) else "DIFFERENT"] += 1
            if not same(ours, theirs):
                print(f"{line[:4000]}\n  parser: {' '.join(ours)}\n  {name}: {' '.join(theirs)}")
        except NoOpinion as reason:
            counts[str(reason)] += 1
    return report(name, counts)


def report(name, counts):
    total = sum(counts.values())
    for key, count in sorted(counts.items()):
        print(f"{count:8} {key}{': ' + DIFFERENCES[key] if key in DIFFERENCES else ''}")
    print(f"{total} frames, {counts['DIFFERENT']} different, {counts['unknown']} that {name} does not know")
    return 1 if counts["DIFFERENT"] or not total or counts["unknown"] > NO_OPINION_MAX * total else 0


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "generate":
        return generate(int(arguments[1]), int(arguments[2]))
    if len(arguments) > 1 and arguments[0] == "pcap":
        return from_captures(arguments[1:])
    if len(arguments) == 3 and arguments[0] in ("scapy", "tshark"):
        return compare(*arguments)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
