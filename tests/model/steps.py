# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The commands that a course is made of, drawn at random, and what each does to the model."""
import json
import re

import lists
import rules
from step import Step, Wrong, count_of, field, other
from frames import draw as draw_flow
from kernel import XDP_PASS
from model import FEED, FLEET, HAND, POLICIES

LISTS = ("a", "b", "feed-3")
MONITORED = "not blocked: only monitored"


def force(course):
    """Broad rules may hold this host's own addresses."""
    return ["--force"] if course.universe.is_broad or course.rng.random() < 0.2 else []


def words(text, rng):
    """As words of a shell, or as one."""
    if '"' not in text and rng.random() < 0.5:
        return text.split()
    return [text]


def a_rule(course):
    """One that there is, mostly, or one that was drawn before."""
    return course.universe.rule(course.rng)


# ---- rules ----

def whose(rng):
    """By hand, mostly, or of a list that is fed rule by rule."""
    return rng.choice((HAND,) * 5 + LISTS)


def of_list(owner):
    return ["--list", owner] if owner else []


def add(course):
    rng = course.rng
    owner = whose(rng)
    rule, timeout, comment = a_rule(course), lists.timeouts(rng, course.ends_soon()), rng.choice(lists.COMMENTS[:6])
    text = rules.spell(rng, rule, timeout, comment)
    def apply(model):
        if owner != HAND:
            model.lists.add(owner)
        return 1 if model.put(owner, rule, model.end_of(timeout), comment) == "kept" else 0

    def check(_, seen):
        out = seen.out + seen.err
        if seen.status == 1:
            return None if "already there" in out and rules.canonical(rule) in out else "the answer"
        return None if re.search(r"^(added|updated): %s( timeout .*| comment .*)?$" % re.escape(rules.canonical(rule)), out, re.M) else "the answer"
    return Step(["add"] + words(text, rng) + of_list(owner) + force(course), apply, check)


def delete(course):
    rng = course.rng
    rule = a_rule(course)
    text = rules.spell(rng, rule, None, "")
    owner = whose(rng)

    def give_up(model):
        entry = model.rules.get(rule) if owner in model.now.lists else None
        if not entry or owner not in entry.good | entry.timed:
            return 1
        is_sure = owner in entry.good or not model.passed(entry.end)
        model.give_up(owner, rule)
        return 0 if is_sure else (0, 1)

    def apply(model):
        if owner != HAND:
            return give_up(model)
        said = model.delete(rule)
        return 0 if said == "there" else 1 if not said else (0, 1)
    return Step(["del"] + words(text, rng) + of_list(owner) + force(course), apply)


def importing(course, begins=None):
    rng = course.rng
    begins = wants_pending(course) if begins is None else begins
    kind, text, lines, bad = lists.draw(rng, course.universe, course.ends_soon())
    owner = rng.choice((HAND,) + LISTS * 2)
    is_replace, is_strict, is_dry = rng.random() < 0.45, rng.random() < 0.2, rng.random() < 0.1
    while begins and bad:  # what it changes must not be in doubt
        kind, text, lines, bad = lists.draw(rng, course.universe, False)
    trial = rng.choice(("monitor", "monitor", "drop", "pass")) if rng.random() < 0.2 and "trial" not in course.without else None
    if trial:
        kind, text, lines, bad = lists.trial(rng, course.universe, trial)
    default = rng.choice((None, None, None, rng.randint(3600, 90000)))
    forced = bool(force(course)) or (owner == HAND and rng.random() < 0.6)
    is_dry = is_dry and not begins
    lines = [(rule, default if timeout is None else timeout, comment) for rule, timeout, comment in lines]
    argv = ["import"] + (["--list", owner] if owner else []) + (["--replace"] if is_replace else []) + \
        (["--strict"] if is_strict else []) + (["--dry-run"] if is_dry else []) + \
        (["--monitor-only"] if trial == "monitor" and rng.random() < 0.5 else ["--action", trial] if trial else []) + \
        (["--timeout", rules.spell_time(rng, default)] if default else []) + (["--force"] if forced else []) + \
        (["--format", kind] if rng.random() < 0.3 or not lines else [])
    stdin = text if rng.random() < 0.3 else None

    def apply(model):
        if bad and is_strict:
            return 2
        if not lines and not forced:
            return 2
        if is_replace and not forced and owner == HAND and any(model.now.of(name) for name in model.now.lists):
            return 2
        if not is_dry:
            model.take_in(owner, lines, model.end_of, is_replace)
        return 2 if bad else 0

    def check(model, seen):
        if seen.status == 2 and not bad:
            return None if "--force" in seen.err else "the error"
        if bad and len(re.findall(r"^xdp-cuckoo: [^\n]*:\d+: ", seen.err, re.M)) != bad:
            return "expected %d bad lines" % bad
        if bad and is_strict:
            return None
        if seen.status == 2 and count_of(seen.out, "added") is None:  # bad lines, and needs --force too
            return None if re.search("--force|--format", seen.err) and not forced else "the error"
        counts = [int(count_of(seen.out, name)) for name in ("added", "updated", "kept")]
        if sum(counts) != len({line[0] for line in lines}):
            return "counts of %d rules" % len(lines)
        return None
    argv = argv[:1] + ["-" if stdin is not None else course.file(text)] + argv[1:]
    return to_confirm(Step(argv, apply, check, stdin), begins)


