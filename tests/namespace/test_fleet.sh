#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A fleet: what is published reaches the packets of all hosts, and of each only what it allows.
# Takes minutes.
. tests/lib.sh
. tests/namespace/fleet.sh
. tests/namespace/metrics.sh

test_published_rules_reach_the_packets() {
	fleet
	follow_start
	passed 192.0.2.1 || fail "the packet does not pass before"
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	dropped 192.0.2.1 || fail "the packet is not dropped"
	start=$(date +%s%3N)
	assert_status 0 publish add 192.0.2.2 timeout 1h comment "a b" --list bad --wait 100
	note "published and active in $(($(date +%s%3N) - start)) ms"
	assert_prints 'src 192.0.2.1
src 192.0.2.2 timeout 1h comment "a b"' xc list --list bad
	assert_status 0 publish del 192.0.2.1 --list bad --wait 100
	assert_status 1 publish del 192.0.2.1 --list bad
	passed 192.0.2.1 || fail "the packet is dropped after the deletion"
	assert_status 0 xc fleet status --config "$FLEET_CONF"
	assert_output '^h1 +level +1 '
	waits() {
		xc metrics | grep -q '^xdp_cuckoo_list_not_fed{name="default",list="bad"} [01]$'
	}
	waits || fail "nobody waits for the broker"
	follow_kill
	assert_status 0 xc follow --once --config "$FLEET_CONF"
	waits || fail "nobody waits for the broker after follow --once"
	# Where only `follow --once` ran, nobody waits, until the service starts: also if its broker is dead.
	assert_status 0 xc lists delete bad
	assert_status 0 xc follow --once --accept --config "$FLEET_CONF"
	! waits || fail "somebody waits after follow --once alone"
	broker_kill
	timeout 3 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" follow --config "$FLEET_CONF" >/dev/null 2>&1 || :
	waits || fail "nobody waits for a dead broker"
}

# Where nobody follows, no command says that all is well.
test_nobody_follows() {
	fleet
	case_begin "no host"
	assert_status 1 publish add 192.0.2.1 --list bad --wait 1%
	assert_error "nobody follows the list 'bad'"
	assert_output '^hosts: +0$'
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	assert_error "nobody follows the fleet 'default'"
	assert_status 1 publish panic on
	assert_error "nobody follows the fleet 'default'"
	assert_status 1 publish panic off
	case_begin "a list that nobody follows, and one that is not there"
	sed -i 's/^lists = bad/lists = bad typo/' "$FLEET_CONF"
	follow_start
	assert_status 0 publish add 192.0.2.2 --list bad --wait 100%
	assert_status 0 publish add 192.0.2.3 --list other
	followed "the broker has no list 'typo' yet" || fail "the follower does not say that a list is missing"
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	assert_error "nobody follows the list 'other'"
	assert_output "^h1 +level .* the broker has no list 'typo'"
	assert_output '^bad +2 +1 '
	case_begin "a host that does not follow the list any more"
	follow_kill
	sed -i 's/^lists = bad typo/lists = typo/' "$FLEET_CONF"
	follow_start
	assert_status 1 publish add 192.0.2.4 --list bad --wait 100
	assert_error "nobody follows the list 'bad'"
}

test_waiting_counts_hosts_that_refuse() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	assert_status 1 publish add "$BROKER" --list bad --wait 100
	assert_error "0 of 1 hosts have the change; h1: refuses rules: .*$BROKER"
	assert_output '^hosts refusing: +1$'
	case_begin "a later change is not refused"
	assert_status 0 publish add 192.0.2.2 --list bad --wait 100
	assert_output '^hosts refusing: +0$'
	case_begin "a host that is gone"
	redis ZADD xc:default:L:bad:hosts 0 gone >/dev/null
	assert_status 0 publish add 192.0.2.3 --list bad --wait 100
	assert_output '^hosts: +1$'
	case_begin "a host that is silent"
	redis ZADD xc:default:L:bad:hosts 0 h2 >/dev/null
	redis HSET xc:default:host:h2 state level lists bad at:bad 0-0 seen 1000 >/dev/null
	assert_status 0 publish add 192.0.2.4 --list bad --wait 50%
	assert_status 0 xc fleet forget h2 --config "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.5 --list bad --wait 100
	case_begin "a host whose report cannot be read is not gone"
	for set in hosts refused; do
		redis ZADD "xc:default:L:bad:$set" 9007199254740991 h2 >/dev/null
	done
	redis SET xc:default:host:h2 'no hash' >/dev/null
	assert_status 1 publish add "$BROKER proto tcp" --list bad --wait 100
	assert_error "0 of 2 hosts have the change; h1: refuses rules: .*; h2: unreadable"
}

# The log is too short for what is published while the host is away: it reads the whole list.
test_waiting_counts_refusals_of_a_whole_list() {
	fleet
	redis CONFIG SET stream-node-max-entries 1 >/dev/null
	redis HSET xc:default:meta log 1 >/dev/null
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	follow_kill
	{ echo "add 192.0.2.9 action pass"; seq 1 250 | sed 's/.*/add 198.51.100.&\nadd 203.0.113.&\nadd 100.64.0.&\nadd 100.64.1.&\nadd 100.64.2.&/'; } >"$STATE/lines"
	publish batch "$STATE/lines" --list bad --wait 100 >"$STATE/waited" 2>&1 &
	waiting=$!
	all_published() {
		[ "$(redis HGET xc:default:L:bad:meta rules)" -eq 1252 ]
	}
	wait_for "the change" all_published
	follow_start
	wait_for "the whole list" followed 'reads the whole list'
	status=0
	wait "$waiting" || status=$?
	grep -q "0 of 1 hosts have the change; h1: refuses rules: .*allow-pass" "$STATE/waited" ||
		fail "status $status: $(cat "$STATE/waited")"
}

# As two clones of one machine do.
test_two_hosts_of_one_name() {
	fleet
	follow_start
	nsenter --net="/run/netns/$TX" "$TOOL" --state "$STATE/clone" follow --config "$FLEET_CONF" >"$STATE/clone.log" 2>&1 </dev/null &
	clone=$!
	on_exit "end $clone"
	is_shared() {
		xc fleet status --config "$FLEET_CONF" | grep -q '^h1  *shared .*another host reports by this name'
	}
	wait_for "the other to be noticed" is_shared
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	wait_for "the log to say it" followed "another host reports as 'h1', too"
	end "$clone"
	is_alone() {
		xc fleet status --config "$FLEET_CONF" | grep -q '^h1  *level '
	}
	wait_for "its end to be noticed" is_alone
}

# Many changes are few reports.
test_reports_are_few() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	redis CONFIG RESETSTAT >/dev/null
	start=$(date +%s%3N)
	seq 1 40 | while read -r i; do
		publish add "198.51.100.$i" --list bad >/dev/null
	done
	wait_level
	seconds=$((($(date +%s%3N) - start) / 1000))
	reports=$(redis INFO commandstats | sed -n 's/^cmdstat_zadd:calls=\([0-9]*\),.*/\1/p')
	[ "${reports:-0}" -le $((seconds + 2)) ] || fail "$reports reports in $seconds s"
	note "40 changes in $seconds s: ${reports:-0} reports"
	case_begin "the last change is reported, too"
	reported() {
		redis HGET xc:default:host:h1 rules | grep -qx 41
	}
	wait_for "the report" reported
}

