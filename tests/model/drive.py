#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The tool and its filter beside a model of what the documentation promises. Courses of random commands, after each of
which status, answer and rules are compared, and the verdicts on frames that are like the rules, or nearly: by test
runs of the program, some by real frames. Run by tests/namespace/test_model.sh, in the filter's namespace.
"""
import argparse
import os
import re
import sys
import time

import kernel
from course import Course
from feeds import Broker, Provider
from loaders import Loaders
from step import Wrong

SHORTEN_S = 60  # for finding a shorter course that fails, too


def kind_of(wrong):
    """Two that go wrong likewise have this in common."""
    found = re.search("^(status.*|not listed|listed, but|lists|by .*?:|stats|counters)|expected (of|comment|to end|for good)", wrong)
    return found.group() if found else wrong[:20]


def shorten(course, like, seconds):
    """The fewest of its steps that go wrong likewise, as far as there is time; (steps, what is wrong), or None."""
    end = time.monotonic() + seconds
    log, wrong = [step for step in course.log if step.apply], None
    size = len(log)
    while size and time.monotonic() < end:
        for at in range(len(log) - size, -1, -size):
            if time.monotonic() > end:
                break
            fewer = log[:at] + log[at + size:]
            problem = course.goes_wrong(fewer)
            if problem and kind_of(problem) == kind_of(like):
                log, wrong = fewer, problem
        size = min(size // 2, len(log))
    return (log, wrong) if wrong else None


def shown(course, step):
    content = step.stdin if step.stdin is not None else \
        next((course.contents[word] for word in step.argv if course.contents.get(word)), None)
    return ("unshare -n: " if step.is_away else "# " if step.is_other else "") + " ".join(step.argv) + ("" if content is None else " <<END\n%s" % content[:4000])


def report(course, wrong, options):
    print("WRONG in course %d, step %d, seed %s: %s" % (course.number, getattr(course, "at", -1), options.seed, wrong))
    print("its last commands:")
    for step in course.log[-options.tail:]:
        print("  " + shown(course, step).replace("\n", "\n    "))
    shorter = isinstance(wrong, Wrong) and shorten(course, str(wrong), options.shorten)
    if shorter:
        print("shorter, %s:" % shorter[1].splitlines()[0])
        for step in shorter[0]:
            print("  " + shown(course, step).replace("\n", "\n    "))
    print("again: SEED=%s COURSE=%d STEPS=%d FRAMES=%d sh tests/run.sh namespace/test_model" %
          (options.seed, course.number, options.steps, options.frames))


def is_of_loaders(options, number):
    return number % 6 == 5 and "loaders" not in options.without.split(",")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--state", required=True, help="a directory")
    parser.add_argument("--interface", required=True)
    parser.add_argument("--from", dest="sender", required=True, metavar="NAMESPACE:INTERFACE")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--courses", type=int, default=8)
    parser.add_argument("--course", type=int, help="this one alone")
    parser.add_argument("--seconds", type=float, help="as many courses as there is time for")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--frames", type=int, default=300, help="after each step")
    parser.add_argument("--tail", type=int, default=12)
    parser.add_argument("--shorten", type=float, default=SHORTEN_S, help="seconds for making a failure short")
    parser.add_argument("--without", default="", help="kinds of steps that are not drawn; also trial, pending, loaders")
    parser.add_argument("--helpers", default="build/tests/helpers", help="where overdue and corrupt are")
    parser.add_argument("--object", default="build/xdp_cuckoo.bpf.o", help="for other loaders")
    parser.add_argument("--times", action="store_true", help="say what they took")
    parser.add_argument("--keep", action="store_true", help="the lists of a course that went wrong")
    options = parser.parse_args()
    namespace, interface = options.sender.split(":")
    options.wire = kernel.Wire("/run/netns/" + namespace, interface, options.interface)
    os.environ.pop("SSH_CONNECTION", None)
    os.environ["no_proxy"] = "*"
    options.spent, options.provider, options.broker = {}, Provider(), Broker.start(options.state)
    end = options.seconds and time.monotonic() + options.seconds
    numbers = iter([options.course] if options.course is not None else range(10 ** 9 if end else options.courses))
    done = verdicts = real = commands = 0
    for number in numbers:
        course = (Loaders if is_of_loaders(options, number) else Course)(options, number)
        try:
            course.run(options.steps)
        except Wrong as wrong:
            report(course, wrong, options)
            return 1
        except BaseException:
            report(course, "the test itself", options)
            raise
        finally:
            course.close()
        done, commands = done + 1, commands + len(course.log)
        verdicts, real = verdicts + course.verdicts, real + course.real
        if end and time.monotonic() > end:
            break
    if options.times:
        print("seconds: " + ", ".join("%s %.1f" % one for one in sorted(options.spent.items(), key=lambda one: -one[1])))
    print("%d courses, %d commands, %d verdicts, %d of them on real frames, seed %s" %
          (done, commands, verdicts, real, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
