#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds in BPF objects what older kernels reject, wherever it runs.

usage: older_kernels.py LLVM_OBJDUMP OBJECT...

Loops: check_cfg() of Linux 6.1 walks the instructions depth first. A loop may go back by a jump, but not from another instruction to the
next one: "back-edge from insn".
Stack: Linux before 6.8 rounds the stack of each function up to 32 bytes, later kernels to 16. A program has 512 with all functions that it
calls, one inside the other.
Exit status 1: there is such a loop or such a program, and a line names each.
"""
import re
import subprocess
import sys


STACK_MAX = 512


def functions(objdump, path):
    """Of each function its instructions, (number, text), and the names of the functions that it calls."""
    text = subprocess.run([objdump, "-dr", "--no-show-raw-insn", path], check=True, capture_output=True, text=True).stdout
    found, calls, at_start, name = {}, {}, {}, None
    for line in text.splitlines():
        label = re.match(r"[0-9a-f]+ <(.+)>:", line)
        symbol = re.search(r"R_BPF_64_(?:32|64)\s+(\S+)", line)
        instruction = None if symbol else re.match(r"\s+(\d+):\s+(.*)", line)
        if label and not label[1].startswith("LBB"):
            name = label[1]
            found[name], calls[name] = [], set()
        elif instruction:
            if not found[name]:
                at_start.setdefault(int(instruction[1]), name)  # .text is first
            found[name].append((int(instruction[1]), instruction[2]))
        elif symbol and symbol[1] == ".text":  # a function without a symbol: its place is in the instruction
            last = found[name][-1][1]
            address = re.search(r"= (\d+) ll", last)
            calls[name].add(int(address[1]) // 8 if address else int(re.search(r"call (-?\d+)", last)[1]) + 1)
        elif symbol:
            calls[name].add(symbol[1])
    return found, {name: {at_start.get(one, one) for one in called} & found.keys() for name, called in calls.items()}


def stack_of(instructions):
    """Bytes: the lowest place that is used, or whose address is taken."""
    lowest, copies = 1, set()
    for _, text in instructions:
        places = [int(place) for place in re.findall(r"\(r10 - (\d+)\)", text)]
        copy, step = re.match(r"(r\d) = r10$", text), re.match(r"(r\d) \+= -(\d+)$", text)
        if copy:
            copies.add(copy[1])
        elif step and step[1] in copies:
            copies.remove(step[1])
            places.append(int(step[2]))
        lowest = max([lowest, *places])
    return lowest


def deepest(name, found, calls):
    """(bytes, functions) of the calls that need the most stack."""
    below = max((deepest(called, found, calls) for called in calls[name]), default=(0, []))
    return below[0] + (stack_of(found[name]) + 31) // 32 * 32, [name, *below[1]]


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
    found, calls = functions(sys.argv[1], path)
    for name, instructions in found.items():
        for number in back_edges(instructions):
            print(f"{path}: {name}: Linux 6.1 rejects the back-edge from instruction {number}")
            status = 1
        stack, chain = deepest(name, found, calls)
        if stack > STACK_MAX:
            print(f"{path}: {' > '.join(chain)}: {stack} bytes of stack; Linux before 6.8 allows {STACK_MAX}")
            status = 1
sys.exit(status)
