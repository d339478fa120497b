# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fail2ban action that bans IPv4 and IPv6 addresses in the network driver.

`make install` links this file into /etc/fail2ban/action.d if that directory exists. In /etc/fail2ban/jail.local:

  [DEFAULT]
  banaction = xdp-cuckoo.py[type=multiport]
  banaction_allports = xdp-cuckoo.py[type=allports]

The filter must run on the interface that receives the attacks, after a reboot too: xdp-cuckoo load eth0.
While it does not run, bans are stored. They take effect when it runs.

Options, as in xdp-cuckoo.py[type=allports, ipv6=128]:

  type     multiport (default): only the ports of the jail. allports: everything from the address
  ipv6     64 (default): a ban of an IPv6 address bans its /64, because attackers own all of it. 128: only the address
  persist  yes (default): bans stay when fail2ban stops or restarts, and end at their time. no: a stop ends them
  list     the list of the bans (default: fail2ban-JAIL), up to 31 characters of A-Z a-z 0-9 - _ .
  tool     the tool (default: xdp-cuckoo). For a filter with another name: tool="xdp-cuckoo --name web"

Each ban is a rule that ends by itself. The bans of a jail are a list: `xdp-cuckoo list --list fail2ban-sshd` shows them.
An unban takes the rule out of this list only. It stays if you, a feed or another jail also blocks the address. To exempt
an address, use ignoreip. When you remove a jail, its bans stay until their end: xdp-cuckoo lists delete fail2ban-JAIL.

At a start the list has the bans already, so nothing is done for them. If there is no such list, one process restores
all bans of fail2ban's database.

There can be 63 lists. If you have so many jails and feeds, let jails share one list: list=fail2ban. Then an unban ends
the bans of the address by all these jails, and `unban --all` all bans.

A jail whose action_ has two actions, one for tcp and one for udp (asterisk, named), needs one for both:
  action_ = %(default/action_)s[protocol="tcp,udp"]
"""
import ipaddress
import re
import shlex
import socket
import subprocess

from fail2ban.server.action import ActionBase
from fail2ban.server.mytime import MyTime

DEFAULTS = {"tool": "xdp-cuckoo", "list": "", "type": "multiport", "port": "ssh", "protocol": "tcp",
            "persist": "yes", "ipv6": "64"}


class XdpCuckooAction(ActionBase):
    norestored = True  # start() restores what the list lacks
    _prolongable = True

    # "/": action_ of some jails has an option `name` too.
    def __init__(self, jail, action_name, /, **options):
        super().__init__(jail, action_name)
        self.options = {**DEFAULTS, **options}
        self.list = self.options["list"] or f"fail2ban-{jail.name}"
        for option, values in (("type", ("multiport", "allports")), ("persist", ("yes", "no"))):
            if self.options[option] not in values:
                raise ValueError(f"{option}={self.options[option]}: must be {' or '.join(values)}")
        if not self.options["ipv6"].isdigit() or not 1 <= int(self.options["ipv6"]) <= 128:
            raise ValueError(f"ipv6={self.options['ipv6']}: must be the length of a prefix, 1 to 128")

    # fail2ban replaces an action that has no such method by `fail2ban-client reload`, and then deletes both.
    def clearAllParams(self):
        pass

    def reload(self, **options):
        self.__init__(self._jail, self._name, **options)
        self.start()

    def run(self, *words, lines=None):
        """Runs a command of the tool, and returns what it prints. Status 1 is no failure: nothing was to do."""
        done = subprocess.run([*shlex.split(self.options["tool"]), *words], input=lines, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode not in (0, 1):
            errors = [line for line in (done.stdout + done.stderr).splitlines()
                      if line.startswith(("error", "xdp-cuckoo: ", '{"error"'))]
            raise RuntimeError("; ".join(errors[:3]) or f"xdp-cuckoo {words[0]}: status {done.returncode}")
        return done.stdout

    def prefix(self, address):
        network = ipaddress.ip_network(str(address), strict=False)
        length = min(network.prefixlen, int(self.options["ipv6"])) if network.version == 6 else network.prefixlen
        return network.supernet(new_prefix=length)

    def rules(self, prefix):
        """The rules of a ban."""
        if self.options["type"] == "allports":
            yield f"src {prefix}"
            return
        for protocol in re.split("[, ]+", self.options["protocol"]):
            for port in re.split("[, ]+", self.options["port"]):
                ends = re.fullmatch("([0-9]+)[:-]([0-9]+)", port)
                if port in ("0:65535", "1:65535"):
                    yield f"src {prefix} proto {protocol}"
                elif ends:
                    for number in range(int(ends[1]), int(ends[2]) + 1):
                        yield f"src {prefix} proto {protocol} dport {number}"
                else:
                    try:
                        # Jails ban in threads: getservbyname() has one buffer, and may give another jail's port.
                        number = port if port.isdigit() else socket.getaddrinfo(
                            None, port, proto=socket.getprotobyname(protocol))[0][4][1]
                    except OSError:
                        raise ValueError(f"no port {port}/{protocol} in /etc/services") from None
                    yield f"src {prefix} proto {protocol} dport {number}"

    def lines(self, address, began, seconds):
        """Lines for batch. A permanent ban (-1) has no timeout."""
        timeout = f"timeout {max(1, int(began + seconds - MyTime.time()))}" if seconds > 0 else ""
        for rule in self.rules(self.prefix(address)):
            yield f'add {rule} {timeout} list {self.list} comment "fail2ban {self._jail.name}"\n'

    def start(self):
        has_list = '"verdict"' in self.run("--json", "test", "192.0.2.1", "--list", self.list)
        if has_list or not self._jail.database:
            return
        increases = self._jail.getBanTimeExtra("increment")
        lines = []
        for ban in self._jail.database.getCurrentBans(
                jail=self._jail, forbantime=None if increases else self._jail.actions.getBanTime(), maxmatches=0):
            if not self._jail.filter.inIgnoreIPList(ban.getID()):
                lines.extend(self.lines(ban.getIP(), ban.getTime(), ban.getBanTime()))
        if lines:
            self.run("batch", "-", lines="".join(lines))

    def ban(self, aInfo):
        tests = (f"test {rule}\n" for rule in self.rules(self.prefix(aInfo["ip"])))
        done = self.run("batch", "-", lines="".join([*self.lines(aInfo["ip"], aInfo["time"], aInfo["bantime"]), *tests]))
        for line in done.splitlines():
            if line.startswith(("passed", "partly")):
                self._logSys.warning("xdp-cuckoo: not all packets of %s are dropped: %s", aInfo["ip"], line)

    prolong = ban

    def unban(self, aInfo):
        prefix = self.prefix(aInfo["ip"])
        if 0 < aInfo["bantime"] <= MyTime.time() - aInfo["time"]:
            return  # the rule ends by itself
        if prefix != ipaddress.ip_network(str(aInfo["ip"]), strict=False) and any(
                ":" in str(other) and self.prefix(other) == prefix for other in self._jail.actions.getBanList()):
            return  # a neighbour is still banned
        self.run("batch", "-", "--list", self.list, lines="".join(f"del {rule}\n" for rule in self.rules(prefix)))

    def flush(self):
        """All bans end: by `unban --all`, or because the jail stops (then it is not active any more)."""
        if self._jail.actions.active or self.options["persist"] == "no":
            self.run("lists", "delete", self.list)
        return True


Action = XdpCuckooAction
