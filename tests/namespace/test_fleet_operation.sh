#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A fleet: what people do with its lists over the years, and with its brokers.
# Takes minutes.
. tests/lib.sh
. tests/namespace/fleet.sh

# reported PATTERN: whether `fleet status` has such a line of the host.
reported() {
	run xc fleet status --config "$FLEET_CONF"
	grep -Eq -- "^h1 +$1" "$STATE/out"
}

test_a_shrink_by_the_log_is_held_until_it_is_accepted() {
	fleet
	follow_start
	seq 1 300 | awk '{ printf "add 10.0.%d.%d\n", $1 / 256, $1 % 256 }' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	head -n 90 "$STATE/lines" | sed 's/^add/del/' >"$STATE/few"
	assert_status 0 publish batch "$STATE/few" --list bad --wait 100
	passed 10.0.0.1 || fail "a deleted rule is still there"
	sed -n '91,180p' "$STATE/lines" | sed 's/^add/del/' >"$STATE/more"
	assert_status 0 publish batch "$STATE/more" --list bad
	wait_for "the follower to stop" followed "the changes of an hour would drop 180 of [0-9]* rules"
	dropped 10.0.0.100 || fail "the rules are gone"
	wait_for "the report" reported 'held .*the changes of an hour would drop'
	assert_status 0 publish accept bad
	wait_level
	passed 10.0.0.100 || fail "a deleted rule is still there"
	assert_same_rules
	wait_for "the report" reported 'level'
}

# One publish of many entries is held as a whole. `publish accept` reaches the host without a pause or a jitter.
test_a_held_publish_is_all_or_nothing() {
	fleet
	sed -i 's/^resync-jitter.*/resync-jitter = 5m/' "$FLEET_CONF"
	follow_start
	seq 1 3003 | awk '{ printf "add 10.0.%d.%d\n", $1 / 256, $1 % 256 }' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	tail -n 3000 "$STATE/lines" | sed 's/^add/del/' >"$STATE/most"
	assert_status 0 publish batch "$STATE/most" --list bad
	wait_for "the follower to stop" followed 'would drop 3000 of 3003 rules; .* with 3003 rules'
	assert_equal 3003 "$(xc list --list bad | wc -l)" "rules that are held"
	start=$(date +%s%3N)
	assert_status 0 publish accept bad
	wait_level
	note "accepted after $(($(date +%s%3N) - start)) ms"
	assert_same_rules
	case_begin "accepted before it is published"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	follow_kill
	follow_start
	assert_status 0 publish accept bad
	assert_status 0 publish batch "$STATE/most" --list bad --wait 100
	assert_same_rules
	! followed 'would drop' || fail "it was held"
}

# The backup lacks few rules: max-shrink alone would let it pass.
test_a_list_edited_while_nobody_follows() {
	fleet
	assert_status 0 publish add 198.51.100.1 --list bad
	assert_status 0 xc follow --once --config "$FLEET_CONF"
	assert_equal level "$(redis HGET xc:default:host:h1 state)" "the reported state"
	sed 's/^lists = .*/& typo/' "$FLEET_CONF" >"$STATE/typo.conf"
	assert_fails 1 "the broker has no list 'typo'" xc follow --once --config "$STATE/typo.conf"
	assert_status 0 xc del 198.51.100.1
	passed 198.51.100.1 || fail "the rule is still there"
	assert_status 0 xc follow --once --config "$FLEET_CONF"
	dropped 198.51.100.1 || fail "the list was not read again"
}