test_drops_and_metrics_of_all_hosts() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	yes 'drop listed proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2' | head -n 30 | traffic >/dev/null
	# Another host of the same fleet, as its report says.
	redis HSET xc:default:host:h2 state level rules 1 refused 2 dropped 12 seen 1000 skew -1500 version x >/dev/null
	reported() {
		[ "$(redis HGET xc:default:host:h1 dropped)" = 30 ]
	}
	wait_for "the drops to be reported" reported
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	assert_output '^dropped: +42$'
	assert_output '^h1 +level +1 +0 +30 '
	assert_output '^h2 +silent +1 +2 +12 '
	assert_status 0 xc fleet metrics --config "$FLEET_CONF"
	cp "$STATE/out" "$STATE/metrics"
	assert_value 1 'xdp_cuckoo_fleet_list_rules{fleet="default",list="bad"}'
	assert_value 30 'xdp_cuckoo_fleet_host_dropped_packets_total{fleet="default",host="h1"}'
	assert_value 1 'xdp_cuckoo_fleet_host_state{fleet="default",host="h2",state="silent"}'
	assert_value -1.5 'xdp_cuckoo_fleet_host_clock_skew_seconds{fleet="default",host="h2"}'
	assert_value 2 'xdp_cuckoo_fleet_host_refused_rules{fleet="default",host="h2"}'
	assert_value 0 'xdp_cuckoo_fleet_panic{fleet="default"}'
	assert_status 0 xc fleet metrics "$STATE/fleet.prom" --config "$FLEET_CONF"
	grep -q '^xdp_cuckoo_fleet_panic' "$STATE/fleet.prom" || fail "nothing in the file"
	mkdir "$STATE/exporter"
	chown 65534:65534 "$STATE/exporter"
	assert_status 0 xc fleet metrics "$STATE/exporter/fleet.prom" --config "$FLEET_CONF"
	cmp -s "$STATE/fleet.prom" "$STATE/exporter/fleet.prom" || grep -q '^xdp_cuckoo' "$STATE/exporter/fleet.prom" ||
		fail "nothing in the file of another user"
	assert_status 3 xc fleet metrics "$STATE/none/fleet.prom" --config "$FLEET_CONF"
	assert_error "cannot write '$STATE/none/fleet.prom'"
	assert_status 1 xc --name typo fleet metrics "$STATE/fleet.prom" --config "$FLEET_CONF"
	assert_error "there is no fleet 'typo' on the broker"
	grep -q '^xdp_cuckoo_fleet_panic{fleet="typo"} 0$' "$STATE/fleet.prom" || fail "the file is as it was"
	needs_promtool
	"$PROMTOOL" check metrics <"$STATE/metrics" >"$STATE/promtool" 2>&1 || fail "$(cat "$STATE/promtool")"
}

# A host can write anything into its own report: what others see of other hosts does not depend on it.
test_a_report_that_is_none() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	reports() {
		redis HSET xc:default:host:a1 state "$(printf '\377\233')" seen 9999999999999 rules -9223372036854775808 dropped 1e99 >/dev/null
		redis HSET xc:default:host:a2 state "$(printf '\033[2Jlevel')" seen 9999999999999 version "$(printf '\033]0;x\007')" \
			why "$(printf '\033[31m\377')" >/dev/null
		redis EVAL 'for i = 1, 40000 do redis.call("HSET", KEYS[1], i, i) end' 1 xc:default:host:a3 >/dev/null
		redis EVAL 'redis.call("HSET", KEYS[1], "state", string.rep("x", 17000000))' 1 xc:default:host:a4 >/dev/null
		redis SET xc:default:host:a5 x >/dev/null
		redis SET "$(printf 'xc:default:host:a6\377')" x >/dev/null
		redis HSET xc:default:host:z9 state level rules 7 dropped 5 seen 9999999999999 >/dev/null
	}
	reports
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	assert_output '^h1 +level +1 '
	assert_output '^z9 +level +7 '
	assert_output '^a1 +unknown '
	assert_output '^a2 +unknown '
	for host in a3 a4 a5; do
		assert_output "^$host +unreadable .*its report is too large"
	done
	assert_equal 0 "$(tr -d '\n\40-\176\200-\377' <"$STATE/out" | wc -c)" "bytes that a terminal obeys"
	iconv -f UTF-8 "$STATE/out" >"$STATE/utf8" || fail "this is no UTF-8"
	assert_status 1 xc fleet status --json --config "$FLEET_CONF"
	assert_status 0 xc fleet metrics --config "$FLEET_CONF"
	assert_output '^xdp_cuckoo_fleet_host_rules{fleet="default",host="h1"} 1$'
	assert_output '^xdp_cuckoo_fleet_host_rules{fleet="default",host="z9"} 7$'
	assert_status 0 publish add 192.0.2.2 --list bad --wait 100
	case_begin "a list whose meta is none"
	redis HSET xc:default:L:other:meta epoch 5 seq 1 rules 1 buckets 1e18 >/dev/null
	redis SET xc:default:L:third:meta x >/dev/null
	redis DEL xc:default:host:a1 xc:default:host:a2 xc:default:host:a3 xc:default:host:a4 xc:default:host:a5 >/dev/null
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	assert_output '^h1 +level +2 '
	assert_error "list 'other': .*numbers that no list has"
	assert_error "list 'third': .*WRONGTYPE"
	assert_status 0 xc fleet metrics --config "$FLEET_CONF"
	case_begin "names that no list and no host can have"
	redis DEL xc:default:L:other:meta xc:default:L:third:meta >/dev/null
	redis HSET "$(printf 'xc:default:L:bad:\377:meta')" epoch 1 seq 1 rules 1 buckets 1 >/dev/null
	redis HSET "$(printf 'xc:default:L:a\nb:meta')" epoch 1 seq 1 rules 1 buckets 1 >/dev/null
	redis HSET "$(printf 'xc:default:host:a\nb')" state level seen 9999999999999 >/dev/null
	redis HSET "$(printf 'xc:default:L:%040d:meta' 7)" epoch 1 seq 1 rules 1 buckets 1 >/dev/null
	assert_status 0 xc fleet status --config "$FLEET_CONF"
	assert_status 0 xc fleet metrics --config "$FLEET_CONF"
	assert_equal '' "$(grep -v -e '^# ' -e '^xdp_cuckoo_fleet_[a-z_]*{fleet="default"[^{}]*} [-0-9.e+]*$' "$STATE/out")" "bad lines"
	case_begin "more names than a fleet has"
	redis EVAL 'for i = 1, 100001 do redis.call("SET", "xc:default:host:" .. i, i) end' 0 >/dev/null
	assert_status 3 xc fleet status --config "$FLEET_CONF"
	assert_error 'over 100000 hosts or lists'
}

# No entry can come after the largest id: that is named. When the key is deleted, the hosts follow the new log at once.
test_an_entry_at_the_end_of_all_ids() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	redis XADD xc:default:L:bad:log 18446744073709551615-18446744073709551614 x y >/dev/null
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error 'XCLOG'
	wait_for "the gap to be named" followed 'gap: entry 18446744073709551615-18446744073709551614 of its log'
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	assert_error "list 'bad': its log has the entry 18446744073709551615-.*delete the key xc:default:L:bad:log"
	xc fleet metrics --config "$FLEET_CONF" | grep -qx 'xdp_cuckoo_fleet_list_broken{fleet="default",list="bad"} 1' || fail "no metric"
	assert_status 0 publish delete-list bad
	assert_status 0 publish accept bad
	for i in 2 3 4 5; do
		start=$(date +%s%3N)
		assert_status 0 publish add "192.0.2.$i" --list bad
		wait_for "rule $i of the new log" dropped "192.0.2.$i"
		note "rule $i after $(($(date +%s%3N) - start)) ms"
	done
	! followed 'list .bad.: gap: the log no longer' || fail "$(cat "$STATE/follow.log")"
}