def give_up(model, owner, rule):
    """What batch may answer if the list gives the rule up."""
    if owner not in model.now.lists or not model.has(rule, owner):
        return ("no such rule",)
    entry = model.rules[rule]
    if entry.timed and model.passed(entry.end):
        model.give_up(owner, rule)
        return ("deleted", "left to others", "no such rule")
    return ("deleted" if model.give_up(owner, rule) else "left to others",)


def batch(course):
    rng = course.rng
    ops, text, is_strict = [], [], rng.random() < 0.2
    default = rng.choice((None, None, rng.randint(3600, 90000)))
    for _ in range(rng.randint(1, 30)):
        rule, chance, owner = a_rule(course), rng.random(), whose(rng)
        of_owner = " list " + owner if owner else ""
        if chance < 0.55:
            timeout = lists.timeouts(rng, False)
            comment = rng.choice(lists.COMMENTS[:5])
            ops.append(("add", owner, rule, timeout or default, comment))
            text.append("add " + rules.spell(rng, rule, timeout, comment) + of_owner)
        elif chance < 0.8:
            ops.append(("del", owner, rule))
            text.append("del " + rules.spell(rng, rule) + of_owner)
        elif chance < 0.92:
            flow = draw_flow(rng, course.universe.pool, course.universe)
            if sayable(flow):
                ops.append(("test", flow))
                text.append("test " + flow_text(flow))
        elif chance < 0.96:
            text.append(rng.choice(("", "# a comment", "   ")))
        else:
            ops.append(("bad",))
            text.append(rng.choice(("add ", "del ", "")) + rng.choice([word for word in lists.BAD if "-" not in word]))
    def line(model, op):
        if op[0] == "add":
            if op[1] != HAND:
                model.lists.add(op[1])
            return {"added": ("added",), "again": ("added", "updated"), "updated": ("updated",), "kept": ("already there",)}[
                model.put(op[1], op[2], model.end_of(op[3]), op[4])]
        if op[0] == "del" and op[1] != HAND:
            return give_up(model, op[1], op[2])
        if op[0] == "del":
            return {"there": ("deleted",), None: ("no such rule",), "ended": ("deleted", "no such rule")}[model.delete(op[2])]
        if op[0] == "test":
            return (tested(model, op[1]),)
        return ("error",)

    def apply(model):
        model.answers = []
        if is_strict and ("bad",) in ops:
            return 2
        model.answers = said = [line(model, op) for op in ops]
        if ("bad",) in ops:
            return 2
        no = ("already there", "no such rule", "not blocked", MONITORED, "passed")
        return 1 if any(one[0] in no for one in said) else (0, 1) if any(len(one) > 1 for one in said) else 0

    def check(model, seen):
        if is_strict and ("bad",) in ops:
            return None
        out = seen.out.splitlines()
        if len(out) != len(model.answers):
            return "%d answers, expected %d" % (len(out), len(model.answers))
        for got, expected, op in zip(out, model.answers, ops):
            if not any(got.startswith(one) for one in expected) or "not blocked" in expected and MONITORED in got:
                return "answer '%s', expected %s to %s" % (got, expected, op)
        return None
    content = "\n".join(text) + "\n"
    is_piped = rng.random() < 0.6
    argv = ["batch", "-" if is_piped else course.file(content)] + (["--strict"] if is_strict else []) + \
        (["--timeout", str(default)] if default else []) + force(course)
    return Step(argv, apply, check, content if is_piped else None)


def flush(course):
    if course.rng.random() < 0.6:
        return course.rng.choice((delete_list, flush_list))(course)

    forced = force(course)

    def apply(model):
        if not forced and any(model.now.of(name) for name in model.now.lists):
            return 2
        model.rules.clear()
        return 0
    return Step(["flush"] + forced, apply)


