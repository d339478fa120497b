# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command on a terminal of its own: python3 tests/helpers/on_terminal.py COLUMNS COMMAND...

Prints what the command writes there, as it is but for carriage returns; ends with its status."""
import fcntl
import os
import pty
import struct
import sys
import termios

ROWS = 24


def main():
    columns, command = int(sys.argv[1]), sys.argv[2:]
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        os.execvp(command[0], command)
    while True:
        try:
            written = os.read(terminal, 65536)
        except OSError:  # Linux says EIO where the last writer has gone
            break
        if not written:
            break
        sys.stdout.buffer.write(written.replace(b"\r\n", b"\n"))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


main()