# Whatever other commands do beneath the follower, the list is the fleet's in the end.
test_unconfirmed_changes_beneath_it() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	case_begin "a deletion that is not confirmed"
	assert_status 0 timed lists delete bad --confirm 30m
	assert_status 0 publish add 192.0.2.2 --list bad
	time_is_over
	wait_level
	assert_same_rules
	dropped 192.0.2.2 || fail "the rule published meanwhile is gone"
	case_begin "a deletion that is not confirmed, and meanwhile the fleet deletes a rule"
	assert_status 0 timed lists delete bad --confirm 30m
	assert_status 0 publish del 192.0.2.1 --list bad
	wait_level
	time_is_over
	wait_level
	assert_same_rules
	passed 192.0.2.1 || fail "the undo brings back a rule that the fleet has deleted"
	case_begin "a deletion, and nothing is published"
	: >"$STATE/follow.log"
	assert_status 0 xc lists delete bad
	wait_for "the follower to notice" followed "another command has changed the list 'bad'"
	wait_level
	assert_same_rules
	case_begin "nothing else undoes a change"
	printf '203.0.113.1\n' >"$STATE/list"
	assert_status 0 timed import "$STATE/list" --list other --confirm 30m
	watchdogs | xargs kill -9
	in_rx "$HELPERS/overdue" "$STATE/store/default"
	assert_status 0 publish add 192.0.2.3 --list bad --wait 100
	followed 'undid a change of 1 rules? that was not confirmed in time' || fail "the follower does not say that it undid it"
	dropped 192.0.2.3 || fail "the rule is not applied"
	passed 203.0.113.1 || fail "the unconfirmed rule is still there"
}

test_lists_of_files_are_published() {
	fleet
	follow_start
	seq 1 250 | sed 's/^/198.51.100./' >"$STATE/list"
	assert_status 0 publish import "$STATE/list" --list bad --wait 100
	assert_output '^changed: +250$'
	seq 100 255 | sed 's/^/198.51.100./' >"$STATE/list"
	assert_status 0 publish import "$STATE/list" --list bad --replace --wait 100
	assert_output '^changed: +104$' # 99 go, 5 come
	sed 's/^/src /' "$STATE/list" | LC_ALL=C sort >"$STATE/expected"
	host_rules | cmp - "$STATE/expected" || fail "the host has other rules than the file"
	sed 's/$/ state new/' "$STATE/expected" >"$STATE/expected.new"
	assert_status 0 publish import "$STATE/list" --list bad --replace --new-only --wait 100
	host_rules | cmp - "$STATE/expected.new" || fail "the host has other rules than the file"
	assert_fails 2 'publish del takes no --new-only; it is for: import' publish del 198.51.100.100 --list bad --new-only
	assert_status 0 publish import "$STATE/list" --list bad --replace --wait 100
	: >"$STATE/list"
	assert_status 2 publish import "$STATE/list" --list bad --replace
	assert_same_rules
	printf '%s\n' 'add 192.0.2.1 # comment' nonsense 'del 198.51.100.100' 'add 203.0.113.7/30' >"$STATE/lines"
	assert_status 2 publish batch "$STATE/lines" --list bad --wait 100
	assert_error "lines:2: 'nonsense'"
	assert_error "lines:4: '203.0.113.7/30' has host bits set; its network is taken"
	assert_same_rules
	dropped 192.0.2.1 || fail "the good lines were not applied"
}

# What gobgp was seen to print, by the pipe of xdp-cuckoo-flowspec(7).
test_flows_are_published() {
	fleet 'max-shrink = 100%'
	follow_start
	printf '%s\n' '[flowspec]' 'own-prefixes = 198.51.100.0/24 2001:db8::/32' 'rtbh = yes' 'stale = 1h' >"$STATE/flowspec.conf"
	flowspec_publish() {
		{ xc flowspec - --print --config "$STATE/flowspec.conf" 2>"$STATE/flowspec.err" || :; } | tee "$STATE/lines" |
			publish batch - --list bad --wait 100
	}
	assert_status 0 flowspec_publish <tests/fuzz/flowspec.jsonl
	assert_same_rules
	sed -n 's/ timeout .*//; s/^add //p' "$STATE/lines" | LC_ALL=C sort -u | diff - "$STATE/host.rules" ||
		fail "the host has other rules than the flows"
	assert_equal 114 "$(wc -l <"$STATE/host.rules")" "rules" # a rate below 1 is none
	echo 'drop it proto tcp src 192.0.2.1 dst 198.51.100.1 sport 1 dport 2' | traffic || fail "a flow is not dropped"
	case_begin "withdrawn"
	sed 'p; s/"stale":false/&,"withdrawal":true/' tests/fuzz/flowspec.jsonl >"$STATE/withdrawn"
	assert_status 0 flowspec_publish <"$STATE/withdrawn"
	assert_prints '' xc list --list bad
	assert_same_rules
}

test_dangerous_and_strange_rules_are_left_out() {
	fleet 'min-prefix = 16 32'
	follow_start
	assert_status 0 publish batch - --list bad <<-EOF
		add 192.0.2.1
		add $BROKER
		add 10.99.0.0/16
		add 198.18.0.0/15
		add proto sctp
		add 192.0.2.5 action pass
		add 192.0.2.2
	EOF
	wait_level
	assert_prints 'src 192.0.2.1
src 192.0.2.2' xc list --list bad
	case_begin "a poison line, and one of a newer version"
	redis XADD xc:default:L:bad:log "$(redis HGET xc:default:L:bad:meta epoch)-2" rules \
		'+ 0 src nonsense
* 0 src 192.0.2.8
+ 0 src 192.0.2.3' >/dev/null
	redis HSET xc:default:L:bad:meta seq 2 >/dev/null
	wait_level
	dropped 192.0.2.3 || fail "the good line was not applied"
	sleep 0.2
	assert_status 0 xc fleet status --config "$FLEET_CONF"
	assert_output "^h1 +level +3 +7 "
	assert_output "this version knows no such line"
	assert_shows '^xdp_cuckoo_list_refused_rules[{]name="default",list="bad"[}] 7$' xc metrics
	case_begin "a local pass rule makes it harmless"
	xc add src "$BROKER" action pass >/dev/null 2>&1
	wait_for "the refused rule" sh -c "nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list --list bad | grep -q '^src $BROKER\$'"
	redis PING >/dev/null
}

