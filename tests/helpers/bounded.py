#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs every command that reads or writes rules on random lists, and fails where one takes too much CPU.

usage: bounded.py SEED SECONDS LIMIT_S DIRECTORY COMMAND...

COMMAND... runs the tool; the interface is vrx. The lists have fewer than 1,000 rules: random kinds, with prefixes that
lie in each other, so that prefix lengths are joined and parted. A failure prints the commands of its list; the same
SEED and as many SECONDS lead there again.
"""
import ipaddress
import os
import random
import resource
import subprocess
import sys
import time

seed, seconds, limit, directory = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
tool = sys.argv[5:]
rng = random.Random(seed)
slowest = (0, "")
commands = 0
history = []

# One `add` to these took a minute.
EXAMPLE = """dst 198.51.100.1
proto gre
dport 53
proto udp dport 123
proto tcp sport 80
src 192.0.2.1 dport 99
proto tcp src 192.0.2.1 dport 99
45.0.0.0/9
45.0.0.0/10
198.51.100.0/23""".splitlines()

# One rule of each length beside seven other kinds: prefix lengths share look-ups, and keys have many owners.
CHAIN = EXAMPLE[:7] + [f"45.0.0.0/{length}" for length in range(8, 31)] + \
    [f"2001:db8::/{length}" for length in range(32, 60)]


def fail(why):
    print(f"failed: {why}\nseed {seed}; the commands of this list, with their files in {directory}:")
    print("\n".join(history))
    sys.exit(1)


def cap():
    """A command that does not end is ended by the kernel."""
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def run(arguments, text=None, statuses=(0, 1, 2, 4)):
    """Runs the tool and bounds its CPU time, user and system."""
    global slowest, commands
    shown = " ".join(arguments)
    history.append(f"  {shown}" + (f" <<< {text!r}" if text is not None and len(text) < 300 else ""))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(tool + arguments, input=text, text=True, capture_output=True, preexec_fn=cap, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    commands += 1
    slowest = max(slowest, (spent, shown))
    if spent > limit:
        fail(f"'{shown}' took {spent:.2f} s of CPU, more than {limit} s")
    if done.returncode not in statuses:
        fail(f"'{shown}': exit status {done.returncode}: {done.stderr}")
    return done


def write_list(name, rules):
    path = os.path.join(directory, f"{name}{commands}")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(rules) + "\n")
    return path


class Kind:
    """A set of fields, and for each address a few networks that rules of the kind lie in."""

    def __init__(self):
        self.version = rng.choice((4, 4, 6))
        self.action = " action pass" if rng.random() < 0.2 else ""
        self.ends = rng.choice(([], ["src"], ["src"], ["src"], ["dst"], ["src", "dst"]))
        self.proto = rng.choice(("", "", "proto tcp ", "proto udp "))
        self.ports = [port for port in ("sport", "dport") if rng.random() < 0.2]
        if not self.ends and not self.ports:
            self.ports = ["dport"]
        bits = 32 if self.version == 4 else 128
        low = rng.choice((8, 12, 16)) if self.version == 4 else rng.choice((16, 19, 32))
        self.lengths = sorted(rng.sample(range(low, bits + 1), rng.randint(1, 12)))
        first = rng.randrange(32, 96) << 24 | rng.getrandbits(24)
        self.base = first if self.version == 4 else 0x2001 << 112 | rng.getrandbits(112)
        self.bits = bits
        self.is_chain = rng.random() < 0.3
        self.wide = min(rng.choice(self.lengths), 24 if self.version == 4 else 64)

    def address(self):
        length = rng.choice(self.lengths)
        value = self.base
        if not self.is_chain:
            value ^= rng.getrandbits(self.bits - self.wide) if self.wide < self.bits else 0
        return str(ipaddress.ip_network((value, length), strict=False))

    def rule(self):
        words = "".join(f"{end} {self.address()} " for end in self.ends)
        words += "".join(f"{port} {rng.randrange(1000, 1000 + rng.choice((1, 8, 1000)))} " for port in self.ports)
        return (self.proto + words).strip() + self.action


def draw_kinds():
    return [Kind() for _ in range(rng.choice((1, 3, 8, 12)))]


def draw_list(kinds):
    count = rng.choice((10, 30, 100, 300, 990))
    favourite = rng.choice(kinds)
    rules = [kind.rule() for kind in kinds]
    while len(rules) < count:
        rules.append((favourite if rng.random() < 0.5 else rng.choice(kinds)).rule())
    rng.shuffle(rules)
    return [rule + (f" timeout {rng.randint(1, 100)}m" if rng.random() < 0.1 else "") for rule in rules[:count]]


def read_all(rule):
    """The commands that change nothing."""
    run(["list", "--counters"])
    run(["stats", "--by", "rule"])
    run(["stats", "--by", "prefix"])
    run(["status"])
    run(["test", *rule.split(" timeout")[0].split(" action")[0].split()])
    run(["export"])
    run(["import", "--dry-run", "--replace", "-"], rule)
    run(["metrics"])


def change(kinds, first):
    """One command that writes, at random."""
    rule = rng.choice(kinds).rule()
    path = write_list("other", draw_list(kinds))
    count = rng.choice((1, 10, 200))
    lines = [f"{rng.choice(('add', 'del', 'test'))} {rng.choice(kinds).rule()}" for _ in range(count)]
    lines = [line.split(" action")[0] if line.startswith("test") else line for line in lines]
    choice = rng.randrange(12)
    if choice < 3:
        run(["add", *rule.split()])
    elif choice == 3:
        run(["del", *rng.choice(first).split(" timeout")[0].split()])
    elif choice == 4:
        run(["batch", "-"], "\n".join(lines) + "\n")
    elif choice == 5:
        run(["import", path])
    elif choice == 6:
        run(["import", path, "--list", "others", "--replace"])
    elif choice == 7:
        run(["import", path, "--replace", "--force"])
    elif choice == 8:
        run(["lists", "delete", "others"])
    elif choice == 9:
        run(["resize", str(rng.choice((1000, 20000, 200000)))], statuses=(0, 2, 4))
    elif choice == 10:
        run(["import", path, "--list", "others", "--confirm", "10m"])
        run(["confirm"])
    else:
        run(["import", path, "--replace", "--force", "--confirm", "1s"])
        time.sleep(1.1)
        run(["expire"])


def try_list(kinds, rules, then=None):
    """From nothing to nothing, by way of every command."""
    history.clear()
    run(["load", "vrx"] + rng.choice(([], [], ["--capacity", "900"], ["--compact"], ["--no-counters"])))
    run(["import", write_list("first", rules)])
    read_all(rules[0])
    for rule in then or []:
        run(["add", *rule.split()])
    for _ in range(0 if then else 6):
        change(kinds, rules)
    read_all(rules[-1])
    run(["check"])
    run(["expire"])
    run(["unload", "vrx"])
    run(["load", "vrx"])
    run(["del", *rules[0].split(" timeout")[0].split()])
    run(["flush", "--force"], statuses=(0,))
    run(["unload", "vrx"])


def main():
    end = time.monotonic() + seconds
    try_list(None, EXAMPLE, ["198.51.103.0/24", "198.51.104.0/25", "45.0.0.0/16"])
    try_list(None, CHAIN, ["198.51.103.0/24", "45.0.0.0/31", "45.128.0.0/9"])
    lists = 2
    while lists < 3 or time.monotonic() < end:
        kinds = draw_kinds()
        try_list(kinds, draw_list(kinds))
        lists += 1
    print(f"{commands} commands on {lists} lists, each within {limit} s of CPU; "
          f"the slowest took {slowest[0]:.2f} s: {slowest[1].replace(directory + '/', '')}")


main()
