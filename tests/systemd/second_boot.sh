#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The machine boots with what tests/systemd/first_boot.sh enabled; then the package is upgraded, removed and purged.
. tests/lib.sh
. tests/systemd/guest.sh

# since UNIT PROPERTY: microseconds from boot.
since() {
	systemctl show -P "$2TimestampMonotonic" "$1"
}

# The interface's driver is loaded by udev at the same time.
test_filtered_before_the_network_is_configured() {
	is active xdp-cuckoo@default
	up=$(since xdp-cuckoo@default ActiveEnter)
	pre=$(since network-pre.target ActiveEnter)
	network=$(since systemd-networkd.service InactiveExit)
	[ "$up" -le "$pre" ] || fail "up at $up, network-pre.target at $pre"
	[ "$up" -lt "$network" ] || fail "up at $up, the network at $network"
	[ -n "$(program "$(card 1)")" ] || fail "no program on $(card 1)"
	note "up $((up / 1000)) ms, network $((network / 1000)) ms from boot"
}

test_rules_are_back() {
	sender
	drops 192.0.2.1
	drops 192.0.2.3
	drops 203.0.113.9
	passes 192.0.2.2
	assert_status 0 xdp-cuckoo lists
	assert_output '^one +2 '
	assert_output '^two +1 '
}

test_all_that_was_enabled_runs() {
	wait_for "the follower" activity active xdp-cuckoo-follow@default
	for unit in xdp-cuckoo-exporter xdp-cuckoo-log@default xdp-cuckoo-reload@default.timer xdp-cuckoo-expire@default.timer; do
		is active "$unit"
	done
	wait_for "the exporter" curl -sSf "$METRICS"
	assert_equal '' "$(systemctl list-units --failed --plain --no-legend)" "units that failed"
	assert_equal '' "$(journalctl -b -p warning -o cat --no-pager -u 'xdp-cuckoo*')" "warnings"
}

# another_follows PID: than this one.
another_follows() {
	activity active xdp-cuckoo-follow@default && [ "$(systemctl show -P MainPID xdp-cuckoo-follow@default)" != "$1" ]
}

# A blocked host goes on sending: nothing of it gets through.
test_upgrade() {
	mark_journal
	serves=$(systemctl show -P MainPID xdp-cuckoo-exporter)
	follows=$(systemctl show -P MainPID xdp-cuckoo-follow@default)
	ip netns exec sender ping -q -i 0.05 -I 192.0.2.1 198.51.100.7 >"$STATE/ping" 2>&1 &
	sends=$!
	assert_status 0 dpkg -i --auto-deconfigure /newer/*.deb
	kill -INT "$sends"
	wait "$sends" || : # nothing was answered
	grep -Eq '^[1-9][0-9]+ packets transmitted, 0 received' "$STATE/ping" || fail "passed: $(cat "$STATE/ping")"
	says xdp-cuckoo@default '^Reloaded '
	is active xdp-cuckoo@default
	drops 192.0.2.1
	assert_equal no "$(systemctl show -P NeedDaemonReload xdp-cuckoo@default)" "daemon-reload needed"
	is active xdp-cuckoo-exporter
	[ "$(systemctl show -P MainPID xdp-cuckoo-exporter)" != "$serves" ] || fail "the old exporter"
	wait_for "another follower" another_follows "$follows"
}

test_remove() {
	assert_status 0 dpkg -r xdp-cuckoo-exporter xdp-cuckoo-feed xdp-cuckoo-fleet
	assert_equal '' "$(systemctl list-units --plain --no-legend 'xdp-cuckoo-follow@*' xdp-cuckoo-exporter)" "units that run"
	is active xdp-cuckoo@default
	drops 192.0.2.1
	assert_status 0 dpkg -r xdp-cuckoo
	assert_equal '' "$(program "$(card 1)")" "the program"
	passes 192.0.2.1
	assert_equal '' "$(systemctl list-units --plain --no-legend 'xdp-cuckoo*')" "units that run"
	[ -e /var/lib/xdp-cuckoo/default ] || fail "the rules are gone"
	[ -e "$CONF" ] || fail "the configuration is gone"
}

test_purge() {
	assert_status 0 dpkg -P xdp-cuckoo-exporter xdp-cuckoo-feed xdp-cuckoo-fleet xdp-cuckoo
	find / -xdev -name '*xdp*cuckoo*' ! -path '/debs/*' ! -path '/newer/*' ! -path '/project/*' ! -path '/var/cache/man/*' >"$STATE/left"
	find /sys/fs/bpf -mindepth 1 >>"$STATE/left"
	assert_equal '' "$(cat "$STATE/left")" "left"
	assert_equal '' "$(systemctl list-units --failed --plain --no-legend)" "units that failed"
}

run_tests "$0" "$@"
