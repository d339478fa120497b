#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Random flows of FlowSpec, and packets at the edges of their values: flowspec_oracle.py TOOL CONFIG SEED. What RFC 8955 section
4.2 says of a packet must be what the rules of the flow say. Knows the rules only by their text. Prints what it did; status 1:
a difference, or too few flows had rules.
"""
import json
import random
import subprocess
import sys

FLOWS, PACKETS = 800, 200  # packets for each flow
FLAGS = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"]
PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1}
AND, NOT, LESS, GREATER, EQUAL, MATCH = 0x40, 2, 4, 2, 1, 1
IS_FRAGMENT, FIRST_FRAGMENT = 2, 4
PORTS = [0, 1, 15, 16, 80, 443, 1023, 1024, 4096, 65535]
LENGTHS = [0, 40, 64, 100, 468, 1500, 65535]


# ---- flows, and what the RFC says of them ----


def numeric(term, data):
    op, value = term["op"], term["value"]
    return bool(op & EQUAL and data == value or op & GREATER and data > value or op & LESS and data < value)


def bitmask(term, data):
    op, value = term["op"], term["value"]
    matches = data & value == value if op & MATCH else data & value != 0
    return matches != bool(op & NOT)


def component_matches(compare, terms, data):
    matches, group = False, True
    for i, term in enumerate(terms):
        if i and not term["op"] & AND:
            matches, group = matches or group, True
        group = group and compare(term, data)
    return matches or group


def random_terms(most, values, operators):
    count = random.randint(1, most)
    return [
        {"op": random.choice(operators) | (AND if i and random.random() < 0.5 else 0), "value": random.choice(values)}
        for i in range(count)
    ]


def random_flow(number):
    flow = [{"type": 1, "value": {"prefix": f"10.0.{number >> 8}.{number & 255}/32"}}]
    kinds = [(3, 0.5, 2, [6, 17, 1], [1])]
    kinds += [(kind, 0.25, 3, PORTS, range(1, 7)) for kind in (4, 5, 6)]
    kinds += [(kind, 0.1, 2, [0, 3, 8, 255], range(1, 7)) for kind in (7, 8)]
    kinds += [(9, 0.4, 3, [1, 2, 18, 16, 4, 20, 63], range(4)), (10, 0.4, 3, LENGTHS, range(1, 7))]
    kinds += [(12, 0.4, 2, [1, 2, 4, 8, 6], range(4))]
    for kind, chance, most, values, operators in kinds:
        if random.random() < chance:
            flow.append({"type": kind, "value": random_terms(most, values, list(operators))})
    return flow


def flow_matches(flow, packet):
    for component in flow[1:]:
        kind, terms = component["type"], component["value"]
        compare = bitmask if kind in (9, 12) else numeric
        names = {3: ["proto"], 4: ["sport", "dport"], 5: ["dport"], 6: ["sport"], 7: ["type"], 8: ["code"], 9: ["flags"], 10: ["length"]}
        data = [packet[name] for name in names.get(kind, ["fragment"])]
        if not any(value is not None and component_matches(compare, terms, value) for value in data):
            return False
    return True


# ---- rules ----


def rules_of(flows):
    """By destination."""
    drop = {"type": 16, "value": [{"type": 128, "subtype": 6, "as": 0, "rate": 0}]}
    reach = {"type": 14, "nexthop": "0.0.0.0", "afi": 1, "safi": 133}
    lines = [json.dumps([{"nlri": {"value": flow}, "age": 1, "best": False, "attrs": [drop, reach]}]) for flow in flows]
    command = [sys.argv[1], "flowspec", "-", "--print", "--config", sys.argv[2]]
    done = subprocess.run(command, input="\n".join(lines + [""]), capture_output=True, text=True, check=False)
    rules = {}
    for line in done.stdout.splitlines():
        if line.startswith("add "):
            words = line.split(" timeout")[0].split()[1:]
            rule = dict(zip(words[::2], words[1::2]))
            rules.setdefault(rule["dst"], []).append(rule)
    return rules


def is_in_block(text, number):
    first, _, bits = text.partition("/")
    return number is not None and int(first) <= number < int(first) + (1 << (16 - int(bits)) if bits else 1)


def flag_bits(text):
    return 0 if text == "none" else sum(1 << FLAGS.index(name) for name in text.split(","))


def rule_matches(rule, packet):
    if "proto" in rule and PROTOCOLS.get(rule["proto"]) != packet["proto"]:
        return False
    if any(name in rule and not is_in_block(rule[name], packet[name]) for name in ("sport", "dport", "type", "code", "length")):
        return False
    if "flags" in rule:
        values, _, mask = rule["flags"].partition("/")
        if packet["flags"] is None or packet["flags"] & flag_bits(mask or values) != flag_bits(values):
            return False
    kind = {0: "no", FIRST_FRAGMENT: "first"}.get(packet["fragment"] & (IS_FRAGMENT | FIRST_FRAGMENT), "later")
    return rule.get("fragment", kind) == kind


# ---- packets ----


def near(values):
    return min(65535, max(0, random.choice(values) + random.randint(-1, 1)))


def random_packet():
    fragment = random.choice([0, 0, 1, 4, 5, 2, 3, 10, 11])
    proto = random.choice([6, 17, 1, 47])
    is_icmp = proto == 1 and not fragment & IS_FRAGMENT
    has_ports = proto in (6, 17) and not fragment & IS_FRAGMENT
    return {
        "proto": proto,
        "fragment": fragment,
        "sport": near(PORTS) if has_ports else None,
        "dport": near(PORTS) if has_ports else None,
        "type": min(255, near([0, 3, 8, 255])) if is_icmp else None,
        "code": min(255, near([0, 3, 8, 255])) if is_icmp else None,
        "flags": random.randrange(256) if has_ports and proto == 6 else None,
        "length": max(20, near(LENGTHS)),
    }


def main():
    random.seed(int(sys.argv[3]))
    flows = [random_flow(number) for number in range(1, FLOWS)]
    rules = rules_of(flows)
    hits = differences = 0
    for flow in flows:
        own = rules.get(flow[0]["value"]["prefix"][:-3])
        for _ in range(PACKETS if own else 0):
            packet = random_packet()
            expected = flow_matches(flow, packet)
            hits += expected
            if any(rule_matches(rule, packet) for rule in own) != expected:
                differences += 1
                if differences == 1:
                    print(flow, packet, expected, own[:5])
    print(f"{len(rules)} flows have rules, {PACKETS * len(rules)} packets, {hits} hits, {differences} differences")
    return differences > 0 or len(rules) < 150 or hits < 1000


sys.exit(main())
