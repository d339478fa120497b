# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Rules as xdp-cuckoo-rules(5) describes them: what they name, which packets they match, and the many ways to write
one. Written from the documentation; shares nothing with the tool.
"""
import collections
import ipaddress

PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1, "ipv6-icmp": 58, "udplite": 136, "sctp": 132, "dccp": 33, "gre": 47,
             "esp": 50, "ospf": 89}
NAMES = {number: name for name, number in PROTOCOLS.items()}
PORTS = (6, 17, 33, 132, 136)
ICMP = {1: 4, 58: 6}  # and the family that each implies
BITS = {4: 32, 6: 128}

# family: 4, 6, or 0 for both. src, dst: (number, length), length 0 where any. kind: "ports", "icmp" or "".
# first: sport or type; second: dport or code; proto, first, second: None where any.
Rule = collections.namedtuple("Rule", "action family proto src dst kind first second")
ANY = (0, 0)

# What a packet is. ports: (sport, dport) or (type, code), None where it has none, or they are not there to be read.
Flow = collections.namedtuple("Flow", "family src dst proto ports")


def mask(family, length):
    return ((1 << length) - 1) << BITS[family] - length


def rule(action="drop", family=0, proto=None, src=ANY, dst=ANY, kind="", first=None, second=None):
    return Rule(action, ICMP.get(proto, family), proto, src, dst, kind if (first, second) != (None, None) else "",
                first, second)


def has_in(family, net, address):
    return net[1] == 0 or (address ^ net[0]) >> (BITS[family] - net[1]) == 0


def matches(one, flow):
    """Whether the packet is one that the rule names."""
    if one.family and one.family != flow.family:
        return False
    if one.proto is not None and one.proto != flow.proto:
        return False
    if not has_in(flow.family, one.src, flow.src) or not has_in(flow.family, one.dst, flow.dst):
        return False
    if not one.kind:
        return True
    if flow.ports is None or flow.proto not in (PORTS if one.kind == "ports" else ICMP):
        return False
    return one.first in (None, flow.ports[0]) and one.second in (None, flow.ports[1])


def shape(one):
    """Fields and prefix lengths: rules of one kind are looked up together."""
    return (one.action, one.proto is not None, one.src[1], one.dst[1], one.kind, one.first is not None,
            one.second is not None)


# ---- text ----

def address(family, number):
    return str((ipaddress.IPv4Address if family == 4 else ipaddress.IPv6Address)(number))


def prefix(family, net):
    return address(family, net[0]) + ("" if net[1] == BITS[family] else "/%u" % net[1])


def canonical(one):
    """As `list` shows it, without timeout and comment."""
    words = []
    if one.proto is not None:
        words += ["proto", NAMES.get(one.proto, str(one.proto))]
    if one.src[1] or (one.family and not one.dst[1] and one.proto not in ICMP):
        words += ["src", prefix(one.family, one.src)]
    if one.first is not None:
        words += ["type" if one.kind == "icmp" else "sport", str(one.first)]
    if one.dst[1]:
        words += ["dst", prefix(one.family, one.dst)]
    if one.second is not None:
        words += ["code" if one.kind == "icmp" else "dport", str(one.second)]
    return " ".join(words + (["action", one.action] if one.action != "drop" else []))


def read(words):
    """The rule of canonical words, as the tool lists it."""
    said = dict(zip(words[::2], words[1::2]))
    nets = {}
    for word in ("src", "dst"):
        if word in said:
            net = ipaddress.ip_network(said[word])
            nets[word] = (int(net.network_address), net.prefixlen)
            nets["family"] = net.version
    first, second = said.get("sport", said.get("type")), said.get("dport", said.get("code"))
    proto = said.get("proto")
    return rule(said.get("action", "drop"), proto=None if proto is None else PROTOCOLS.get(proto) or int(proto),
                kind="icmp" if "type" in said or "code" in said else "ports",
                first=None if first is None else int(first), second=None if second is None else int(second), **nets)


def of_row(row):
    """The rule of a row of `list --json`."""
    return read((row["rule"] + " action " + row["action"]).split())


def spell_address(rng, family, number):
    if family == 4:
        return address(4, number)
    return rng.choice((str(ipaddress.IPv6Address(number)), str(ipaddress.IPv6Address(number)).upper(),
                       ipaddress.IPv6Address(number).exploded))


def spell_prefix(rng, family, net):
    """One of the ways to write it: with /32, as IPv6, in full."""
    length = net[1]
    if family == 4 and length and rng.random() < 0.15:
        text, length, whole = "::ffff:" + address(4, net[0]), length + 96, 128
    else:
        text, whole = spell_address(rng, family, net[0]), BITS[family]
    return text if length == whole and rng.random() < 0.8 else "%s/%u" % (text, length)


def spell_time(rng, seconds):
    parts, left = [], seconds
    for unit, worth in (("w", 604800), ("d", 86400), ("h", 3600), ("m", 60)):
        if rng.random() < 0.5 and left >= worth:
            parts.append("%u%s" % (left // worth, unit))
            left %= worth
    if left or not parts:
        parts.append("%u%s" % (left, "s" if parts or rng.random() < 0.5 else ""))
    return "".join(parts)


def spell_protocol(rng, proto):
    names = {58: ("ipv6-icmp", "icmpv6", "icmp6")}.get(proto) or (NAMES.get(proto) or str(proto),)
    return rng.choice(names) if rng.random() < 0.7 else str(proto)


def spell(rng, one, timeout_s=None, comment=""):
    """Words of the rule in any order, in one of many spellings."""
    pairs = []
    if one.proto is not None:
        pairs.append(["proto", spell_protocol(rng, one.proto)])
    if one.src[1] or (one.family and not one.dst[1] and one.proto not in ICMP):
        text = spell_prefix(rng, one.family, one.src)
        pairs.append([text] if rng.random() < 0.3 else ["src", text])
    if one.dst[1]:
        pairs.append(["dst", spell_prefix(rng, one.family, one.dst)])
    names = ("type", "code") if one.kind == "icmp" else ("sport", "dport")
    pairs += [[name, str(value)] for name, value in zip(names, (one.first, one.second)) if value is not None]
    if one.action != "drop" or rng.random() < 0.1:
        pairs.append(["action", one.action])
    if timeout_s:
        pairs.append(["timeout", spell_time(rng, timeout_s)])
    if comment:
        pairs.append(["comment", '"%s"' % comment])
    rng.shuffle(pairs)
    for before, pair in zip(pairs, pairs[1:]):
        if before[0] == "dst" and len(pair) == 1:  # there it would look like a second destination
            pair.insert(0, "src")
    return rng.choice((" ", " ", "  ", "\t")).join(word for pair in pairs for word in pair)