# Whatever a list's rates were, each host gets the last ones, also one that reads the whole list.
test_rates() {
	# rates RULE...: host and broker have these and no others; so has a new host, which reads the whole list.
	rates() {
		printf '%s\n' "$@" >"$STATE/wanted"
		wait_level
		xc list --list bad | diff "$STATE/wanted" - || fail "the host has other rules"
		assert_equal $# "$(broker_rules | wc -l)" "rules at the broker"
		rm -rf "$STATE/new"
		assert_status 0 in_tx "$TOOL" --state "$STATE/new" follow --once --config "$STATE/new.conf"
		in_tx "$TOOL" --state "$STATE/new" list --list bad | diff "$STATE/wanted" - || fail "a new host has other rules"
	}
	fleet 'max-shrink = 100%'
	sed 's/^host = .*/host = h2/' "$FLEET_CONF" >"$STATE/new.conf"
	follow_start
	assert_status 0 publish add 192.0.2.1 rate 1MB/s comment 'first' --list bad
	assert_status 0 publish add 192.0.2.1 --list bad
	assert_status 0 publish add proto udp dport 53 rate 7/s action monitor --list bad
	assert_status 0 publish add 192.0.2.1 rate 9/s --list bad
	rates 'src 192.0.2.1' 'src 192.0.2.1 rate 9/s' 'proto udp dport 53 rate 7/s action monitor'
	assert_status 0 publish del 192.0.2.1 --list bad
	assert_status 0 publish add 192.0.2.1 rate 2000/s comment 'a higher one' --list bad
	rates 'src 192.0.2.1 rate 2000/s comment "a higher one"' 'proto udp dport 53 rate 7/s action monitor'
	case_begin "a file"
	printf '%s\n' 'src 192.0.2.1 rate 5/s' 'src 192.0.2.2 rate 8Mbit/s comment "c"' 'src 192.0.2.3' >"$STATE/list"
	assert_status 0 publish import "$STATE/list" --list bad --replace --dry-run
	assert_output '^added: +2$'
	assert_output '^updated: +1$'
	assert_output '^removed: +1$'
	assert_status 0 publish import "$STATE/list" --list bad --replace
	assert_output '^changed: +4$'
	assert_status 0 publish import "$STATE/list" --list bad --replace
	assert_output '^changed: +0$'
	rates 'src 192.0.2.1 rate 5/s' 'src 192.0.2.2 rate 8Mbit/s comment "c"' 'src 192.0.2.3'
	echo 'drop it proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2' | traffic --repeat 1000 >"$STATE/traffic" 2>&1 || :
	dropped=$(xc stats | awk '/^drop-rule/ { print $4 }')
	{ [ "$dropped" -gt 900 ] && [ "$dropped" -lt 1000 ]; } || fail "$dropped of 1000 packets are above 5/s"
	case_begin "by a stage"
	assert_status 0 publish add 192.0.2.1 rate 6/s --list bad --stage
	assert_status 0 publish release bad
	rates 'src 192.0.2.1 rate 6/s' 'src 192.0.2.2 rate 8Mbit/s comment "c"' 'src 192.0.2.3'
	case_begin "by a backup"
	follow_kill
	assert_status 0 xc backup "$STATE/backup"
	assert_status 0 xc flush --force
	assert_status 0 xc restore "$STATE/backup"
	xc list --list bad | diff "$STATE/wanted" - || fail "the backup has other rules"
	case_begin "a broker with the functions of the version before"
	grep -v xc_publish_rates user/fleet/fleet.lua >"$STATE/older.lua"
	redis -x FUNCTION LOAD REPLACE <"$STATE/older.lua" >/dev/null
	assert_status 3 publish add 192.0.2.9 rate 5/s --list bad
	assert_error 'Function not found; load the functions of this version: xdp-cuckoo fleet init$'
	assert_status 0 publish add 192.0.2.9 comment 'the rate 5/s' --list bad
	assert_equal 4 "$(broker_rules | wc -l)" "rules at the broker"
	assert_status 0 xc fleet init --config "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.9 rate 5/s --list bad
	follow_start
	rates 'src 192.0.2.1 rate 6/s' 'src 192.0.2.2 rate 8Mbit/s comment "c"' 'src 192.0.2.3' \
		'src 192.0.2.9 comment "the rate 5/s"' 'src 192.0.2.9 rate 5/s'
}

# One rule that a host cannot take costs only itself.
test_kinds_of_rule_that_have_no_room() {
	fleet
	follow_start
	for ends in 'src 192.0.2.1' 'dst 198.18.0.9' 'src 192.0.2.1 dst 198.18.0.9'; do
		for fields in '' 'sport 7' 'dport 9' 'sport 7 dport 9'; do
			for proto in '' 'proto udp'; do
				for action in drop monitor; do
					echo "add $ends $proto $fields action $action" | tr -s ' '
					echo "add $ends $proto $fields fragment no action $action" | tr -s ' '
				done
			done
		done
	done >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad
	assert_status 0 publish add 203.0.113.9 --list bad
	wait_level
	dropped 203.0.113.9 || fail "the rule after those that are refused is not there"
	assert_equal 65 "$(xc list | wc -l)" "rules"
	assert_status 0 xc fleet status --config "$FLEET_CONF"
	assert_output '^h1 +level +65 +32 '
	case_begin "a whole state"
	assert_status 0 xc lists delete bad
	wait_for "the list" dropped 203.0.113.9
	wait_level
	assert_equal 65 "$(xc list | wc -l)" "rules"
}

# A publisher leaves rates to the other rules of the host.
test_rates_are_left() {
	fleet
	follow_start
	seq 1 1100 | awk '{ printf "add 10.0.%d.%d rate 9/s\n", $1 / 256, $1 % 256 }' >"$STATE/lines"
	assert_status 1 publish batch "$STATE/lines" --list bad --wait 100
	assert_error 'h1: refuses rules: .*the fleet leaves room for others'
	assert_equal 960 "$(xc list --list bad | wc -l)" "rates of the fleet"
	assert_status 0 xc add 192.0.2.1 rate 9/s
	assert_status 0 publish add 10.0.0.1 rate 8/s --list bad --wait 100
}

# What a publisher of one list writes, by the rights of the man page, does not stop the other list; nor a new host. More of it
# is what tests/simulation/ publishes.
test_garbage_in_one_list() {
	fleet
	sed -i 's/^lists = .*/lists = bad good/' "$FLEET_CONF"
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	rule=0
	others_go_on() {
		rule=$((rule + 1))
		assert_status 0 publish add "198.51.100.$rule" --list good
		wait_for "the rule of the other list after: $1" dropped "198.51.100.$rule"
	}
	redis HSET xc:default:L:bad:meta buckets 1000000000000000000 >/dev/null
	redis XADD xc:default:L:bad:log '*' base junk >/dev/null
	others_go_on junk
	reported() {
		redis HMGET xc:default:host:h1 state why | paste -sd' ' | grep -q "^broken list 'bad': "
	}
	wait_for "the report" reported
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	follow_kill
	case_begin "45 MB"
	redis EVAL 'redis.call("DEL", KEYS[1]) for i = 1, 5 do redis.call("XADD", KEYS[1], "*", "rules", string.rep("x", 9000000)) end' \
		1 xc:default:L:bad:log >/dev/null
	follow_start
	others_go_on "45 MB of junk"
	dropped 192.0.2.1 || fail "the broken list is gone"
}

