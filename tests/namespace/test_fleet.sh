#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A fleet: what is published reaches the packets; no list is lost, doubled or wiped, whoever is killed or cut off.
. tests/lib.sh
. tests/fleet.sh
. tests/metrics.sh

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
	passed 192.0.2.1 || fail "the packet is dropped after the deletion"
	assert_status 0 xc fleet status --config "$FLEET_CONF"
	assert_output '^h1 +level +1 '
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
	needs_promtool
	"$PROMTOOL" check metrics <"$STATE/metrics" >"$STATE/promtool" 2>&1 || fail "$(cat "$STATE/promtool")"
}

# Whatever other commands do beneath the follower, the list is the fleet's in the end.
test_unconfirmed_changes_beneath_it() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	case_begin "a deletion that is not confirmed"
	assert_status 0 xc lists delete bad --confirm 2s
	assert_status 0 publish add 192.0.2.2 --list bad
	confirmed() {
		! xc status --verbose 2>&1 | grep -q 'unconfirmed: *yes'
	}
	wait_for "the end of the time to confirm" confirmed
	wait_level
	assert_same_rules
	dropped 192.0.2.2 || fail "the rule published meanwhile is gone"
	case_begin "a deletion, and nothing is published"
	: >"$STATE/follow.log"
	assert_status 0 xc lists delete bad
	wait_for "the follower to notice" followed "another command has changed the list 'bad'"
	wait_level
	assert_same_rules
	case_begin "nothing else undoes a change"
	printf '203.0.113.1\n' >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --list other --confirm 1s
	for pid in $(ip netns pids "$RX"); do
		! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- '--confirm' || kill -9 "$pid"
	done
	sleep 1.5
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
	: >"$STATE/list"
	assert_status 2 publish import "$STATE/list" --list bad --replace
	assert_same_rules
	printf '%s\n' 'add 192.0.2.1' nonsense 'del 198.51.100.100' >"$STATE/lines"
	assert_status 2 publish batch "$STATE/lines" --list bad --wait 100
	assert_error "lines:2: 'nonsense'"
	assert_same_rules
	dropped 192.0.2.1 || fail "the good lines were not applied"
}

test_the_filter_goes_on_without_a_broker() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	broker_kill
	wait_for "the follower to notice" followed 'lost|cannot connect'
	dropped 192.0.2.1 || fail "the filter has stopped"
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error "cannot connect to the broker at $BROKER"
	broker_start
	assert_status 0 publish add 192.0.2.3 --list bad --wait 100
	wait_level
	assert_same_rules
	dropped 192.0.2.3 || fail "the follower has not caught up"
	! followed gap || fail "a restart of the broker is no gap"
}

# Killed at any moment, a follower has rules and position of one moment.
test_a_killed_follower_loses_nothing() {
	kills=${KILLS:-20}
	fleet
	(
		i=0
		while [ "$i" -lt 4000 ] && [ ! -e "$STATE/enough" ]; do
			i=$((i + 1))
			echo "add 10.$((i / 65536)).$((i / 256 % 256)).$((i % 256))"
			[ $((i % 3)) -ne 0 ] || echo "del 10.0.$((i / 512 % 256)).$((i / 2 % 256))"
			[ $((i % 20)) -ne 0 ] || sleep 0.05
		done
	) | publish batch - --list bad >"$STATE/published" 2>&1 &
	publisher=$!
	while [ "$kills" -gt 0 ]; do
		kills=$((kills - 1))
		follow_launch
		sleep "0.$(awk -v seed="$SEED$kills" 'BEGIN { srand(seed); printf "%03d", rand() * 400 }')"
		follow_kill
	done
	: >"$STATE/enough"
	wait "$publisher" || fail "the publisher has failed: $(cat "$STATE/published")"
	follow_start
	wait_level
	assert_same_rules
	xc check >"$STATE/check" 2>&1 || fail "table and store differ: $(cat "$STATE/check")"
	! followed 'gap|diverged' || fail "the position was not that of the rules"
	note "killed ${KILLS:-20} times, $(wc -l <"$STATE/host.rules") rules equal"
}

test_a_killed_publisher_publishes_once() {
	fleet
	follow_start
	i=0
	while [ "$i" -lt 10 ]; do
		i=$((i + 1))
		in_tx "$TOOL" --state "$STATE/publisher" publish --config "$FLEET_CONF" add "192.0.2.$i" --list bad \
			>/dev/null 2>&1 &
		sleep "0.0$i"
		kill -9 $! 2>/dev/null || :
		wait $! 2>/dev/null || :
		assert_status 0 publish add "192.0.2.$i" --list bad
	done
	wait_level
	assert_equal 10 "$(redis XRANGE xc:default:L:bad:log - + | grep -c '^+ 0 src')" "entries of the log"
	assert_same_rules
}

