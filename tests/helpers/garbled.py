#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Damages copies of a store at random, and asks the tool about them.

garbled.py TOOL STORE SEED COPIES: STORE is a directory with the store `default`. Each command on a damaged copy must
answer as on the sound one, or end with status 3 and the advice. Prints what did something else.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

PAGE = 4096
ADVICE = "data.mdb is damaged"
TOO_LONG_S = 20


def stretch(data, draw, page):
    """Random bytes over a part of a page."""
    at, length = draw.randrange(PAGE - 16), draw.choice([16, 64, 256, 1024, PAGE])
    length = min(length, PAGE - at)
    data[page * PAGE + at:page * PAGE + at + length] = draw.randbytes(length)


def header(data, draw, page):
    """Random bytes over the head of a page: its number, flags and free space, and the places of its first entries."""
    data[page * PAGE:page * PAGE + 32] = draw.randbytes(32)


def zeros(data, draw, page):
    data[page * PAGE:(page + 1) * PAGE] = bytes(PAGE)


def other_page(data, draw, page):
    """The content of another page, as a disk that writes to the wrong place leaves it.

    Not of an inner page of a tree (flag 1) in place of another, and not of the two first pages, which tell the last
    and the last but one state: LMDB has no checksums, and does not show the numbers of these pages.
    """
    other = draw.randrange(max(1, len(data) // PAGE))
    if len(data) < PAGE or min(page, other) < 2 or data[page * PAGE + 10] & data[other * PAGE + 10] & 1:
        return
    data[page * PAGE:(page + 1) * PAGE] = data[other * PAGE:(other + 1) * PAGE]


def cut(data, draw, page):
    del data[page * PAGE + draw.randrange(PAGE):]


def run(tool, state, command):
    try:
        done = subprocess.run([tool, "--state", state] + command, capture_output=True, timeout=TOO_LONG_S,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, "", "it hangs"
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def main():
    tool, store, seed, copies = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(seed)
    listed = [line.split() for line in subprocess.check_output([tool, "--state", store, "list"], text=True).splitlines()]
    faults = refused = 0
    with open(os.path.join(store, "default", "data.mdb"), "rb") as file:
        sound = file.read()
    with tempfile.TemporaryDirectory() as top:
        copy, file = os.path.join(top, "s"), os.path.join(top, "s", "default", "data.mdb")
        shutil.copytree(store, copy)

        def answer(data, command):
            with open(file, "wb") as to:
                to.write(data)
            return run(tool, copy, command)

        answers = {}
        for number in range(copies):
            rule = draw.choice(listed)
            commands = [["list"], ["test"] + rule, ["test", "198.51.100.77"], ["check"], ["export"], ["lists"],
                        ["add", "198.51.100.78"], ["del"] + rule]
            data = bytearray(sound)
            kinds = [draw.choice([stretch, stretch, header, zeros, other_page, cut])
                     for _ in range(draw.choice([1, 1, 2, 4]))]
            for kind in kinds:
                kind(data, draw, draw.randrange(max(1, len(data) // PAGE)))
            for command in commands:
                words = " ".join(command)
                if words not in answers:
                    answers[words] = answer(sound, command)
                status, output, error = answer(data, command)
                refused += status == 3
                if (status, output) == answers[words][:2] or (status in (3, 4) and ADVICE in error):
                    continue
                if status == 4 and "Cannot allocate memory" in error:  # as much as a damaged page asks for
                    continue
                faults += 1
                print(f"copy {number} ({', '.join(kind.__name__ for kind in kinds)}): {words}: status {status}, not "
                      f"{answers[words][0]}: {output[:200]!r} {error[:300]!r}, not {answers[words][1][:200]!r}")
                if os.environ.get("KEEP"):
                    os.makedirs(os.environ["KEEP"], exist_ok=True)
                    with open(os.path.join(os.environ["KEEP"], str(number)), "wb") as to:
                        to.write(data)
    print(f"seed {seed}: {copies} copies, {refused} answers refused, {faults} wrong")
    sys.exit(1 if faults else 0)


main()
