# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Courses about which interfaces are filtered: by whom the program was loaded, what is on trial, and what becomes of it.
While a command runs, each interface must do with a packet what it did before or what it does afterwards.
"""
import copy
import os
import socket
import subprocess
import time

import frames
import kernel
from course import Course
from rules import Flow
from step import Seen, Step, Wrong, other
from events import UNTIL_UNDONE

INTERFACES = tuple("m%u" % number for number in range(8))
ADDRESSES = tuple(0xc0000200 + number for number in range(1, 4))  # 192.0.2.1 and so on: none of this host



class Model:
    """
    on: what an interface runs: None, "foreign" (loaded by another tool, nobody has set it up), "older" (of another
    version), "ours". trial: the interfaces that are filtered until the deadline only.
    """
    def __init__(self):
        self.on = dict.fromkeys(INTERFACES)
        self.trial, self.waits, self.blocked, self.monitor_only = set(), False, set(), False
        self.is_over = False  # the deadline of the last command passes

    def copy(self):
        return copy.deepcopy(self)

    def drops(self, interface, address):
        return self.on[interface] in ("ours", "older") and address in self.blocked and not self.monitor_only

    def adopt(self):
        """What every command that writes does first."""
        for interface, runs in self.on.items():
            self.on[interface] = runs and "ours"
        return 0

    def unload(self, interfaces):
        for interface in interfaces:
            self.on[interface] = None
            self.trial.discard(interface)
        return 0

    def running(self, *kinds):
        return [interface for interface, runs in self.on.items() if runs in (kinds or ("foreign", "older", "ours"))]


class Loaders(Course):
    def __init__(self, options, number):
        super().__init__(options, number)
        self.model = Model()
        for name in INTERFACES:
            if name not in [one for _, one in socket.if_nameindex()]:
                subprocess.run(["ip", "link", "add", name, "up", "type", "veth", "peer", "name", name + "p"], check=True)
        # Finds what is written behind the end of a piece of memory.
        self.environment = dict(os.environ, LD_PRELOAD="libc_malloc_debug.so.0", MALLOC_CHECK_="3")
        self.frame = [frames.ethernet(self.rng, 1, 0x800, frames.ipv4(
            self.rng, Flow(4, address, 0xc6336407, 17, (1, 2)), bytes((0, 1, 0, 2)) + bytes(8), 0, None)) for address in ADDRESSES]

    def programs(self):
        """The programs that run, by interface."""
        return {interface: kernel.program_of(interface) for interface in INTERFACES}

    def fates(self, programs):
        return {(interface, address): program.run(frame) == kernel.XDP_DROP for interface, program in programs.items()
                for address, frame in zip(ADDRESSES, self.frame)}

    def watched(self, words, step, programs):
        """Runs the command; what interfaces did with packets meanwhile."""
        met = {}
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=None if step.is_other else self.environment) as process:
            while process.poll() is None:
                for key, is_dropped in self.fates(programs).items():
                    met.setdefault(key, set()).add(is_dropped)
            out, err = process.communicate()
        if process.returncode < 0:
            raise Wrong("ended by signal %d: %s\n%s" % (-process.returncode, " ".join(words), err))
        return Seen(process.returncode, out, err), met

    def do(self, step):
        self.log.append(step)
        ids = self.programs()
        programs = {interface: kernel.Program(number) for interface, number in ids.items() if number}
        try:
            seen, met = self.watched(self.words(step), step, programs)
        finally:
            for program in programs.values():
                program.close()
        before, self.model = self.model, self.model.copy()
        self.model.status = seen.status
        expected = step.apply(self.model)
        self.check_status(step, seen, expected if isinstance(expected, tuple) else (expected,))
        is_load = step.argv[0] == "load"
        if seen.status and is_load and ids != self.programs():
            raise Wrong("status %d, but other programs run\n%s" % (seen.status, seen.err))
        for (interface, address), verdicts in met.items():
            right = {before.drops(interface, address), self.model.drops(interface, address)}
            if not is_load:
                right.add(address in before.blocked)  # it adopts the filter before it changes the rules
            # A load that fails may let packets pass for a moment, and so may the end of its time.
            if is_load and (self.model.is_over or seen.status and "--monitor-only" in step.argv):
                right.add(False)
            if self.model.on[interface] and not verdicts <= right:
                raise Wrong("meanwhile: %s %s a packet, which it does neither before nor after" % (
                    interface, "dropped" if True in verdicts - right else "passed"))
        if not self.model.is_over:
            self.check_verdicts(0)
            return seen
        self.model.is_over = False
        self.run_program(["sh", "-c", UNTIL_UNDONE, "sh", self.options.tool, "--state", self.store])
        end = time.monotonic() + 30
        while True:
            try:
                return self.check_verdicts(0)
            except Wrong:
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)

    def check_verdicts(self, count, real=0):
        for interface, number in self.programs().items():
            if bool(number) != bool(self.model.on[interface]):
                raise Wrong("%s runs %s, expected %s" % (interface, number, self.model.on[interface]))
            if not number:
                continue
            program = kernel.Program(number)
            for (_, address), is_dropped in self.fates({interface: program}).items():
                self.verdicts += 1
                if is_dropped != self.model.drops(interface, address):
                    raise Wrong("verdict: %s %s 192.0.2.%u, expected the other%s" % (
                        interface, "drops" if is_dropped else "passes", address & 255,
                        " on trial" if interface in self.model.trial else ""))
            program.close()

    def run(self, count):
        for at in range(count):
            self.at = at
            step = self.rng.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0](self)
            if step:
                self.do(step)

    def close(self):
        super().close()
        for interface in INTERFACES:
            subprocess.run(["ip", "link", "set", "dev", interface, "xdp", "off"], check=False)


# ---- steps ----

def free(course):
    return [interface for interface in INTERFACES if not course.model.on[interface]]


def some(course, names):
    return course.rng.sample(names, course.rng.randint(1, min(3, len(names)))) if names else []


def foreign(course):
    """Another tool loads the program: for each interface its own, or one for all of them."""
    names = some(course, free(course))
    if not names:
        return None

    def apply(model):
        model.on.update(dict.fromkeys(names, "foreign"))
        return 0
    if course.rng.random() < 0.5:
        text = 'object=$1; shift; for name; do ip link set dev "$name" xdp obj "$object" sec xdp || exit; done'
    else:
        text = 'pin=/sys/fs/bpf/xc$$ object=$1; shift; bpftool prog load "$object" $pin type xdp || exit; trap "rm $pin" EXIT; ' \
            'for name; do bpftool net attach xdp pinned $pin dev "$name" || exit; done'
        if course.rng.random() < 0.3:
            names += [name for name in free(course)[:-1] if name not in names]
    return other("sh", "-c", text, "sh", course.options.object, *names, apply=apply)


def older(course):
    """As if another version had loaded the only filter."""
    if len(course.model.running("ours")) != 1 or len(course.model.running()) != 1 or course.model.waits:
        return None

    def apply(model):
        model.on.update(dict.fromkeys(model.running("ours"), "older"))
        return 0
    return other(course.options.helpers + "/corrupt", "version", apply=apply)


def loading(course, names, confirm_s):
    """What a failed load leaves is as before; by its status one that may be refused says which it was."""
    is_monitor = course.rng.random() < 0.3
    argv = ["load"] + names + (["--monitor-only"] if is_monitor else []) + (["--confirm", "%us" % confirm_s] if confirm_s else [])

    def apply(model):
        new = [name for name in INTERFACES if model.on[name] == "foreign" or name in names and not model.on[name]]
        if set(names) - set(INTERFACES):
            return (2, 5) if model.waits else 2
        if confirm_s and model.waits:
            return 5
        if confirm_s and model.running("older"):
            return 2  # nothing can undo its replacement
        if confirm_s and (model.status == 2 and not [name for name in names if name in new] or not new):
            return 2
        model.adopt()
        model.on.update(dict.fromkeys(names, "ours"))
        model.monitor_only |= is_monitor
        if confirm_s:
            model.trial, model.waits = set(new), True
        return 0
    return Step(argv, apply)


def load(course):
    return loading(course, some(course, list(INTERFACES)), course.rng.choice((0, 600)))


def failing(course):
    """It names an interface that is not there."""
    rng = course.rng
    step = loading(course, some(course, list(INTERFACES))[:rng.randint(0, 2)] + ["nosuch0"], 600)
    if "--monitor-only" in step.argv and rng.random() < 0.5:
        del step.argv[-2:]
    return step


def unconfirmed(course):
    """Nobody confirms it in time: what was not filtered before is not filtered any more, and --monitor-only ends with it."""
    step, model = loading(course, some(course, free(course)), 1), course.model
    if model.waits or model.running("older") or not free(course):
        return None
    inner = step.apply

    def apply(model):
        monitor_only = model.monitor_only
        status = inner(model)
        if status == 0:
            model.monitor_only = monitor_only
            model.unload(set(model.trial))
            model.waits, model.is_over = False, True
        return status
    step.apply = apply
    return step


def confirm(_):
    def apply(model):
        model.adopt()
        status = 0 if model.waits else 1
        if model.waits and not model.trial:
            status = (0, 1)  # what it waited for was unloaded
        model.waits, model.trial = False, set()
        return status
    return Step(["confirm"], apply)


def rule(course):
    address = course.rng.choice(ADDRESSES)
    is_add = address not in course.model.blocked

    def apply(model):
        (model.blocked.add if is_add else model.blocked.discard)(address)
        return model.adopt()
    return Step(["add" if is_add else "del", "192.0.2.%u" % (address & 255)], apply)


def monitor_only(course):
    def apply(model):
        model.monitor_only = False
        return model.adopt()
    return Step(["monitor-only", "off"], apply) if course.model.monitor_only else None


def off(course):
    names = some(course, [name for name in course.model.running() if name not in course.model.trial])
    if not names:
        return None
    if course.rng.random() < 0.5:
        return Step(["unload"] + names, lambda model: model.unload(names))
    return other("ip", "link", "set", "dev", names[0], "xdp", "off", apply=lambda model: model.unload(names[:1]))


KINDS = ((foreign, 8), (older, 4), (load, 7), (failing, 3), (unconfirmed, 3), (confirm, 3), (rule, 6), (monitor_only, 3), (off, 6))
