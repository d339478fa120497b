# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The commands that a course is made of, drawn at random, and what each does to the model."""
import json
import re

import lists
import rules
from frames import draw as draw_flow
from model import FEED, FLEET, HAND, POLICIES
from step import Step, count_of, field, to_confirm

LISTS = ("a", "b", "feed-3")
MONITORED = "not blocked: only monitored"


def force(course):
    """Broad rules may hold this host's own addresses, and a rule that goes may be what lets their packets pass."""
    is_needed = course.universe.is_broad or course.model.policy["no-rule"] == "drop"
    return ["--force"] if is_needed or course.rng.random() < 0.2 else []


def words(text, rng):
    """As words of a shell, or as one."""
    if '"' not in text and rng.random() < 0.5:
        return text.split()
    return [text]


def a_rule(course):
    """One that there is, mostly, or one that was drawn before."""
    return course.universe.rule(course.rng)


# ---- what waits to be confirmed ----

def wants_pending(course):
    """The seconds, or 0. Also a second one, which is refused."""
    if "pending" in course.without:
        return 0
    return 600 if course.rng.random() < (0.05 if course.model.undone or not course.is_pending else 0.5) else 0


def confirm(_):
    """All of it stays, also what other commands changed since then."""
    def apply(model):
        status = 0 if model.undone else 1
        model.undone = None
        return status
    step = Step(["confirm"], apply)
    step.has_undone = True
    return step


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
        return None if re.search(r"^(added|updated): +%s( timeout .*| comment .*)?$" % re.escape(rules.canonical(rule)), out, re.M) else "the answer"
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
            model.take_in(owner, lines, model.end_of, is_replace, trial == "monitor")
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
                model.now.lists.add(op[1])  # for later lines
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
    name, is_dry = course.rng.choice(LISTS + (FLEET, FEED) * 2), course.rng.random() < 0.1
    begins = not is_dry and (wants_pending(course) if begins is None else begins)

    apply = (lambda model: 0 if name in model.lists else 1) if is_dry else list_deletion(name)
    return to_confirm(Step(["lists", "delete", name] + (["--dry-run"] if is_dry else []) + force(course), apply), begins)


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
    # What is blocked already may be named, and what a pass rule names. What waits may be confirmed.
    is_right = argv == ["confirm"] and course.model.undone
    if is_right or "10.99" in argv[-1] and (course.universe.is_broad or course.model.policy["no-rule"] == "drop"):
        argv, status = ["add", bad], 2
    return Step(argv, lambda model: status,
                lambda model, seen: None if re.search("^xdp-cuckoo: ", seen.err, re.M) else "no message")


# ---- the filter ----

def settings(course):
    rng = course.rng
    outcome, verdict = rng.choice([word for word in POLICIES if word not in ("too-many-headers", "unsettled")]), \
        rng.choice(("pass", "drop"))
    if course.model.undone and course.model.undone.rules.keys() == course.model.rules.keys():
        verdict = "pass"  # later changes may have left nothing that an undo would change: then `no-rule drop` is not refused
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
        model.table = kind
        model.policy.update(policies)
        model.monitor_only = monitor == "yes"
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