# A pass rule of the fleet that lets the broker's packets in, under a drop rule by hand.
test_a_pass_rule_that_the_host_needs_stays() {
	fleet 'allow-pass = yes'
	follow_start
	assert_status 0 publish batch - --list bad <<-EOF
		add $BROKER action pass
		add 192.0.2.1
		add 192.0.2.9 action pass
	EOF
	wait_level
	assert_status 0 xc add 10.99.0.0/31
	case_begin "its deletion costs only itself"
	assert_status 0 publish batch - --list bad <<-EOF
		del $BROKER action pass
		del 192.0.2.9 action pass
		add 192.0.2.2
	EOF
	wait_level
	dropped 192.0.2.2 || fail "the rule after it is not there"
	assert_prints "src $BROKER action pass
src 192.0.2.1
src 192.0.2.2" xc list --list bad
	refused() {
		xc fleet status --config "$FLEET_CONF" >"$STATE/status" 2>&1 || :
		grep -Eq '^h1 +level +3 +1 ' "$STATE/status"
	}
	wait_for "the refusal" refused
	case_begin "a whole state without it"
	follow_kill
	follow_start
	wait_for "the whole state" followed 'reads the whole list'
	assert_status 0 publish del 192.0.2.1 --list bad
	wait_level
	assert_prints "src $BROKER action pass
src 192.0.2.2" xc list --list bad
	passed "$BROKER" || fail "the pass rule is not in the table"
	case_begin "nor does it end sooner"
	assert_status 0 publish batch - --list bad <<-EOF
		add $BROKER action pass timeout 1h
		add 192.0.2.3
	EOF
	wait_level
	assert_prints "src $BROKER action pass
src 192.0.2.2
src 192.0.2.3" xc list --list bad
	assert_status 0 publish del "$BROKER" action pass --list bad
	wait_level
	case_begin "it is not needed any more"
	assert_status 0 xc del 10.99.0.0/31
	gone() {
		! xc list --list bad | grep -q "$BROKER"
	}
	WAIT_S=30 wait_for "the deletion" gone
}

test_a_publish_is_tried() {
	fleet
	assert_shows '^added: +1$' publish add 192.0.2.1 --list bad --dry-run
	assert_equal 0 "$(redis EXISTS xc:default:L:bad:log)" "logs"
	printf '192.0.2.%s\n' 1 2 3 >"$STATE/list"
	assert_status 0 publish import "$STATE/list" --list bad
	log=$(redis XLEN xc:default:L:bad:log)
	printf '192.0.2.%s\n' 3 4 >"$STATE/list"
	assert_status 0 publish import "$STATE/list" --list bad --replace --dry-run
	assert_equal 'added: 1 updated: 0 kept: 1 removed: 2 rules now: 3' \
		"$(sed -n '/^added/,$s/: */: /p' "$STATE/out" | tr '\n' ' ' | sed 's/ $//')" "with --replace"
	assert_status 0 publish import "$STATE/list" --list bad --dry-run
	assert_output '^removed: +0$'
	assert_shows '"removed": 1' publish --json del 192.0.2.1 --list bad --dry-run
	assert_output '"changed": true'
	assert_shows '"removed": 0' publish --json del 192.0.2.9 --list bad --dry-run
	assert_output '"changed": false'
	assert_shows '"removed": 2' publish --json del 192.0.2.1 192.0.2.3 --list bad --dry-run
	assert_equal "$log" "$(redis XLEN xc:default:L:bad:log)" "entries"
	assert_fails 2 'takes no --dry-run' publish delete-list bad --dry-run
}

test_the_limit_of_the_host() {
	fleet 'max-rules = 10'
	follow_start
	seq 1 8 | sed 's/.*/add 192.0.2.& timeout 1h/' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	case_begin "renewals are no more rules, nor are deletions"
	seq 1 8 | sed 's/.*/add 192.0.2.& timeout 3h/' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	assert_equal 8 "$(xc list --list bad | grep -c ' timeout [23]h')" "renewed rules"
	seq 1 6 | sed 's/.*/del 192.0.2.&/' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	assert_same_rules
	case_begin "over the limit"
	seq 101 109 | sed 's/.*/add 192.0.2.&/' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad
	wait_for "the refusal" followed 'would have over 10 rules'
	passed 192.0.2.101 || fail "a rule beyond the limit"
	assert_status 0 publish del 192.0.2.101 --list bad
	wait_level
	assert_same_rules
	! followed 'would drop' || fail "the list is held"
	case_begin "--once ends where a list cannot be applied"
	follow_kill
	seq 101 120 | sed 's/.*/add 192.0.2.&/' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad
	assert_status 3 timeout 30 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" follow --once --config "$FLEET_CONF"
	assert_error 'would have over 10 rules'
}
test_panic_reaches_the_host() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	dropped 192.0.2.1 || fail "the packet is not dropped"
	assert_status 0 publish panic on
	wait_for "panic" passed 192.0.2.1
	assert_status 0 publish panic off
	wait_for "the end of the panic" dropped 192.0.2.1
	case_begin "panic that began while nobody followed"
	follow_kill
	assert_status 1 publish panic on
	assert_error "0 of 1 hosts report it; 'h1' does not"
	follow_start
	wait_for "panic" passed 192.0.2.1
	case_begin "a filter that is loaded meanwhile"
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx
	wait_for "panic" passed 192.0.2.1
	case_begin "an operator ends it on this host"
	assert_status 0 xc panic off
	sleep 6 # the follower looks every 5 s
	dropped 192.0.2.1 || fail "the fleet's panic came back"
	follow_kill
	follow_start
	sleep 2
	dropped 192.0.2.1 || fail "the fleet's panic came back with another follower"
	case_begin "the next panic of the fleet"
	assert_status 0 publish panic off
	sleep 1
	assert_status 0 publish panic on
	wait_for "panic" passed 192.0.2.1
}

# The wait for hosts begins when the broker has the panic. Before that, another broker may take 10 s not to answer.
test_panic_past_a_broker_that_hangs() {
	fleet
	follow_start
	server 6380
	kill -STOP "$SERVER" "$FOLLOW_PID"
	sed -i "s/^broker = .*/broker = $BROKER:6380 $BROKER/" "$FLEET_CONF"
	publish panic on >"$STATE/panic" 2>&1 &
	panic=$!
	panic_is_there() {
		[ "$(redis HGET xc:default:meta panic)" = on ]
	}
	wait_for "the panic at the broker" panic_is_there
	sleep 2
	kill -CONT "$FOLLOW_PID"
	wait "$panic" || fail "$(cat "$STATE/panic")"
}

# A panic that an operator has set on the host is not the fleet's to end, whatever the fleet did before.
test_panic_by_hand_is_not_the_fleets() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	# On a busy machine a host may report it later.
	fleet_panic() {
		publish panic "$1" >"$STATE/panic" 2>&1 || grep -q 'hosts report it' "$STATE/panic" || fail "$(cat "$STATE/panic")"
	}
	by_hand_after() {
		case_begin "$1"
		assert_status 0 xc panic on
		fleet_panic off
		sleep 6 # the follower looks every 5 s
		passed 192.0.2.1 || fail "the fleet has ended the panic of an operator"
		assert_status 0 xc panic off
		dropped 192.0.2.1 || fail "the panic cannot be ended"
	}
	fleet_panic on
	wait_for "panic" passed 192.0.2.1
	by_hand_after "during a panic of the fleet"
	fleet_panic on
	wait_for "panic" passed 192.0.2.1
	follow_kill
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx
	fleet_panic off
	assert_status 0 xc panic on
	follow_start
	by_hand_after "after a panic of the fleet ended, and the filter was loaded anew, while nobody followed"
}

# A host that has all rules in its store, but no filter that drops by them, is not level.
test_a_host_without_a_filter_is_not_level() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	state_is() {
		xc fleet status --config "$FLEET_CONF" >"$STATE/status" 2>&1 || :
		grep -Eq "^h1 +$1 .*${2:-}" "$STATE/status"
	}
	wait_for "the report" state_is level
	assert_status 0 xc unload vrx
	wait_for "the report" state_is unfiltered 'no filter is loaded on this host'
	assert_status 1 xc fleet status --config "$FLEET_CONF"
	assert_status 0 xc load vrx
	wait_for "the report" state_is level
	assert_status 0 xc panic on
	wait_for "the report" state_is unfiltered 'an operator has set a panic on this host'
	assert_status 0 xc panic off
	wait_for "the report" state_is level
	assert_status 0 xc monitor-only on
	wait_for "the report" state_is unfiltered 'monitor-only: it drops nothing'
	assert_status 0 xc monitor-only off
	wait_for "the report" state_is level
}

