#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Who waits for another process says so after a second: for whom, and since when that has what is waited for. Several writers
# at once lose nothing, and who is interrupted while it waits for input changes nothing.
. tests/lib.sh

LOCK=store/default/writer.lock

# is_held: whether bench has the lock, and has written so into it.
is_held() {
	! flock -n "$STATE/$LOCK" true && grep -q ' bench' "$STATE/$LOCK"
}

# hold COMMAND...: starts bench and stops it while it has the lock. It has the lock only for a moment, so it may take
# several tries. Sets HOLDER to its name.
hold() {
	for _ in $(seq 20); do
		nsenter --net="/run/netns/$RX" "$@" >/dev/null 2>&1 </dev/null &
		holding=$!
		on_exit "kill -9 $holding 2>/dev/null; wait $holding 2>/dev/null"
		tries=0
		while [ "$tries" -lt 1000 ] && ! is_held; do
			tries=$((tries + 1))
		done
		# The last of unshare and its child, where there is one.
		stopped=$(ps -o pid= -p "$holding" --ppid "$holding" | tail -n 1 | tr -d ' ')
		kill -STOP "$stopped"
		if is_held; then
			HOLDER=$(cut -d ' ' -f 1 "$STATE/$LOCK")
			return
		fi
		kill -9 "$stopped" "$holding" 2>/dev/null || :
		wait "$holding" 2>/dev/null || :
	done
	fail "bench was never stopped while it had the lock"
}

# If it has done neither at last, what it waits for is in the log.
has_said_or_ended() {
	grep -Eq -- "$pattern" "$STATE/err" || has_ended "$WAITER" || {
		[ "$(date +%s)" -lt "$end" ] || cat "/proc/$WAITER/task/"*/stack /proc/locks >>"$STATE/err"
		false
	}
}

# waits PATTERN ARGUMENT...: starts the tool, which waits and says so in one line like this. $WAITER is its process.
waits() {
	pattern=$1
	shift
	: >"$STATE/err" # the last one's line must not be taken for this one's
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@" >"$STATE/out" 2>"$STATE/err" </dev/null &
	WAITER=$!
	WAIT_LOG=$STATE/err
	wait_for "a line like $pattern" has_said_or_ended
	! has_ended "$WAITER" || fail "it has ended: $(cat "$STATE/out" "$STATE/err")"
}

# goes_on: after the holder has ended, the waiting tool does its work.
goes_on() {
	wait "$WAITER" || fail "status $?: $(cat "$STATE/err")"
	assert_equal 1 "$(grep -c waiting "$STATE/err")" "lines about waiting"
}

test_who_has_the_lock_is_named() {
	assert_status 0 xc add 192.0.2.1
	! grep -q waiting "$STATE/err" || fail "told without a wait"
	hold "$TOOL" --state "$STATE/store" bench --seconds 600
	waits "^note: waiting for \"bench\" \\(process $HOLDER\\), which has been changing the rules for [0-9]+ s(;|\$)" add 192.0.2.2
	kill -9 "$HOLDER"
	goes_on
	assert_output '^added: src 192.0.2.2$'
}

# The holder is stopped by a signal. Programs see it, too.
test_a_holder_that_is_stopped() {
	assert_status 0 xc add 192.0.2.1
	hold "$TOOL" --state "$STATE/store" bench --seconds 600
	waits "\\(process $HOLDER\\), .* for [0-9]+ s; it is stopped: kill -CONT $HOLDER continues it\$" add 192.0.2.2
	kill -9 "$WAITER"
	wait "$WAITER" || :
	waits "^[{]\"note\": \"waiting for .*\"[}]\$" --json flush
	kill -9 "$HOLDER"
	goes_on
	assert_output '"deleted_rules": 1'
}

# The holder's number means another process here, or none.
test_a_holder_in_another_container() {
	assert_status 0 xc add 192.0.2.1
	hold unshare --pid --fork --kill-child --mount-proc "$TOOL" --state "$STATE/store" bench --seconds 600
	waits "waiting for \"bench\" \\(process $HOLDER of another container\\), which has been changing" expire
	kill -9 "$WAITER"
}

