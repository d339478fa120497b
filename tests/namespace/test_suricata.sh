#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Suricata's alerts become bans by the lines of integrations/README.md: on recorded events, which a file (eve.json) grows by, or
# which come by a socket to its units; then by Debian's suricata itself.
. tests/lib.sh

SURICATA=${SURICATA:-$BUILD/packages/suricata/usr/bin/suricata}
PAGE=user/integrations/README.md

# event TYPE SEVERITY SOURCE: a line of eve.json, as Suricata 6 writes it.
event() {
	printf '{"timestamp":"2026-11-22T10:11:12.345678+0000","flow_id":1234567890123456,"in_iface":"eth0",'
	printf '"event_type":"%s","src_ip":"%s","src_port":40000,"dest_ip":"10.99.0.2","dest_port":80,"proto":"TCP",' "$1" "$3"
	printf '"alert":{"action":"allowed","gid":1,"signature_id":2019401,"rev":3,'
	printf '"signature":"ET POLICY \\"quoted\\" \\u00e9","category":"Attempted Admin","severity":%s},' "$2"
	printf '"flow":{"pkts_toserver":4,"bytes_toserver":600,"start":"2026-11-22T10:11:12.000000+0000"}}\n'
}

# page_lines: writes the page's lines, on the file $STATE/eve.json, to $STATE/run; makes the tool that they call.
page_lines() {
	sed -n '/eve\.json |$/,/xdp-cuckoo batch/p' "$PAGE" |
		sed "s,/var/log/suricata/eve.json,$STATE/eve.json," >"$STATE/run"
	[ "$(wc -l <"$STATE/run")" -eq 3 ] || fail "the page has no lines for Suricata"
	mkdir "$STATE/bin"
	printf '#!/bin/sh\nexec %s --state %s "$@"\n' "$PWD/$TOOL" "$STATE/store" >"$STATE/bin/xdp-cuckoo"
	chmod +x "$STATE/bin/xdp-cuckoo"
}

# follow: runs the lines until the test ends.
follow() {
	page_lines
	# A group of its own, so that all three end with the test.
	in_rx env PATH="$STATE/bin:$PATH" setsid sh -c 'echo $$ >"$0.group"; . "$0"' "$STATE/run" >"$STATE/answers" 2>&1 &
	on_exit 'kill -- "-$(cat "$STATE/run.group")" 2>/dev/null'
	WAIT_LOG=$STATE/answers
}

EARLIER=0
has_answers() {
	[ "$(grep -c '^added$\|^error' "$STATE/answers")" -eq $(($1 + EARLIER)) ]
}

test_alerts_become_bans() {
	command -v jq >/dev/null || skip "no jq"
	xc load vrx >/dev/null
	event alert 1 192.0.2.1 >"$STATE/eve.json"
	follow
	# What was in the file before is not read. `tail` may open it late.
	wait_for "tail" sh -c "ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q '$STATE/eve.json'"
	wait_for "a first line that is read" eval 'event alert 1 203.0.113.1 >>"$STATE/eve.json"; grep -q . "$STATE/answers"'
	EARLIER=1
	{
		event alert 1 192.0.2.66
		event alert 2 192.0.2.67
		event dns 1 192.0.2.68
		event alert 1 2001:0db8:0000:0000:0000:0000:0000:0066
		event alert 1 10.99.0.1
	} >>"$STATE/eve.json"
	wait_for "the first answers" has_answers 3
	assert_verdict drop 192.0.2.66 2001:db8::66 pass 192.0.2.67 192.0.2.68 192.0.2.1
	event alert 1 192.0.2.69 >>"$STATE/eve.json"
	wait_for "the next answer" has_answers 4
	assert_verdict drop 192.0.2.69
	case_begin "a line that was cut"
	{ event alert 1 192.0.2.70 | head -c 100; echo; echo 5; event alert 1 192.0.2.71; } >>"$STATE/eve.json"
	wait_for "the answer" has_answers 5
	case_begin "renamed, and made anew"
	mv "$STATE/eve.json" "$STATE/eve.json.1"
	event alert 1 192.0.2.73 >"$STATE/eve.json"
	wait_for "an alert of the new file" has_answers 6
	case_begin "truncated"
	: >"$STATE/eve.json"
	wait_for "tail" grep -q truncated "$STATE/answers"
	event alert 1 192.0.2.74 >>"$STATE/eve.json"
	wait_for "an alert after that" has_answers 7
	assert_verdict drop 192.0.2.71 192.0.2.73 192.0.2.74 pass 192.0.2.70
	assert_shows '^src 192.0.2.66 timeout (1h|59m[0-9]+s)$' xc list --list suricata
	case_begin "a source that is a rule: no text opens the filter"
	event alert 1 '192.0.2.66 action pass' >>"$STATE/eve.json"
	event alert 1 '192.0.2.66\nadd 192.0.2.66 action pass' >>"$STATE/eve.json"
	wait_for "the answers" has_answers 9
	assert_verdict drop 192.0.2.66
	! xc list | grep pass || fail "a pass rule"
}

