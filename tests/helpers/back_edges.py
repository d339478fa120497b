#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds loops in BPF objects that Linux 6.1 rejects: "back-edge from insn".

usage: back_edges.py LLVM_OBJDUMP OBJECT...

Its check_cfg() walks the instructions depth first. A loop may go back by a jump, but not from another instruction to the next one.
Exit status 1: there is such a loop, and a line names each.
"""
import re
import subprocess
import sys


def functions(objdump, path):
    """The instructions of each function: a list of (number, text)."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True).stdout
    found = {}
    name = None
    for line in text.splitlines():
        label = re.match(r"[0-9a-f]+ <(.+)>:", line)
        instruction = re.match(r"\s+(\d+):\s+(.*)", line)
        if label and not label[1].startswith("LBB"):
            name = label[1]
            found[name] = []
        elif instruction:
            found[name].append((int(instruction[1]), instruction[2]))
    return found


def back_edges(instructions):
    text = dict(instructions)
    after = {a[0]: b[0] for a, b in zip(instructions, instructions[1:])}

    def ways(number):
        """Where it goes next, and whether it may go back there."""
        jump = re.search(r"goto ([+-]\d+)", text[number])
        if text[number] == "exit":
            return []
        if not jump:
            return [(after[number], False)]
        target = (number + 1 + int(jump[1]), True)
        return [target] if text[number].startswith("goto") else [(after[number], True), target]

    start = instructions[0][0]
    is_open = {start: True}
    stack = [(start, iter(ways(start)))]
    while stack:
        number, rest = stack[-1]
        way, may_go_back = next(rest, (None, True))
        if way is None:
            is_open[number] = False
            stack.pop()
        elif way not in is_open:
            is_open[way] = True
            stack.append((way, iter(ways(way))))
        elif is_open[way] and not may_go_back:
            yield number - start


status = 0
for path in sys.argv[2:]:
    for name, instructions in functions(sys.argv[1], path).items():
        for number in back_edges(instructions):
            print(f"{path}: {name}: Linux 6.1 rejects the back-edge from instruction {number}")
            status = 1
sys.exit(status)
