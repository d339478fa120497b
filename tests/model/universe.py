# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What rules are drawn from: few networks and ports, so that rules overlap, and few kinds, so that all find room."""
from model import OTHER_WAY
from rules import ANY, BITS, PORTS, mask, rule

KINDS = [  # protocol, src, dst, kind, first, second
    ("", 1, 0, "", 0, 0), ("", 0, 1, "", 0, 0), ("", 1, 1, "", 0, 0), ("p", 1, 0, "", 0, 0), ("p", 0, 0, "", 0, 0),
    ("t", 1, 0, "ports", 0, 1), ("t", 1, 1, "ports", 1, 1), ("t", 0, 0, "ports", 0, 1), ("", 0, 0, "ports", 0, 1),
    ("", 1, 0, "ports", 1, 0), ("t", 1, 1, "ports", 0, 1), ("i", 0, 0, "icmp", 1, 1), ("i", 1, 0, "icmp", 1, 0),
    ("i", 0, 1, "icmp", 0, 1), ("i", 1, 0, "icmp", 1, 1), ("", 0, 1, "ports", 1, 1),
]
SAFE_LENGTH = 9  # shorter prefixes may hold this host's own addresses: so may what names none


class Universe:
    def __init__(self, rng, size):
        self.again = 0.7 if size > 50 else 0.97  # how often a rule is one that was drawn before
        self.is_broad = rng.random() < 0.5
        self.kinds = [KINDS[0]] * 6 + rng.sample(KINDS[1:], 6)
        if not self.is_broad:
            self.kinds = [kind for kind in self.kinds if kind[1] or kind[2]]
        self.bases = {4: [], 6: []}
        for _ in range(3):
            self.bases[4].append(rng.choice((20, 45, 172 - 1, 198)) << 24 | rng.getrandbits(8) << 16)
            self.bases[6].append(0x20010db8 << 96 | rng.choice((0, 1, 0xffff)) << 80)
        self.bases[6].append(0x2a000001 << 96)
        self.points = {family: [rng.getrandbits(16 if family == 4 else 80) for _ in range(5)] for family in (4, 6)}
        self.lengths = {4: [32] * 6 + [24, 16, 17, 15] + [rng.randint(SAFE_LENGTH, 32) for _ in range(5)],
                        6: [128] * 6 + [64, 48, 32, 33] + [rng.randint(16, 128) for _ in range(5)]}
        if self.is_broad:
            self.lengths[4] += [0, 8, 1]
            self.lengths[6] += [0, 3]
        self.ports = [rng.choice((0, 22, 53, 80, 255, 256, 443, 65535, rng.randrange(65536))) for _ in range(4)]
        self.pool = []
        for _ in range(size):
            self.pool.append(self.rule(rng))

    def address(self, rng, family):
        number = rng.choice(self.bases[family]) + rng.choice(self.points[family])
        if rng.random() < 0.3:
            number += rng.choice((1, -1, 2, 256, 1 << 15))
        return number & (1 << BITS[family]) - 1

    def net(self, rng, family, length=None):
        length = rng.choice(self.lengths[family]) if length is None else length
        return (self.address(rng, family) & mask(family, length), length)

    def rule(self, rng):
        if self.pool and rng.random() < self.again and len(self.pool) > 11:
            return rng.choice(self.pool)
        twin = rng.choice(self.pool) if self.pool else None
        if twin and twin.action in OTHER_WAY and rng.random() < 0.15:
            self.pool.append(twin._replace(action=OTHER_WAY[twin.action]))
            return self.pool[-1]
        proto, has_src, has_dst, kind, first, second = rng.choice(self.kinds)
        family = rng.choice((4, 4, 6))
        if proto == "i":
            proto = 1 if family == 4 else 58
        elif proto:
            proto = rng.choice(PORTS[:2] if rng.random() < 0.7 or self.is_broad else PORTS) if proto == "t" else \
                rng.choice((6, 17, 47, 50, 89, 0, 254))
        src = self.net(rng, family) if has_src else ANY
        dst = self.net(rng, family, rng.choice((BITS[family], BITS[family], 24 if family == 4 else 64))) if has_dst else ANY
        numbers = [rng.choice(self.ports) % (256 if kind == "icmp" else 65536) if wanted else None
                   for wanted in (first, second)]
        if kind == "icmp" and numbers[0] is not None and rng.random() < 0.5:
            numbers[0] = rng.choice((8, 0, 3, 128))
        one = rule(rng.choices(("drop", "pass", "monitor"), (10, 2, 1))[0], family if has_src or has_dst else 0,
                   None if proto == "" else proto, src, dst, kind, *numbers)
        self.pool.append(one)
        return one

    def some(self, rng, most):
        """Different rules."""
        return list(dict.fromkeys(self.rule(rng) for _ in range(rng.randint(1, most))))
