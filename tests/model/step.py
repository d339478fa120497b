# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A command of a course, and what is said where its answer is another than promised."""
import re


class Wrong(Exception):
    """What was seen is not what was promised."""


class Seen:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Unfit(Exception):
    """What the test itself does about the tool has failed: in a shortened course, what it needs is not there."""


class Step:
    """
    A command, and what it does to a model: apply() returns the status, or several that are right. It is called for what
    would be undone, too, except where it cares for that itself.
    """
    def __init__(self, argv, apply, check=None, stdin=None, kill_s=None):
        self.argv, self.apply, self.check, self.stdin, self.kill_s = argv, apply, check, stdin, kill_s
        self.has_undone = False  # apply() cares for what would be undone
        self.is_away = False  # run where no filter is seen
        self.is_other = False  # another program than the tool


def other(*argv, apply=lambda model: 0):
    """Another program; in its words {store} and {dir} are the course's."""
    step = Step(list(argv), apply)
    step.is_other = True
    return step


def count_of(out, name):
    """A count in the one line that import prints: "added 2, updated 0, ..."."""
    found = re.search(r"\b%s (\d+)\b" % re.escape(name), out)
    return found and found.group(1)


def field(out, name):
    found = re.search(r"^%s: +(.*)$" % re.escape(name), out, re.M)
    return found and found.group(1)


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
            model.undone = undone
        return status

    def check_unless_refused(model, seen):
        if seen.status == 5:
            return None if "waits for xdp-cuckoo" in seen.err else "the error"
        return check and check(model, seen)
    check, step.check = step.check, check_unless_refused
    step.apply, step.has_undone = apply, True
    step.argv += ["--confirm", "%us" % seconds]
    return step