test_an_older_epoch_is_held() {
	fleet
	follow_start
	seq 1 20 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	assert_status 0 publish batch "$STATE/lines" --list bad --wait 100
	broker_kill
	cp -r "$STATE/broker" "$STATE/backup"
	broker_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	broker_kill
	rm -rf "$STATE/broker"
	cp -r "$STATE/backup" "$STATE/broker"
	broker_start
	wait_for "the follower to stop" followed "older than this host's as after the restore of a backup, would drop 1 of 21 rules"
	dropped 192.0.2.1 || fail "the rule is gone"
	case_begin "the broker goes on from the backup"
	rm -r "$STATE/publisher" # as a publisher elsewhere
	assert_status 0 publish add 192.0.2.2 --list bad
	sleep 8 # longer than a publisher may take to send again what was lost
	dropped 192.0.2.1 || fail "the rule is gone"
	wait_for "the report" reported 'held'
	assert_status 0 publish accept bad
	WAIT_S=30 wait_level
	assert_same_rules
	passed 192.0.2.1 || fail "the older state is not applied"
	dropped 192.0.2.2 || fail "the newer rule is not applied"
}

test_lists_are_deleted() {
	fleet
	sed -i 's/^lists = bad/lists = bad worse/' "$FLEET_CONF"
	follow_start
	seq 1 150 | sed 's/^/add 198.51.100./' >"$STATE/lines"
	for list in bad worse; do
		assert_status 0 publish batch "$STATE/lines" --list "$list" --wait 100
	done
	assert_status 0 publish delete-list bad --json
	"$HELPERS/json_check" <"$STATE/out" || fail "this is no JSON value: $(cat "$STATE/out")"
	assert_output '"deleted_list": "bad"'
	gone() {
		[ -z "$(xc list --list bad)" ]
	}
	wait_for "the list to go" gone
	assert_equal 150 "$(xc list --list worse | wc -l)" "rules of the other list"
	dropped 198.51.100.7 || fail "the rules are gone"
	assert_equal '' "$(redis KEYS 'xc:default:L:bad:*' | grep -v ':hosts$')" "keys of the deleted list"
	case_begin "deleted, with a host that is away"
	follow_kill
	assert_status 0 publish delete-list worse
	follow_start
	wait_for "the rules to go" passed 198.51.100.7
	assert_equal '' "$(xc list)" "rules of the host"
	assert_status 1 publish delete-list worse
	assert_error "the broker has no list 'worse'"
	case_begin "the name is used again"
	redis HSET xc:default:accept stage:worse 1 >/dev/null
	assert_status 0 publish add 192.0.2.1 --list worse
	wait_for "the rule" dropped 192.0.2.1
	case_begin "a deletion that version 8 staged"
	assert_status 0 publish abort worse
	assert_equal 0 "$(redis HEXISTS xc:default:accept stage:worse)" "after abort"
	assert_status 1 publish abort worse
	redis HSET xc:default:accept stage:worse 1 >/dev/null
	redis ACL SETUSER default -hdel >/dev/null
	assert_status 3 publish abort worse
	assert_error "the deletion of the list 'worse', which an older version staged, stays.*NOPERM"
	redis ACL SETUSER default +hdel >/dev/null
	assert_status 0 publish delete-list worse
	assert_equal 0 "$(redis HEXISTS xc:default:accept stage:worse)" "after delete-list"
	case_begin "what went"
	assert_status 2 publish rename bad worse
	assert_error 'publish has no rename: import the rules into the new list'
	assert_status 2 publish delete-list bad --stage
	assert_error 'delete-list takes no --stage'
}

# Pauses grow with the number of hosts, which any host can forge.
test_many_names_of_hosts() {
	fleet
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	redis EVAL "for i = 1, 1000000 do redis.call('ZADD', KEYS[1], 0, i) end" 1 xc:default:L:bad:hosts >/dev/null
	counts() {
		redis INFO commandstats | sed -n 's/^cmdstat_zcard:calls=\([0-9]*\),.*/\1/p'
	}
	wait_for "the host to count" eval "[ \"\$(counts)\" -gt $(counts) ]"
	for i in 2 3; do
		assert_status 0 publish add "192.0.2.$i" --list bad
		wait_for "rule $i" dropped "192.0.2.$i"
	done
}