# The host was away while many rules were published; panic comes while it still reads them.
test_panic_does_not_wait_behind_a_backlog() {
	rules=${RULES:-20000}
	fleet 'max-rules = 2000000'
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	follow_kill
	awk -v n="$rules" 'BEGIN { for (i = 0; i < n; i++) printf "11.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' \
		>"$STATE/list"
	assert_status 0 publish import "$STATE/list" --list bad
	follow_start
	assert_status 0 publish panic on
	start=$(date +%s%3N)
	wait_for "panic" passed 192.0.2.1
	note "panic after $(($(date +%s%3N) - start)) ms, behind $rules rules"
	assert_status 0 publish panic off
	wait_level
	! followed gap || fail "the backlog was no gap"
	wait_for "the end of the panic" dropped 192.0.2.1
}

# A new host reads a long list by a slow link.
test_panic_does_not_wait_behind_a_list() {
	fleet
	awk 'BEGIN { for (i = 0; i < 60000; i++) printf "add 11.%d.%d.%d comment \"%032d\"\n", i / 65536, i / 256 % 256, i % 256, i }' \
		>"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad
	ip netns exec "$TX" tc qdisc add dev vtx root tbf rate 2mbit burst 64k latency 1s
	follow_start
	wait_for "the reading" followed 'reads the whole list'
	publish panic on >/dev/null 2>&1 & # the report comes after the list
	on_exit "end $!"
	start=$(date +%s%3N)
	wait_for "panic" followed 'panic of the fleet'
	sent=$(ip netns exec "$TX" tc -s qdisc show dev vtx | sed -n 's/^ Sent \([0-9]*\) bytes.*/\1/p')
	note "panic after $(($(date +%s%3N) - start)) ms and $sent bytes"
	[ "$sent" -lt 2500000 ] || fail "panic came after the list"
}

# So many lists that the host's report is as long as it can be.
test_as_many_lists_as_can_be() {
	fleet 'staged = yes'
	sed -i "s/^lists = .*/lists = $(seq -s ' ' 15) bad/" "$FLEET_CONF"
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	reported() {
		xc fleet status --config "$FLEET_CONF" | grep -Eq '^h1 +level +1 '
	}
	wait_for "the report" reported
}

test_staged_rules_are_for_staged_hosts() {
	fleet 'staged = yes'
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --stage
	wait_for "the staged rule" dropped 192.0.2.1
	assert_prints 'src 192.0.2.1' xc list --list bad.next
	assert_status 0 publish release bad --wait 100
	assert_prints 'src 192.0.2.1' xc list --list bad
	wait_for "an empty stage" sh -c "! nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list --list bad.next | grep ."
	assert_status 0 publish add 192.0.2.2 --list bad --stage
	wait_for "the staged rule" dropped 192.0.2.2
	assert_status 0 publish abort bad --stage
	wait_for "the end of the staged rule" passed 192.0.2.2
	for verb in release abort; do
		assert_status 1 publish "$verb" bad
		assert_error "nothing is staged for the list 'bad' at the broker"
	done
	case_begin "a staged rule of a newer version"
	assert_status 0 publish add 192.0.2.3 --list bad --stage
	redis HSET xc:default:L:bad.next:b:0 'frobnicate 1' 0 >/dev/null
	assert_status 1 publish release bad
	assert_error "nothing was changed: this version cannot read a rule of the list 'bad.next': .*frobnicate"
	redis HDEL xc:default:L:bad.next:b:0 'frobnicate 1' >/dev/null
	assert_status 0 publish abort bad
	case_begin "what is staged during a release stays"
	assert_status 0 publish add 192.0.2.3 --list bad --stage
	wait_for "the staged rule" dropped 192.0.2.3
	kill -STOP "$FOLLOW_PID"
	publish release bad --wait 100 >"$STATE/release.out" 2>&1 &
	release_pid=$!
	on_exit "end $release_pid"
	wait_for "the released rule" sh -c "nsenter --net=/run/netns/$TX redis-cli -h $BROKER HKEYS xc:default:L:bad:b:0 | grep 192.0.2.3"
	assert_status 0 publish add 192.0.2.3 timeout 1h --list bad --stage
	kill -CONT "$FOLLOW_PID"
	release_status=0
	wait "$release_pid" || release_status=$?
	assert_equal 1 "$release_status" "the status of the release"
	grep -q "the rules are released, but somebody else has changed the stage" "$STATE/release.out" || fail "it says nothing"
	assert_equal 'src 192.0.2.3' "$(redis HKEYS xc:default:L:bad.next:b:0)" "the stage"
}

test_ends_are_by_the_brokers_clock() {
	fleet
	follow_start
	ends_in_time
	assert_status 0 publish add 192.0.2.2 --list bad
	assert_equal 'src 192.0.2.2' "$(broker_rules)" "what the broker keeps"
}

test_a_new_host_reads_a_long_list() {
	rules=${RULES:-20000}
	fleet "max-rules = $((2 * rules))"
	awk -v n="$rules" 'BEGIN { for (i = 0; i < n; i++) printf "11.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' \
		>"$STATE/list"
	start=$(date +%s%3N)
	assert_status 0 publish import "$STATE/list" --list bad
	published=$(($(date +%s%3N) - start))
	assert_equal "$(((rules + 99) / 100))" "$(redis HGET xc:default:L:bad:meta buckets)" "buckets"
	start=$(date +%s%3N)
	assert_status 0 xc follow --once --config "$FLEET_CONF"
	note "$rules rules published in $published ms, read in $(($(date +%s%3N) - start)) ms"
	assert_equal "$rules" "$(xc list --list bad | wc -l)" "rules"
	dropped 11.0.0.7 || fail "the rule does not match"
	case_begin "more rules than the host takes"
	sed -i "s/^max-rules.*/max-rules = $rules/" "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.1 --list bad
	follow_start
	wait_for "the refusal" followed "the max-rules of this host"
	dropped 11.0.0.7 || fail "the rules are gone"
}

