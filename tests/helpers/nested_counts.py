#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Counts of random prefixes that lie in each other, while changes join and part prefix lengths.

usage: nested_counts.py SEED ROUNDS TRAFFIC COMMAND...

COMMAND... runs the tool, TRAFFIC is the shell command that sends flows. After every change a rule has counted no more
packets than have matched it, and all rules together no fewer than were sent.
"""
import ipaddress
import json
import random
import shlex
import subprocess
import sys

seed, rounds, traffic, tool = int(sys.argv[1]), int(sys.argv[2]), shlex.split(sys.argv[3]), sys.argv[4:]
rng = random.Random(seed)

# Each is a kind of its own; no packet here matches one.
OTHERS = ["dst 198.51.100.1", "proto gre", "dport 53", "proto udp dport 123", "proto tcp sport 80",
          "src 192.0.2.1 dport 99", "proto tcp src 192.0.2.1 dport 99"]


def fail(why, rules):
    print(f"failed: {why}\nseed {seed}; the rules:")
    print("\n".join(rules))
    sys.exit(1)


def run(arguments, text=None):
    return subprocess.run(tool + arguments, input=text, text=True, capture_output=True, check=True).stdout


def draw_nest():
    """
    Prefixes in 45.0.0.0/12. None has the last address of a wider one: a count that is carried over goes to one key of
    its rule, the last if no narrower rule has it, and would show under a narrower rule that comes there later.
    """
    nest = [ipaddress.ip_network(f"45.0.0.0/{rng.randint(12, 16)}")]
    for length in sorted(rng.sample(range(nest[0].prefixlen + 1, 31), rng.randint(2, 7))):
        for _ in range(rng.randint(1, 3)):
            parent = rng.choice(nest)
            address = int(parent.network_address) + rng.choice((0, rng.randrange(parent.num_addresses)))
            network = ipaddress.ip_network((address, length), strict=False)
            if network not in nest and not any(wider.broadcast_address in network for wider in nest):
                nest.append(network)
    return nest


def send(rules):
    """A packet or two to each prefix that is a rule; returns where they came from."""
    networks = [ipaddress.ip_network(rule) for rule in rules if rule.startswith("45.")]
    sources = [network[rng.randrange(network.num_addresses)] for network in networks for _ in range(rng.randint(1, 2))]
    flows = "".join(f"drop nest proto udp src {source} dst 198.18.0.1 sport 1 dport 2\n" for source in sources)
    if sources:
        subprocess.run(traffic, input=flows, text=True, check=True, stdout=subprocess.DEVNULL)
    return sources


def check(rules, sent):
    counted = {rule["rule"].removeprefix("src "): rule["packets"]
               for rule in json.loads(run(["list", "--counters", "--json"])) if rule["rule"].startswith("src 45.")}
    for rule, packets in counted.items():
        matched = sum(address in ipaddress.ip_network(rule) for address in sent)
        if packets > matched:
            fail(f"{rule} has counted {packets} packets, and {matched} have matched it", rules)
    if sum(counted.values()) < len(sent):
        fail(f"{len(sent)} packets were sent, and {sum(counted.values())} were counted: {counted}", rules)


def try_nest():
    rules, sent = [], []
    waiting = [str(network) for network in draw_nest()] + OTHERS
    rng.shuffle(waiting)
    while waiting:
        step = [waiting.pop() for _ in range(min(len(waiting), rng.randint(1, 8)))]
        run(["import", "-"], "\n".join(step))
        rules += step
        check(rules, sent)
        sent += send(rules)
        check(rules, sent)
    run(["resize", str(rng.randint(100000, 200000))])
    check(rules, sent)
    run(["flush"])


for _ in range(rounds):
    try_nest()
