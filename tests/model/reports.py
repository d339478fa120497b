# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tool writes: exported rules, backups, counted packets."""
import json
import re

import rules
from step import Step, Wrong, to_confirm
from steps import wants_pending


def export(course):
    """Read again by a store of its own, it is the same rules."""
    rng = course.rng
    kind = rng.choice(("text", "csv", "nft", "ipset"))
    name = rng.choice(sorted(course.model.lists) + [None, None])
    course.await_ends(0)
    path = course.file("") if rng.random() < 0.5 else "-"
    seen = course.tool("export", path, *(["--list", name] if name else []), "--format", kind)
    course.log.append(Step(["export", path, "--format", kind] + (["--list", name] if name else []), None))
    content = open(path).read() if path != "-" else seen.out
    rows = {row["rule"] + row["action"]: row for row in json.loads(
        course.tool("list", "--json", *(["--list", name] if name else [])).out or "[]")}
    left = set(re.findall(r"'(.+)' is left out", seen.err))
    if seen.status != (1 if left else 0):
        raise Wrong("export: status %d\n%s" % (seen.status, seen.err))
    if left and kind != "ipset":
        raise Wrong("export: %s left out by %s" % (left, kind))
    other = "again%u" % course.files
    again = course.tool("import", "-", "--force", "--format", kind, stdin=content, name=other)
    if again.status:
        raise Wrong("what was exported is not read: status %d\n%s\n%s" % (again.status, again.err, content[:3000]))
    expected, got = halved(rows.values(), kind), halved(
        json.loads(course.tool("list", "--json", name=other).out or "[]"), kind)
    for text in [re.sub(" timeout .*| comment .*", "", text) for text in left]:
        match, _, action = text.partition(" action ")
        for rule in halved([{"rule": match, "action": action or "drop"}], kind):
            if rule in got or (rule not in expected and rule.src[1] != 1):
                raise Wrong("export: '%s' is left out" % text)
            expected.pop(rule, None)
    if expected.keys() != got.keys() and "more rules like these" not in seen.err:
        raise Wrong("export --format %s: lost %s, won %s\n%s" % (
            kind, sorted(map(rules.canonical, expected.keys() - got.keys())),
            sorted(map(rules.canonical, got.keys() - expected.keys())), content[:6000]))
    for rule, several in expected.items():
        if len(several) == 1 and rule in got and not is_alike(several[0], got[rule][0]):
            raise Wrong("export --format %s: %s is read again as %s" % (kind, several[0], got[rule][0]))
    course.tool("flush", "--force", name=other)


def is_alike(row, now):
    """Whether two listings of a rule, one soon after the other, say the same."""
    ends = (row["timeout_s"], now["timeout_s"])
    return row["comment"] == now["comment"] and (ends[0] == ends[1] or None not in ends and abs(ends[0] - ends[1]) <= 3)


def halved(rows, kind):
    """
    What is listed, by rule: a row, or several. ipset has no prefix of length 0, but two halves, which may be rules
    themselves, and no rule for both families.
    """
    found = {}
    for row in rows:
        rule = rules.of_row(row)
        parts = [rule]
        if kind == "ipset":
            parts = [rule._replace(family=family) for family in ((rule.family,) if rule.family else (4, 6))]
            parts = [part._replace(src=src) for part in parts for src in
                     ([part.src] if part.src[1] else [(half << rules.BITS[part.family] - 1, 1) for half in (0, 1)])]
        for part in parts:
            found.setdefault(part, []).append(row)
    return found


# ---- backup ----

def backup(_):
    """All that is stored, with the change that waits."""
    def apply(model):
        model.saved = model.now.copy()
        return 0
    return Step(["backup", "{dir}/backup"], apply)


def restore(course):
    """All that is stored is as the backup says. While a change waits, it is refused."""
    if not course.model.saved:
        return None

    def apply(model):
        if not model.saved:
            return 3
        if model.now.undone:
            return 5
        saved = model.saved.copy()
        saved.passed = model.passed
        model.rules = saved.alive()
        for entry in model.rules.values():
            entry.end = entry.end and (entry.end[0] - 1, entry.end[1] + 1)  # a backup has whole seconds
        model.lists, model.policy, model.monitor_only = saved.lists, saved.policy, saved.monitor_only
        model.fleet_at = saved.fleet_at
        return 0
    return to_confirm(Step(["restore", "{dir}/backup", "--force"], apply), wants_pending(course))


# ---- counted packets ----

def stats(course):
    """Each packet that was sent is counted, by what became of it."""
    is_reset = course.rng.random() < 0.3
    if not course.model.table:
        return
    if course.counts is None:
        course.tool("stats", "--reset")
        course.counts = {}
        return
    seen = course.tool("stats", "--json")
    course.log.append(Step(["stats"], None))
    total = {}
    for row in json.loads(seen.out):
        for verdict in ("passed", "dropped", "would_drop"):
            if row["outcome"] != "all" and row[verdict + "_packets"]:
                total[row["outcome"], verdict] = [row[verdict + "_packets"], row[verdict + "_bytes"]]
    if total != course.counts and not (course.model.table == "compact" and by_verdict(total) == by_verdict(course.counts) and
                                       unlike(total, course.counts) <= 2 * course.chances()):
        raise Wrong("stats: counted %s, expected %s" % (sorted(total.items()), sorted(course.counts.items())))
    if is_reset:
        course.tool("stats", "--reset")
        course.log.append(Step(["stats", "--reset"], None))
        course.counts = {}


def by_verdict(counts):
    """Packets and bytes that passed, and that did not."""
    return [[sum(row[i] for (_, verdict), row in counts.items() if (verdict == "dropped") == is_dropped) for i in (0, 1)]
            for is_dropped in (False, True)]


def unlike(one, other):
    """How many packets are counted under another outcome: what fingerprints take for a rule's by chance."""
    none = [0, 0]
    return sum(abs(one.get(key, none)[0] - other.get(key, none)[0]) for key in one.keys() | other.keys())


def counters(course):
    """A packet is counted under one or more of the rules that match it, and no other."""
    if course.model.table != "exact" or course.model.panic:
        return

    def read():
        out = course.tool("list", "--json", "--counters").out
        return {rules.of_row(row): row["packets"]
                for row in json.loads(out)}
    course.await_ends(0)
    before = read()
    course.judged = []
    course.check_verdicts(course.options.frames, 20)
    judged, course.judged = course.judged, None
    after = read()
    if course.counts is None:
        return
    course.log.append(Step(["list", "--json", "--counters"], None))
    sure, possible = dict.fromkeys(after, 0), dict.fromkeys(after, 0)
    for deciding in judged:
        for rule in deciding:
            possible[rule] = possible.get(rule, 0) + 1
        if len(deciding) == 1:
            sure[deciding[0]] = sure.get(deciding[0], 0) + 1
    for rule, packets in after.items():
        more = packets - before.get(rule, 0)
        if not sure[rule] <= more <= possible[rule]:
            raise Wrong("counters: %s has %d packets more, expected %d to %d" % (
                rules.canonical(rule), more, sure[rule], possible[rule]))
    more, expected = sum(after.values()) - sum(before.get(rule, 0) for rule in after), sum(map(bool, judged))
    if more < expected and before.keys() == after.keys():
        raise Wrong("counters: rules have %d packets more, expected %d at least" % (more, expected))