# The present holder has not written its name; the last one that did is dead, or nobody did.
test_a_holder_that_is_not_known() {
	assert_status 0 xc add 192.0.2.1
	for content in keep '' 'no such line'; do
		case_begin "$content"
		[ "$content" = keep ] || printf '%s' "$content" >"$STATE/$LOCK"
		flock "$STATE/$LOCK" sleep 600 &
		holder=$!
		on_exit "kill $holder 2>/dev/null"
		wait_for "the lock" sh -c "! flock -n $STATE/$LOCK true"
		waits '^note: waiting for another process that is changing the rules$' expire
		kill -9 "$WAITER"
		wait "$WAITER" || :
		for child in $(ps -o pid= --ppid "$holder"); do
			kill "$child"
		done
		wait "$holder" || :
	done
}

# Readers do not wait for the tool's own writers.
test_readers_do_not_wait() {
	assert_status 0 xc add 192.0.2.1
	hold "$TOOL" --state "$STATE/store" bench --seconds 600
	for command in list export status lists 'test 192.0.2.1'; do
		# shellcheck disable=SC2086 # words
		assert_status 0 xc $command
		! grep -q waiting "$STATE/err" || fail "$command: $(cat "$STATE/err")"
	done
}

# LMDB has its own lock, which any program can take.
test_another_program_that_writes() {
	assert_status 0 xc add 192.0.2.1
	"$HELPERS/lmdb_hold" "$STATE/store/default" >"$STATE/held" &
	holder=$!
	on_exit "kill -9 $holder 2>/dev/null"
	wait_for "the helper" grep -q held "$STATE/held"
	waits "^note: waiting for the store: another program has locked its LMDB environment" add 192.0.2.2
	kill -9 "$holder"
	goes_on
	assert_output '^added: src 192.0.2.2$'
}

# The process that undoes unconfirmed changes is named as such.
test_the_watchdog_says_what_it_does() {
	assert_status 0 xc load vrx
	echo 192.0.2.1 >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --confirm 1s
	wait_for "the undo" grep -q ' undo of what was not confirmed$' "$STATE/$LOCK"
}

test_writers_at_once() {
	xc load vrx >/dev/null
	for writer in 1 2 3 4 5 6 7 8; do
		(
			for i in $(seq 25); do
				xc add "10.$writer.0.$i" >/dev/null || exit 1
			done
		) &
		writers="${writers:-} $!"
	done
	for writer in $writers; do
		wait "$writer" || fail "a writer failed"
	done
	assert_equal 200 "$(xc list | wc -l)" "rules"
	assert_status 0 xc status --verbose
	assert_output '^generation: +200$'
	assert_output 'used slots: +200$'
	assert_output 'equal to the store'
	xc list | sed 's/^src /drop listed proto udp src /; s/$/ dst 198.51.100.7 sport 1 dport 2/' | traffic ||
		fail "a listed address passes"
}

# Ctrl-C is an orderly end, also while the import waits for more input: the pipe stays open.
test_interrupted_import_changes_nothing() {
	xc load vrx >/dev/null
	mkfifo "$STATE/pipe"
	in_rx sh -c 'echo $$ >"$1/pid"; exec "$2" --state "$1/store" import "$1/pipe"' sh "$STATE" "$TOOL" \
		>"$STATE/out" 2>"$STATE/err" &
	importer=$!
	exec 7>"$STATE/pipe"
	awk 'BEGIN { for (i = 0; i < 50000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >&7
	kill -INT "$(cat "$STATE/pid")"
	STATUS=0
	wait "$importer" || STATUS=$?
	exec 7>&-
	assert_equal 3 "$STATUS" "status of the interrupted import"
	assert_error 'interrupted: nothing was changed'
	assert_prints '' xc list
	assert_shows 'used slots: +0$' xc status --verbose
}

# By a handler, and by a signal that is blocked and read as a file.
test_a_wait_for_the_lock_is_interrupted() {
	xc add 192.0.2.1 >/dev/null
	write_list list 9
	sed 's/^/add /' "$STATE/list" >"$STATE/batch"
	flock "$STATE/$LOCK" sleep 600 &
	on_exit "kill $! 2>/dev/null"
	wait_for "the lock" eval "! flock -n '$STATE/$LOCK' true"
	for command in import batch; do
		case_begin "$command"
		[ "$command" = import ] || cp "$STATE/batch" "$STATE/list"
		waits waiting "$command" "$STATE/list"
		kill -TERM "$WAITER"
		RAN=$command
		wait_for "its end" has_ended "$WAITER"
		STATUS=0
		wait "$WAITER" || STATUS=$?
		assert_equal 3 "$STATUS" "its status"
		assert_error interrupted
	done
	assert_prints 'src 192.0.2.1' xc list
}

run_tests "$0" "$@"
