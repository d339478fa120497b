#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mutants.py FOLDER SEED COUNT: draws changes of single lines in a folder (or a file) of the tree, builds each in a copy, and
runs the unit tests of `make check` that contain the line, those first that notice the most for their time, until one fails.
Prints the changes that none notices. Those of which the compiler makes the same code do not count."""
import collections
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

BUILD = os.environ.get("BUILD", "build")
COPY = f"{BUILD}/mutants"
LIMIT_S = 60  # of processor time, for one test program, beside five times what it has taken: a mutant that loops is noticed
SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
         (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), (" & ", " | "), ("true", "false"),
         ("false", "true"), (" << ", " >> "), ("++", "--"), ("break;", ";"), ("continue;", ";")]
STATEMENT = re.compile(r"^\t+(?:[\w.>()\[\]-]+(?: [-+|&]?= |\+\+;|\()).*;$")
DECLARATION = re.compile(r"^\t+(?:const |static |struct |enum |union |unsigned |int |bool |char |size_t |__|s?size_t |double |return)")


def code_of(text):
    """The lines of a file, without comments, strings and what the preprocessor reads; each as long as it was."""
    blank = lambda match: re.sub(r"[^\n]", "\a", match.group())
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])\'', blank, text, flags=re.S)
    return re.sub(r"^#(?:.*\\\n)*.*$", blank, text, flags=re.M).split("\n")


def changes_of(line, code):
    """What the line may become."""
    for old, new in SWAPS:
        for match in re.finditer(re.escape(old), code):
            yield line[:match.start()] + new + line[match.end():]
    for match in re.finditer(r"\bif \((?!!)", code):
        if code.rstrip().endswith((")", ") {")):
            end = code.rstrip(" {").rindex(")")
            yield line[:match.end()] + "!(" + line[match.end():end] + ")" + line[end:]
    for match in re.finditer(r"(?<=[ (])!(?=[\w(])", code):
        yield line[:match.start()] + line[match.end():]
    for match in re.finditer(r"return (?!0;|NULL;|true;|false;)[^;\a]*;", code):
        yield line[:match.start()] + "return 0;" + line[match.end():]
    if STATEMENT.match(code) and not DECLARATION.match(code) and "free(" not in code:
        yield re.match(r"\t+", line).group() + ";"


def drawn(folder, seed, count):
    """(file, number of a line from 0, new line): each file has a chance by its lines."""
    names = subprocess.run(["git", "ls-files", f"{folder}/*.[ch]", f"{folder}*.[ch]"], capture_output=True, text=True, check=True).stdout.split()
    found = []
    for name in names:
        text = open(name, encoding="utf-8").read()
        for number, (line, code) in enumerate(zip(text.split("\n"), code_of(text))):
            found += [(name, number, new) for new in changes_of(line, code)]
    return random.Random(seed).sample(found, min(count, len(found)))


def copy_tree():
    """What make has built is up to date there, too."""
    shutil.rmtree(COPY, ignore_errors=True)
    files = subprocess.run(["git", "ls-files", "Makefile", "user", "include", "bpf", "tests"], capture_output=True, text=True,
                           check=True).stdout.split()
    built = [f"{BUILD}/{name}" for name in os.listdir(BUILD) if name.endswith((".a", ".h", ".o", ".d"))]
    os.makedirs(COPY)
    subprocess.run(["cp", "-a", "--parents", *files, *built, f"{BUILD}/user", f"{BUILD}/tests/unit", f"{BUILD}/tests/steps", COPY], check=True)


def symbols(name, *options):
    listed = subprocess.run(["nm", "-P", "--defined-only", *options, name], cwd=COPY, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines() if " " in line}


def sources_of(program, objects):
    """The files of which the program is made: it has a symbol of each object."""
    there = symbols(program)
    names = [f"{program}.o"] + [name for name, own in objects.items() if own & there]
    return {os.path.normpath(word) for name in names for word in re.findall(r"[\w./-]+\.[ch]\b", open(f"{COPY}/{name[:-2]}.d").read())}


def make(*targets):
    return subprocess.run(["make", "-s", f"-j{os.cpu_count()}", *targets], cwd=COPY, capture_output=True).returncode


class Tests:
    """The unit tests, and what is known of them."""

    def __init__(self):
        listed = subprocess.run(["git", "ls-files", "tests/unit/*/test_*.c"], capture_output=True, text=True, check=True)
        self.programs = [f"{BUILD}/{name[:-2]}" for name in listed.stdout.split()]
        self.seconds = dict.fromkeys(self.programs, LIMIT_S)  # until it is known: readers and writers spin for long on a busy machine
        self.kills = collections.Counter()
        self.lock = threading.Lock()
        if make(*self.programs):
            sys.exit("cannot build the tests")
        found = subprocess.run(["find", f"{BUILD}/user", f"{BUILD}/tests/steps", "-name", "*.o"], cwd=COPY, capture_output=True, text=True).stdout
        objects = {name: symbols(name, "-g") for name in found.split()}
        self.sources = {name: sources_of(name, objects) for name in self.programs}

    def fails(self, program, over):
        """Whether the program fails; not if another has failed meanwhile."""
        user = ["prlimit", f"--cpu={int(LIMIT_S + 5 * self.seconds[program])}"]
        if os.geteuid() == 0:
            user += ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
        if over.is_set():
            return False
        with self.lock:  # make links one program at a time
            if make(program):
                return True
        begin = time.monotonic()
        process = subprocess.Popen([*user, program], cwd=COPY, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None and not over.wait(0.02) and time.monotonic() < begin + 2 * LIMIT_S + 20 * self.seconds[program]:
            pass
        status = process.poll()
        if status is None:
            os.killpg(process.pid, 9)
            process.wait()
            return not over.is_set()
        if not status:
            self.seconds[program] = time.monotonic() - begin
        return status != 0

    def noticing(self, names):
        """Who notices that these files have changed: the compiler, or the first test that fails."""
        programs = [name for name in self.programs if self.sources[name] & names]
        programs.sort(key=lambda name: (self.seconds[name] + 0.3) / (self.kills[name] + 0.1))
        over = threading.Event()
        if make(f"{BUILD}/core.a"):
            return "make"
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = {pool.submit(self.fails, name, over): name for name in programs}
            for run in concurrent.futures.as_completed(runs):
                if run.result() and not over.is_set():
                    over.set()
                    self.kills[runs[run]] += 1
                    killer = runs[run]
        return killer if over.is_set() else None


def code(name):
    """What the compiler has made of a file, or None."""
    made = f"{COPY}/{BUILD}/{name[:-2]}.o"
    if name.endswith(".h") or make(f"{BUILD}/{name[:-2]}.o"):
        return None
    subprocess.run(["objcopy", "--strip-debug", made, f"{COPY}/code.o"], check=True)
    return open(f"{COPY}/code.o", "rb").read()


def judge(tests, name, number, new):
    """Prints and returns who notices the change of one line; "" if it is none."""
    path = f"{COPY}/{name}"
    text = open(path, encoding="utf-8").read()
    lines = text.split("\n")
    before = code(name)
    old, lines[number] = lines[number], new
    open(path, "w", encoding="utf-8").write("\n".join(lines))
    by = "" if before and before == code(name) else tests.noticing({name})
    said = f"noticed by {os.path.basename(by)}" if by else "SURVIVES" if by is None else "the same code"
    print(f"{said}: {name}:{number + 1}\n-{old}\n+{new}", flush=True)
    open(path, "w", encoding="utf-8").write(text)
    return by


def main():
    folder, seed, count = sys.argv[1].rstrip("/"), int(sys.argv[2]), int(sys.argv[3])
    changes = drawn(folder, seed, count)
    copy_tree()
    tests = Tests()
    by = tests.noticing({name for name, _, _ in changes})
    if by:
        sys.exit(f"{os.path.basename(by)} fails without a change, too")
    judged = [judge(tests, *change) for change in changes]
    print(f"{judged.count(None)} of {len(judged) - judged.count('')} survive")


if __name__ == "__main__":
    main()