# unit NAME: a unit of the integrations' page, to standard output.
unit() {
	sed -n "/^    # .*\/$1\$/,/^[^ ]/p" user/integrations/README.md | sed -n 's/^    //p; /^$/p' | awk 'NR > 1 && /^# /{ exit } 1'
}

# listen: does what the units say, without a systemd: listens, and starts the page's last two lines for each connection.
listen() {
	page_lines
	sed 1d "$STATE/run" >"$STATE/suricata.sh"
	for name in xdp-cuckoo-eve.socket xdp-cuckoo-eve@.service; do
		unit "$name" | sed "s,/etc/xdp-cuckoo/suricata.sh,$STATE/suricata.sh," >"$STATE/$name"
	done
	# An instance's process group is its own, so that the test can kill it alone.
	cat >"$STATE/instance" <<-END
		exec >>"$STATE/answers" 2>&1
		echo \$\$ >"$STATE/instance.group"
		exec $(sed -n 's/^ExecStart=//p' "$STATE/xdp-cuckoo-eve@.service")
	END
	grep -q '^Accept=yes' "$STATE/xdp-cuckoo-eve.socket" || fail "no unit"
	: >"$STATE/answers"
	nsenter --net="/run/netns/$RX" env PATH="$STATE/bin:$PATH" systemd-socket-activate --accept --inetd -l "$STATE/eve.sock" \
		setsid sh "$STATE/instance" >"$STATE/listener" 2>&1 &
	on_exit "kill $! 2>/dev/null"
	WAIT_LOG=$STATE/answers
	wait_for "the socket" test -S "$STATE/eve.sock"
}

# alerts FIRST COUNT: events of that many sources.
alerts() {
	event alert 1 SOURCE >"$STATE/event"
	seq "$1" "$(($1 + $2 - 1))" | while read -r i; do
		sed "s/SOURCE/198.18.$((i / 256)).$((i % 256))/" "$STATE/event"
	done
}

are_banned() {
	[ "$(xc list --list suricata | wc -l)" -eq "$1" ]
}

send_events() {
	$PYTHON tests/helpers/eve_sender.py "$STATE/eve.sock"
}

