#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Suricata's alerts (eve.json) become bans by the lines of xdp-cuckoo(7): on recorded events, which a file grows by.
. tests/lib.sh

PAGE=user/package/man/xdp-cuckoo.7

# event TYPE SEVERITY SOURCE: a line of eve.json, as Suricata 6 writes it.
event() {
	printf '{"timestamp":"2026-11-22T10:11:12.345678+0000","flow_id":1234567890123456,"in_iface":"eth0",'
	printf '"event_type":"%s","src_ip":"%s","src_port":40000,"dest_ip":"10.99.0.2","dest_port":80,"proto":"TCP",' "$1" "$3"
	printf '"alert":{"action":"allowed","gid":1,"signature_id":2019401,"rev":3,'
	printf '"signature":"ET POLICY \\"quoted\\" \\u00e9","category":"Attempted Admin","severity":%s},' "$2"
	printf '"flow":{"pkts_toserver":4,"bytes_toserver":600,"start":"2026-11-22T10:11:12.000000+0000"}}\n'
}

# follow: the page's lines, on the file $STATE/eve.json, until the test ends.
follow() {
	sed 's/\\-/-/g; s/\\e/\\/g' "$PAGE" | sed -n '/eve\.json |$/,/xdp-cuckoo batch/p' |
		sed "s,/var/log/suricata/eve.json,$STATE/eve.json," >"$STATE/run"
	[ "$(wc -l <"$STATE/run")" -eq 3 ] || fail "the page has no lines for Suricata"
	mkdir "$STATE/bin"
	printf '#!/bin/sh\nexec %s --state %s "$@"\n' "$PWD/$TOOL" "$STATE/store" >"$STATE/bin/xdp-cuckoo"
	chmod +x "$STATE/bin/xdp-cuckoo"
	# A group of its own, so that all three end with the test.
	in_rx env PATH="$STATE/bin:$PATH" setsid sh -c 'echo $$ >"$0.group"; . "$0"' "$STATE/run" >"$STATE/answers" 2>&1 &
	on_exit 'kill -- "-$(cat "$STATE/run.group")" 2>/dev/null'
	WAIT_LOG=$STATE/answers
}

has_answers() {
	[ "$(grep -c '^added$\|^error' "$STATE/answers")" -eq "$1" ]
}

test_alerts_become_bans() {
	command -v jq >/dev/null || skip "no jq"
	xc load vrx >/dev/null
	event alert 1 192.0.2.1 >"$STATE/eve.json"
	follow
	# What was in the file before is not read. `tail` may open it late.
	wait_for "tail" sh -c "ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q '$STATE/eve.json'"
	sleep 0.5
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
	assert_shows '^src 192.0.2.66 timeout (1h|59m[0-9]+s) comment "suricata 2019401"$' xc list --list suricata
}

run_tests "$0" "$@"
