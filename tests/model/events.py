# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What happens around the commands, in several steps: deadlines that pass, lists from elsewhere, other versions and other
loaders, commands that are killed. Draws the steps of a course.
"""
import rules
from kernel import XDP_PASS
from model import FEED, FLEET
from reports import backup, counters, export, restore, stats
from sets import ask
from step import Step, Wrong, other
from steps import (add, batch, check, confirm, delete, delete_list, down, expire, flush, importing, list_deletion, load,
                   monitor_only, panic, resize, settings, test, unload, up, wrong_input)


# ---- what waits to be confirmed ----

def overdue(course):
    """Nobody confirmed it: the next command that writes undoes it first. What others changed meanwhile stays."""
    if not course.model.undone:
        return
    step = course.rng.choice((check, expire, confirm, add, delete, batch, monitor_only))(course)
    inner = step.apply

    def apply(model):
        model.undo()
        status = inner(model)
        return (0, 1) if step.argv[0] == "check" and status == 0 else status
    step.apply, step.has_undone = apply, True
    moved = other(course.options.helpers + "/overdue", "{store}/default")
    moved.has_undone = True
    course.do(moved)
    course.do(step)


UNTIL_UNDONE = 'while "$@" status --verbose 2>&1 | grep -Eq "unconfirmed( change:|: *yes)"; do sleep 0.1; done'


def unconfirmed(course):
    """The same by the process that watches over it, at the deadline."""
    if course.model.undone or "pending" in course.without:
        return
    course.do((delete_list if course.rng.random() < 0.3 else importing)(course, 1))
    if not course.model.undone:
        return
    waiting = other("timeout", "60", "sh", "-c", UNTIL_UNDONE, "sh", course.options.tool, "--state", "{store}/",
                    apply=lambda model: model.undo() or 0)
    waiting.has_undone = True
    course.do(waiting)


# ---- lists from elsewhere ----

def narrow(course, most):
    """Drop rules of few addresses, which no host refuses."""
    return [rule for rule in course.universe.some(course.rng, most) if rule.action == "drop" and max(rule.src[1], rule.dst[1]) >= 16]


def refresh(course):
    """A list by URL."""
    some = narrow(course, 12)
    if not some:
        return
    course.do(other("cp", course.file("".join(rules.canonical(rule) + "\n" for rule in some)), "{dir}/provided"))

    def apply(model):
        model.take_in(FEED, [(rule, None, "") for rule in some], model.end_of, True)
        return 0
    course.do(Step(["refresh", FEED, "--force", "--config", "{dir}/feed.conf"], apply))


def follow(course):
    """The list of a fleet: something is published, and this host follows."""
    if not course.options.broker:
        return
    config = ["--config", "{dir}/fleet.conf"]
    publish = [course.options.tool, "--state", "{dir}/publisher"]
    for rule in narrow(course, 3):
        there = dict(map(reversed, course.model.fleet))
        is_add = not there.get(rule) or course.rng.random() < 0.2

        def apply(model, is_add=is_add, rule=rule):
            model.fleet.append((is_add, rule))
            return 0
        course.do(other(*publish, "publish", "add" if is_add else "del", rules.canonical(rule), "--list", FLEET, *config,
                        apply=apply))
    if not course.model.fleet:
        return
    # Where another command has changed the list, only a running `follow` notices.
    if any(one and not one.is_fleet_whole() for one in (course.model, course.model.undone)):
        course.do(Step(["lists", "delete", FLEET, "--force"], list_deletion(FLEET)))
    course.do(Step(["follow", "--once", "--accept", *config], lambda model: model.follow(model.end_of) or 0))


# ---- where no filter is seen, another version, another loader ----

def away(course):
    """Commands in another network namespace do not reach the filter, so they are refused. Perhaps it is another version's."""
    if not course.model.table:
        return
    rng = course.rng
    if rng.random() < 0.5:
        course.do(Step(["resize", "1"], lambda model: (0, 4)))
    if rng.random() < 0.6:
        course.do(other(course.options.helpers + "/corrupt", "version"))
        course.counts = None
    for _ in range(rng.randint(0, 3)):
        step = rng.choice((add, delete, batch, importing, delete_list, flush, expire))(course)
        step.is_away = True
        if "--dry-run" not in step.argv:  # that asks no filter
            step.apply, step.check = lambda model: (2, 3), None
        course.do(step)
    course.do(Step(["check"], lambda model: (0, 1)))
    course.check_verdicts(100)


def relink(course):
    """Another loader has loaded the object: it passes everything until the tool adopts it."""
    interface = course.options.interface
    course.do(unload(course))
    course.do(other("ip", "link", "set", "dev", interface, "xdp", "obj", course.options.object, "sec", "xdp"))
    course.load()
    for _, frame, _, _ in course.draw_frames(20, course.rng):
        if course.program.run(frame) != XDP_PASS:
            raise Wrong("a program that nobody set up drops a frame: %s" % frame.hex())
    step = course.rng.choice((check, expire, add))(course)
    inner = step.apply

    def apply(model):
        model.table = "exact"
        status = inner(model)
        return (0, 1) if step.argv[0] == "check" else status
    step.apply = apply
    course.do(step)
    course.counts = None


# ---- what is killed ----

def killed(course):
    """Ended by kill -9 at any moment: done, or not begun; check mends the table."""
    if course.model.undone:
        return  # it may be seen only in what would be undone
    kind = course.rng.choice((add, delete, importing, importing, batch, delete_list))
    step = kind(course)
    step.kill_s = course.rng.choice((0.001, 0.003, 0.006, 0.01, 0.02)) * (1 + course.rng.random())
    course.do(step)
    course.do(Step(["check"], lambda model: (0, 1) if model.table else 1))


# ---- the course ----

def start(course):
    course.do(load(course))
    course.check_verdicts(50, 20)


WEIGHTS = ((add, 20), (delete, 10), (importing, 14), (batch, 8), (flush, 2), (delete_list, 3), (expire, 2), (test, 6), (ask, 8),
           (wrong_input, 6), (settings, 3), (monitor_only, 2), (panic, 2), (resize, 2), (check, 3), (unload, 1), (up, 2), (down, 1), (confirm, 2),
           (backup, 1), (restore, 1))
WHOLE = ((export, 4), (stats, 4), (counters, 3), (unconfirmed, 1), (overdue, 2), (killed, 4), (refresh, 3), (follow, 2),
         (away, 2), (relink, 1))  # that do all by themselves
PENDING = ((add, 14), (delete, 6), (importing, 22), (batch, 5), (flush, 2), (delete_list, 8), (expire, 1), (settings, 1),
           (monitor_only, 1), (resize, 1), (unload, 1), (confirm, 2), (refresh, 6), (follow, 6), (overdue, 6), (away, 1),
           (relink, 1), (unconfirmed, 1), (backup, 2), (restore, 4), (ask, 4))


def draw(course):
    rng = course.rng
    weights = [one for one in (PENDING if course.is_pending else WEIGHTS + WHOLE) if one[0].__name__ not in course.without]
    if not course.model.table or course.model.panic and rng.random() < 0.5:
        kind = load if not course.model.table else panic
    else:
        kind = rng.choices([kind for kind, _ in weights], [weight for _, weight in weights])[0]
    if not course.model.table:
        kind = rng.choice((load, load, up))
    step = kind(course)
    if step:
        course.do(step)
    course.check_verdicts(course.options.frames, 40 if rng.random() < 0.2 else 0)


def finish(course):
    overdue(course)
    if course.model.table:
        course.check_verdicts(course.options.frames, 100)
        stats(course)
