# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A terminal for a program under test: terminal.py COLUMNSxROWS COMMAND... does what standard input says, a line each:

wait REGEX      until a line of the screen matches
key KEYS        types them
stop REGEX      types Ctrl-Z, again where that has no effect, until a line of the screen matches
resize CxR
signal NAME     to the program
run COMMAND     of the shell, beside it
end STATUS      waits for its end, by that status or signal (SIGTERM): the terminal must be as it was
Status 1, with the screen on standard error, where something does not come about.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

LIMIT_S = 60
STOP_S = 15
SEQUENCE = re.compile(rb"\x1b\[([?>]?)([0-9;]*)([@-~])|\x1b[()][A-Z0-9]|\x1b[=>78MDEHc]|[\x00-\x1a\x1c-\x1f]|[^\x00-\x1f\x1b]+")


class Screen:
    """What xterm would show, of what ncurses makes of it."""

    def __init__(self, columns, rows):
        self.rest = b""
        self.modes = set()
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cell = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0
        self.top, self.bottom = 0, rows  # of what scrolls

    def lines(self):
        return ["".join(row).rstrip() for row in self.cell]

    def feed(self, data):
        self.rest += data
        at = 0
        while match := SEQUENCE.match(self.rest, at):
            # An end may be in the middle of a character or of a sequence.
            self.take(match)
            at = match.end()
        self.rest = self.rest[at:]

    def take(self, match):
        text = match.group()
        if match.group(3):
            self.control(match)
        elif text == b"\r":
            self.x = 0
        elif text in (b"\n", b"\x1bD") and self.y == self.bottom - 1:
            self.scroll(self.top, 1)
        elif text in (b"\n", b"\x1bD"):
            self.y = min(self.y + 1, self.rows - 1)
        elif text == b"\x1bM" and self.y == self.top:
            self.scroll(self.top, -1)
        elif text == b"\x1bM":
            self.y = max(self.y - 1, 0)
        elif text == b"\b":
            self.x = max(self.x - 1, 0)
        elif text == b"\t":
            self.x = min(self.x // 8 * 8 + 8, self.columns - 1)
        elif text[0] > 31 and text[0] != 127:
            for character in text.decode("utf-8", "replace"):
                self.put(character)

    def put(self, character):
        if self.x >= self.columns:
            self.x, self.y = 0, min(self.y + 1, self.rows - 1)
        self.cell[self.y][self.x] = self.last = character
        self.x += 1

    def control(self, match):
        private, arguments, final = (part.decode() for part in match.groups())
        numbers = [int(number or 0) for number in arguments.split(";")]
        count = numbers[0] or 1
        if private:
            for number in numbers:
                (self.modes.add if final == "h" else self.modes.discard)(number)
        elif final in "Hf":
            self.y = min(count, self.rows) - 1
            self.x = min(numbers[1] or 1 if len(numbers) > 1 else 1, self.columns) - 1
        elif final in "AB":
            self.y = min(max(self.y + (count if final == "B" else -count), 0), self.rows - 1)
        elif final in "CD":
            self.x = min(max(self.x + (count if final == "C" else -count), 0), self.columns - 1)
        elif final == "G":
            self.x = min(count, self.columns) - 1
        elif final == "d":
            self.y = min(count, self.rows) - 1
        elif final in "JK":
            self.erase(final, numbers[0])
        elif final == "X":
            self.cell[self.y][self.x : self.x + count] = [" "] * min(count, self.columns - self.x)
        elif final == "b":
            for _ in range(count):
                self.put(self.last)
        elif final == "P":
            row = self.cell[self.y]
            row[self.x :] = (row[self.x + count :] + [" "] * self.columns)[: self.columns - self.x]
        elif final == "@":
            row = self.cell[self.y]
            row[self.x :] = ([" "] * count + row[self.x :])[: self.columns - self.x]
        elif final in "LM":
            self.scroll(self.y, count if final == "M" else -count)
        elif final in "ST":
            self.scroll(self.top, count if final == "S" else -count)
        elif final == "r":
            self.top, self.bottom = count - 1, numbers[1] if len(numbers) > 1 and numbers[1] else self.rows
            self.x = self.y = 0
        elif final not in "mhlt":
            sys.exit(f"a sequence that this terminal does not know: {match.group()!r}")

    def scroll(self, top, count):
        """Up, or down where it is less than 0."""
        rows = self.cell[top : self.bottom]
        blank = [[" "] * self.columns for _ in range(abs(count))]
        rows = rows[count:] + blank if count > 0 else blank + rows
        self.cell[top : self.bottom] = rows[: self.bottom - top]

    def erase(self, final, what):
        row = self.cell[self.y]
        if what == 0:
            row[self.x :] = [" "] * (self.columns - self.x)
        elif what == 1:
            row[: self.x + 1] = [" "] * (self.x + 1)
        else:
            row[:] = [" "] * self.columns
        if final == "J":
            for y in range(self.rows):
                if what == 2 or (what == 0 and y > self.y) or (what == 1 and y < self.y):
                    self.cell[y] = [" "] * self.columns


class Terminal:
    def __init__(self, size, command):
        self.screen = Screen(*map(int, size.split("x")))
        self.master, self.slave = pty.openpty()
        self.size(size)
        self.before = termios.tcgetattr(self.slave)
        environment = dict(os.environ, TERM=os.environ.get("TEST_TERM", "xterm"), LC_ALL="C.UTF-8")
        environment.pop("LINES", None)
        environment.pop("COLUMNS", None)
        self.program = subprocess.Popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=environment,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def size(self, size):
        columns, rows = map(int, size.split("x"))
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait_s):
        if select.select([self.master], [], [], wait_s)[0]:
            self.screen.feed(os.read(self.master, 65536))
            return True
        return False

    def fail(self, what):
        print(what, "the screen:", *("|" + line for line in self.screen.lines()), sep="\n", file=sys.stderr)
        sys.exit(1)

    def until(self, what, holds):
        limit = time.monotonic() + LIMIT_S
        while not holds():
            if time.monotonic() > limit:
                self.fail(f"waited {LIMIT_S} s for {what}")
            self.read(0.1)

    def wait(self, pattern):
        self.until(pattern, lambda: any(re.search(pattern, line) for line in self.screen.lines()))

    def key(self, keys):
        os.write(self.master, keys.encode())

    def stop(self, pattern):
        """On a busy machine the key is lost once in hundreds of times."""
        pressed = 0

        def holds():
            nonlocal pressed
            if any(re.search(pattern, line) for line in self.screen.lines()):
                return True
            if time.monotonic() - pressed > STOP_S:
                self.key("\032")
                pressed = time.monotonic()
            return False

        self.until(pattern, holds)

    def resize(self, size):
        self.screen.resize(*map(int, size.split("x")))
        self.size(size)

    def signal(self, name):
        self.program.send_signal(getattr(signal, name))

    def run(self, command):
        if subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, check=False).returncode:
            self.fail(command + " failed")

    def end(self, status):
        expected = -getattr(signal, status) if status.startswith("SIG") else int(status)
        self.until("its end", lambda: self.program.poll() is not None)
        while self.read(0.1):
            pass
        if self.program.returncode != expected:
            self.fail(f"it ended with {self.program.returncode}, not {expected}")
        if termios.tcgetattr(self.slave) != self.before:
            self.fail("the terminal's settings are not what they were")
        if 1049 in self.screen.modes or 25 not in self.screen.modes:
            self.fail(f"the screen is not what it was, or has no cursor: modes {self.screen.modes}")


def main():
    terminal = Terminal(sys.argv[1], sys.argv[2:])
    try:
        for line in sys.stdin:
            word, _, rest = line.rstrip("\n").partition(" ")
            getattr(terminal, word)(rest)
    finally:
        if terminal.program.poll() is None:
            terminal.program.kill()
            terminal.program.wait()


main()
