#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks in an object that the addresses of loads depend on earlier loads, which keeps them in order on arm64.

usage: dependencies.py OBJECT

bpf/lookup_key.h says which loads must stay in order, memory_order.py why. A compiler may fold such a dependency away, so
this follows it through registers, stack and map look-ups on every path. Prints how many loads of each kind it checked. Exit status 1: some address lacks a dependency, and a line
names each; 2: this is no object with such loads.
"""
import heapq
import struct
import sys

# Loads of a kind are found by the map that they read, or by a part of their source line. The second load of the
# sequence, "again", is what a program compares with the first.
OF_MAPS = {"xc_buckets": "bucket", "xc_records": "record", "xc_hints": "hint"}
OF_LINES = {
    "run": "run = READ_ONCE(config->run);",
    "deadline": "READ_ONCE(after->confirm_by)",
    "active": "READ_ONCE(config->active) % ABI_TABLES",
    "flip": "shapes_active[family]) & 1",
    "reads": "reads_hints = READ_ONCE(list->",
    "shapes": "READ_ONCE(list->",
    "sequence": "view->sequence = READ_ONCE(table->sequence)",
    "lines": "READ_ONCE(search->table->first_rate_line)",
    "place": "READ_ONCE(line->hash[place])",
    "number": "READ_ONCE(line->number[place])",
}
# On which loads before them on the same path they must depend.
NEEDS = {
    "deadline": ["run"],
    "active": ["run"],
    "flip": ["active"],
    "reads": ["flip"],
    "shapes": ["flip"],
    "hint": ["reads"],
    "sequence": ["active"],
    "bucket": ["sequence"],
    "record": ["bucket"],
    "again": ["bucket", "record"],
    "lines": ["active"],
    "place": ["lines"],
    "number": ["lines"],
}
# A try starts with its first load of the sequence; that for a rate, with that of its lines.
ARGUMENTS = {"verdict_at_rest": (2, "run")}  # the register of what a caller has loaded
OF_ONE_TRY = {"sequence": ("sequence", "bucket", "record"), "lines": ("lines", "place", "number")}
LATER_NEED = {need for needs in NEEDS.values() for need in needs}

LD, LDX, ST, STX, ALU, JMP, JMP32, ALU64 = range(8)
SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}
ATOMIC = 0xc0
ADD, MOV = 0x0, 0xb
JA, CALL, EXIT = 0x0, 0x8, 0x9
MAP_LOOKUP = 1
STACK = 10  # the register that points to it
NOTHING = frozenset()
UNKNOWN = (NOTHING, None)


class Object:
    """Functions of an ELF file: (name, instructions), and the source line of each instruction."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = self.data = file.read()
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 247:
            raise ValueError("not a little-endian BPF object")
        at, = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
        text = headers[names][4]
        self.sections = [(self.string(text + header[0]), header[4], header[5], header[1], header[6])
                         for header in headers]
        self.by_name = {section[0]: section for section in self.sections}

    def string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def functions(self):
        for name, at, size, kind, link in self.sections:
            if kind != 2:  # symbols
                continue
            for symbol in range(at, at + size, 24):
                text, info, _, section, value, length = struct.unpack_from("<IBBHQQ", self.data, symbol)
                if info & 15 == 2:  # of a function
                    yield (self.string(self.sections[link][1] + text), self.sections[section],
                           value // 8, length // 8)

    def maps(self, section, first, count):
        """{instruction: the map whose address it loads}"""
        found = {}
        for name, at, size, kind, link in self.sections:
            if kind != 9 or name != ".rel" + section[0]:  # relocations
                continue
            symbols = self.sections[link]
            for entry in range(at, at + size, 16):
                where, info = struct.unpack_from("<QQ", self.data, entry)
                text, = struct.unpack_from("<I", self.data, symbols[1] + (info >> 32) * 24)
                if first <= where // 8 < first + count:
                    found[where // 8 - first] = self.string(self.sections[symbols[4]][1] + text)
        return found

    def instructions(self, section, first, count):
        for i in range(first, first + count):
            code, registers, offset, constant = struct.unpack_from("<BBhi", self.data, section[1] + i * 8)
            yield code, registers & 15, registers >> 4, offset, constant

    def lines(self):
        """{section name: [(instruction, source line)]}"""
        btf, ext = self.by_name[".BTF"][1], self.by_name[".BTF.ext"][1]
        header, strings = struct.unpack_from("<I", self.data, btf + 4)[0], struct.unpack_from("<I", self.data, btf + 16)[0]
        strings += btf + header
        start, length = struct.unpack_from("<II", self.data, ext + 16)
        at = ext + struct.unpack_from("<I", self.data, ext + 4)[0] + start
        end = at + length
        size, = struct.unpack_from("<I", self.data, at)
        at += 4
        found = {}
        while at < end:
            name, count = struct.unpack_from("<II", self.data, at)
            at += 8
            rows = found.setdefault(self.string(strings + name), [])
            for _ in range(count):
                where, _, line, _ = struct.unpack_from("<IIII", self.data, at)
                rows.append((where // 8, self.string(strings + line)))
                at += size
        return found


class State:
    """What is in registers and in the stack, by byte: a value for each place, see Check."""

    def __init__(self):
        self.places = {f"r{STACK}": (NOTHING, ("stack", 0))}

    def copy(self):
        other = State()
        other.places = dict(self.places)
        return other

    def meet(self, other):
        """Keeps what is so in both. Returns whether that is less than before."""
        lost, less = [], {}
        for place, value in self.places.items():
            theirs = other.places.get(place)
            if theirs is None:
                lost.append(place)
            elif theirs is not value:
                kept = value[0] & theirs[0], value[1] if value[1] == theirs[1] else None
                if kept != value:
                    less[place] = kept
        for place in lost:
            del self.places[place]
        self.places.update(less)
        return bool(lost or less)

    def forget(self, loads):
        self.places = {place: (of - loads, what) for place, (of, what) in self.places.items()}

    def get(self, register):
        return self.places.get(f"r{register}", UNKNOWN)

    def set(self, register, loads=NOTHING, what=None):
        self.places[f"r{register}"] = loads, what

    def read(self, at, size):
        values = [self.places.get(byte, UNKNOWN) for byte in range(at, at + size)]
        return NOTHING.union(*(loads for loads, _ in values)), values[0][1] if len(set(values)) == 1 else None

    def write(self, at, size, value):
        for byte in range(at, at + size):
            self.places[byte] = value


class Check:
    """Follows one function from its start to its ends.

    A value is a set of loads that it depends on, and what it is, if that is known: ("stack", offset); ("map", name);
    ("element", name of the map), a pointer; ("load", instruction), exactly what that load gave; ("constant", number).
    """

    def __init__(self, code, maps, lines, name):
        self.code, self.maps, self.lines = list(code), maps, lines
        self.kinds = {}  # of the loads found
        self.start, self.given = State(), NOTHING
        if name in ARGUMENTS:
            register, self.kinds[-1] = ARGUMENTS[name]
            self.given = frozenset({-1})
            self.start.set(register, self.given)
        self.missing = set()
        self.meetings = {at + 1 + (row[4] if row[0] & 7 == JMP32 and row[0] >> 4 == JA else row[3])
                         for at, row in enumerate(self.code)
                         if row[0] & 7 in (JMP, JMP32) and row[0] >> 4 not in (CALL, EXIT)}

    def run(self):
        # A state for each place where paths meet and each set of loads done, so that a load needs only what its path
        # has loaded.
        states, queue, queued = {(0, self.given): self.start}, [(0, 0, self.given)], {(0, self.given)}
        while queue:
            at, _, loaded = heapq.heappop(queue)
            queued.remove((at, loaded))
            state, targets = states[at, loaded].copy(), [at]
            while len(targets) == 1:
                targets, loaded = self.step(targets[0], state, loaded)
                if targets and targets[0] in self.meetings:
                    break
            for target in targets:
                known = states.get((target, loaded))
                if known is None:
                    states[target, loaded] = state.copy()
                elif not known.meet(state):
                    continue
                if (target, loaded) not in queued:
                    queued.add((target, loaded))
                    heapq.heappush(queue, (target, len(states), loaded))

    def kind_of(self, at, pointer):
        if pointer and pointer[0] == "element" and pointer[1] in OF_MAPS:
            return OF_MAPS[pointer[1]]
        return next((kind for kind, text in OF_LINES.items() if text in self.lines[at]), None)

    def need(self, at, kind, depends, loaded):
        """The load at `at`, which is of `kind`, must depend on what it needs."""
        self.kinds[at] = kind
        for need in NEEDS[kind]:
            loads = [load for load in loaded if self.kinds[load] == need]
            if need == "sequence" and not loads:
                self.missing.add((at, need, None))
            self.missing.update((at, need, load) for load in loads if load not in depends)

    def load(self, at, state, loaded, dst, src):
        depends, pointer = state.get(src)
        kind = self.kind_of(at, pointer)
        if kind in OF_ONE_TRY:
            old = frozenset(load for load in loaded if self.kinds[load] in OF_ONE_TRY[kind])
            state.forget(old)
            loaded, depends = loaded - old, depends - old
        if kind in NEEDS and kind != "record":
            self.need(at, kind, depends, loaded)
        elif kind:
            self.kinds[at] = kind
        state.set(dst, depends | {at} if kind else depends, ("load", at))
        return loaded | {at} if kind in LATER_NEED - {"record"} else loaded

    def use(self, loaded, *values):
        """An instruction computes with the values. Returns the loads done: a record that is never used is none."""
        for depends, what in values:
            if what and what[0] == "load" and self.kinds.get(what[1]) == "record":
                self.need(what[1], "record", depends, loaded)
                loaded |= {what[1]}
        return loaded

    def compare(self, loaded, one, other):
        """A comparison of the sequence with itself ends a try: one of the two is the second load."""
        for (_, first), (depends, second) in (one, other), (other, one):
            if first and second and first[0] == second[0] == "load" and first[1] in loaded and \
                    self.kinds[first[1]] == "sequence":
                self.need(second[1], "again", depends, loaded)

    def step(self, at, state, loaded):
        """Executes an instruction. Returns the places that may be next, and the loads done."""
        code, dst, src, offset, constant = self.code[at]
        kind, operation, by_register = code & 7, code >> 4, code & 8
        if kind == LD:  # a constant of two instructions
            state.set(dst, what=("map", self.maps[at]) if at in self.maps else None)
            return [at + 2], loaded
        where = state.get(src if kind == LDX else dst)[1]
        stack = where[1] + offset if where and where[0] == "stack" else None
        if kind == LDX:
            if stack is None:
                loaded = self.load(at, state, loaded, dst, src)
            else:
                state.set(dst, *state.read(stack, SIZES[code & 0x18]))
        elif kind in (ST, STX):
            if code & 0xe0 == ATOMIC:
                state.set(0 if constant & 0xf0 == 0xf0 else src)
            elif stack is not None:
                state.write(stack, SIZES[code & 0x18], state.get(src) if kind == STX else UNKNOWN)
        elif kind in (ALU, ALU64):
            other = state.get(src) if by_register else (NOTHING, ("constant", constant))
            loaded = self.compute(state, loaded, operation, dst, other)
        elif operation == CALL:
            self.call(state, src, constant)
        elif operation == EXIT:
            return [], loaded
        elif operation == JA:
            return [at + 1 + (constant if kind == JMP32 else offset)], loaded
        else:
            other = state.get(src) if by_register else UNKNOWN
            loaded = self.use(loaded, state.get(dst), other)
            self.compare(loaded, state.get(dst), other)
            return [at + 1, at + 1 + offset], loaded
        return [at + 1], loaded

    def compute(self, state, loaded, operation, dst, other):
        if operation == MOV:
            state.set(dst, *other)
            return loaded
        loads, what = state.get(dst)
        loaded = self.use(loaded, (loads, what), other)
        if operation != ADD or not what:
            what = None
        elif what[0] == "stack" and other[1] and other[1][0] == "constant":
            what = ("stack", what[1] + other[1][1])
        elif what[0] != "element":
            what = None
        state.set(dst, loads | other[0], what)
        return loaded

    @staticmethod
    def call(state, src, constant):
        name, key = state.get(1)[1], state.get(2)[1]
        for register in range(6):
            state.set(register)
        # The kernel reads the key of a map look-up from the stack.
        if src == 0 and constant == MAP_LOOKUP and name and name[0] == "map" and key and key[0] == "stack":
            state.set(0, state.read(key[1], 4)[0], ("element", name[1]))


def lines_of(rows, first, count):
    """The source line of each instruction of a function."""
    rows, line, lines = sorted(rows), "", []
    for at in range(first, first + count):
        while rows and rows[0][0] <= at:
            line = rows.pop(0)[1]
        lines.append(line)
    return lines


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    try:
        binary = Object(sys.argv[1])
        rows = binary.lines()
    except (OSError, ValueError, KeyError, struct.error) as error:
        print(f"dependencies.py: {sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(2)
    found, missing = dict.fromkeys([*OF_LINES, *OF_MAPS.values(), "again"], 0), 0
    for name, section, first, count in binary.functions():
        check = Check(binary.instructions(section, first, count), binary.maps(section, first, count),
                      lines_of(rows.get(section[0], []), first, count), name)
        check.run()
        for kind in check.kinds.values():
            found[kind] += 1
        for at, need, load in sorted(check.missing, key=str):
            missing += 1
            print(f"{name}: {check.kinds[at]} at {at} does not depend on {need}" + (f" at {load}" if load else ""))
    if not all(found.values()):
        print(f"dependencies.py: {sys.argv[1]}: found no load of: "
              f"{', '.join(kind for kind, count in found.items() if not count)}", file=sys.stderr)
        sys.exit(2)
    print("loads checked:", ", ".join(f"{count} {kind}" for kind, count in found.items()))
    sys.exit(missing > 0)


main()
