#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A fleet: no list is lost, doubled or wiped, whoever is killed, cut off or set back. tests/simulation/ kills followers and
# publishers at each of their steps.
# Takes minutes.
. tests/lib.sh
. tests/namespace/fleet.sh

# Each way to be dead, under a follower that is started again and again.
# shellcheck disable=SC2016 # for eval
test_a_dead_broker_is_seen() {
	fleet
	again "$TOOL" --state "$STATE/store" follow --config "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.1 --list bad
	for way in 'redis CONFIG SET requirepass other|redis -a other CONFIG SET requirepass ""' 'kill -STOP $BROKER_PID|kill -CONT $BROKER_PID' \
		'ip -n "$TX" link set vtx down|ip -n "$TX" link set vtx up' 'broker_kill|broker_start' \
		'broker_kill; write_list hand 7; xc import "$STATE/hand" --list bad|broker_start'; do
		case_begin "$way"
		wait_for "the source" silence_is bad 0
		eval "${way%|*}" >/dev/null 2>&1
		assert_silent bad 181
		eval "${way#*|}" >/dev/null
	done
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

# Lines come at 100 a second, each is published alone, and the broker is killed again and again.
test_a_killed_broker_loses_nothing_by_tls() {
	fleet_tls
	kills=${BROKER_KILLS:-2}
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	(
		i=0
		while [ ! -e "$STATE/enough" ]; do
			i=$((i + 1))
			echo "add 10.0.$((i / 256)).$((i % 256))" | tee -a "$STATE/fed"
			sleep 0.01
		done
	) | publish batch - --list bad >"$STATE/published" 2>&1 &
	publisher=$!
	while [ "$kills" -gt 0 ]; do
		kills=$((kills - 1))
		sleep 1
		broker_kill
		dropped 192.0.2.1 || fail "the filter has stopped"
		broker_start
	done
	sleep 1
	: >"$STATE/enough"
	wait "$publisher" || fail "the publisher has failed: $(cat "$STATE/published")"
	start=$(date +%s%3N)
	wait_level
	took=$(($(date +%s%3N) - start))
	assert_same_rules
	{
		echo 'src 192.0.2.1'
		sed 's/^add/src/' "$STATE/fed"
	} | LC_ALL=C sort | cmp - "$STATE/host.rules" || fail "the host does not have all that was published"
	! followed 'gap|diverged' || fail "the broker has lost entries"
	! followed 'is no Redis' || fail "a lost connection is taken for something else: $(cat "$STATE/follow.log")"
	note "broker killed ${BROKER_KILLS:-2} times, $(wc -l <"$STATE/fed") rules published, equal after $took ms"
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
	reported() {
		run xc fleet status --config "$FLEET_CONF"
		[ "$STATUS" -eq 1 ] && grep -Eq "^h1 +stopped .*$1" "$STATE/out"
	}
	wait_for "the report" reported "has no fleet 'default'"
	assert_error "there is no fleet 'default' on the broker"
	case_begin "another fleet"
	assert_status 0 xc fleet init --config "$FLEET_CONF"
	assert_status 0 publish add 203.0.113.1 --list bad
	wait_for "the follower to notice" followed "another one than before"
	dropped 198.51.100.1 || fail "the rules are gone"
	passed 203.0.113.1 || fail "rules of another fleet were applied"
	wait_for "the report" reported "another one than before"
	assert_status 0 publish panic on
	passed 198.51.100.1 || fail "panic does not reach the host that has stopped"
	assert_status 0 publish panic off
	dropped 198.51.100.1 || fail "the panic does not end"
	follow_kill
	assert_status 1 xc follow --once --config "$FLEET_CONF"
	assert_error "another one than before.*--accept"
	assert_status 0 xc follow --once --accept --config "$FLEET_CONF"
	assert_prints 'src 203.0.113.1' xc list --list bad
}

# --once waits for a list that lags, but not without end for a broker that is lost again and again.
test_once_ends_beside_a_broker_that_flaps() {
	FLEET_CONF=$STATE/fleet.conf
	printf '%s\n' '[fleet]' "broker = $BROKER" 'lists = bad' >"$FLEET_CONF"
	for flaps in '1 1000000' '0 60'; do
		# shellcheck disable=SC2086 # two words
		nsenter --net="/run/netns/$TX" python3 tests/helpers/flapping_broker.py "$BROKER" 6379 $flaps >"$STATE/flaps" 2>&1 &
		BROKER_PID=$!
		on_exit "end $BROKER_PID"
		wait_for "the broker" test -s "$STATE/flaps"
		run in_rx timeout 100 "$TOOL" --state "$STATE/store" follow --once --config "$FLEET_CONF"
		end "$BROKER_PID"
		[ "$flaps" = '0 60' ] || assert_equal 0 "$STATUS" "status while it is there"
	done
	assert_equal 3 "$STATUS" "status"
	assert_error 'the connection to the broker at .* is lost'
}

test_once_ends_where_the_broker_has_lost_a_list() {
	fleet
	assert_status 0 publish add 192.0.2.1 --list bad
	assert_status 0 xc follow --once --config "$FLEET_CONF"
	redis DEL xc:default:L:bad:meta xc:default:L:bad:log >/dev/null
	assert_status 1 timeout 30 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" follow --once --config "$FLEET_CONF"
	assert_error "the broker no longer has it"
	dropped 192.0.2.1 || fail "the rule is gone"
}

test_once_ends_when_its_report_is_there() {
	fleet
	assert_status 0 publish add 192.0.2.1 --list bad
	in_rx $PYTHON tests/helpers/cut_once.py 7379 "$BROKER:6379" HSET level >"$STATE/cut" 2>&1 &
	on_exit "kill $!"
	wait_for "the proxy" grep -q ready "$STATE/cut"
	sed "s/^broker = .*/broker = 127.0.0.1:7379/" "$FLEET_CONF" >"$STATE/cut.conf"
	assert_status 0 timeout 30 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" follow --once --config "$STATE/cut.conf"
	grep -q cut "$STATE/cut" || fail "no report was cut"
	assert_status 0 xc fleet status --config "$FLEET_CONF"
	assert_output 'level'
}

# 120 of 400 rules are fewer than max-shrink, however often the host tries to delete them.
test_a_full_disk_deletes_nothing_twice() {
	fleet
	on_exit "umount -l $STATE/store"
	xc unload vrx >/dev/null
	mkdir -p "$STATE/store"
	mount -t tmpfs -o size=8m none "$STATE/store" 2>/dev/null || skip "no tmpfs may be mounted here"
	follow_start
	seq 1 400 | awk '{ print "add 198.51." 100 + $1 % 2 "." int($1 / 2) }' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad
	wait_level
	dd if=/dev/zero of="$STATE/store/full" bs=4k >/dev/null 2>&1 || :
	head -n 120 "$STATE/lines" | sed 's/add/del/' >"$STATE/deleted"
	assert_status 0 publish batch "$STATE/deleted" --list bad
	wait_for "the full disk" followed 'disk is full|No space'
	sleep 12
	rm "$STATE/store/full"
	wait_level
	! followed 'would drop' || fail "the list is held"
}

test_an_older_state_is_not_taken_unasked() {
	fleet
	sed -i 's/^lists = bad/lists = bad other/' "$FLEET_CONF"
	follow_start
	assert_status 0 publish add "$BROKER" --list other
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
	case_begin "the reason is that of the list that is held, and not that of a rule of another list"
	assert_status 1 xc follow --once --config "$FLEET_CONF"
	assert_error "list 'bad': .* would drop 50 of 51 rules"
	assert_status 0 xc follow --once --accept --config "$FLEET_CONF"
	assert_prints 'src 192.0.2.1' xc list --list bad
}

# Replication is cut, entries are acknowledged by the master, and Sentinel lets the replica take over without them.
test_a_failover_that_loses_entries() {
	runs=${FAILOVERS:-1}
	fleet 'replicas = 1'
	sed -i "s/^broker = .*/broker = $BROKER $BROKER:6380/" "$FLEET_CONF"
	# node PORT OTHER: a server that follows the other, in $node_PORT.
	node() {
		server "$1" --replicaof "$BROKER" "$2"
		eval "node_$1=\$SERVER"
	}
	replicated() {
		redis -p "$1" ROLE | grep -q "^$BROKER"
	}
	on_the_replica() {
		run publish add "$1" --list bad --wait 100
		[ "$STATUS" -eq 0 ] && grep -q '^replicas: *1$' "$STATE/out"
	}
	WAIT_LOG=$STATE/servers.log
	# shellcheck disable=SC2034 # eval reads it
	node_6379=$BROKER_PID
	node 6380 6379
	wait_for "replication" linked 6380
	printf '%s\n' "port 26379" "bind $BROKER" "protected-mode no" "dir $STATE" "sentinel monitor m $BROKER 6379 1" \
		"sentinel down-after-milliseconds m 1000" "sentinel failover-timeout m 2000" >"$STATE/sentinel.conf"
	nsenter --net="/run/netns/$TX" bash tests/helpers/redis-server.sh "$STATE/sentinel.conf" --sentinel \
		>>"$STATE/servers.log" 2>&1 </dev/null &
	on_exit "end $!"
	wait_for "the sentinel to know the replica" sh -c \
		"nsenter --net=/run/netns/$TX redis-cli -h $BROKER -p 26379 SENTINEL REPLICAS m | grep -q ^6380"
	master=6379
	failover=0
	published_in=
	follow_start
	while [ "$failover" -lt "$runs" ]; do
		failover=$((failover + 1))
		case_begin "failover $failover"
		replica=$((6379 + 6380 - master))
		wait_for "replication" replicated "$master"
		# The follower must see what the replica does not receive.
		where=$BROKER
		[ "$master" = 6379 ] || where=$where:6380
		until grep 'follows the fleet' "$STATE/follow.log" | tail -n 1 | grep -q " $where\$"; do
			follow_kill
			follow_start
		done
		# Sentinel may point the replica at the master once more, which ends the link for a moment.
		wait_for "a replicated rule" on_the_replica "10.$failover.2.1"
		# The replica looks for a master where there is none.
		redis -p "$replica" REPLICAOF "$BROKER" 1 >/dev/null
		i=0
		while [ "$i" -lt 3 ]; do
			i=$((i + 1))
			assert_status 6 publish add "10.$failover.0.$i" --list bad
			assert_error 'fewer than 1 replicas have the change'
		done
		wait_for "the follower" sh -c "nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list | grep -q 10.$failover.0.$i\$"
		eval "end \$node_$master"
		start=$(date +%s%3N)
		published() {
			[ "$published_in" = "$failover" ] && return
			run publish add "10.$failover.1.1" --list bad
			case $STATUS in 0 | 6) published_in=$failover ;; *) return 1 ;; esac # 6: no replica is left
		}
		wait_for "a master" published
		echo $(($(date +%s%3N) - start)) >>"$STATE/times"
		assert_error "sent again 3 entries"
		# A partial word of the address would be found in another run's.
		wait_for "the follower to have all" sh -c \
			"nsenter --net=/run/netns/$RX '$TOOL' --state '$STATE/store' list | grep -q '10.$failover.1.1\$'"
		followed diverged || fail "the lost entries were not named"
		xc list --list bad >"$STATE/rules"
		assert_equal "$((failover * (3 + 2)))" "$(wc -l <"$STATE/rules")" "rules of the host"
		node "$master" "$replica"
		wait_for "the old master to be a replica" linked "$master"
		master=$replica
	done
	note "$runs failovers, publishing again after $(sort -n "$STATE/times" | tail -n 1) ms at most"
}