# Several hosts, each in a namespace of its own: how long until all have a rule, from the start of `publish` on.
test_many_hosts() {
	hosts=${HOSTS:-5}
	fleet
	ip -n "$TX" link add br0 type bridge
	ip -n "$TX" address add 10.98.0.1/16 dev br0
	ip -n "$TX" link set br0 up
	broker_kill
	broker_start --bind '*' # all addresses of $TX
	i=0
	while [ "$i" -lt "$hosts" ]; do
		i=$((i + 1))
		member=xc$$m$i
		namespace "$member"
		veth "$TX" "m$i" "$member" eth0
		ip -n "$TX" link set "m$i" master br0
		ip -n "$member" address add "10.98.$((1 + i / 250)).$((i % 250 + 1))/16" dev eth0
		in_ns "$member" "$TOOL" --state "$STATE/m$i" load eth0 >/dev/null 2>&1
		printf '%s\n' '[fleet]' 'broker = 10.98.0.1' 'lists = bad' "host = m$i" >"$STATE/m$i.conf"
		nsenter --net="/run/netns/$member" "$TOOL" --state "$STATE/m$i" follow --config "$STATE/m$i.conf" \
			>"$STATE/m$i.log" 2>&1 </dev/null &
		on_exit "end $!"
	done
	all_follow() {
		[ "$(grep -l 'follows the fleet' "$STATE"/m*.log | wc -l)" -eq "$hosts" ]
	}
	wait_for "all hosts" all_follow
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	assert_output "^hosts: +$hosts$"
	i=0
	while [ "$i" -lt "${TRIES:-10}" ]; do
		i=$((i + 1))
		start=$(date +%s%3N)
		assert_status 0 publish add "198.51.100.$i" --list bad --wait 100
		echo $(($(date +%s%3N) - start))
	done | sort -n >"$STATE/times"
	note_times="$hosts hosts: all have a rule after $(sed -n "$((${TRIES:-10} / 2))p" "$STATE/times") ms (median), \
$(tail -n 1 "$STATE/times") ms (slowest)"
	note_more=
	lines() {
		awk -v net="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "add %d.%d.%d.%d\n", net, i / 65536, i / 256 % 256, i % 256 }'
	}
	for count in 1000 "${BATCH:-2000}"; do
		lines "$((11 + count % 7))" "$count" >"$STATE/lines"
		start=$(date +%s%3N)
		assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
		note_more="$note_more; $count rules after $(($(date +%s%3N) - start)) ms"
	done
	note "$note_times$note_more"
	case_begin "panic on all hosts"
	assert_status 0 publish panic on
	wait_for "panic" sh -c "! for i in \$(seq 1 $hosts); do nsenter --net=/run/netns/xc$$m\$i '$TOOL' --state '$STATE/m'\$i status; done | grep -q 'effect: *filters'"
}

# Other commands of the host: what the list loses by them, it gets again.
test_other_commands_change_the_list() {
	fleet
	follow_start
	seq 1 50 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	wait_level
	case_begin "the list is deleted"
	assert_status 0 xc lists delete bad
	assert_status 0 publish add 192.0.2.1 --list bad
	wait_level
	assert_same_rules
	case_begin "rules of others stay"
	assert_status 0 xc add 198.51.100.7
	assert_status 0 xc add 203.0.113.1
	assert_status 0 publish del 198.51.100.7 --list bad --wait 100
	assert_status 0 publish del 198.51.100.8 --list bad --wait 100
	dropped 198.51.100.7 || fail "a rule by hand is gone"
	dropped 203.0.113.1 || fail "a rule by hand is gone"
	passed 198.51.100.8 || fail "a deleted rule is still there"
	case_begin "rules are deleted by hand: the follower reads the list again"
	: >"$STATE/follow.log"
	assert_status 0 xc del 198.51.100.20
	wait_for "the follower to notice" followed "another command has changed the list 'bad'"
	wait_for "the rule" dropped 198.51.100.20
	: >"$STATE/follow.log"
	assert_status 0 xc flush bad
	wait_for "the follower to notice" followed "another command has changed the list 'bad'"
	has_all() {
		[ "$(host_rules | wc -l)" -eq "$(broker_rules | wc -l)" ]
	}
	wait_for "the rules" has_all
	assert_same_rules
	case_begin "a rule ends by itself: that is no reason to read again"
	assert_status 0 publish add 198.51.100.99 timeout 1s --list bad --wait 100
	wait_for "its end" eval '! xc test 198.51.100.99'
	: >"$STATE/follow.log"
	assert_status 0 xc expire
	assert_status 0 publish add 192.0.2.3 --list bad --wait 100
	! followed "another command has changed" || fail "it reads the list again"
	case_begin "a pass rule by hand wins"
	assert_status 0 xc add 198.51.100.9 action pass
	passed 198.51.100.9 || fail "the pass rule does not win"
}

# What happens to one list keeps no refused rule of another one out.
test_a_list_that_a_file_takes_over() {
	fleet
	sed -i 's/^lists = bad/lists = bad other/' "$FLEET_CONF"
	follow_start
	assert_status 0 publish add "$BROKER" --list other
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	echo 192.0.2.2 >"$STATE/file"
	assert_status 0 xc import "$STATE/file" --list bad --replace
	wait_for "the follower to notice" followed "list 'bad' of this host comes from .*, not from the fleet; it stays as it is"
	wait_for "its state" sh -c "nsenter --net=/run/netns/$RX '$TOOL' fleet status --config '$FLEET_CONF' | grep -q '^h1  *held'"
	assert_prints 'src 192.0.2.2' xc list --list bad
	xc add src "$BROKER" action pass >/dev/null 2>&1
	wait_for "the refused rule" sh -c "nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list --list other | grep -q '^src $BROKER\$'"
	case_begin "a follower that starts follows the other lists, and this one once it is deleted"
	follow_kill
	assert_status 0 publish add 192.0.2.3 --list other
	assert_status 3 xc follow --once --config "$FLEET_CONF"
	assert_error "list 'bad' of this host comes from .*, not from the fleet"
	dropped 192.0.2.3 || fail "the other list is not followed"
	follow_start
	assert_status 0 publish add 192.0.2.4 --list other
	wait_for "the other list" dropped 192.0.2.4
	assert_prints 'src 192.0.2.2' xc list --list bad
	assert_status 0 xc lists delete bad
	wait_for "the fleet's list" dropped 192.0.2.1
}

# follow keeps store and tables open between changes: it must see that they are others, and give them to nobody.
test_store_and_filter_change_beneath_it() {
	fleet
	follow_start
	keeps() {
		grep -q "$1" "/proc/${2:-$FOLLOW_PID}/maps"
	}
	keeps_none() {
		! keeps "$@"
	}
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	if ! keeps bpf-map || ! keeps data.mdb; then
		fail "nothing is kept: this tests nothing"
	fi
	case_begin "another size of the table"
	assert_status 0 xc resize 100000
	assert_status 0 publish add 192.0.2.2 --list bad --wait 100
	dropped 192.0.2.2 || fail "the rule is not in the new table"
	case_begin "another filter"
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx
	assert_status 0 publish add 192.0.2.3 --list bad --wait 100
	dropped 192.0.2.3 || fail "the rule is not in the new filter"
	case_begin "no filter"
	assert_status 0 xc unload vrx
	wait_for "the table to be freed" keeps_none bpf-map
	assert_status 0 publish add 192.0.2.4 --list bad --wait 100
	assert_status 0 xc load vrx
	dropped 192.0.2.4 || fail "the rule is not in the store"
	assert_status 0 publish add 192.0.2.5 --list bad --wait 100
	dropped 192.0.2.5 || fail "the rule is not applied"
	keeps bpf-map || fail "nothing is kept: this tests nothing"
	case_begin "another reader: it must have none of this"
	read -r reader <"/proc/$FOLLOW_PID/task/$FOLLOW_PID/children" || :
	: >"$STATE/follow.log"
	kill -9 "${reader% }"
	wait_for "another reader" followed 'follows the fleet'
	assert_status 0 publish add 192.0.2.6 --list bad --wait 100
	read -r reader <"/proc/$FOLLOW_PID/task/$FOLLOW_PID/children" || :
	keeps_none 'bpf-map\|data.mdb\|lock.mdb' "${reader% }" || fail "the reader has store or tables"
	case_begin "another store"
	assert_status 0 xc unload vrx
	mv "$STATE/store" "$STATE/store.moved"
	wait_for "the follower to notice" followed "another command has changed the list 'bad'"
	wait_level
	assert_same_rules
	assert_status 0 xc load vrx
	assert_status 0 publish add 192.0.2.7 --list bad --wait 100
	dropped 192.0.2.7 || fail "the rule is not applied"
	wait_for "the old store to be freed" keeps_none store.moved
}

