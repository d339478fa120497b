# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What the commands promise, after README and the man pages: who has a rule until when, and what becomes of a packet.
While a change waits to be confirmed there are two models, with it and as if it had never been made, and what a command
means is done to both. By brute force: a flow is compared with every rule. Deadlines are intervals, since the tool's clock is read somewhere
between a command's start and its end; which of them have passed is what the driver says.
"""
from rules import matches

HAND = ""  # the owner that is no list
FLEET, FEED = "bad", "url"  # the lists of the fleet, and by URL
OTHER_WAY = {"drop": "monitor", "monitor": "drop"}  # of two such rules, an import can leave the one of the file
POLICIES = ("no-rule", "later-fragment", "not-ip", "truncated", "malformed", "too-many-headers", "unsettled")


class Entry:
    """Who has a rule for good, and who for a time; these have one end in common, the latest."""
    __slots__ = "good", "timed", "end", "comments"

    def __init__(self, good=(), timed=(), end=None, comments=("",)):
        self.good, self.timed, self.end, self.comments = frozenset(good), frozenset(timed), end, frozenset(comments)

    def copy(self):
        return Entry(self.good, self.timed, self.end, self.comments)


def later(one, other):
    return other if one is None else (max(one[0], other[0]), max(one[1], other[1]))


class Model:
    def __init__(self):
        self.rules, self.lists = {}, set()
        self.policy = dict.fromkeys(POLICIES, "pass")
        self.monitor_only = self.panic = False
        self.table = None  # how it is loaded: "exact", "uncounted", "compact", or not
        self.undone = None  # what there would be without the change that waits to be confirmed; None: no change waits
        self.now = self  # of a command, what it finds: whether it does anything is decided there, also for `undone`
        self.saved = None  # by the last backup
        self.fleet, self.fleet_at = [], None  # the log of the fleet's list, and how far this host has read it
        self.passed = lambda end: False

    def copy(self):
        new = Model()
        new.__dict__.update(self.__dict__)
        new.rules = {rule: entry.copy() for rule, entry in self.rules.items()}
        new.lists, new.policy, new.fleet = set(self.lists), dict(self.policy), list(self.fleet)
        new.undone, new.now = self.undone and self.undone.copy(), new
        return new

    def undo(self):
        """The change that waited was not confirmed. A list that it has made stays if a later change has made it, too."""
        if self.undone:
            self.__dict__.update(self.undone.__dict__, undone=None, now=self)

    def has_ended(self, entry):
        return not entry.good and self.passed(entry.end)

    def alive(self):
        return {rule: entry for rule, entry in self.rules.items() if not self.has_ended(entry)}

    def has(self, rule, owner):
        entry = self.rules.get(rule)
        return bool(entry) and owner in entry.good | entry.timed

    # ---- changes of a rule ----

    def put(self, owner, rule, end, comment="", replace=False):
        """
        The owner wants the rule until the end, or for good: "added", "updated" or "kept"; "again" where it has ended,
        and has not been taken out.
        """
        entry = self.rules.get(rule)
        if not entry or self.has_ended(entry):
            self.rules[rule] = Entry([] if end else [owner], [owner] if end else [], end,
                                     [comment] if comment or not entry else entry.comments | {""})
            return "again" if entry else "added"
        was = owner in entry.good
        if was and (not replace or not end and entry.good | entry.timed != {owner}):
            return "kept"  # also what others had for a time that is over
        if entry.timed and self.passed(entry.end):
            entry.timed, entry.end = frozenset(), None
        is_alone = entry.good | entry.timed == {owner}
        if is_alone and (replace or comment and not entry.good):
            # What would be undone may keep an older comment.
            entry.comments = frozenset([comment]) | (entry.comments if self.now is not self else frozenset())
        entry.good -= {owner}
        entry.timed -= {owner}
        if not entry.timed:
            entry.end = None
        if end:
            entry.timed |= {owner}
            entry.end = later(entry.end, end)
        else:
            entry.good |= {owner}
        return "updated"

    def give_up(self, owner, rule):
        """Whether the rule is gone: nobody else has it."""
        entry = self.rules[rule]
        entry.good -= {owner}
        entry.timed -= {owner}
        if not entry.timed or self.passed(entry.end):
            entry.timed, entry.end = frozenset(), None
        if not entry.good and not entry.timed:
            del self.rules[rule]
            return True
        return False

    def delete(self, rule):
        """None, "there" or, of one that has ended and not been taken out yet, "ended"."""
        entry = self.rules.pop(rule, None)
        return entry and ("ended" if self.has_ended(entry) else "there")

    # ---- lists ----

    def of(self, owner):
        return [rule for rule in self.rules if self.has(rule, owner)]

    def take_in(self, owner, lines, end_of, replace, ends_drop=False):
        """What an import of the lines (rule, timeout, comment) does. Only its option --action monitor ends a drop rule."""
        if owner != HAND:
            self.lists.add(owner)
        wanted = {line[0] for line in lines}
        if replace:
            for rule in list(self.rules):
                if rule in wanted:
                    continue
                if owner == HAND:
                    del self.rules[rule]
                elif self.has(rule, owner):
                    self.give_up(owner, rule)
        for rule in [] if replace else wanted:
            twin = rule._replace(action=OTHER_WAY.get(rule.action))
            if twin not in wanted and self.has(twin, owner) and (ends_drop or twin.action != "drop"):
                self.give_up(owner, twin)
        for rule, timeout, comment in lines:
            if replace and owner == HAND:
                self.rules.pop(rule, None)  # everything is as the file says
            self.put(owner, rule, end_of(timeout), comment, replace)

    def delete_list(self, name):
        for rule in self.of(name):
            self.give_up(name, rule)
        self.lists.discard(name)
        if name == FLEET:
            self.fleet_at = None

    def is_fleet_whole(self):
        """Whether no other command has changed what this host has read of the fleet's list."""
        there = dict(map(reversed, self.fleet[:self.fleet_at or 0]))
        return self.fleet_at is None or {rule for rule in there if there[rule]} == set(self.of(FLEET))

    def follow(self, end_of):
        """What the host does with the log of the fleet's list: a list that it does not have is read as a whole."""
        self.lists.add(FLEET)
        at = self.now.fleet_at and self.fleet_at
        if at is None:
            there = dict(map(reversed, self.fleet))
            self.take_in(FLEET, [(rule, None, "") for rule in there if there[rule]], end_of, True)
        for is_add, rule in self.fleet[at:] if at is not None else []:
            if is_add:
                self.put(FLEET, rule, None)
            elif self.has(rule, FLEET):
                self.give_up(FLEET, rule)
        self.fleet_at = len(self.fleet)

    def expire(self):
        ended = [rule for rule, entry in self.rules.items() if self.has_ended(entry)]
        for rule in ended:
            del self.rules[rule]
        return len(ended)

    # ---- packets ----

    def matching(self, flow, action, rules=None):
        return [rule for rule in (self.rules if rules is None else rules) if rule.action == action and matches(rule, flow)]

    def outcome(self, flow, otherwise, rules):
        """(outcome, whether it drops, the rules that may have decided), were it not for monitor-only."""
        if flow:
            for action in ("pass", "drop"):
                deciding = self.matching(flow, action, rules)
                if deciding:
                    return action + "-rule", action == "drop", deciding
            deciding = self.matching(flow, "monitor", rules) if self.policy[otherwise] == "pass" else []
            if deciding:
                return "monitor-rule", False, deciding
        return otherwise, self.policy[otherwise] == "drop", []