# The broker becomes a replica and then the master again, all in one process, and loses what it alone had.
test_a_server_that_is_master_again() {
	fleet
	follow_start
	server 6380 --replicaof "$BROKER" 6379
	replica_has_it() {
		[ "$(redis -p 6380 XLEN xc:default:L:bad:log)" = 2 ]
	}
	wait_for "replication" linked 6380
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	wait_for "the replica to have it" replica_has_it
	redis -p 6380 REPLICAOF NO ONE >/dev/null
	assert_status 0 publish add 192.0.2.2 --list bad --wait 100
	redis REPLICAOF "$BROKER" 6380 >/dev/null
	wait_for "the other direction" linked 6379
	redis REPLICAOF NO ONE >/dev/null
	end "$SERVER" # a slow follower has gone there
	assert_status 0 publish add 192.0.2.3 --list bad
	WAIT_LOG=$STATE/follow.log
	wait_for "the rule that has the place of another" dropped 192.0.2.3
	assert_same_rules
}

# Its counters go back, so that the broker takes new changes for those that it has.
test_an_outbox_from_a_backup() {
	fleet
	assert_status 0 publish add 192.0.2.1 --list bad
	cp -r "$STATE/publisher" "$STATE/backup"
	assert_status 0 publish add 192.0.2.2 --list bad
	rm -r "$STATE/publisher"
	cp -r "$STATE/backup" "$STATE/publisher"
	assert_status 3 publish add 192.0.2.3 --list bad
	assert_error "nothing was published: .* delete '$STATE/publisher/default/outbox/bad', and publish again"
	rm "$STATE/publisher/default/outbox/bad"
	assert_status 0 publish add 192.0.2.3 --list bad
	assert_output '^changed: +1$'
	assert_equal 3 "$(broker_rules | wc -l)" "rules"
}