def flush_list(course):
    name = course.rng.choice(LISTS)

    def apply(model):
        if name not in model.now.lists:
            return 1
        for rule in model.of(name):
            model.give_up(name, rule)
        return 0
    return Step(["flush", "--list", name] + force(course), apply)


def list_deletion(name):
    def apply(model):
        if name not in model.now.lists:
            return 1
        model.delete_list(name)
        return 0
    return apply


def delete_list(course, begins=None):
    name, is_dry = course.rng.choice(LISTS + (FLEET, FEED)), course.rng.random() < 0.1
    begins = not is_dry and (wants_pending(course) if begins is None else begins)

    apply = (lambda model: 0 if name in model.lists else 1) if is_dry else list_deletion(name)
    return to_confirm(Step(["lists", "delete", name] + (["--dry-run"] if is_dry else force(course)), apply), begins)


def expire(_):
    def apply(model):
        model.expire()
        return 0
    return Step(["expire"], apply)


# ---- questions ----

def flow_text(flow):
    words = ["proto", rules.NAMES.get(flow.proto, str(flow.proto)), "src", rules.address(flow.family, flow.src), "dst",
             rules.address(flow.family, flow.dst)]
    if flow.ports:
        names = ("type", "code") if flow.proto in rules.ICMP else ("sport", "dport")
        words += [names[0], str(flow.ports[0]), names[1], str(flow.ports[1])]
    return " ".join(words)


def sayable(flow):
    """ICMP is IPv4's, ICMPv6 IPv6's, in what a rule can say."""
    return rules.ICMP.get(flow.proto, flow.family) == flow.family and flow.proto < 255


def tested(model, flow):
    if not sayable(flow):
        return "error"
    alive = model.alive()
    if model.matching(flow, "pass", alive):
        return "passed"
    if model.matching(flow, "drop", alive):
        return "blocked"
    if model.policy["no-rule"] == "drop":
        return "blocked: no rule passes it"
    return MONITORED if model.matching(flow, "monitor", alive) else "not blocked"


def test(course):
    flow = draw_flow(course.rng, course.universe.pool, course.universe)
    is_json = course.rng.random() < 0.3

    def apply(model):
        said = tested(model, flow)
        return 0 if said.startswith("blocked") else {"error": 2}.get(said, 1)

    def check(model, seen):
        expected = tested(model, flow)
        if expected == "error":
            return None
        answer = json.loads(seen.out) if is_json else {}
        verdict = answer.get("verdict") or field(seen.out, "verdict")
        rule = answer.get("rule") or field(seen.out, "rule")
        running = answer.get("running_filter") or field(seen.out, "running filter")
        if not verdict.startswith(expected):
            return "'%s', expected '%s'" % (verdict, expected)
        action = {"passed": "pass", "blocked": "drop", MONITORED: "monitor"}.get(expected)
        if action:
            named = rules.read(re.sub(r" timeout .*| comment .*", "", rule).split())
            if named not in model.matching(flow, action, model.alive()):
                return "by '%s', which does not match" % rule
        elif rule and expected == "not blocked":
            return "by '%s', where there is none" % rule
        if model.table in ("exact", "uncounted") and not model.panic and running.split(",")[0] != "agrees":
            late = any(entry.end and model.has_ended(entry) for entry in model.rules.values())
            return None if late else "running filter: %s" % running
        return None
    return Step(["test"] + (["--json"] if is_json else []) + words(flow_text(flow), course.rng), apply, check)


