#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mutants.py FOLDER SEED COUNT: draws changes of single lines in a folder of the tree, builds each in a copy, and runs the
unit tests as `make check` does, those of the core alone for a folder of the core: first those of the folder, then all others. Prints the changes that no test notices."""
import os
import random
import re
import shutil
import subprocess
import sys

BUILD = os.environ.get("BUILD", "build")
COPY = f"{BUILD}/mutants"
LIMIT_S = 120  # of processor time, for one test program: a mutant that loops is noticed
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
    names = subprocess.run(["git", "ls-files", f"{folder}/*.[ch]"], capture_output=True, text=True, check=True).stdout.split()
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


def is_noticed(programs):
    """By the compiler, or by one of these tests."""
    user = ["prlimit", f"--cpu={LIMIT_S}"]
    if os.geteuid() == 0:
        user += ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run(["make", "-s", f"-j{os.cpu_count()}", *programs], cwd=COPY, capture_output=True).returncode:
        return "make"
    for program in programs:
        try:
            if subprocess.run([*user, program], cwd=COPY, capture_output=True, timeout=8 * LIMIT_S).returncode:
                return program
        except subprocess.TimeoutExpired:
            return program
    return None


def main():
    folder, seed, count = sys.argv[1].rstrip("/"), int(sys.argv[2]), int(sys.argv[3])
    is_core = not folder.startswith("user/") or folder.startswith("user/core")
    patterns = ["tests/unit/core/*/test_*.c", "tests/unit/packets/test_*.c"] if is_core else ["tests/unit/*/test_*.c"]
    tests = subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout.split()
    programs = [f"{BUILD}/{name[:-2]}" for name in sorted(tests, key=os.path.getsize)]
    own = f"{BUILD}/tests/unit/" + (folder[5:] if folder.startswith("user/") else "packets")
    first = [name for name in programs if name.startswith(own)]
    others = [name for name in programs if name not in first]
    copy_tree()
    if is_noticed(first):
        sys.exit("the tests fail without a change, too")
    survivors = 0
    for name, number, new in drawn(folder, seed, count):
        path = f"{COPY}/{name}"
        text = open(path, encoding="utf-8").read()
        lines = text.split("\n")
        old, lines[number] = lines[number], new
        open(path, "w", encoding="utf-8").write("\n".join(lines))
        by = is_noticed(first) or is_noticed(others)
        survivors += not by
        print(f"{'noticed by ' + os.path.basename(by) if by else 'SURVIVES'}: {name}:{number + 1}\n-{old}\n+{new}", flush=True)
        open(path, "w", encoding="utf-8").write(text)
    print(f"{survivors} of {count} survive")


main()
