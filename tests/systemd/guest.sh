# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh in the machine of tests/systemd/machine.sh: its two network cards, one filtered, where systemd
# configures it, and one that sends, in a namespace of its own.
# shellcheck shell=sh disable=SC2034 # variables are for those who source this

WAIT_S=300
PEER=198.51.100.8
CONF=/etc/xdp-cuckoo/default.conf
METRICS=http://127.0.0.1:9917/metrics

# No veth pair for each test.
pair() {
	:
}

# card NUMBER: the name that udev gave it.
card() {
	basename "$(dirname "$(grep -l "52:54:00:00:00:0$1" /sys/class/net/*/address)")"
}

# sender: makes the namespace that sends, from addresses in three documentation networks.
sender() {
	ip netns add sender
	ip link set "$(card 2)" netns sender name out
	ip -n sender link set out up
	ip -n sender address add "$PEER/24" dev out
	for address in 192.0.2.1 192.0.2.2 192.0.2.3 203.0.113.9; do
		ip -n sender address add "$address/32" dev out
		ip route replace "$address" via "$PEER"
	done
}

send() {
	ip netns exec sender ping -q -I "$@" 198.51.100.7 >"$STATE/ping" 2>&1
}

# dropped: packets that met a drop rule.
dropped() {
	xdp-cuckoo stats | awk '/^drop-rule/ { print $5 }'
}

passes() {
	send "$1" -c 1 -w 60 || fail "$1 does not pass"
}

# drops ADDRESS: nothing is answered, and it is the filter that dropped it.
drops() {
	before=$(dropped)
	! send "$1" -c 2 -i 0.2 -W 2 || fail "$1 passes"
	[ "$(dropped)" -gt "$before" ] || fail "$1 is not answered, and no rule has dropped it"
}

# program IFACE: the number of what runs there, or nothing.
program() {
	ip -d link show "$1" | sed -n 's,.*prog/xdp id \([0-9]*\).*,\1,p'
}

# journal UNIT: what it wrote since the test began.
journal() {
	journalctl --sync
	journalctl -b -o cat --no-pager -u "$1" --after-cursor="$CURSOR"
}

mark_journal() {
	CURSOR=$(journalctl -b -n 0 --show-cursor | sed -n 's/^-- cursor: //p')
}

# says UNIT PATTERN: in the journal, since mark_journal.
says() {
	journal "$1" >"$STATE/journal"
	grep -Eq -- "$2" "$STATE/journal" && return
	cat "$STATE/journal"
	fail "$1 does not say '$2'"
}

# is STATE UNIT
is() {
	assert_equal "$1" "$(systemctl is-active "$2")" "$2"
}

activity() {
	[ "$(systemctl show -P ActiveState "$2")" = "$1" ]
}