def wrong_input(course):
    """Changes nothing, and says what is wrong."""
    rng = course.rng
    bad = rng.choice([word for word in lists.BAD if "-" not in word or " " in word])
    argv, status = rng.choice((
        (["add", bad], 2), (["del", bad], 2), (["test", bad], 2), (["add"], 2), (["add", "--frobnicate"], 2),
        (["add", "src " + "10.99.0.2"], 2), (["add", "dst 10.99.0.0/24"], 2),
        (["import", "/nonexistent"], 3), (["import", "/nonexistent", "--list", "a", "--replace"], 3),
        (["import", course.file("1.2.3.4\n"), "--list", "no/name"], 2), (["lists", "delete", "none-such"], 1),
        (["list", "--list", "none-such"], 1), (["export", "--list", "none-such"], 1), (["policy", "no-rul", "drop"], 2),
        (["policy", "truncated", "reject"], 2), (["policy", "no-rule", "drop"], 2), (["policy", "not-ip", "drop"], 2),
        (["resize", "0"], 2), (["resize", "many"], 2), (["frob"], 2), (["monitor-only", "maybe"], 2),
        (["import", course.file("1.2.3.4\n"), "--timeout", "0"], 2), (["confirm"], 1),
        (["import", course.file("1.2.3.4\n"), "--format", "xml"], 2), (["load", "nosuch0"], (2, 3)),
        (["unload", "nosuch0"], (1, 2, 3)), (["list", "extra"], 1), (["flush", "all"], 1),
    ))
    # What is blocked already may be named, and what a pass rule names.
    if "10.99" in argv[-1] and (course.universe.is_broad or course.model.policy["no-rule"] == "drop"):
        argv, status = ["add", bad], 2
    return Step(argv, lambda model: status,
                lambda model, seen: None if re.search("^xdp-cuckoo: ", seen.err, re.M) else "no message")


# ---- export ----

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


# ---- the filter ----

def settings(course):
    rng = course.rng
    outcome, verdict = rng.choice([word for word in POLICIES if word not in ("too-many-headers", "unsettled")]), \
        rng.choice(("pass", "drop"))
    needs = verdict == "drop" and outcome in ("no-rule", "not-ip")

    def apply(model):
        if outcome == "no-rule" and verdict == "drop" and model.now.undone and model.now.policy[outcome] != "drop":
            return 5  # its undoing might take pass rules away
        model.policy[outcome] = verdict
        return 0
    return Step(["policy", outcome, verdict] + (["--force"] if needs else []), apply)


def monitor_only(course):
    word = course.rng.choice(("on", "off", "off"))

    def apply(model):
        model.monitor_only = word == "on"
        return 0
    return Step(["monitor-only", word], apply)


def panic(course):
    is_off = course.model.panic or course.rng.random() < 0.3

    def apply(model):
        if not model.table:
            return 1
        model.panic = not is_off
        return 0
    return Step(["panic"] + (["off"] if is_off else []), apply)


def resize(course):
    size = course.rng.choice((1, 100, 10000, 20000, 100000))
    return Step(["resize", str(size)], lambda model: (0, 4) if model.table else 1,
                lambda _, seen: None if seen.status != 4 or "more than the capacity of %d;" % size in seen.err else "why")


def check(course):
    return Step(["check"], lambda model: 0 if model.table else 1)


def unload(course):
    def apply(model):
        status = 0 if model.table else 1
        model.table, model.panic = None, False
        return status

    def note(model, seen):
        course.counts = {}
        return None
    return Step(["unload"] + course.rng.choice((["--all"], [course.options.interface])), apply, note)


def load(course):
    kind, argv = course.format

    def apply(model):
        model.table = model.table or kind
        return 0
    return Step(["load", course.options.interface] + argv, apply)


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


# ---- what waits to be confirmed ----

def wants_pending(course):
    """The seconds, or 0. Also a second one, which is refused."""
    if "pending" in course.without:
        return 0
    return 600 if course.rng.random() < (0.05 if course.model.undone or not course.is_pending else 0.5) else 0


def to_confirm(step, seconds):
    """The same change, which waits to be confirmed: undone, the model is as if it had never been made."""
    if not seconds:
        return step
    inner = step.apply

    def apply(model):
        undone = model.copy()
        status = inner(model)
        if model.undone:  # refused: one waits already
            model.__dict__.update(undone.__dict__, now=model)
            return (status, 5) if status else 5
        if status == 0:
            undone.made, model.undone = model.lists - undone.lists, undone
        return status

    def check_unless_refused(model, seen):
        if seen.status == 5:
            return None if "waits for xdp-cuckoo confirm" in seen.err else "the error"
        return check and check(model, seen)
    check, step.check = step.check, check_unless_refused
    step.apply, step.has_undone = apply, True
    step.argv += ["--confirm", "%us" % seconds]
    return step


def confirm(_):
    """All of it stays, also what other commands changed since then."""
    def apply(model):
        status = 0 if model.undone else 1
        model.undone = None
        return status
    step = Step(["confirm"], apply)
    step.has_undone = True
    return step


def overdue(course):
    """Nobody confirmed it: the next command that writes undoes it first. What others changed meanwhile stays."""
    if not course.model.undone:
        return
    step = course.rng.choice((check, expire, confirm, add, delete, batch, monitor_only))(course)
    inner = step.apply

    def apply(model):
        model.undo()
        status = inner(model)
        return (0, 1) if step.argv[0] == "check" and status == 0 else status
    step.apply, step.has_undone = apply, True
    moved = other(course.options.helpers + "/overdue", "{store}/default")
    moved.has_undone = True
    course.do(moved)
    course.do(step)


