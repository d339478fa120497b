# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A command of a course, and what is said where its answer is another than promised."""
import re


class Wrong(Exception):
    """What was seen is not what was promised."""


class Seen:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Step:
    """A command, and what it does to a model: apply() returns the status, or several that are right."""
    def __init__(self, argv, apply, check=None, stdin=None, kill_s=None):
        self.argv, self.apply, self.check, self.stdin, self.kill_s = argv, apply, check, stdin, kill_s
        self.begins_undo, self.undo_s = False, None


def count_of(out, name):
    """A count in the one line that import prints: "added 2, updated 0, ..."."""
    found = re.search(r"\b%s (\d+)\b" % re.escape(name), out)
    return found and found.group(1)


def field(out, name):
    found = re.search(r"^%s: +(.*)$" % re.escape(name), out, re.M)
    return found and found.group(1)
