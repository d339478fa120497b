# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who answers? `udp_echo.py serve` answers on port 7; `udp_echo.py ask SOURCE HOST` has status 0 if HOST answers SOURCE."""
import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    if sys.argv[1] == "serve":
        sock.bind(("0.0.0.0", 7))
        while True:
            data, peer = sock.recvfrom(100)
            sock.sendto(data, peer)
    sock.bind((sys.argv[2], 0))
    sock.settimeout(0.3)
    for _ in range(2):
        sock.sendto(b"?", (sys.argv[3], 7))
        try:
            sock.recvfrom(100)
            sys.exit(0)
        except socket.timeout:
            pass
    sys.exit(1)
