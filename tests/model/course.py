# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A course of random commands: after each, status, answer, rules and verdicts are compared with those of the model."""
import json
import os
import random
import shutil
import subprocess
import tempfile
import time

import events
import frames
import kernel
import rules
from model import FEED, FLEET, HAND, Model
from step import Seen, Unfit, Wrong
from universe import Universe

LATE_S = 1.7  # after its end the filter may still match a rule for so long: ticks of the kernel
SOON_S = 0.6  # no command is begun so near to an end that is known
SLACK_S = 0.03
FORMATS = (("exact", []), ("compact", ["--compact"]), ("exact", []), ("uncounted", ["--no-counters"]),
                ("compact", ["--compact", "--fingerprint", "32"]), ("exact", []),
                ("compact", ["--compact", "--fingerprint", "8"]), ("compact", ["--compact", "--fingerprint", "17"]))


class Course:
    def __init__(self, options, number):
        self.options, self.number = options, number
        self.rng = random.Random("%s:%s" % (options.seed, number))
        self.without = options.without.split(",")
        self.is_pending = number % 2 == 1  # mostly of changes that wait to be confirmed, with few rules
        self.universe = Universe(self.rng, 16 if self.is_pending else 120)
        self.model = Model()
        self.log, self.frames, self.chance_hits, self.verdicts, self.real, self.frame_number = [], None, 0, 0, 0, 0
        self.dir = tempfile.mkdtemp(dir=options.state)
        self.store = os.path.join(self.dir, "store")
        self.counts, self.judged = {}, None
        self.program, self.program_id = None, None
        self.files, self.contents = 0, {}
        self.asked = []  # flows that a question was about
        self.spent = options.spent
        self.format = FORMATS[number // 2 % len(FORMATS)]
        self.configure()

    def configure(self):
        """What `follow`, `publish` and `refresh` read."""
        with open(os.path.join(self.dir, "fleet.conf"), "w") as out:
            out.write("[fleet]\nbroker = 127.0.0.1\nlists = %s\nhost = h1\nresync-jitter = 1s\n" % FLEET)
        with open(os.path.join(self.dir, "feed.conf"), "w") as out:
            out.write("[filter]\ninterfaces = %s\n[list %s]\nurl = http://127.0.0.1:%u/\nforce = yes\n" % (
                self.options.interface, FEED, self.options.provider.port))
        self.options.provider.path = os.path.join(self.dir, "provided")
        if self.options.broker:
            self.options.broker.ask("FLUSHALL")
            self.run_program([self.options.tool, "--state", os.path.join(self.dir, "publisher"), "fleet", "init",
                              "--config", os.path.join(self.dir, "fleet.conf")])

    # ---- the tool ----

    def tool(self, *argv, stdin=None, kill_s=None, name=None):
        return self.run_program([self.options.tool, "--state", self.store] + (["--name", name] if name else []) +
                                list(argv), stdin, kill_s)

    def words(self, step):
        words = [word.replace("{dir}", self.dir).replace("{store}", self.store) for word in step.argv]
        return words if step.is_other else \
            (["unshare", "-n"] if step.is_away else []) + [self.options.tool, "--state", self.store] + words

    @staticmethod
    def run_program(argv, stdin=None, kill_s=None):
        with subprocess.Popen(argv, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                out, err = process.communicate(stdin, timeout=kill_s or 120)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                if not kill_s:
                    raise Wrong("not done within 120 s: %s" % argv)
        if process.returncode < 0 and not kill_s:
            raise Wrong("ended by signal %d: %s" % (-process.returncode, argv))
        return Seen(process.returncode, out, err)

    def file(self, content):
        self.files += 1
        path = os.path.join(self.dir, "list%u" % self.files)
        with open(path, "w") as out:
            out.write(content)
        self.contents[path] = content
        return path

    # ---- time ----

    def ends_soon(self):
        """Whether rules that end within seconds may be drawn: each costs a wait."""
        return self.format[0] != "compact" or self.rng.random() < 0.5

    def ends(self):
        """Of rules that may end: also those that only an undo would bring back."""
        models = [self.model] + ([self.model.undone] if self.model.undone else [])
        return [entry.end for model in models for entry in model.rules.values() if entry.end]

    def await_ends(self, late_s):
        """Until no end is near, or was, for so long."""
        while True:
            now = time.monotonic()
            near = [end[1] for end in self.ends() if now - late_s - SLACK_S < end[1] and end[0] < now + SOON_S]
            if not near:
                return
            self.spent["waiting"] = self.spent.get("waiting", 0) + max(near) + late_s + SLACK_S - now + 0.01
            time.sleep(max(near) + late_s + SLACK_S - now + 0.01)

    def passed(self, before, after, choice):
        """Which ends have passed between two moments; those within are in `choice`, by order."""
        unsure = sorted({end for end in self.ends() if end[0] <= after + SLACK_S and end[1] >= before - SLACK_S})
        known = dict(zip(unsure, choice))
        return len(unsure), lambda end: known[end] if end in known else end[1] < before

    # ---- a step, and what is seen after it ----

    def do(self, step):
        self.await_ends(0)
        self.log.append(step)
        before = time.monotonic()
        seen = self.run_program(self.words(step), step.stdin, step.kill_s)
        after = time.monotonic()
        self.spent[step.argv[0]] = self.spent.get(step.argv[0], 0) + after - before
        listed = self.tool("list", "--json")
        lists_seen = self.tool("lists", "--json")
        end = time.monotonic()
        wrong, count = None, self.passed(before, end, ())[0]
        for choice in range(1 << min(count, 6)):
            passed = self.passed(before, end, [bool(choice >> i & 1) for i in range(count)])[1]
            model = self.try_out(step, passed, (before, after))
            problem = self.differs(step, model, seen)
            # A rule may have ended between the command and the listing.
            for then in (passed, self.passed(before, end, [True] * count)[1]):
                model.passed = then
                problem_then = problem or self.compare(model, listed, lists_seen, (before, end))
                if not problem_then:
                    self.model = model
                    return seen
                wrong = wrong or problem_then
        self.model.passed = self.passed(before, end, [True] * count)[1]
        if step.kill_s is not None and not self.compare(self.model, listed, lists_seen, (before, end)):
            return seen  # killed before it was done
        raise Wrong("%s\nstatus %d\n%s%s" % (wrong, seen.status, seen.out[-3000:], seen.err[-1500:]))

    def try_out(self, step, passed, moments):
        """What the model is after the step."""
        model = self.model.copy()
        for one in (model, model.undone):
            if one:
                one.passed = passed
                one.end_of = lambda s: (moments[0] + s, moments[1] + s) if s else None
        now = model.copy()
        model.expected = step.apply(model)
        if model.undone and not step.has_undone:
            model.undone.now = now
            step.apply(model.undone)
        return model

    @staticmethod
    def check_status(step, seen, expected):
        if seen.status not in expected:
            text = "status %d, expected %s" % (seen.status, " or ".join(map(str, expected)))
            raise Unfit("%s: %s%s" % (step.argv, text, seen.err)) if step.is_other else Wrong(text + "\n" + seen.err)

    def differs(self, step, model, seen):
        """How the answer is not what it should be."""
        if seen.status == 4 and "kind" in seen.err:
            return "refused, with few kinds of rules in use"
        if step.kill_s is not None:
            return None
        try:
            self.check_status(step, seen, model.expected if isinstance(model.expected, tuple) else (model.expected,))
        except Wrong as wrong:
            return str(wrong)
        return step.check and step.check(model, seen)

    def compare(self, model, listed, lists_seen, window):
        """What the tool lists is what the model has; else how not."""
        there = {}
        for row in json.loads(listed.out or "[]"):
            rule = rules.of_row(row)
            if rule in there:
                return "listed twice: %s" % row
            if " ".join(row["rule"].split()) != rules.canonical(rule._replace(action="drop")):
                return "listed as '%s', not '%s'" % (row["rule"], rules.canonical(rule))
            there[rule] = row
        alive = model.alive()
        for rule in alive.keys() - there.keys():
            if not alive[rule].good and alive[rule].end[0] < window[1] + SLACK_S:
                continue  # the command took longer than the rule lasts
            return "not listed: %s" % rules.canonical(rule)
        for rule in there.keys() - alive.keys():
            return "listed, but should not be there: %s" % there[rule]
        for rule, entry in alive.items():
            problem = rule in there and self.compare_rule(model, rule, entry, there[rule], window)
            if problem:
                return "%s: %s, listed as %s" % (rules.canonical(rule), problem, there[rule])
        names = {row["list"]: row["rules"] for row in json.loads(lists_seen.out or "[]")}
        if set(names) != model.lists:
            return "lists %s, expected %s" % (sorted(names), sorted(model.lists))
        for name, number in names.items():
            held = [rule for rule in model.of(name)]
            sure = [rule for rule in held if rule in alive and 
                    (name in alive[rule].good or not model.passed(alive[rule].end))]
            if not len(sure) <= number <= len(held):
                return "list %s has %d rules, expected %d to %d" % (name, number, len(sure), len(held))
        return None

    @staticmethod
    def compare_rule(model, rule, entry, row, window):
        owners = set(row["lists"]) | ({HAND} if row["by_hand"] else set())
        # A command may take longer than a rule lasts.
        is_sure = entry.timed and entry.end[0] > window[1] + SLACK_S and not model.passed(entry.end)
        sure = entry.good | (entry.timed if is_sure else frozenset())
        if not sure <= owners <= entry.good | entry.timed:
            return "expected of %s" % sorted(entry.good | entry.timed)
        if row["comment"] not in entry.comments:
            return "expected comment %s" % " or ".join(map(repr, entry.comments))
        if entry.good:
            return row["timeout_s"] is not None and "expected for good"
        low, high = entry.end[0] - window[1], entry.end[1] - window[0]
        if row["timeout_s"] is None or not low - 0.1 <= row["timeout_s"] <= high + 1.1:
            return "expected to end in %.1f to %.1f s" % (low, high)
        return None

    # ---- verdicts ----

    def load(self):
        current = kernel.program_of(self.options.interface)
        if current != self.program_id or (current and not self.program):
            if self.program:
                self.program.close()
            self.program = kernel.Program(current) if current else None
            self.program_id = current

    def count(self, outcome, verdict, size):
        if self.counts is None:
            return
        packets = self.counts.setdefault((outcome, verdict), [0, 0])
        packets[0] += 1
        packets[1] += size

    def expected(self, flow, otherwise, alive):
        """What the model says: outcome, the verdict's word, rules that may have decided."""
        model = self.model
        if model.panic:
            return "panic", "passed", []
        outcome, drops, deciding = model.outcome(flow, otherwise, alive)
        if drops or outcome == "monitor-rule":
            return outcome, "would_drop" if model.monitor_only or not drops else "dropped", deciding
        return outcome, "passed", deciding

    def judge(self, flow, otherwise, frame, dropped, alive, how):
        """Counts the packet, and compares its fate; the outcome is known by the counters alone."""
        outcome, verdict, deciding = self.expected(flow, otherwise, alive)
        self.verdicts += 1
        if dropped == (verdict == "dropped"):
            self.count(outcome, verdict, len(frame))
            if self.judged is not None:
                self.judged.append(deciding)
            return
        if self.model.table == "compact" and flow and not self.model.panic:
            ended = any(rules.matches(rule, flow) for rule in self.model.rules if rule not in alive)
            by_chance = dropped or any(rule.action == "pass" for rule in self.model.rules)
            if outcome != "pass-rule" and by_chance or ended:
                self.chance_hits += not ended
                self.count("drop-rule" if dropped else "pass-rule", "dropped" if dropped else "passed", len(frame))
                return
        raise Wrong("%s: %s\n  frame %s\n  was %s, expected %s by %s%s" % (
            how, flow, frame.hex(), "dropped" if dropped else "passed", verdict, outcome,
            "".join("\n  rule: " + rules.canonical(rule) for rule in deciding)))

    def draw_frames(self, count, rng):
        pool = list(self.universe.pool)
        recent = pool[-40:]
        drawn = []
        for _ in range(count):
            flow = self.asked.pop() if self.asked else \
                frames.draw(rng, recent if rng.random() < 0.4 else pool, self.universe)
            self.frame_number += 1
            drawn.append((flow,) + frames.build(rng, flow, self.frame_number))
        return drawn

    def check_verdicts(self, count, real=0):
        rng = random.Random(self.rng.random())
        if not self.model.table:
            return
        self.load()
        if not self.program:
            raise Wrong("no program runs on %s" % self.options.interface)
        started = time.monotonic()
        drawn = self.draw_frames(count + real, rng)
        self.await_ends(LATE_S)
        before = time.monotonic()
        fates = [self.program.run(frame) for _, frame, _, _ in drawn[:count]]
        wire = drawn[count:]
        arrived = set()
        if wire:
            alive = self.alive_at(before)
            awaited = {self.number_of(frame) for _, frame, flow, otherwise in wire
                       if self.expected(flow, otherwise, alive)[1] != "dropped"}
            if self.model.table == "compact":
                awaited = set()
                time.sleep(0.05)
            arrived = self.options.wire.send([frame for _, frame, _, _ in wire], awaited)
            if self.model.table == "compact":
                self.options.wire.drain(arrived, 0.1)
            self.real += len(wire)
        after = time.monotonic()
        if any(end[0] < after + SLACK_S and end[1] > before - LATE_S for end in self.ends()):
            self.counts = None  # it took so long that a rule ended meanwhile: what was right is not known
            return
        alive = self.alive_at(before)
        for (_, frame, flow, otherwise), fate in zip(drawn, fates):
            self.judge(flow, otherwise, frame, fate == kernel.XDP_DROP, alive, "by BPF_PROG_TEST_RUN")
        for _, frame, flow, otherwise in wire:
            self.judge(flow, otherwise, frame, self.number_of(frame) not in arrived, alive, "by a real frame")
        self.spent["verdicts"] = self.spent.get("verdicts", 0) + time.monotonic() - started
        if self.chance_hits > self.chances():
            raise Wrong("by chance %d of %d flows had another fate than by the rules" % (self.chance_hits, self.verdicts))

    def chances(self):
        """
        How many packets may be decided about by a fingerprint that is no rule's, in a compact table: flows have few
        networks in common, so that one such fingerprint may stand for many of them.
        """
        return 5 + self.verdicts / 20

    @staticmethod
    def number_of(frame):
        return int.from_bytes(frame[7:12], "big")

    def alive_at(self, now):
        self.model.passed = lambda end: end[1] < now
        return self.model.alive()

    # ---- the course ----

    def run(self, count):
        events.start(self)
        for at in range(count):
            self.at = at
            events.draw(self)
        events.finish(self)

    def close(self):
        if self.program:
            self.program.close()
        self.tool("unload", "--all")
        if not self.options.keep:
            shutil.rmtree(self.dir, ignore_errors=True)

    def goes_wrong(self, log):
        """Whether these steps alone show something wrong, too: what."""
        again = type(self)(self.options, self.number)
        again.universe, again.chance_hits = self.universe, -1000
        try:
            for step in log:
                again.do(step)
                again.check_verdicts(0 if step.is_away else 30)
            again.check_verdicts(0 if log and log[-1].is_away else self.options.frames)
        except Wrong as wrong:
            return str(wrong)
        except Unfit:
            pass
        finally:
            again.close()
        return None
