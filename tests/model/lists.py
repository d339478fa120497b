# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lists in every format that `import` reads: (text, lines (rule, timeout or None, comment), how many lines are bad).

A timeout of 0, which ipset has, is none, whatever --timeout says.
"""
import ipaddress
import json

from rules import BITS, NAMES, PORTS, address, canonical, prefix, rule, spell, spell_prefix, spell_protocol, spell_time

FORMATS = ("text", "csv", "ipset", "nft", "spamhaus")
COMMENTS = ("", "", "", "a", "two words", "with, comma; and #", "\u00fc\u4e2d", "x" * 100)
BAD = ("nonsense", "192.0.2.1/24/3", "src 300.1.1.1", "sport 1 sport 2 proto tcp", "proto tcp type 8", "dport 65536 proto udp",
       "src 192.0.2.1 dst 2001:db8::1", "192.0.2.7 timeout 0", "proto gre sport 1", "dst 192.0.2.1 sport", "192.0.2.9-192.0.2.1",
       "proto icmp type 256", "proto icmp src 2001:db8::1", "192.0.2.4 action reject", "proto 255", "192.0.2.4/33")


def timeouts(rng, few):
    """None, mostly; a long time, or one that ends soon where `few` are wanted."""
    chance = rng.random()
    if chance < 0.75:
        return None
    return rng.randint(2, 4) if few and chance > 0.97 else rng.randint(3600, 1000000)


def ranges(rng, universe):
    """Two addresses, and the networks between."""
    family = rng.choice((4, 4, 6))
    first = universe.address(rng, family)
    last = min(first + rng.choice((0, 1, 2, 7, 200, 5000)), (1 << BITS[family]) - 1)
    kind = ipaddress.IPv4Address if family == 4 else ipaddress.IPv6Address
    nets = ipaddress.summarize_address_range(kind(first), kind(last))
    return address(family, first), address(family, last), \
        [rule(family=family, src=(int(net.network_address), net.prefixlen)) for net in nets]


def text(rng, universe, few):
    lines, out, bad, seen = [], [], 0, set()
    for one in universe.some(rng, 25):
        if one in seen:
            continue
        timeout, comment = timeouts(rng, few), rng.choice(COMMENTS)
        seen.add(one)
        lines.append((one, timeout, comment))
        out.append(rng.choice(("", "", "\t")) + spell(rng, one, timeout, comment) + rng.choice(("", "", " # a note")))
    if rng.random() < 0.4:
        first, last, nets = ranges(rng, universe)
        if not seen & set(nets):
            lines += [(net, None, "") for net in nets]
            out.append(first + "-" + last)
    out += rng.sample(("", "# a comment", "; one more", "#"), rng.randint(0, 3))
    if rng.random() < 0.25:
        bad = rng.randint(1, 3)
        out += rng.sample(BAD, bad)
    rng.shuffle(out)
    return "\n".join(out) + rng.choice(("\n", "")), lines, bad


def trial(rng, universe, action):
    """A list without actions, for --action: comments with words of rules."""
    some = {one._replace(action="drop"): (timeouts(rng, False), rng.choice(COMMENTS[:5] + ("drop", "monitor", "pass")))
            for one in universe.some(rng, 25)}
    lines = []
    for one, (timeout, comment) in some.items():
        words = canonical(one).split() + (["timeout", "%us" % timeout] if timeout else [])
        if comment:
            words += [rng.choice(("comment", "COMMENT")), '"%s"' % comment if rng.random() < 0.5 or " " in comment
                      else comment]
        lines.append(" ".join(words) + "\n")
    return "text", "".join(lines), [(one._replace(action=action), timeout, comment)
                                    for one, (timeout, comment) in some.items()], 0


def quoted(rng, value):
    return '"%s"' % value if "," in value or rng.random() < 0.2 else value


def csv(rng, universe, few):
    columns = ["proto", "src", "sport", "dst", "dport", "type", "code", "action", "timeout", "comment"]
    lines, rows = [], []
    rng.shuffle(columns)
    for one in universe.some(rng, 25):
        timeout, comment = timeouts(rng, few), rng.choice(COMMENTS)
        first, second = (str(value) if value is not None else "" for value in (one.first, one.second))
        is_icmp, family = one.kind == "icmp", one.family
        bare = family and not one.src[1] and not one.dst[1]
        cells = {"proto": "" if one.proto is None else spell_protocol(rng, one.proto),
                 "src": spell_prefix(rng, family, one.src) if one.src[1] or bare else "",
                 "dst": spell_prefix(rng, family, one.dst) if one.dst[1] else "",
                 "sport": "" if is_icmp else first, "dport": "" if is_icmp else second,
                 "type": first if is_icmp else "", "code": second if is_icmp else "",
                 "action": one.action if one.action != "drop" else rng.choice(("", "drop")),
                 "timeout": spell_time(rng, timeout) if timeout else "", "comment": comment}
        lines.append((one, timeout, comment))
        rows.append(",".join(quoted(rng, cells[column]) for column in columns))
    bad = rng.choice((0, 0, 0, 1))
    rows += [",".join({"src": "192.0.2.1/24/3"}.get(column, "") for column in columns)] * bad
    rng.shuffle(rows)
    return "\n".join([",".join(columns)] + rows) + "\n", lines, bad


def by_source(one):
    return one.family and one.src[1] and one.proto is None and not one.kind and not one.dst[1]


def by_service(one):
    return one.src[1] and one.proto in PORTS and one.first is None and one.second is not None


def ipset(rng, universe, few):
    """Sets by source, by source and port, and by both addresses and port."""
    lines, sets = [], {}
    for one in universe.some(rng, 25):
        timeout, comment = timeouts(rng, few), rng.choice(COMMENTS[:5])
        family = "inet" if one.family == 4 else "inet6"
        if by_source(one):
            key, words = ("hash:net", family), prefix(one.family, one.src)
        elif by_service(one) and not one.dst[1]:
            key = ("hash:net,port", family)
            words = "%s,%s:%u" % (prefix(one.family, one.src), NAMES.get(one.proto, one.proto), one.second)
        elif by_service(one) and one.src[1] == BITS[one.family] == one.dst[1]:
            key = ("hash:ip,port,ip", family)
            words = "%s,%s:%u,%s" % (prefix(one.family, one.src), NAMES.get(one.proto, one.proto), one.second,
                                     prefix(one.family, one.dst))
        else:
            continue
        if one.action == "monitor" or one.action == "pass" and key[0] == "hash:ip,port,ip":
            continue
        key += (bool(timeout) or rng.random() < 0.3,)
        lines.append((one, timeout if timeout or not key[2] else 0, comment))
        sets.setdefault(key, []).append(words + (" timeout %u" % (timeout or 0) if key[2] else "") +
                                        (' comment "%s"' % comment if comment else "") +
                                        (" nomatch" if one.action == "pass" else ""))
    out = []
    for number, ((kind, family, is_timed), entries) in enumerate(sets.items()):
        out.append("create s%u %s family %s hashsize 1024 maxelem 65536%s comment" %
                   (number, kind, family, " timeout 0" if is_timed else ""))
        out += ["add s%u %s" % (number, entry) for entry in entries]
    return "\n".join(out) + "\n", lines, 0


def nft_net(family, net):
    if net[1] == BITS[family]:
        return address(family, net[0])
    return {"prefix": {"addr": address(family, net[0]), "len": net[1]}}


def nft(rng, universe, few):
    lines, sets = [], {}
    for one in universe.some(rng, 25):
        if one.action != "drop" or not (by_source(one) or by_service(one) and not one.dst[1]):
            continue
        timeout, comment = timeouts(rng, few), rng.choice(COMMENTS[:6])
        source, kind = nft_net(one.family, one.src), "ipv4_addr" if one.family == 4 else "ipv6_addr"
        if by_source(one):
            types, value = kind, source
        else:
            types = (kind, "inet_proto", "inet_service")
            value = {"concat": [source, rng.choice((one.proto, NAMES.get(one.proto, one.proto))), one.second]}
        extra = dict([("timeout", timeout)] if timeout else [], **({"comment": comment} if comment else {}))
        lines.append((one, timeout, comment))
        sets.setdefault(types, []).append({"elem": dict(val=value, **extra)} if extra else value)
    whole = [{"metainfo": {"json_schema_version": 1}}]
    for number, (types, elements) in enumerate(sets.items()):
        whole.append({"set": {"family": "inet", "name": "s%u" % number, "table": "t",
                              "type": types if isinstance(types, str) else list(types), "handle": number,
                              "flags": ["interval"], "elem": elements}})
    return json.dumps({"nftables": whole}, indent=rng.choice((None, 1))), lines, 0


def spamhaus(rng, universe, _):
    found = [one for one in universe.some(rng, 25) if by_source(one) and one.action == "drop"]
    lines = [(one, None, "SBL%u" % rng.randrange(1000000)) for one in found]
    if rng.random() < 0.5:
        out = ["; Spamhaus DROP List"] + ["%s ; %s" % (prefix(one.family, one.src), sbl) for one, _, sbl in lines]
    else:
        out = [json.dumps({"cidr": prefix(one.family, one.src), "sblid": sbl, "rir": "arin"}) for one, _, sbl in lines]
        out.append(json.dumps({"type": "metadata", "records": len(lines)}))
    return "\n".join(out) + "\n", lines, 0


def draw(rng, universe, few):
    kind = rng.choices(FORMATS, (6, 2, 2, 2, 1))[0]
    return (kind,) + globals()[kind](rng, universe, few)


__all__ = ["draw", "FORMATS", "BAD", "COMMENTS", "timeouts", "canonical"]