UNTIL_UNDONE = 'while "$@" status --verbose 2>&1 | grep -Eq "unconfirmed( change:|: *yes)"; do sleep 0.1; done'


def unconfirmed(course):
    """The same by the process that watches over it, at the deadline."""
    if course.model.undone or "pending" in course.without:
        return
    course.do((delete_list if course.rng.random() < 0.3 else importing)(course, 1))
    if not course.model.undone:
        return
    waiting = other("timeout", "60", "sh", "-c", UNTIL_UNDONE, "sh", course.options.tool, "--state", "{store}/",
                    apply=lambda model: model.undo() or 0)
    waiting.has_undone = True
    course.do(waiting)


# ---- lists from elsewhere ----

def narrow(course, most):
    """Drop rules of few addresses, which no host refuses."""
    return [rule for rule in course.universe.some(course.rng, most) if rule.action == "drop" and max(rule.src[1], rule.dst[1]) >= 16]


def refresh(course):
    """A list by URL."""
    some = narrow(course, 12)
    if not some:
        return
    course.do(other("cp", course.file("".join(rules.canonical(rule) + "\n" for rule in some)), "{dir}/provided"))

    def apply(model):
        model.take_in(FEED, [(rule, None, "") for rule in some], model.end_of, True)
        return 0
    course.do(Step(["refresh", FEED, "--force", "--config", "{dir}/feed.conf"], apply))


def follow(course):
    """The list of a fleet: something is published, and this host follows."""
    if not course.options.broker:
        return
    config, model = ["--config", "{dir}/fleet.conf"], course.model
    publish = [course.options.tool, "--state", "{dir}/publisher"]
    if not model.fleet:
        course.do(other("redis-cli", "-e", "FLUSHALL"))
        course.do(other(*publish, "fleet", "init", *config))
    for rule in narrow(course, 3):
        there = dict(map(reversed, course.model.fleet))
        is_add = not there.get(rule) or course.rng.random() < 0.2

        def apply(model, is_add=is_add, rule=rule):
            model.fleet.append((is_add, rule))
            return 0
        course.do(other(*publish, "publish", "add" if is_add else "del", rules.canonical(rule), "--list", FLEET, *config,
                        apply=apply))
    if not course.model.fleet:
        return
    # Where another command has changed the list, only a running `follow` notices.
    if any(one and not one.is_fleet_whole() for one in (course.model, course.model.undone)):
        course.do(Step(["lists", "delete", FLEET, "--force"], list_deletion(FLEET)))
    course.do(Step(["follow", "--once", "--accept", *config], lambda model: model.follow(model.end_of) or 0))


# ---- where no filter is seen, another version, another loader ----

def away(course):
    """Commands that do not see the filter: the next that does makes it equal. Perhaps it is another version's then."""
    if not course.model.table:
        return
    rng = course.rng
    if rng.random() < 0.5:
        course.do(Step(["resize", "1"], lambda model: (0, 4)))
    if rng.random() < 0.6:
        course.do(other(course.options.helpers + "/corrupt", "version"))
        course.counts = None
    for _ in range(rng.randint(0, 3)):
        step = rng.choice((add, delete, batch, importing, delete_list, flush, expire))(course)
        step.is_away = True
        course.do(step)
    if rng.random() < 0.4:
        count = rng.randint(1000, 2500)
        many = [rules.rule(family=4, src=((100 << 24 | 64 << 16) + number, 32)) for number in range(count)]
        step = Step(["import", course.file("".join(rules.canonical(rule) + "\n" for rule in many)), "--list", "many"],
                    lambda model: model.take_in("many", [(rule, None, "") for rule in many], model.end_of, False) or 0)
        course.universe.pool += rng.sample(many, 2)
        step.is_away = True
        course.do(step)
    course.do(Step(["check"], lambda model: (0, 1)))
    course.check_verdicts(100)
    if "many" in course.model.lists:
        course.do(Step(["lists", "delete", "many", "--force"], list_deletion("many")))