# publish_from_pipe: `publish batch` of what is written to descriptor 8. Sets BATCH, its process.
publish_from_pipe() {
	mkfifo "$STATE/lines"
	exec 8<>"$STATE/lines"
	nsenter --net="/run/netns/$TX" "$TOOL" --state "$STATE/publisher" publish --config "$FLEET_CONF" batch "$STATE/lines" \
		--list bad >"$STATE/batch.log" 2>&1 &
	BATCH=$!
	on_exit "end $BATCH"
}

# `publish batch` runs for long, as behind flowspec. Others publish meanwhile, and the broker's clock is set.
test_a_publisher_that_waits() {
	fleet
	follow_start
	publish_from_pipe
	echo 'add 192.0.2.1' >&8
	wait_for "the first rule" dropped 192.0.2.1
	assert_status 0 in_tx timeout 30 "$TOOL" --state "$STATE/publisher" publish --config "$FLEET_CONF" add 192.0.2.2 --list bad
	echo 'add 192.0.2.3' >&8
	wait_for "the second rule" dropped 192.0.2.3
	sleep 1.5 # it waits again
	broker_kill
	BROKER_SHIFT_S=3600
	broker_start
	echo 'add 192.0.2.4 timeout 10m' >&8
	WAIT_LOG=$STATE/batch.log
	wait_for "the third rule" dropped 192.0.2.4
	xc list --list bad | grep -Eq '^src 192\.0\.2\.4 timeout (10m|[89]m[0-9]*s?)$' || fail "$(xc list --list bad)"
	sleep 1.5
	broker_kill
	echo 'add 192.0.2.5 timeout 10m' >&8
	sleep 0.5 # nobody answers it
	broker_start
	BROKER_SHIFT_S=
	wait_for "the rule of an outage" dropped 192.0.2.5
	assert_same_rules
}