test_a_gap_is_closed_by_the_difference() {
	fleet
	redis HSET xc:default:meta log 5 >/dev/null
	follow_start
	seq 1 100 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	wait_level
	follow_kill
	# As many entries as no node of the stream holds.
	i=0
	while [ "$i" -lt 250 ]; do
		i=$((i + 1))
		echo "FCALL xc_publish 2 xc:default:L:bad:meta xc:default:L:bad:log other $i '' '+ 0 src 203.0.113.$i'"
	done | redis >/dev/null
	redis XTRIM xc:default:L:bad:log MAXLEN 3 >/dev/null
	assert_status 0 publish del 198.51.100.7 --list bad
	send_endlessly 0 vtx vrx
	follow_start
	wait_level
	followed "list 'bad': gap" || fail "the gap was not named"
	assert_same_rules
	passed 198.51.100.7 || fail "a deleted rule is still there"
	dropped 198.51.100.8 || fail "a rule is gone"
}

test_nothing_is_wiped() {
	fleet
	follow_start
	seq 1 100 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	wait_level
	case_begin "the broker is empty"
	redis FLUSHALL >/dev/null
	wait_for "the follower to notice" followed "has no fleet 'default'"
	dropped 198.51.100.1 || fail "the rules are gone"
	case_begin "another fleet"
	assert_status 0 xc fleet init --config "$FLEET_CONF"
	assert_status 0 publish add 203.0.113.1 --list bad
	wait_for "the follower to notice" followed "another one than before"
	dropped 198.51.100.1 || fail "the rules are gone"
	passed 203.0.113.1 || fail "rules of another fleet were applied"
	follow_kill
	assert_status 1 xc follow --once --config "$FLEET_CONF"
	assert_error "another one than before.*--accept"
	assert_status 0 xc follow --once --accept --config "$FLEET_CONF"
	assert_prints 'src 203.0.113.1' xc list --list bad
}

test_an_older_state_is_not_taken_unasked() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	broker_kill
	cp -r "$STATE/broker" "$STATE/backup"
	broker_start
	seq 1 50 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	wait_level
	broker_kill
	rm -rf "$STATE/broker"
	cp -r "$STATE/backup" "$STATE/broker"
	broker_start
	wait_for "the follower to name it" followed "list 'bad': restored"
	wait_for "the follower to stop" followed "would drop 50 of 51 rules"
	dropped 198.51.100.1 || fail "the rules are gone"
	wait_for "the status" sh -c "'$TOOL' --help >/dev/null; true"
	run xc fleet status --config "$FLEET_CONF"
	assert_output '^h1 +held'
	follow_kill
	assert_status 0 xc follow --once --accept --config "$FLEET_CONF"
	assert_prints 'src 192.0.2.1' xc list --list bad
}

# Replication is cut, entries are acknowledged by the master, and the replica takes over without them.
test_a_failover_that_loses_entries() {
	fleet 'replicas = 1'
	sed -i "s/^broker = .*/broker = $BROKER $BROKER:6380/" "$FLEET_CONF"
	mkdir -p "$STATE/replica"
	nsenter --net="/run/netns/$TX" bash tests/redis-server.sh --port 6380 --bind "$BROKER" --protected-mode no \
		--save '' --dir "$STATE/replica" --replicaof "$BROKER" 6379 --repl-diskless-sync-delay 0 >"$STATE/replica.log" 2>&1 </dev/null &
	on_exit "end $!"
	WAIT_LOG=$STATE/replica.log
	wait_for "replication" sh -c "nsenter --net=/run/netns/$TX redis-cli -h $BROKER -p 6380 ROLE | grep -q connected"
	# Followers take any broker; this one must see what the replica does not receive.
	follow_start
	while followed ':6380'; do
		follow_kill
		follow_start
	done
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	assert_output '^replicas: +1$'
	# The replica does not receive any more.
	redis -p 6380 REPLICAOF NO ONE >/dev/null
	for i in 2 3 4; do
		assert_status 0 publish add "192.0.2.$i" --list bad
		assert_error 'fewer than 1 replicas have it'
	done
	wait_for "the follower" sh -c "nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list | grep -q 192.0.2.4"
	broker_kill
	start=$(date +%s%3N)
	assert_status 0 publish add 192.0.2.5 --list bad
	note "published $(($(date +%s%3N) - start)) ms after the master was killed"
	assert_error 'has sent again 3 entries'
	wait_for "the follower to have all" sh -c "nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list | grep -q 192.0.2.5"
	assert_prints 'src 192.0.2.1
src 192.0.2.2
src 192.0.2.3
src 192.0.2.4
src 192.0.2.5' xc list --list bad
	followed diverged || fail "the lost entries were not named"
}

