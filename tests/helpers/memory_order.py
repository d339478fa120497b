#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tries every execution of one look-up beside one writer, and says whether the look-up can miss its key.

usage: memory_order.py [ORDER...] <STORES

STORES is what tests/helpers/store_order prints: the stores of changes that keep the key K in the table. The writer's
stores become visible in their order, to all processors at once (Armv8, RISC-V: each is a store-release). The loads of
the look-up happen in any order that keeps the pairs ORDER, for example "sequence:bucket"; without ORDER, the pairs of
bpf/lookup_key.h, which tests/helpers/dependencies.py finds in its object code. "again" is the second load of the sequence. A
word ":" keeps no pair. Loads of one location always stay in order.

Prints a line for each change. Exit status 1: a look-up can miss K.
"""
import sys

ORDER = ["sequence:bucket", "bucket:record", "bucket:again", "record:again"]

# The loads of a try, earlier ones first: the step that it belongs to, and its location.
LOADS = [("sequence", "sequence"), ("bucket", "bucket0"), ("bucket", "bucket1"), ("record", "record0"),
         ("record", "record1"), ("again", "sequence")]


def is_before(first, second, order):
    (step, location), (later, other) = LOADS[first], LOADS[second]
    if step == "bucket" and later == "record":
        # An address depends on the bucket that has the slot.
        return f"{step}:{later}" in order and location[-1] == other[-1]
    return f"{step}:{later}" in order or location == other


def memory_after(stores, is_exact):
    """The values of all locations after 0, 1, 2... stores."""
    memory = {"sequence": "0", "bucket0": "1", "bucket1": "0", "record0": "K", "record1": "-"}
    states = [dict(memory)]
    for location, value in stores:
        if not is_exact and location.startswith("record"):
            sys.exit("memory_order.py: a compact table has no records")
        memory[location] = value
        states.append(dict(memory))
    return states


def misses(seen, is_exact):
    """Whether a try that loaded these values ends the look-up without K. A record that was not loaded is None."""
    sequence, bucket0, bucket1, record0, record1, again = seen
    hits = "K" in (record0, record1) if is_exact else "1" in (bucket0, bucket1)
    return not hits and sequence == again


def find_miss(states, order, is_exact):
    """Returns the number of stores before each load of an execution that misses K, or None; and the executions tried."""
    tried = 0

    def place(times):
        nonlocal tried
        at = len(times)
        seen = [None if time is None else states[time][location] for time, (_, location) in zip(times, LOADS)]
        if at == len(LOADS):
            tried += 1
            return times if misses(seen, is_exact) else None
        if LOADS[at][0] == "record" and not (is_exact and seen[at - 2] == "1"):
            return place(times + [None])
        earliest = max([times[i] for i in range(at) if times[i] is not None and is_before(i, at, order)], default=0)
        for time in range(earliest, len(states)):
            found = place(times + [time])
            if found:
                return found
        return None

    return place([]), tried


def main():
    order = [pair for pair in sys.argv[1:] if pair != ":"] if len(sys.argv) > 1 else ORDER
    unknown = [pair for pair in order if pair not in ORDER]
    if unknown:
        sys.exit(f"memory_order.py: no such pair: {unknown[0]}; there are: {' '.join(ORDER)}")
    status, lines = 0, 0
    for line in sys.stdin:
        table, change, *stores = line.split()
        states = memory_after([store.split("=") for store in stores], table == "exact")
        times, tried = find_miss(states, order, table == "exact")
        lines += 1
        if times:
            status = 1
            when = ", ".join(f"{location} after {time}" for time, (_, location) in zip(times, LOADS) if time is not None)
            print(f"{table} {change}: K is missed, {len(stores)} stores: {when}")
        else:
            print(f"{table} {change}: right in {tried} executions")
    if not lines:
        sys.exit("memory_order.py: no stores")
    sys.exit(status)


main()