# A change waits in the outbox. Whatever the broker lacks when it is back: the change waits on.
test_a_broker_that_comes_back_without_functions() {
	fleet
	follow_start
	publish_from_pipe
	echo 'add 192.0.2.1' >&8
	wait_for "the first rule" dropped 192.0.2.1
	broker_kill
	echo 'add 192.0.2.2' >&8
	wait_for "the outbox" grep -q '^+ 0 src 192.0.2.2' "$STATE/publisher/default/outbox/bad"
	end "$BATCH"
	broker_start
	redis FUNCTION FLUSH SYNC >/dev/null
	assert_status 3 publish add 192.0.2.3 --list bad
	assert_error 'refuses: ERR Function not found; load the functions of this version: xdp-cuckoo fleet init; 1 entries wait in the outbox'
	assert_status 0 xc fleet init --config "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.3 --list bad
	assert_error 'sent again 1 entries'
	wait_for "the second rule" dropped 192.0.2.2
	wait_level
	assert_same_rules
}

# The broker has no memory left: hosts follow what it has, say what is wrong, and a change waits.
test_a_broker_without_memory() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.9 --list other
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	redis CONFIG SET maxmemory 1 >/dev/null
	nsenter --net="/run/netns/$TX" "$TOOL" --state "$STATE/publisher" publish --config "$FLEET_CONF" add 192.0.2.2 --list bad \
		>"$STATE/publish.log" 2>&1 &
	publisher=$!
	on_exit "end $publisher"
	wait_for "the outbox" grep -q '^+ 0 src 192.0.2.2' "$STATE/publisher/default/outbox/bad"
	wait_for "the follower to notice" followed "refuses the report of this host, .*: OOM "
	end "$publisher" # else it tries for long
	dropped 192.0.2.1 || fail "the filter has stopped"
	case_begin "panic, and the deletion of a list, which makes room"
	run publish panic on # without room for the report of the host, nobody knows that it has it
	wait_for "panic" passed 192.0.2.1
	run publish panic off
	wait_for "the end of panic" dropped 192.0.2.1
	assert_status 0 publish delete-list other
	redis CONFIG SET maxmemory 0 >/dev/null
	wait_for "the report" followed 'takes the report of this host again'
	assert_equal 1 "$(grep -c 'refuses the report' "$STATE/follow.log")" "times that the follower says so"
	passed 192.0.2.2 || fail "the change was applied without the broker"
	assert_status 0 publish add 192.0.2.3 --list bad
	assert_error 'sent again 1 entries'
	wait_for "the rule that waited" dropped 192.0.2.2
	wait_level
	assert_same_rules
}