test_dangerous_and_strange_rules_are_left_out() {
	fleet 'min-prefix = 16 32'
	follow_start
	assert_status 0 publish batch - --list bad <<-EOF
		add 192.0.2.1
		add $BROKER
		add 10.99.0.0/16
		add 198.18.0.0/15
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
	assert_output "^h1 +level +3 +6 "
	assert_output "this version knows no such line"
	case_begin "a local pass rule makes it harmless"
	xc add src "$BROKER" action pass >/dev/null 2>&1
	wait_for "the refused rule" sh -c "nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list --list bad | grep -q '^src $BROKER\$'"
	redis PING >/dev/null
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
	assert_status 0 publish panic on
	follow_start
	wait_for "panic" passed 192.0.2.1
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
	assert_status 0 publish abort bad
	wait_for "the end of the staged rule" passed 192.0.2.2
}

test_ends_are_by_the_brokers_clock() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 timeout 3s --list bad --wait 100
	start=$(date +%s%3N)
	dropped 192.0.2.1 || fail "the packet is not dropped"
	wait_for "the end" passed 192.0.2.1
	took=$(($(date +%s%3N) - start))
	if [ "$took" -le 2000 ] || [ "$took" -ge 6000 ]; then
		fail "ended after $took ms"
	fi
	assert_status 0 publish add 192.0.2.2 --list bad
	assert_equal 'src 192.0.2.2' "$(broker_rules)" "what the broker keeps"
}

# A link that is down, so that nothing answers: the filter goes on, and the host catches up when the link is back.
test_a_link_that_is_down() {
	fleet
	follow_start
	seq 1 50 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	ip -n "$TX" link set vtx down
	seq 1 200 | sed 's/^/add 203.0.113./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad
	wait_for "the follower to notice" followed 'lost|does not answer|cannot connect'
	ip -n "$TX" link set vtx up
	start=$(date +%s%3N)
	wait_level
	note "level $(($(date +%s%3N) - start)) ms after the link was back"
	assert_same_rules
	! followed 'gap|diverged' || fail "that was no gap"
}