def relink(course):
    """Another loader has loaded the object: it passes everything until the tool adopts it."""
    interface = course.options.interface
    course.do(unload(course))
    course.do(other("ip", "link", "set", "dev", interface, "xdp", "obj", course.options.object, "sec", "xdp"))
    course.load()
    for _, frame, _, _ in course.draw_frames(20, course.rng):
        if course.program.run(frame) != XDP_PASS:
            raise Wrong("a program that nobody set up drops a frame: %s" % frame.hex())
    step = course.rng.choice((check, expire, add))(course)
    inner = step.apply

    def apply(model):
        model.table = "exact"
        status = inner(model)
        return (0, 1) if step.argv[0] == "check" else status
    step.apply = apply
    course.do(step)
    course.counts = None


# ---- what is killed ----

def killed(course):
    """Ended by kill -9 at any moment: done, or not begun; check mends the table."""
    if course.model.undone:
        return  # it may be seen only in what would be undone
    kind = course.rng.choice((add, delete, importing, importing, batch, delete_list))
    step = kind(course)
    step.kill_s = course.rng.choice((0.001, 0.003, 0.006, 0.01, 0.02)) * (1 + course.rng.random())
    course.do(step)
    course.do(Step(["check"], lambda model: (0, 1) if model.table else 1))


# ---- configuration ----

def up(course):
    rng = course.rng
    kind, argv = course.format
    lines = ["[filter]", "interfaces = " + course.options.interface]
    if kind == "compact":
        lines += ["table = compact"] + (["fingerprint = " + argv[2]] if len(argv) > 2 else [])
    if kind == "uncounted":
        lines.append("counters = no")
    monitor = rng.choice(("yes", "no", None, None))
    lines += ["monitor-only = " + monitor] if monitor else []
    policies = {word: rng.choice(("pass", "drop")) for word in rng.sample(("later-fragment", "truncated", "malformed"), 2)}
    lines += ["", "[policy]"] + ["%s = %s" % one for one in policies.items()]
    wanted = []
    for name in rng.sample(LISTS, rng.randint(0, 2)):
        kind_of, text, found, bad = lists.draw(rng, course.universe, False)
        timeout = rng.choice((None, rng.randint(3600, 90000)))
        if bad:
            continue
        lines += ["", "[list %s]" % name, "file = " + course.file(text), "force = yes", "format = " + kind_of]
        lines += ["timeout = %us" % timeout] if timeout else []
        wanted.append((name, [(rule, timeout if own is None else own, comment) for rule, own, comment in found]))

    def apply(model):
        model.table = model.table or kind
        model.policy.update(policies)
        model.monitor_only = monitor == "yes" if monitor else model.monitor_only
        for name, found in wanted:
            model.take_in(name, found, model.end_of, True)
        return 0
    return Step(["up", course.file("\n".join(lines) + "\n")], apply)


def down(course):
    def apply(model):
        model.table, model.panic = None, False
        return 0

    def note(_, __):
        course.counts = {}
    return Step(["down"], apply, note)


def start(course):
    course.do(load(course))
    course.check_verdicts(50, 20)


WEIGHTS = ((add, 20), (delete, 10), (importing, 14), (batch, 8), (flush, 2), (delete_list, 3), (expire, 2), (test, 6),
           (wrong_input, 6), (settings, 3), (monitor_only, 2), (panic, 2), (resize, 2), (check, 3), (unload, 1), (up, 2), (down, 1), (confirm, 2))
WHOLE = ((export, 4), (stats, 4), (counters, 3), (unconfirmed, 1), (overdue, 2), (killed, 4), (refresh, 3), (follow, 2),
         (away, 2), (relink, 1))  # that do all by themselves
PENDING = ((add, 14), (delete, 6), (importing, 22), (batch, 5), (flush, 2), (delete_list, 8), (expire, 1), (settings, 1),
           (monitor_only, 1), (resize, 1), (unload, 1), (confirm, 2), (refresh, 6), (follow, 4), (overdue, 8), (away, 1),
           (relink, 1), (unconfirmed, 1))


def draw(course):
    rng = course.rng
    weights = [one for one in (PENDING if course.is_pending else WEIGHTS + WHOLE) if one[0].__name__ not in course.without]
    if not course.model.table or course.model.panic and rng.random() < 0.5:
        kind = load if not course.model.table else panic
    else:
        kind = rng.choices([kind for kind, _ in weights], [weight for _, weight in weights])[0]
    if not course.model.table:
        kind = rng.choice((load, load, up))
    step = kind(course)
    if step:
        course.do(step)
    course.check_verdicts(course.options.frames, 40 if rng.random() < 0.2 else 0)


def finish(course):
    overdue(course)
    if course.model.table:
        course.check_verdicts(course.options.frames, 100)
        stats(course)
