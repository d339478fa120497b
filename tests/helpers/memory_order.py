#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tries every execution of one packet beside one writer, on a processor that reorders loads and stores (Armv8, RISC-V).

usage: memory_order.py tables [PART]
       memory_order.py buckets [PART] <STORES

Checks the tables of memory_tables.py: in each change, every packet gets the verdict of before or of after. Then leaves out
each PART (a dependency of a load, the release of a store, a grace period) in turn: if all packets are still right, it is
not needed. With a PART, leaves it out from the start. STORES are changes of a table by the engine: see store_order.c.

What holds on such processors: stores are visible to all processors at once. A store-release is visible after all stores
before it; other stores are in no order. A load comes after those that its address depends on, and loads of one place
stay in order. A packet ends before a grace period does, or begins after all stores before it are visible.

Exit status 1: a packet goes wrong, a part is not needed, or a line that a table names is not in the code.
"""
import sys

from memory_tables import BUCKETS, METERS, STRUCTURES


class Packet:
    """One execution. A call gives what the load of that name sees: its place after so many stores."""

    def __init__(self, loads, states, chosen):
        self.loads, self.states, self.chosen = loads, states, chosen
        self.times, self.places, self.seen, self.when, self.last = [], [], {}, {}, {}

    def __call__(self, name):
        place, after = self.loads[name]
        place = place.format(**self.seen)
        time = max([self.when.get(load, 0) for load in after] + [self.last.get(place, 0)])
        if len(self.times) < len(self.chosen):
            time = self.chosen[len(self.times)]
        self.times.append(time)
        self.places.append(place)
        self.when[name] = self.last[place] = time
        self.seen[name] = self.states[time][place]
        return self.seen[name]


def executions(judge, loads, states):
    """Every execution and its verdict. A load that sees the same a store earlier leaves later loads more to choose from."""
    left = [[]]
    while left:
        chosen = left.pop()
        packet = Packet(loads, states, chosen)
        yield judge(packet), packet
        for at in range(len(chosen), len(packet.times)):
            left += [packet.times[:at] + [time] for time in range(packet.times[at] + 1, len(states))
                     if states[time][packet.places[at]] != states[time - 1][packet.places[at]]]


def visible_orders(stores):
    """Every order in which the stores can become visible. A store is (place, value, whether it is a release)."""
    if not stores:
        yield []
    for at, (place, _, is_release) in enumerate(stores):
        if not any(is_release or earlier[0] == place for earlier in stores[:at]):
            for rest in visible_orders(stores[:at] + stores[at + 1:]):
                yield [stores[at]] + rest


def states_after(memory, stores):
    states = [memory]
    for place, value, _ in stores:
        states.append({**states[-1], place: value})
    return states


def parse(steps):
    """Steps of a change: lists of stores, between grace periods."""
    parts = [[]]
    for step in steps:
        if step == "grace":
            parts.append([])
        else:
            place, value = step.lstrip("~").split("=")
            parts[-1].append((place, value, step[0] != "~"))
    return parts


def find_mixture(judge, races, loads, before, parts):
    """(what went wrong, or None; the executions tried). With `races`, right is what loads in order would see, too."""
    memory = dict(word.split("=") for word in before.split())
    after = {**memory, **{place: value for stores in parts for place, value, _ in stores}}
    # The clock is nobody's rule: both verdicts hold at both times.
    allowed = {next(executions(judge, loads, [{**rules, "jiffies": clock.get("jiffies")}]))[0]
               for rules in (memory, after) for clock in (memory, after)}
    in_order = {name: (place, list(loads)) for name, (place, _) in loads.items()} if races else None
    tried = 0
    for stores in parts:
        if races:
            allowed |= {verdict for verdict, _ in executions(judge, in_order, states_after(memory, stores))}
        for order in visible_orders(stores):
            for verdict, packet in executions(judge, loads, states_after(memory, order)):
                tried += 1
                if verdict not in allowed:
                    seen = ", ".join(f"{name} {value}" for name, value in packet.seen.items())
                    return f"{verdict}, not {' or '.join(sorted(allowed))}: {seen}", tried
        memory = states_after(memory, stores)[-1]
    return None, tried


def variants(structure):
    """{part: the structure without it}, and with "" as it is. A structure is (loads, changes)."""
    loads = {name: (place, after.split()) for name, place, after, _ in structure.loads}
    changes = {name: (before, parse(steps)) for name, before, *steps in structure.changes}
    found = {"": (loads, changes)}
    for name, (place, after) in loads.items():
        for need in after:
            less = [other for other in after if other != need]
            found[f"{name} after {need}"] = {**loads, name: (place, less)}, changes
    for name, (before, parts) in changes.items():
        for at, stores in enumerate(parts):
            if at:
                joined = parts[:at - 1] + [parts[at - 1] + stores] + parts[at + 1:]
                found[f"{name}: grace {at}"] = loads, {name: (before, joined)}
            for k, (place, value, is_release) in enumerate(stores):
                if is_release and k and structure is not BUCKETS:
                    loose = stores[:k] + [(place, value, False)] + stores[k + 1:]
                    found[f"{name}: {place}={value}"] = loads, {name: (before, parts[:at] + [loose] + parts[at + 1:])}
    return {f"{structure.name}, {part}" if part else "": what for part, what in found.items()}


def check_source(structure):
    """The lines that a table is made of must still be there."""
    missing = []
    for source in [load[3] for load in structure.loads] + structure.stores:
        path, text = source.split(": ", 1)
        with open(path, encoding="utf-8") as file:
            if text not in file.read():
                missing.append(f"{structure.name}: there is no such line now: {source}")
    return missing


def check(structures, left_out):
    bad, known = [], left_out == ""
    for structure in structures:
        def wrong_in(part):
            loads, changes = of_structure[part]
            return {name: find_mixture(structure.judge, structure is METERS, loads, *change)
                    for name, change in changes.items()}

        of_structure = variants(structure)
        known |= left_out in of_structure
        tried = wrong_in(left_out if left_out in of_structure else "")
        bad += [f"{structure.name}, {name}: {wrong}" for name, (wrong, _) in tried.items() if wrong]
        needless = [part for part in of_structure if part and not any(wrong for wrong, _ in wrong_in(part).values())]
        bad += [f"{part}: not needed" for part in needless] + check_source(structure)
        print(f"{structure.name}: {len(structure.changes)} changes, {sum(count for _, count in tried.values())} executions, "
              f"{len(of_structure) - 1 - len(needless)} parts needed")
    if not known:
        sys.exit(f"memory_order.py: no such part: {left_out}")
    print("".join(f"{line}\n" for line in bad), end="")
    return bool(bad)


def main():
    what, left_out = sys.argv[1], " ".join(sys.argv[2:])
    if what == "buckets":
        for line in sys.stdin:
            table, change, *stores = line.split()
            steps = [f"exact={table} sequence=0 bucket0=1 bucket1=0 record0=K record1=-", *stores]
            mirrored = [step.replace("0=", "2=").replace("1=", "0=").replace("2=", "1=") for step in steps]
            BUCKETS.changes.extend([(f"{table} {change}", *steps), (f"{table} {change}, mirrored", *mirrored)])
        if not BUCKETS.changes:
            sys.exit("memory_order.py: no stores")
    sys.exit(check([BUCKETS] if what == "buckets" else STRUCTURES, left_out))


main()