test_a_new_host_reads_a_long_list() {
	rules=${RULES:-20000}
	fleet 'max-rules = 2000000'
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

# The wall clock of the host is an hour off: rules end when they should.
test_the_hosts_clock_does_not_matter() {
	fleet
	for shift in 3600 -3600; do
		case_begin "shifted by $shift s"
		: >"$STATE/follow.log"
		nsenter --net="/run/netns/$RX" env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" CLOCK_SHIFT_S="$shift" "$TOOL" --state \
			"$STATE/store" follow --config "$FLEET_CONF" >>"$STATE/follow.log" 2>&1 </dev/null &
		FOLLOW_PID=$!
		on_exit "end $FOLLOW_PID"
		wait_for "the follower to be connected" followed 'follows the fleet'
		assert_status 0 publish add 192.0.2.1 timeout 4s --list bad --wait 100
		start=$(date +%s%3N)
		dropped 192.0.2.1 || fail "the packet is not dropped"
		wait_for "the end" passed 192.0.2.1
		took=$(($(date +%s%3N) - start))
		if [ "$took" -le 2500 ] || [ "$took" -ge 8000 ]; then
			fail "ended after $took ms"
		fi
		follow_kill
	done
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
	note "$hosts hosts: all have a rule after $(sed -n "$((${TRIES:-10} / 2))p" "$STATE/times") ms (median), \
$(tail -n 1 "$STATE/times") ms (slowest)"
	seq 1 250 | sed 's/^/add 203.0.113./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
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
	case_begin "a pass rule by hand wins"
	assert_status 0 xc add 198.51.100.9 action pass
	passed 198.51.100.9 || fail "the pass rule does not win"
}

test_tls_needs_the_right_certificate() {
	needs_redis
	command -v openssl >/dev/null || skip "no openssl"
	for name in ca other; do
		openssl req -x509 -newkey rsa:2048 -nodes -keyout "$STATE/$name.key" -out "$STATE/$name.crt" -subj "/CN=$name" \
			-days 2 2>/dev/null
	done
	openssl req -newkey rsa:2048 -nodes -keyout "$STATE/broker.key" -out "$STATE/broker.csr" -subj '/CN=broker' 2>/dev/null
	echo "subjectAltName=IP:$BROKER" >"$STATE/extension"
	openssl x509 -req -in "$STATE/broker.csr" -CA "$STATE/ca.crt" -CAkey "$STATE/ca.key" -CAcreateserial -days 2 \
		-extfile "$STATE/extension" -out "$STATE/broker.crt" 2>/dev/null
	fleet
	broker_kill
	FLEET_CONF=$STATE/tls.conf
	printf '%s\n' '[fleet]' "broker = $BROKER:6390" 'lists = bad' 'host = h1' "ca = $STATE/ca.crt" >"$FLEET_CONF"
	broker_start --tls-port 6390 --tls-cert-file "$STATE/broker.crt" --tls-key-file "$STATE/broker.key" --tls-ca-cert-file \
		"$STATE/ca.crt" --tls-auth-clients no
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	wait_level
	dropped 192.0.2.1 || fail "the packet is not dropped"
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
	fleet
	printf '%s\n' 'user = h1' "password-file = $STATE/password" >>"$FLEET_CONF"
	echo secret >"$STATE/password"
	chmod 600 "$STATE/password"
	redis ACL SETUSER h1 on '>secret' '%R~xc:default:*' '%RW~xc:default:host:h1' +auth +role +time +hmget +hget +hgetall \
		+xread +xrange +xrevrange +hset +expire >/dev/null
	follow_start
	case_begin "a publisher with the rights of the man page"
	acl=$(sed -n '/^ACL SETUSER feed/,/^\./p' user/package/man/xdp-cuckoo-fleet.7 | sed '/^\./d; s/PASSWORD/secret/')
	# shellcheck disable=SC2086 # words
	redis $acl >/dev/null
	printf '%s\n' '[fleet]' "broker = $BROKER" 'lists = bad' 'user = feed' "password-file = $STATE/password" \
		>"$STATE/publisher.conf"
	published() {
		in_tx "$TOOL" --state "$STATE/publisher" publish --config "$STATE/publisher.conf" "$@" --list bad
	}
	awk 'BEGIN { for (i = 0; i < 1500; i++) printf "10.0.%d.%d timeout 1h\n", i / 256, i % 256 }' >"$STATE/many"
	assert_status 0 published import "$STATE/many"
	printf '192.0.2.1\n' >"$STATE/one"
	assert_status 0 published import "$STATE/one" --replace
	wait_level
	dropped 192.0.2.1 || fail "the packet is not dropped: $(cat "$STATE/follow.log")"
	assert_equal level "$(redis HGET xc:default:host:h1 state)" "the host's status"
	case_begin "a host cannot publish"
	assert_status 3 publish add 192.0.2.2 --list bad
	assert_error 'NOPERM'
	case_begin "the process that talks to the broker has no privileges"
	read -r reader <"/proc/$FOLLOW_PID/task/$FOLLOW_PID/children" || :
	assert_equal 0000000000000000 "$(sed -n 's/^CapPrm:\t//p' "/proc/${reader% }/status")" "capabilities"
	assert_equal '65534	65534	65534	65534' "$(sed -n 's/^Uid:\t//p' "/proc/${reader% }/status")" "user"
	grep -q hiredis "/proc/${reader% }/maps" || fail "the reader does not use hiredis"
	! grep -Eq 'hiredis|libssl' "/proc/$FOLLOW_PID/maps" || fail "the applier has loaded libraries of the network"
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

test_mistakes_have_a_clear_line() {
	fleet
	assert_status 2 publish add 192.0.2.1 --list abcdefghijklmnopqrstuvwxyzab
	assert_error '1 to 26 letters'
	assert_status 2 publish add 192.0.2.1
	assert_error 'Say --list NAME'
	assert_status 2 publish add nonsense --list bad
	xc add 192.0.2.9 >/dev/null 2>&1
	printf '192.0.2.9\n' >"$STATE/list"
	assert_status 0 xc import --list bad "$STATE/list"
	assert_status 3 xc follow --once --config "$FLEET_CONF"
	assert_error "there is a list 'bad' from .* already"
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