test_tls_needs_the_right_certificate() {
	fleet_tls
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	wait_level
	dropped 192.0.2.1 || fail "the packet is not dropped"
	case_begin "many connections that wait"
	in_tx "$HELPERS/fan_out" "$BROKER:6390" "$STATE/ca.crt" "${CONNECTIONS:-50}" >"$STATE/fan_out" 2>&1 ||
		fail "$(cat "$STATE/fan_out")"
	note "$(tr '\n' ' ' <"$STATE/fan_out")"
	case_begin "a certificate of somebody else"
	sed -i "s/ca.crt/other.crt/" "$FLEET_CONF"
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error "broker at $BROKER:6390: its certificate is refused"
	case_begin "a port without TLS"
	sed -i "s/other.crt/ca.crt/; s/:6390/:6379/" "$FLEET_CONF"
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error "TLS"
	case_begin "no TLS for a port that needs it"
	sed -i "/^ca/d; s/:6379/:6390/" "$FLEET_CONF"
	assert_status 3 publish add 192.0.2.2 --list bad
}

# A user of a host reads all, and writes only its own status.
test_access_is_limited() {
	fleet 'max-shrink = 100%'
	printf '%s\n' 'user = h1' "password-file = $STATE/password" >>"$FLEET_CONF"
	echo secret >"$STATE/password"
	chmod 600 "$STATE/password"
	acl() {
		acl_words=$(sed -n "s/^user $1 //p" user/package/man/xdp-cuckoo-fleet.7 | sed "s/PASSWORD/secret/; s/host:$1/host:$2/")
		# shellcheck disable=SC2086 # words
		redis ACL SETUSER "$2" $acl_words >/dev/null
	}
	acl host1 h1
	follow_start
	case_begin "a publisher with the rights of the man page"
	acl feed feed
	printf '%s\n' '[fleet]' "broker = $BROKER" 'lists = bad' 'user = feed' "password-file = $STATE/password" \
		>"$STATE/publisher.conf"
	published() {
		in_tx "$TOOL" --state "$STATE/publisher" publish --config "$STATE/publisher.conf" "$@" --list bad
	}
	# It reads the password, then gives up the right to read this file, then connects.
	chown 65534:65534 "$STATE/password"
	awk 'BEGIN { for (i = 0; i < 1500; i++) printf "10.0.%d.%d timeout 1h\n", i / 256, i % 256 }' >"$STATE/many"
	assert_status 0 published import "$STATE/many"
	printf '192.0.2.1\n' >"$STATE/one"
	assert_status 0 published import "$STATE/one" --replace
	wait_level
	dropped 192.0.2.1 || fail "the packet is not dropped: $(cat "$STATE/follow.log")"
	assert_equal level "$(redis HGET xc:default:host:h1 state)" "the host's status"
	case_begin "abort says what it may not see, and aborts"
	assert_status 0 published add 192.0.2.5 --stage
	redis ACL SETUSER feed resetkeys '%R~xc:default:meta' '~xc:default:L:bad*' >/dev/null
	assert_status 0 in_tx "$TOOL" --state "$STATE/publisher" publish --config "$STATE/publisher.conf" abort bad
	assert_error 'staged the deletion .* was not seen.*NOPERM'
	assert_equal 0 "$(redis HGET xc:default:L:bad.next:meta rules)" "staged rules"
	case_begin "a host cannot publish"
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error 'NOPERM'
	case_begin "the process that talks to the broker has no privileges"
	read -r reader <"/proc/$FOLLOW_PID/task/$FOLLOW_PID/children" || :
	assert_equal 0000000000000000 "$(sed -n 's/^CapPrm:\t//p' "/proc/${reader% }/status")" "capabilities"
	assert_equal '65534	65534	65534	65534' "$(sed -n 's/^Uid:\t//p' "/proc/${reader% }/status")" "user"
	grep -q hiredis "/proc/${reader% }/maps" || fail "the reader does not use hiredis"
	case_begin "a new password"
	redis ACL SETUSER h1 resetpass '>second' >/dev/null
	redis CLIENT KILL USER h1 >/dev/null
	wait_for "the refusal" followed "refuses the user 'h1': wrong password"
	echo second >"$STATE/password"
	: >"$STATE/follow.log"
	wait_for "the follower to take the new password" followed 'follows the fleet'
	case_begin "a wrong password"
	follow_kill
	echo wrong >"$STATE/password"
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error "refuses the user 'h1': wrong password"
	chmod 644 "$STATE/password"
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error 'others can read'
	dropped 192.0.2.1 || fail "the filter has stopped"
}

# A batch that a signal ends says how far it came.
test_an_interrupted_batch() {
	fleet
	seq 0 499999 | awk '{ printf "add 10.%d.%d.%d\n", $1 / 65536, $1 / 256 % 256, $1 % 256 }' >"$STATE/lines"
	nsenter --net="/run/netns/$TX" "$TOOL" --state "$STATE/publisher" publish --config "$FLEET_CONF" \
		batch "$STATE/lines" --list bad \
		>"$STATE/batch.out" 2>"$STATE/batch.err" &
	batch=$!
	has_begun() {
		[ "$(redis HGET xc:default:L:bad:meta seq)" -gt 0 ]
	}
	wait_for "the first entry" has_begun
	kill -TERM "$batch"
	status=0
	wait "$batch" || status=$?
	assert_equal 3 "$status" "status"
	after=$(sed -n 's/.*interrupted: the lines after \([0-9]*\) were not published$/\1/p' "$STATE/batch.err")
	assert_equal "$after" "$(broker_rules | wc -l)" "rules at the broker"
}

test_mistakes_have_a_clear_line() {
	fleet
	assert_status 2 publish add 192.0.2.1 --list abcdefghijklmnopqrstuvwxyzab
	assert_error '1 to 26 letters'
	assert_status 2 publish add 192.0.2.1
	assert_error 'Say --list NAME'
	assert_status 2 publish add nonsense --list bad
	assert_status 2 publish batch /dev/null --list bad --replace
	assert_error 'publish batch takes no --replace; it is for: import'
	assert_status 2 publish panic on --list bad
	xc add 192.0.2.9 >/dev/null 2>&1
	printf '192.0.2.9\n' >"$STATE/list"
	assert_status 0 xc import --list bad "$STATE/list"
	assert_status 3 xc follow --once --config "$FLEET_CONF"
	assert_error "list 'bad' of this host comes from .*, not from the fleet; it stays as it is; to follow the fleet's, end what feeds it"
	printf '%s\n' '[fleet]' "broker = $BROKER:1" 'lists = bad' 'ca = /nonexistent' >"$FLEET_CONF"
	assert_status 3 xc fleet status --config "$FLEET_CONF"
	assert_error "ca = '/nonexistent': No such file"
	printf '%s\n' '[fleet]' "broker = $BROKER:1" 'lists = bad' >"$FLEET_CONF"
	assert_status 3 xc fleet status --config "$FLEET_CONF"
	assert_error 'cannot connect'
	printf '%s\n' '[fleet]' 'lists = bad' >"$FLEET_CONF"
	assert_status 2 xc fleet status --config "$FLEET_CONF"
	assert_error 'names no broker'
}

run_tests "$0" "$@"