# A list that cannot be read keeps its position in the old fleet.
test_another_fleet_is_accepted_beside_a_broken_list() {
	fleet
	sed -i 's/^lists = bad/lists = bad worse/' "$FLEET_CONF"
	follow_start
	assert_status 0 publish add 192.0.2.1 --list bad --wait 100
	assert_status 0 publish add 192.0.2.2 --list worse --wait 100
	redis FLUSHALL >/dev/null
	rm -r "$STATE/publisher"
	assert_status 0 xc fleet init --config "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.3 --list bad
	redis HSET xc:default:L:worse:meta epoch -5 seq junk >/dev/null
	wait_for "the follower to stop" followed 'is another one than before'
	follow_kill
	assert_status 1 xc follow --once --accept --config "$FLEET_CONF"
	assert_error "list 'worse': the broker's meta of the list has numbers that no list has"
	follow_start
	assert_status 0 publish add 192.0.2.4 --list bad --wait 100
	dropped 192.0.2.4 || fail "the new rule is not applied"
	dropped 192.0.2.2 || fail "the broken list is gone"
}

# What too few replicas have is told by the status, and `publish resend` sends it to the master that there is then.
test_too_few_replicas() {
	fleet 'replicas = 1'
	sed -i "s/^broker = .*/broker = $BROKER $BROKER:6380/" "$FLEET_CONF"
	assert_status 6 publish add 192.0.2.1 --list bad
	assert_error 'fewer than 1 replicas have the change so far'
	assert_status 6 publish add 192.0.2.2 --list other
	assert_status 6 publish resend
	server 6380 --replicaof "$BROKER" 6379
	wait_for "replication" linked 6380
	resent() {
		run publish resend
		[ "$STATUS" -eq 0 ]
	}
	wait_for "the replica to have it" resent
	for list in bad other; do
		tail -n 1 "$STATE/publisher/default/outbox/$list" | grep -q '^done' || fail "the outbox of $list is not empty"
	done
	end "$SERVER"
	broker_kill
	assert_status 0 publish resend --json # nothing waits, so no broker is asked
	assert_output '^\[\]$'
}

# A master that was cut off, beside the one that took over.
test_two_masters() {
	fleet
	server 6380 --replicaof "$BROKER" 6379
	wait_for "replication" linked 6380
	assert_status 0 publish add 192.0.2.1 --list bad
	sed -i "s/^broker = .*/broker = $BROKER $BROKER:6380/" "$FLEET_CONF"
	has_one() {
		[ "$(redis -p 6380 HGET xc:default:L:bad:meta rules)" = 1 ]
	}
	wait_for "the replica to have it" has_one
	redis -p 6380 REPLICAOF NO ONE >/dev/null
	assert_status 0 publish add 192.0.2.2 --list bad
	assert_equal 2 "$(redis -p 6380 HGET xc:default:L:bad:meta rules)" "rules at the new master"
	assert_equal 1 "$(redis HGET xc:default:L:bad:meta rules)" "rules at the old one"
	case_begin "one that has nothing to do with it"
	server 6381
	sed -i "s/^broker = .*/broker = $BROKER $BROKER:6381/" "$FLEET_CONF"
	assert_status 3 publish add 192.0.2.3 --list bad
	assert_error "$BROKER:6381 and $BROKER do not agree which is the master"
	assert_equal 1 "$(redis HGET xc:default:L:bad:meta rules)" "rules"
	case_begin "only the old master and a replica of the new one"
	server 6382 --replicaof "$BROKER" 6380
	wait_for "replication" linked 6382
	sed -i "s/^broker = .*/broker = $BROKER $BROKER:6382/" "$FLEET_CONF"
	assert_status 0 publish add 192.0.2.3 --list bad
	assert_equal 3 "$(redis -p 6380 HGET xc:default:L:bad:meta rules)" "rules at the new master"
	assert_equal 1 "$(redis HGET xc:default:L:bad:meta rules)" "rules at the old one"
}

run_tests "$0" "$@"