# The state of a replica that lacks the newest epoch looks like that of a backup.
test_a_replica_that_lags_behind_an_epoch() {
	fleet
	assert_status 0 publish add 192.0.2.1 --list bad
	cp -r "$STATE/broker" "$STATE/node6381"
	broker_kill
	broker_start
	follow_start
	assert_status 0 publish add 192.0.2.2 --list bad --wait 100
	follow_kill
	# A replica of a master with the old state has what a replica that lags has.
	server 6381
	server 6380 --replicaof "$BROKER" 6381
	wait_for "replication" linked 6380
	sed -i "s/^broker = .*/broker = $BROKER:6380/" "$FLEET_CONF"
	follow_start
	wait_for "the follower to notice" followed 'restored'
	sleep 8 # a second more than for a master
	dropped 192.0.2.2 || fail "the host has gone back to older rules"
	redis -p 6380 REPLICAOF "$BROKER" 6379 >/dev/null
	sed -i "s/^broker = .*/broker = $BROKER/" "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.3 --list bad
	WAIT_LOG=$STATE/follow.log
	WAIT_S=15 wait_level
	assert_same_rules
	xc lists --json | grep -q ' refused 0' || fail "$(xc lists --json)"
}

# A key of the list was deleted or evicted.
test_a_list_without_its_meta() {
	fleet
	assert_status 0 publish add 192.0.2.1 --list bad
	redis DEL xc:default:L:bad:meta >/dev/null
	assert_status 3 publish add 192.0.2.1 --list bad
	assert_error 'the key xc:default:L:bad:meta is gone, .*delete all keys xc:default:L:bad:\*, then publish the whole list'
	redis --scan --pattern 'xc:default:L:bad:*' | while read -r key; do
		redis DEL "$key" >/dev/null
	done
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	dropped 192.0.2.1 || fail "the rule has not reached the host"
}

# One answer of the broker takes longer than a dead link may be silent.
test_a_slow_link() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	follow_kill
	awk 'BEGIN { for (i = 0; i < 64000; i++) printf "add 11.%d.%d.%d comment \"%032d\"\n", i / 65536, i / 256 % 256, i % 256, i }' \
		>"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad
	ip netns exec "$TX" tc qdisc add dev vtx root tbf rate 2mbit burst 64k latency 1s
	start=$(date +%s%3N)
	follow_start
	WAIT_S=60 wait_level
	note "level after $(($(date +%s%3N) - start)) ms, by 2 Mbit/s"
	! followed 'does not answer|gap' || fail "the follower gave up: $(cat "$STATE/follow.log")"
}

# A link that is down, so that nothing answers: the filter goes on, and the host catches up when the link is back.
test_a_link_that_is_down() {
	fleet
	follow_start
	seq 1 50 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	mkfifo "$STATE/lines.pipe"
	ip -n "$TX" link set vtx down
	awk -v seconds="${DOWN_S:-1}" 'BEGIN {
		for (i = 0; i < 1000 * seconds; i++) {
			printf "add 11.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256
			if (i % 1000 == 999 && i > 999)
				system("sleep 1") # flushes the lines, too
		}
	}' >"$STATE/lines.pipe" &
	assert_status 0 publish batch "$STATE/lines.pipe" --list bad
	wait_for "the follower to notice" followed 'lost|does not answer|cannot connect'
	run in_tx "$TOOL" --state "$STATE/publisher" fleet status --config "$FLEET_CONF"
	assert_output '^h1 +(behind |silent .* behind: )'
	ip -n "$TX" link set vtx up
	start=$(date +%s%3N)
	wait_level
	note "${DOWN_S:-1} s without a link: $((${DOWN_S:-1} * 1000)) rules behind, level after $(($(date +%s%3N) - start)) ms"
	assert_same_rules
	! followed 'gap|diverged' || fail "that was no gap"
}

# The wall clock of the host is an hour off, or that of the broker goes an hour back or forth: rules end when they should.
test_clocks_do_not_matter() {
	fleet
	for shifts in '3600 0' '-3600 0' '0 3600' '0 -3600'; do
		case_begin "clocks of host and broker shifted by $shifts s"
		# shellcheck disable=SC2086 # two words
		set -- $shifts
		broker_kill
		BROKER_SHIFT_S=$2
		broker_start
		BROKER_SHIFT_S=
		: >"$STATE/follow.log"
		nsenter --net="/run/netns/$RX" env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" CLOCK_SHIFT_S="$1" "$TOOL" --state \
			"$STATE/store" follow --config "$FLEET_CONF" >>"$STATE/follow.log" 2>&1 </dev/null &
		FOLLOW_PID=$!
		on_exit "end $FOLLOW_PID"
		wait_for "the follower to be connected" followed 'follows the fleet'
		# The broker's clock jumps while the rule runs.
		ends_in_time 'broker_kill; broker_start'
		follow_kill
	done
}

run_tests "$0" "$@"
