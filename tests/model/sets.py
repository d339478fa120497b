# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Questions about sets of packets, received and sent. The answer is compared with the fates of packets drawn from the set;
check_verdicts() then runs frames of the same flows. Here fates come from the model, so sent packets are judged, too.
"""
import json
import random

import frames
import rules
from step import Step

FLOWS = 80
REQUESTS = {1: {8: 0, 13: 14, 15: 16, 17: 18, 9: 10, 42: 43}, 58: {128: 129, 139: 140, 133: 134, 135: 136, 160: 161}}
COUNTERPARTS = {proto: {**pairs, **{b: a for a, b in pairs.items()}} for proto, pairs in REQUESTS.items()}
MULTICAST = {4: (0xe0000000, 4), 6: (0xff << 120, 8)}


def as_received(flow):
    """A packet of the same conversation that comes in: what a sent packet is looked up as."""
    if rules.has_in(flow.family, MULTICAST[flow.family], flow.dst):
        return flow
    ports = flow.ports and (flow.ports[::-1] if flow.proto in rules.PORTS else
                            (COUNTERPARTS[flow.proto].get(flow.ports[0], flow.ports[0]), flow.ports[1]))
    return flow._replace(src=flow.dst, dst=flow.src, ports=ports)


def draw_set(rng, pool):
    """What a rule names, or more, or less."""
    one, other = rng.choice(pool)._replace(action="drop"), rng.choice(pool)
    if rng.random() < 0.3:
        one = one._replace(kind="", first=None, second=None)
    elif one.kind and rng.random() < 0.3:
        one = one._replace(first=None)
    for word in ("src", "dst"):
        net = getattr(one, word)
        if net[1] and rng.random() < 0.4:
            length = rng.randint(max(net[1] - 16, 1), net[1])
            one = one._replace(**{word: (net[0] & rules.mask(one.family, length), length)})
        elif not net[1] and one.family and other.family == one.family and rng.random() < 0.4:
            one = one._replace(**{word: getattr(other, word)})
    return rules.rule("drop", one.family, one.proto, one.src, one.dst, one.kind, one.first, one.second)


def within(rng, one, flow, is_sent):
    """The flow, moved into the set; None: there is no such flow."""
    family = flow.family

    def put(net, number):
        return net[0] | number & ~rules.mask(family, net[1]) if net[1] else number
    if one.family and one.family != family:
        return None
    flow = flow._replace(src=put(one.src, flow.src), dst=put(one.dst, flow.dst))
    if is_sent and one.dst[1] < MULTICAST[family][1] and rules.has_in(family, MULTICAST[family], flow.dst):
        return None
    proto = one.proto if one.proto is not None else flow.proto
    if one.kind == "ports" and proto not in rules.PORTS or one.kind == "icmp" and proto not in rules.ICMP:
        proto = rng.choice(rules.PORTS) if one.kind == "ports" else {4: 1, 6: 58}[family]
    has_ports = proto in rules.PORTS or proto in rules.ICMP
    first, second = flow.ports or (rng.choice((0, 8, 22, 53)), rng.choice((0, 22, 53, 80)))
    limit = 0xff if proto in rules.ICMP else 0xffff
    flow = flow._replace(proto=proto, ports=(
        (first if one.first is None else one.first) & limit,
        (second if one.second is None else one.second) & limit) if has_ports else None)
    return flow if rules.matches(one, flow) and not (family == 6 and proto in frames.EXTENSIONS) else None


def says_of(answer, flow, is_later):
    """Whether the packet passes by the answer: None if it says nothing of it."""
    def is_in(word):
        return word in answer and rules.matches(rules.read(answer[word].split()), flow)
    if is_in("passed_part"):
        return None if answer["passed_by"] == "no rule" else True
    if is_in("blocked_part"):
        return None if "passed_part" in answer else False
    if is_later and "later_fragments" in answer:
        return None
    if "blocked_part" in answer or answer["verdict"] == "partly blocked":
        return None
    return not answer["verdict"].startswith("blocked")


def differs(rng, model, answer, one, drawn, is_sent):
    alive = model.alive()
    for flow in drawn:
        is_later = not one.kind and rng.random() < 0.2
        flow = flow._replace(ports=None) if is_later else flow
        drops = model.outcome(as_received(flow) if is_sent else flow,
                              frames.FRAGMENT if is_later else frames.NO_RULE, alive)[1]
        expected = says_of(answer, flow, is_later)
        if expected is not None and expected == drops:
            return "%s: %s is %s" % (answer, flow, "blocked" if drops else "passed")
    if answer["verdict"] == "partly blocked" and "passed_part" not in answer:
        return "partly, but no part is named"
    return None


def ask(course):
    """Status 0: all of them are blocked."""
    one, is_sent = draw_set(course.rng, course.universe.pool), course.rng.random() < 0.5
    text = rules.canonical(one)
    if not text:
        return None
    rng, flows = random.Random(course.rng.random()), []
    near = [rule for rule in course.universe.pool if not one.family or rule.family in (0, one.family)] or [one]
    for _ in range(FLOWS):
        flow = within(rng, one, frames.draw(rng, near, course.universe), is_sent)
        flows += [flow] if flow else []
    course.asked = [as_received(flow) if is_sent else flow for flow in flows]

    def check(model, seen):
        answer = json.loads(seen.out)
        if (seen.status == 0) != answer["verdict"].startswith("blocked"):
            return "status %d, %s" % (seen.status, answer["verdict"])
        return differs(random.Random(1), model, answer, one, flows, is_sent)
    return Step(["test", "--json"] + text.split() + (["--outgoing"] if is_sent else []), lambda model: (0, 1), check)