test_alerts_by_a_socket() {
	command -v jq >/dev/null || skip "no jq"
	command -v systemd-socket-activate >/dev/null || skip "no systemd-socket-activate"
	xc load vrx >/dev/null
	listen
	case_begin "Suricata ends at once after its last alert, and comes again"
	for round in 0 1 2; do
		alerts $((round * 100)) 100 | send_events >"$STATE/sent"
		assert_equal 'dropped 0' "$(cat "$STATE/sent")" "alerts"
	done
	wait_for "300 bans" are_banned 300
	case_begin "the lines are killed"
	mkfifo "$STATE/events"
	send_events <"$STATE/events" >"$STATE/sent" &
	SENDER=$!
	exec 5>"$STATE/events"
	alerts 300 10 >&5
	wait_for "bans" are_banned 310
	kill -s KILL -- "-$(cat "$STATE/instance.group")"
	wait_for "their end" sh -c "! kill -s 0 -- -$(cat "$STATE/instance.group") 2>/dev/null"
	alerts 310 10 >&5
	wait_for "bans by new lines" are_banned 320
	case_begin "bad input"
	{ event alert 1 192.0.2.70 | head -c 100; echo; echo 5; event dns 1 192.0.2.71; event alert 1 192.0.2.72; } >&5
	wait_for "the ban" are_banned 321
	exec 5>&-
	wait "$SENDER"
	assert_equal 'dropped 0' "$(cat "$STATE/sent")" "alerts"
	assert_verdict drop 198.18.0.0 198.18.1.63 192.0.2.72 pass 192.0.2.70 192.0.2.71
}

# suricata RULE: watches vrx, and writes alerts to both places.
suricata() {
	echo "$1" >"$STATE/rules"
	cat >"$STATE/suricata.yaml" <<-END
		%YAML 1.1
		---
		default-log-dir: $STATE
		outputs:
		  - eve-log: { enabled: yes, filetype: regular, filename: $STATE/eve.json, types: [alert] }
		  - eve-log: { enabled: yes, filetype: unix_stream, filename: $STATE/eve.sock, types: [alert] }
		af-packet:
		  - { interface: vrx, threads: 1, cluster-id: 99, cluster-type: cluster_flow, checksum-checks: no }
	END
	in_rx "$SURICATA" -c "$STATE/suricata.yaml" -S "$STATE/rules" --af-packet=vrx --pidfile "$STATE/suricata.pid" \
		>"$STATE/suricata.log" 2>&1 &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	WAIT_LOG=$STATE/suricata.log
	wait_for "Suricata" grep -q 'Engine started' "$STATE/suricata.log"
}

# knocks SOURCE: sends a packet that the rule is about. True once the filter drops what that source sends.
knocks() {
	in_tx $PYTHON -c '
import socket, sys
knock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
knock.bind((sys.argv[1], 4000))
knock.sendto(b"who is there?", ("10.99.0.2", 5060))' "$1"
	echo "drop it proto udp src $1 dst 10.99.0.2 sport 4000 dport 5060" | traffic >"$STATE/verdicts" 2>&1
}

real_suricata() {
	command -v jq >/dev/null || skip "no jq"
	[ -x "$SURICATA" ] || skip "no suricata; Debian 13 has one, which make packages unpacks"
	xc load vrx >/dev/null
	ip -n "$TX" address add 192.0.2.66/32 dev vtx
	ip -n "$TX" address add 192.0.2.67/32 dev vtx
	"$1"
	suricata 'alert udp any any -> any 5060 (msg:"a knock"; sid:2019401; rev:1; priority:1;)'
	wait_for "a ban" knocks 192.0.2.66
	wait_for "a ban" knocks 192.0.2.67
	assert_shows '^src 192.0.2.66 timeout (1h|59m[0-9]+s) comment "suricata 2019401"$' xc list --list suricata
	assert_verdict pass 192.0.2.68
}

test_suricata_bans_by_its_file() {
	: >"$STATE/eve.json"
	real_suricata follow
}

test_suricata_bans_by_a_socket() {
	command -v systemd-socket-activate >/dev/null || skip "no systemd-socket-activate"
	real_suricata listen
}

test_units_are_sound() {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	page_lines
	mkdir "$STATE/units"
	for name in xdp-cuckoo-eve.socket xdp-cuckoo-eve@.service; do
		unit "$name" >"$STATE/units/$name"
	done
	assert_status 0 systemd-analyze verify "$STATE/units/xdp-cuckoo-eve.socket" "$STATE/units/xdp-cuckoo-eve@.service"
	assert_equal '' "$(grep xdp-cuckoo-eve "$STATE/err")" "what systemd says of the units"
}

run_tests "$0" "$@"
