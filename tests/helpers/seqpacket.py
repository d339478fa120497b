#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sockets of packets (SOCK_SEQPACKET), which shells cannot make.
seqpacket.py feed COMMAND...: each line of standard input is a packet of the command's; a CR in it is a line end, \\c at its end takes that away.
seqpacket.py serve SOCKET COMMAND...: as systemd does with Accept=yes: a command for each connection, and its end."""
import os
import signal
import socket
import subprocess
import sys


def feed(command):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = subprocess.Popen(command, stdin=theirs)
    theirs.close()
    try:
        for line in iter(sys.stdin.buffer.readline, b""):
            ours.send(line.replace(b"\r", b"\n").removesuffix(b"\\c\n"))
    except BrokenPipeError:
        pass
    ours.close()
    sys.exit(child.wait())


def serve(path, command):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = server.accept()
        if not os.fork():
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child = subprocess.Popen(command, stdin=connection, stdout=connection, start_new_session=True)
            connection.close()
            child.wait()
            os.killpg(child.pid, signal.SIGKILL)
            os._exit(0)
        connection.close()


if sys.argv[1] == "feed":
    feed(sys.argv[2:])
serve(sys.argv[2], sys.argv[3:])
