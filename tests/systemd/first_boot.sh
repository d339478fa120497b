#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The package is installed and its services are set up: tests that go on from what those before them left.
. tests/lib.sh
. tests/systemd/guest.sh

# config LINE...: of [filter]; with a policy and two lists.
config() {
	{
		echo '[filter]'
		printf '%s\n' "$@"
		printf '%s\n' '[policy]' 'malformed = drop' '[list one]' 'file = /srv/one' '[list two]' 'file = /srv/two'
	} >"$CONF"
}

# every SECONDS TIMER: by a drop-in.
every() {
	mkdir -p "/etc/systemd/system/$2.d"
	printf '%s\n' '[Timer]' OnActiveSec= OnUnitActiveSec= OnActiveSec=1s "OnUnitActiveSec=$1s" AccuracySec=1s \
		RandomizedDelaySec=0 >"/etc/systemd/system/$2.d/soon.conf"
	systemctl daemon-reload
}

test_install() {
	sender
	assert_status 0 dpkg -i /debs/*.deb
	assert_equal '' "$(systemctl list-units --all --plain --no-legend 'xdp-cuckoo*')" "units that it started"
	assert_equal disabled "$(systemctl is-enabled xdp-cuckoo-exporter)" "the exporter"
	assert_status 0 systemd-analyze verify /lib/systemd/system/xdp-cuckoo*
	assert_equal '' "$(cat "$STATE/err")" "complaints"
}

# As README.md has it.
test_quick_start() {
	front=$(card 1)
	printf '%s\n' '# a list' 192.0.2.1 203.0.113.0/24 >"$STATE/list.netset"
	assert_status 0 xdp-cuckoo load "$front"
	passes 192.0.2.1
	assert_status 0 xdp-cuckoo import "$STATE/list.netset"
	drops 192.0.2.1
	drops 203.0.113.9
	passes 192.0.2.2
	assert_status 0 xdp-cuckoo stats
	assert_output '^drop-rule +0 +0 +4 '
	assert_status 0 xdp-cuckoo flush
	assert_status 0 xdp-cuckoo unload "$front"
}

test_pages_and_completion() {
	for page in '8 xdp-cuckoo' '7 xdp-cuckoo-operation' '7 xdp-cuckoo-design' '7 xdp-cuckoo-fleet' '7 xdp-cuckoo-flowspec' '7 xdp-cuckoo-drivers' '5 xdp-cuckoo.conf' '5 xdp-cuckoo-rules'; do
		# shellcheck disable=SC2086 # two words
		assert_status 0 man -w $page
	done
	# shellcheck disable=SC2016 # those of bash
	assert_status 0 bash -c '. /usr/share/bash-completion/bash_completion
		__load_completion xdp-cuckoo && complete -p xdp-cuckoo'
}

test_a_service_without_configuration() {
	mark_journal
	assert_status 1 systemctl start xdp-cuckoo@default
	says xdp-cuckoo@default "cannot read '$CONF': No such file"
}

test_service() {
	printf '192.0.2.%d\n' 1 3 >/srv/one
	echo 203.0.113.0/24 >/srv/two
	config "interfaces = $(card 1)"
	assert_status 0 systemctl enable --now xdp-cuckoo@default
	drops 192.0.2.1
	drops 203.0.113.9
	passes 192.0.2.2
	xdp-cuckoo policy | grep -Eq '^malformed +drop' || fail "the policy"
}

test_reload() {
	printf '192.0.2.%d\n' 1 2 >/srv/one
	assert_status 0 systemctl reload xdp-cuckoo@default
	drops 192.0.2.1
	drops 192.0.2.2
	passes 192.0.2.3
}

test_a_broken_configuration_changes_nothing() {
	mark_journal
	runs=$(program "$(card 1)")
	cp "$CONF" "$STATE/conf"
	echo 'colour = red' >>"$CONF"
	assert_status 1 systemctl reload xdp-cuckoo@default
	says xdp-cuckoo@default "$CONF:[0-9]+: unknown key 'colour' in \[list\]"
	is active xdp-cuckoo@default
	assert_equal "$runs" "$(program "$(card 1)")" "the program"
	drops 192.0.2.1
	cp "$STATE/conf" "$CONF"
}

test_stop() {
	runs=$(program "$(card 1)")
	systemctl stop xdp-cuckoo@default
	is inactive xdp-cuckoo@default
	assert_equal "$runs" "$(program "$(card 1)")" "the program"
	config "interfaces = $(card 1)" 'detach-on-stop = yes'
	systemctl start xdp-cuckoo@default
	systemctl stop xdp-cuckoo@default
	assert_equal '' "$(program "$(card 1)")" "the program"
	systemctl start xdp-cuckoo@default
	drops 192.0.2.1
}

# While the service waits, the interfaces that are there are filtered.
test_an_interface_that_comes_later() {
	on_exit "config 'interfaces = $(card 1)'" # the next boot would wait for it too
	config "interfaces = $(card 1) late0" 'wait = 5m'
	systemctl reload --no-block xdp-cuckoo@default
	wait_for "the reload" activity reloading xdp-cuckoo@default
	drops 192.0.2.1
	activity reloading xdp-cuckoo@default || fail "does not wait"
	ip link add late0 type veth peer name late1
	wait_for "its end" activity active xdp-cuckoo@default
	[ -n "$(program late0)" ] || fail "no program on late0"
	config "interfaces = $(card 1)"
	assert_status 0 systemctl reload xdp-cuckoo@default
	assert_equal '' "$(program late0)" "the program on late0"
	ip link del late0
}

# It goes with the service: what was stopped is not started again.
test_reload_timer() {
	every 5 xdp-cuckoo-reload@.timer
	assert_status 0 systemctl enable --now xdp-cuckoo-reload@default.timer
	printf '192.0.2.%d\n' 1 3 >/srv/one
	wait_for "the list" xdp-cuckoo test 192.0.2.3
	drops 192.0.2.3
	systemctl stop xdp-cuckoo@default
	is inactive xdp-cuckoo-reload@default.timer
	systemctl start xdp-cuckoo@default
	is active xdp-cuckoo-reload@default.timer
	is active xdp-cuckoo-refresh@default.timer # its old name
	rm -r /etc/systemd/system/xdp-cuckoo-reload@.timer.d
	systemctl daemon-reload
}

# It runs each minute, and the journal has nothing of it but failures.
test_expire_timer() {
	mark_journal
	assert_status 0 xdp-cuckoo add 192.0.2.2 timeout 1s
	every 5 xdp-cuckoo-expire@.timer
	assert_status 0 systemctl enable --now xdp-cuckoo-expire@default.timer
	wait_for "its end" sh -c 'xdp-cuckoo status --verbose | grep -q "^timed rules: *0$"'
	rm -r /etc/systemd/system/xdp-cuckoo-expire@.timer.d
	systemctl daemon-reload
	assert_equal '' "$(journal xdp-cuckoo-expire@default.service)" "the journal"
	assert_equal success "$(systemctl show -P Result xdp-cuckoo-expire@default.service)" "result"
}

scrape() {
	curl -sSf "$METRICS" | grep -q '^xdp_cuckoo_rules{name="default"} 3$'
}

test_exporter() {
	assert_status 0 systemctl enable --now xdp-cuckoo-exporter
	wait_for "the exporter" scrape
	serves=$(systemctl show -P MainPID xdp-cuckoo-exporter)
	assert_equal xdp-cuckoo "$(ps -o euser:20= --ppid "$serves" | tr -d ' ')" "the user of its process without privileges"
	systemctl reload xdp-cuckoo@default
	scrape || fail "after a reload"
	systemctl restart xdp-cuckoo@default
	scrape || fail "after a restart"
	assert_equal "$serves" "$(systemctl show -P MainPID xdp-cuckoo-exporter)" "the process"
}

# By a broker on this machine, which keeps what is published on disk for the next boot.
test_follow() {
	mkdir /var/lib/broker
	cat >/etc/systemd/system/broker.service <<-'END'
		[Service]
		WorkingDirectory=/project
		ExecStart=/bin/bash tests/helpers/redis-server.sh --bind 127.0.0.1 --appendonly yes --dir /var/lib/broker
		[Install]
		WantedBy=multi-user.target
	END
	assert_status 0 systemctl enable --now broker
	wait_for "the broker" redis-cli -e PING
	printf '%s\n' '[fleet]' 'broker = 127.0.0.1' 'lists = bad' >>"$CONF"
	assert_status 0 xdp-cuckoo fleet init
	assert_status 0 systemctl enable --now xdp-cuckoo-follow@default
	passes 192.0.2.2
	assert_status 0 xdp-cuckoo publish add 192.0.2.2 --list bad --wait 100
	drops 192.0.2.2
	assert_status 0 xdp-cuckoo publish del 192.0.2.2 --list bad --wait 100
	passes 192.0.2.2
}

# Each list by URL, from a server on this machine. The process that fetches runs as nobody.
test_fetch() {
	cp "$CONF" "$STATE/conf"
	mkdir /srv/www
	echo 192.0.2.2 >/srv/www/list
	systemd-run --quiet --unit=www python3 -m http.server --bind 127.0.0.1 --directory /srv/www 8000
	wait_for "the server" curl -sSf http://127.0.0.1:8000/list
	printf '%s\n' '[list fetched]' 'url = http://127.0.0.1:8000/list' 'every = 5m' >>"$CONF"
	every 5 xdp-cuckoo-fetch@.timer
	assert_status 0 systemctl enable --now xdp-cuckoo-fetch@default.timer
	wait_for "the list" xdp-cuckoo test 192.0.2.2
	drops 192.0.2.2
	assert_equal success "$(systemctl show -P Result xdp-cuckoo-fetch@default.service)" "result"
	assert_status 0 systemctl disable --now xdp-cuckoo-fetch@default.timer
	rm -r /etc/systemd/system/xdp-cuckoo-fetch@.timer.d
	systemctl daemon-reload
	systemctl stop www
	cp "$STATE/conf" "$CONF"
	assert_status 0 xdp-cuckoo lists delete fetched
	passes 192.0.2.2
}

# page_lines FIRST: the lines of the example in xdp-cuckoo-flowspec(7) whose first line is FIRST.
page_lines() {
	zcat /usr/share/man/man7/xdp-cuckoo-flowspec.7.gz | sed 's/\\-/-/g' |
		awk -v first="$1" '$0 == first { is_in = 1 } /^\.EE/ { is_in = 0 } is_in'
}

flows() {
	xdp-cuckoo list --list flowspec | grep -q '^proto udp sport 53 dst 198.51.100.7 action monitor'
}

no_flows() {
	! flows
}

# The lines of the page, as they stand there, with GoBGP's own service.
test_flowspec() {
	cp "$CONF" "$STATE/conf"
	page_lines '[global.config]' >/etc/gobgpd.conf
	page_lines '[flowspec]' >>"$CONF"
	page_lines 'gobgp global rib -a ipv4-flowspec add match destination 198.51.100.7/32 protocol udp source-port 53 then discard' \
		>"$STATE/announce"
	assert_equal 2 "$(wc -l <"$STATE/announce")" "lines of the page"
	assert_status 0 systemctl restart gobgpd
	assert_status 0 systemctl enable --now xdp-cuckoo-flowspec@default
	wait_for "the daemon" gobgp global
	assert_status 0 sh -c "$(sed 1q "$STATE/announce")"
	wait_for "the rule" flows
	follows=$(systemctl show -P MainPID xdp-cuckoo-flowspec@default)
	systemctl restart gobgpd
	wait_for "another monitor" sh -c "[ \"\$(systemctl show -P MainPID xdp-cuckoo-flowspec@default)\" != $follows ]"
	assert_status 0 sh -c "$(sed 1q "$STATE/announce")"
	wait_for "the rule" flows
	assert_status 0 sh -c "$(sed 1d "$STATE/announce")"
	wait_for "its end" no_flows
	assert_status 0 systemctl disable --now xdp-cuckoo-flowspec@default gobgpd
	cp "$STATE/conf" "$CONF"
}

# A rule holds also for what this host sends, from a reload on, until the next.
test_outgoing() {
	cp "$CONF" "$STATE/conf"
	sed -i '/^\[filter\]/a outgoing = yes' "$CONF"
	assert_status 0 systemctl reload xdp-cuckoo@default
	! ping -q -c 2 -W 2 192.0.2.1 >"$STATE/ping" 2>&1 || fail "192.0.2.1 answers"
	assert_status 0 xdp-cuckoo --json stats --by interface
	python3 -c '
import json, sys
sys.exit(not any(row.get("direction") == "sent" and row["dropped_packets"] >= 2 for row in json.load(sys.stdin)))' <"$STATE/out" ||
		fail "no sent packet was dropped: $(cat "$STATE/out")"
	cp "$STATE/conf" "$CONF"
	assert_status 0 systemctl reload xdp-cuckoo@default
	drops 192.0.2.1
}

# logs ADDRESS: sends from there; whether the journal has a line of it.
logs() {
	send "$1" -c 1 -W 1 || :
	journal xdp-cuckoo-log@default | grep -q "\"src\": *\"$1\""
}

test_log() {
	mark_journal
	assert_status 0 systemctl enable --now xdp-cuckoo-log@default
	wait_for "a line" logs 192.0.2.1
	is active xdp-cuckoo-log@default
}

# By a small local API in Python.
test_crowdsec() {
	cp "$CONF" "$STATE/conf"
	mkdir -p /srv/lapi
	echo '1 Ip 192.0.2.2 1h crowdsec x' >/srv/lapi/decisions
	(umask 077 && echo secret-key >/etc/xdp-cuckoo/key)
	cp /etc/xdp-cuckoo/key /srv/lapi/key
	printf '%s\n' '[crowdsec]' 'key-file = /etc/xdp-cuckoo/key' 'every = 1s' >>"$CONF"
	systemd-run --quiet --unit=lapi python3 /project/tests/helpers/lapi.py /srv/lapi 8080
	passes 192.0.2.2
	assert_status 0 systemctl enable --now xdp-cuckoo-crowdsec@default
	wait_for "the decision" xdp-cuckoo test 192.0.2.2
	drops 192.0.2.2
	asks=$(systemctl show -P MainPID xdp-cuckoo-crowdsec@default)
	assert_equal xdp-cuckoo "$(ps -o euser:20= --ppid "$asks" | tr -d ' ')" "the user of its process without privileges"
	assert_status 0 systemctl disable --now xdp-cuckoo-crowdsec@default
	systemctl stop lapi
	cp "$STATE/conf" "$CONF"
	assert_status 0 xdp-cuckoo lists delete crowdsec
	passes 192.0.2.2
}

# By systemd's own measure: of 10, where 0 is safest.
test_confinement() {
	noted=
	for unit in xdp-cuckoo@default xdp-cuckoo-reload@default xdp-cuckoo-expire@default xdp-cuckoo-follow@default \
		xdp-cuckoo-fetch@default xdp-cuckoo-flowspec@default xdp-cuckoo-gobgp@default xdp-cuckoo-crowdsec@default xdp-cuckoo-log@default \
		xdp-cuckoo-exporter; do
		# Some of these need the network, and must become another user for what they read there.
		case $unit in *-follow@* | *-fetch@* | *-flowspec@* | *-crowdsec@* | *-exporter) limit=35 ;; *) limit=25 ;; esac
		assert_status 0 systemd-analyze security --threshold="$limit" --no-pager "$unit.service"
		noted="$noted $(sed -n 's/.*Overall exposure level for \(.*\): \([0-9.]*\) .*/\1 \2/p' "$STATE/out")"
	done
	note "systemd-analyze security:$noted"
}

run_tests "$0" "$@"
