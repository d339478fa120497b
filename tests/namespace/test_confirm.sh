#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What undoes itself unless it is confirmed, whatever becomes of the terminal, of the process that
# watches over it and of the machine.
. tests/lib.sh
. tests/safety.sh
. tests/fault.sh

# The processes that wait to undo something, in the receiving namespace.
watchdogs() {
	for pid in $(ip netns pids "$RX"); do
		tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -- '--confirm' || continue
		echo "$pid"
	done
}

# The one there is, which does not outlive the test.
watchdog() {
	WATCHDOG=$(watchdogs)
	on_exit "kill -9 $WATCHDOG 2>/dev/null"
	[ "$(echo "$WATCHDOG" | wc -w)" -eq 1 ] || fail "not one watchdog: '$WATCHDOG'"
}

# Who has ended may still have a number, but no command line.
watchdog_has_ended() {
	await '! grep -q . "/proc/$WATCHDOG/cmdline" 2>/dev/null'
}

# --- load --confirm

test_confirmed_load_stays() {
	block
	assert_status 0 xc load vrx --confirm 90s
	assert_output 'confirm within seconds: +90'
	assert_error "^note: this is undone at [0-9:]{8} unless you type before: xdp-cuckoo --state $STATE/store confirm\$"
	watchdog
	assert_status 0 xc status
	assert_error 'UNCONFIRMED: passes everything in [0-9ms]+ unless xdp-cuckoo confirm comes before'
	assert_output 'unconfirmed: +yes'
	expect drop
	assert_status 0 xc confirm
	assert_output 'confirmed: default'
	assert_status 1 xc confirm
	assert_error 'nothing waits to be confirmed'
	assert_status 0 xc status
	assert_output 'unconfirmed: +no'
	watchdog_has_ended
	expect drop
	assert_equal 0 "$(counted unconfirmed passed)" "packets passed for want of a confirmation"
}

test_unconfirmed_load_is_undone() {
	block
	assert_status 0 xc load vrx --confirm 1s
	await '! has_program vrx'
	expect pass
	assert_status 1 xc confirm
	assert_error 'nothing waits to be confirmed'
	assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
	assert_status 0 xc load vrx
	expect drop
}

# The command to type names the filter.
test_what_to_type() {
	assert_status 0 xc --name web load vrx --confirm 1s
	assert_error "type before: xdp-cuckoo --name web --state $STATE/store confirm\$"
	await '! has_program vrx'
	assert_status 0 xc --json load vrx --confirm 1s
	assert_output '"confirm_within_seconds": 1'
	await '! has_program vrx'
}

# While it waits it holds nothing: no file, no lock, no terminal.
test_the_watchdog_holds_nothing() {
	block
	assert_equal 1 "$(xc load vrx --confirm 30s 2>/dev/null | grep -c 'confirm within')" "output, to its end"
	watchdog
	assert_equal '/dev/null /dev/null /dev/null' "$(readlink "/proc/$WATCHDOG/fd/"* | tr '\n' ' ' | sed 's/ $//')" \
		"open files"
	[ "$(ps -o sid= -p "$WATCHDOG" | tr -d ' ')" != "$(ps -o sid= -p $$ | tr -d ' ')" ] || fail "in this session"
	cat "/proc/$WATCHDOG/maps" >"$STATE/maps"
	grep -q 'xdp-cuckoo' "$STATE/maps" || fail "no mappings"
	assert_equal '' "$(grep -E 'xc_|data.mdb|lock.mdb' "$STATE/maps")" "mapped files"
	assert_status 0 xc add 198.51.100.1
	for signal in HUP INT TERM QUIT PIPE; do
		kill -s "$signal" "$WATCHDOG"
	done
	assert_equal "$WATCHDOG" "$(watchdogs)" "what is left after signals"
}

# The session ends, with all that is in it, right after the command; or before it has printed anything.
test_cut_terminal() {
	block
	setsid sh -c 'nsenter --net="/run/netns/$1" "$2" --state "$3/store" load vrx --confirm 1s >"$3/said" 2>&1
		echo done >"$3/done"; while :; do sleep 60; done' sh "$RX" "$TOOL" "$STATE" &
	session=$!
	on_exit "kill -9 -$session 2>/dev/null"
	await '[ -s "$STATE/done" ]'
	kill -HUP "-$session"
	kill -TERM "-$session" 2>/dev/null || :
	kill -9 "-$session" 2>/dev/null || :
	await '! has_program vrx'
	expect pass
	case_begin 'nobody reads'
	xc load vrx --confirm 1s 2>&1 | :
	await '! has_program vrx'
	expect pass
}

# Without it the kernel passes everything from the deadline on. What comes later comes too late.
test_killed_watchdog() {
	block
	xc load vrx --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	await '[ "$(counted unconfirmed passed)" -gt 0 ]' \
		'printf "%s\n" "pass blocked $BLOCKED" | traffic >/dev/null 2>&1 || :'
	has_program vrx || fail "the program is gone"
	expect pass
	assert_status 0 xc status
	assert_error 'UNCONFIRMED: passes everything; '
	assert_status 1 xc confirm
	assert_error "too late: 'default' passes everything since the time is over"
	expect pass
	assert_status 5 xc load vrx --confirm 90s
	assert_error 'was not confirmed in time'
	assert_status 0 xc load vrx
	assert_error 'UNCONFIRMED: passes everything'
	assert_status 0 xc add 198.51.100.1
	expect pass
	assert_status 0 xc confirm --force
	expect drop
	assert_status 0 xc status
	assert_output 'effect: +filters$'
}

test_killed_watchdog_and_unload() {
	block
	xc load vrx --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	xc unload vrx >/dev/null
	assert_status 0 xc load vrx
	assert_status 0 xc status
	assert_output 'effect: +filters$'
	expect drop
}

test_one_confirmation_at_a_time() {
	block
	echo 198.51.100.1 >"$STATE/list"
	xc load vrx --confirm 30s >/dev/null 2>&1
	watchdog
	assert_status 5 xc load vrx --confirm 90s
	assert_error 'already waits for xdp-cuckoo confirm'
	assert_status 5 xc import "$STATE/list" --confirm 90s
	assert_error 'waits for xdp-cuckoo confirm'
	assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
	assert_equal "$WATCHDOG" "$(watchdogs)" "watchdogs"
	assert_status 0 xc confirm
	kill -9 "$WATCHDOG"
	assert_status 0 xc import "$STATE/list" --confirm 30s
	watchdog
	veth "$TX" vtx2 "$RX" vrx2
	assert_status 5 xc load vrx2 --confirm 90s
	has_program vrx2 && fail "loaded"
	assert_status 0 xc load vrx2
	assert_status 0 xc confirm
}

# A filter that runs already: only the new interface goes, and the others filter on.
test_another_interface() {
	veth "$TX" vtx2 "$RX" vrx2
	block
	xc load vrx >/dev/null
	assert_status 0 xc load vrx2 --confirm 1s
	await '! has_program vrx2'
	has_program vrx || fail "vrx went with vrx2"
	await 'xc status 2>/dev/null | grep -q "effect: *filters$"'
	expect drop
	assert_status 0 xc load vrx2 --confirm 90s
	assert_status 0 xc confirm
	assert_status 0 xc load vrx vrx2 --confirm 90s
	assert_error "'vrx' runs the filter 'default' already"
	assert_status 0 xc status
	assert_output 'effect: +filters$'
}

test_a_failed_load_leaves_nothing_behind() {
	block
	assert_status 2 xc load vrx nosuch0 --confirm 30s
	has_program vrx && fail "loaded"
	assert_equal '' "$(watchdogs)" "watchdogs"
	xc load vrx >/dev/null
	assert_status 2 xc load nosuch0 --confirm 1s
	assert_equal '' "$(watchdogs)" "watchdogs"
	assert_status 0 xc status
	assert_output 'effect: +filters$'
}

# What is confirmed has no need of it any longer.
test_the_watchdog_ends_when_it_is_confirmed() {
	block
	echo 198.51.100.1 >"$STATE/list"
	for command in 'load vrx' "import $STATE/list"; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc $command --confirm 1h
		watchdog
		assert_status 0 xc confirm
		watchdog_has_ended
	done
	assert_equal 2 "$(xc list | wc -l)" "rules"
	has_program vrx || fail "undone"
	case_begin 'what is taken off by hand'
	xc unload vrx >/dev/null
	assert_status 0 xc load vrx --confirm 1h
	watchdog
	xc unload vrx >/dev/null
	watchdog_has_ended
}

# Longer than it takes a watchdog to look twice whether there is something to wait for.
test_a_long_wait() {
	block
	echo 198.51.100.1 >"$STATE/list"
	assert_status 0 xc load vrx --confirm 12s
	assert_status 0 xc --name web import "$STATE/list" --confirm 12s
	on_exit "kill -9 $(watchdogs | tr '\n' ' ') 2>/dev/null"
	await '! has_program vrx'
	await '[ -z "$(xc --name web list)" ]'
}

# A watchdog undoes its own load, and no later one.
test_a_later_load_stays() {
	block
	xc load vrx --confirm 1s >/dev/null 2>&1
	watchdog
	xc unload vrx >/dev/null
	xc load vrx >/dev/null
	watchdog_has_ended
	has_program vrx || fail "undone"
	expect drop
	case_begin 'a later one that waits too'
	xc unload vrx >/dev/null
	xc load vrx --confirm 1s >/dev/null 2>&1
	watchdog
	xc unload vrx >/dev/null
	xc load vrx --confirm 60s >/dev/null 2>&1
	on_exit "kill -9 $(watchdogs | tr '\n' ' ') 2>/dev/null"
	watchdog_has_ended
	has_program vrx || fail "undone"
	assert_status 0 xc confirm
}

# Another table has taken the place of the one that was loaded: it waits to be confirmed as well.
test_resized_while_it_waits() {
	block
	xc load vrx --confirm 2s >/dev/null 2>&1
	assert_status 0 xc resize 5000
	await '! has_program vrx'
	xc load vrx --confirm 30s >/dev/null 2>&1
	watchdog
	assert_status 0 xc resize 5000
	assert_status 0 xc status
	assert_output 'unconfirmed: +yes'
	assert_status 0 xc confirm
	assert_status 0 xc status
	assert_output 'effect: +filters$'
}

# --- import --confirm

# A rule that stays, one that gets another timeout, one that goes; then a list that blocks.
before_import() {
	silence
	xc load vrx >/dev/null
	printf '198.51.100.1 comment stays\n198.51.100.2 timeout 1h\n198.51.100.3 comment goes\n' >"$STATE/old"
	xc import "$STATE/old" >/dev/null
	printf '198.51.100.1\n198.51.100.2\n192.0.2.66\n' >"$STATE/list"
}

# rules: without what is left of timeouts.
rules() {
	xc list | sed 's/timeout [0-9a-z]*/timeout/' | sort
}

test_confirmed_import_stays() {
	before_import
	assert_status 0 xc import "$STATE/list" --replace --confirm 90s
	assert_error "undone at [0-9:]{8} unless you type before: xdp-cuckoo"
	watchdog
	expect drop
	assert_status 0 xc status
	assert_output 'unconfirmed: +yes'
	assert_output 'unconfirmed change:'
	new=$(rules)
	assert_status 0 xc confirm
	watchdog_has_ended
	assert_equal "$new" "$(rules)" "rules"
	expect drop
	assert_equal 0 "$(counted unconfirmed passed)" "packets passed for want of a confirmation"
}

test_unconfirmed_import_is_undone() {
	before_import
	old=$(rules)
	assert_status 0 xc import "$STATE/list" --replace --confirm 1s
	await '[ "$(rules)" = "$old" ]'
	await 'xc status 2>/dev/null | grep -q "effect: *filters$"'
	expect pass
	echo 'drop old proto udp src 198.51.100.3 dst 10.99.0.2 sport 1 dport 2' | traffic || fail "not put back"
	assert_status 0 xc check
	assert_status 1 xc confirm
}

# Then the kernel passes everything in time, and the next command puts the rules back.
test_killed_watchdog_of_an_import() {
	before_import
	old=$(rules)
	xc import "$STATE/list" --replace --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	await '[ "$(counted unconfirmed passed)" -gt 0 ]' \
		'printf "%s\n" "pass blocked $BLOCKED" | traffic >/dev/null 2>&1 || :'
	expect pass
	# As it may be typed while the session hangs, and be read when it no longer does.
	assert_status 1 xc confirm
	assert_equal "$old" "$(rules)" "rules"
	assert_status 0 xc status
	assert_output 'effect: +filters$'
	echo 'drop old proto udp src 198.51.100.3 dst 10.99.0.2 sport 1 dport 2' | traffic || fail "not put back"
}

LATE='the last change was not confirmed in time, and is not undone yet'
UNDID='^note: undid a change of [0-9]+ rules? that was not confirmed in time: the rules are as before it$'

# import_without_watchdog: of which the time is over, and the kernel passes everything.
import_without_watchdog() {
	xc import "$STATE/list" --replace --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	rm -f "$STATE/awaited"
	await_error 'UNCONFIRMED: passes everything;' 'xc status'
}

# Until somebody has undone it, whoever shows its rules says that they are not in force.
test_what_is_late_is_told() {
	before_import
	old=$(rules)
	import_without_watchdog
	while read -r command; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		run xc $command
		[ "$STATUS" -le 1 ] || fail "status $STATUS"
		assert_error "^note: $LATE: until then a running filter passes everything; xdp-cuckoo check undoes it"
		assert_equal 1 "$(grep -c "$LATE" "$STATE/err")" "notes"
	done <<-END
		list
		list --counters
		export
		lists
		policy
		status
		stats --by rule
		test 192.0.2.66
		import $STATE/list --dry-run
	END
	assert_status 0 xc test 192.0.2.66
	assert_output 'running filter: +unconfirmed: passes everything'
	for command in stats status 'top --count 1'; do
		# shellcheck disable=SC2086 # words
		assert_status 0 xc $command
		cat "$STATE/out" >>"$STATE/err"
		assert_error 'UNCONFIRMED: passes everything'
	done
	case_begin json
	assert_status 0 xc --json list
	assert_equal "$(xc list | wc -l)" "$(grep -c '"not_confirmed_in_time": true' "$STATE/out")" "rules"
	assert_error "^[{]\"note\": \"$LATE"
	assert_status 0 xc --json stats
	assert_error '^[{]"note": ".*UNCONFIRMED: passes everything'
	case_begin check
	assert_status 1 xc check
	assert_error "$UNDID"
	assert_equal "$old" "$(rules)" "rules"
	assert_status 0 xc check
	assert_equal '' "$(cat "$STATE/err")" "notes"
	assert_status 0 xc --json list
	grep -q not_confirmed "$STATE/out" && fail "told of what is undone"
	:
}

# Whichever command it is that undoes it, also one that then fails, or does nothing else.
test_who_undoes_it_says_so() {
	before_import
	old=$(rules)
	echo 192.0.2.99 >"$STATE/other"
	while read -r status command; do
		case_begin "$command"
		import_without_watchdog
		# shellcheck disable=SC2086 # words
		assert_status "$status" xc $command
		assert_error "$UNDID"
		assert_equal 1 "$(grep -c 'undid a change' "$STATE/err")" "notes"
		assert_equal "$old" "$(rules)" "rules"
	done <<-END
		1 confirm
		0 expire
		1 del 192.0.2.200
		0 resize 3000
		0 stats --reset
		0 monitor-only off
		0 policy malformed pass
		2 load nothing
		0 load vrx
		0 batch /dev/null
	END
	case_begin json
	import_without_watchdog
	assert_status 1 xc --json check
	assert_error '^[{]"note": "undid a change of'
	case_begin 'no filter runs'
	import_without_watchdog
	assert_status 0 xc unload vrx
	assert_status 1 xc check
	assert_error "$UNDID"
	assert_error "no filter 'default' is running"
	assert_equal "$old" "$(rules)" "rules"
}

# As after a reboot: no filter runs, nobody watches, and the time is over when the first command comes.
test_import_and_reboot() {
	before_import
	old=$(rules)
	xc import "$STATE/list" --replace --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	xc unload vrx >/dev/null
	await 'xc --json status | grep -q "\"seconds_left\": 0\.0$"'
	assert_status 0 xc load vrx
	assert_equal "$old" "$(rules)" "rules"
	assert_status 0 xc status
	assert_output 'effect: +filters$'
	expect pass
}

# The machine is up again before the time is over: the new filter has the same deadline.
test_import_and_quick_reboot() {
	before_import
	old=$(rules)
	xc import "$STATE/list" --replace --confirm 4s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	xc unload vrx >/dev/null
	assert_status 0 xc load vrx
	[ "$(rules)" != "$old" ] || skip "this machine was too slow: the time was over at once"
	await '[ "$(counted unconfirmed passed)" -gt 0 ]' \
		'printf "%s\n" "pass blocked $BLOCKED" | traffic >/dev/null 2>&1 || :'
	expect pass
	assert_status 0 xc add 198.51.100.9
	assert_equal "$old
src 198.51.100.9" "$(rules)" "rules"
}

# The time to confirm starts when all is done, however long that takes: here as long as one of the steps that make the
# new table.
test_a_slow_import() {
	before_import
	printf '#!/bin/sh\nsleep 4 </dev/null >/dev/null 2>&1\n' >"$STATE/slowly"
	chmod +x "$STATE/slowly"
	faulty FAULT_COUNT="$STATE/count" import "$STATE/list" --replace --confirm 90s >/dev/null 2>&1
	xc confirm >/dev/null
	step=$(awk '$1 == "m" { print int($2 * 0.4) }' "$STATE/count")
	echo 192.0.2.66 >"$STATE/list"
	run faulty FAULT_KINDS=m FAULT_AT="$step" FAULT_RUN="$STATE/slowly" \
		import "$STATE/list" --replace --confirm 3s
	watchdogs | xargs -r kill -9
	assert_equal 0 "$STATUS" "exit status"
	expect drop
	assert_status 0 xc confirm
	assert_equal 'src 192.0.2.66' "$(rules)" "rules"
}

# What other commands change meanwhile stays.
test_other_changes_while_an_import_waits() {
	before_import
	xc import "$STATE/list" --confirm 3s >/dev/null 2>&1
	watchdog
	assert_status 0 xc add 203.0.113.7
	watchdog_has_ended
	assert_equal "$(sort "$STATE/old" | sed 's/^/src /; s/comment \(.*\)/comment "\1"/; s/ 1h$//')
src 203.0.113.7" "$(rules)" "rules"
}

# Also of the rules that the import touched: a list that has them too, the hand, one that deletes them.
test_the_same_rules_while_an_import_waits() {
	silence
	xc load vrx >/dev/null
	xc add 198.51.100.1 >/dev/null
	xc add 198.51.100.4 >/dev/null
	printf '198.51.100.%d\n' 1 2 3 >"$STATE/list"
	echo 198.51.100.2 >"$STATE/other"
	xc import "$STATE/list" --list one --confirm 2s >/dev/null 2>&1
	watchdog
	assert_status 0 xc import "$STATE/other" --list two
	assert_status 0 xc add 198.51.100.3
	assert_status 0 xc del 198.51.100.1
	watchdog_has_ended
	assert_equal 'src 198.51.100.2
src 198.51.100.3
src 198.51.100.4' "$(rules)" "rules"
	assert_status 0 xc lists
	assert_output '^two +1 '
	assert_status 0 xc check
}

# As the import has replaced all, and is replaced itself.
test_replaced_while_an_import_waits() {
	before_import
	echo 198.51.100.7 >"$STATE/other"
	xc import "$STATE/list" --replace --confirm 2s >/dev/null 2>&1
	watchdog
	assert_status 0 xc import "$STATE/other" --replace
	watchdog_has_ended
	assert_equal 'src 198.51.100.7' "$(rules)" "rules"
	xc import "$STATE/list" --replace --confirm 2s >/dev/null 2>&1
	watchdog
	assert_status 0 xc flush
	watchdog_has_ended
	assert_equal '' "$(rules)" "rules"
}

# What only a change that waits lets pass is not to be relied on: the undo takes it away.
test_relying_on_what_waits() {
	host
	silence
	xc load vrx >/dev/null
	echo "$PEER action pass" >"$STATE/list"
	assert_status 2 xc_host add 203.0.113.0/24
	assert_error 'or first: xdp-cuckoo add '
	xc_host import "$STATE/list" --list admins --confirm 60s >/dev/null 2>&1
	watchdog
	assert_status 2 xc_host add 203.0.113.0/24
	assert_error "'src 203.0.113.0/24' would block this SSH session, from $PEER once the pending change is undone"
	assert_error 'nothing was changed; say --force, or first: xdp-cuckoo confirm$'
	assert_status 5 xc_host policy no-rule drop --force
	assert_error 'confirm it first'
	assert_status 0 xc_host add 203.0.112.0/24
	case_begin 'a pass rule by hand, which stays'
	assert_status 0 xc_host add "$PEER" action pass
	assert_status 0 xc_host add 203.0.113.0/24
	assert_status 2 xc_host del "$PEER" action pass
	case_begin 'confirmed'
	assert_status 0 xc_host confirm
	assert_status 0 xc_host policy no-rule drop --force
}

# The other way round: what the undo brings back.
test_what_an_undo_would_bring_back() {
	host
	xc load vrx >/dev/null
	xc add "$PEER" action pass >/dev/null
	xc_host add 203.0.113.0/24 >/dev/null
	printf '%s action pass\n203.0.112.0/24\n' "$PEER" >"$STATE/list"
	xc_host import "$STATE/list" --replace --confirm 60s >/dev/null 2>&1
	watchdog
	assert_status 2 xc_host del "$PEER" action pass
	assert_error "'src 203.0.113.0/24' would block this SSH session, from $PEER once the pending change is undone"
	assert_status 0 xc_host confirm
	assert_status 0 xc_host del "$PEER" action pass
}

# --- where it cannot all be undone

# import_unwatched ARGUMENT...: a change that nobody watches over, and whose time is over when this returns.
import_unwatched() {
	xc import "$@" --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	await 'xc --json status | grep -q "\"seconds_left\": 0\.0$"'
}

# kinds SRC DST ACTION: 24 rules, each of a kind of its own.
kinds() {
	for ends in "src $1" "dst $2" "src $1 dst $2"; do
		for proto in '' 'proto udp'; do
			for sport in '' 'sport 7'; do
				for dport in '' 'dport 9'; do
					echo "$ends $proto $sport $dport action $3" | tr -s ' '
				done
			done
		done
	done
}

# Before and after do not fit beside one another.
test_kinds_before_and_after() {
	silence
	xc load vrx >/dev/null
	kinds 198.51.100.1 10.99.0.9 drop >"$STATE/old"
	kinds 198.51.100.2 10.99.0.8 pass >"$STATE/new"
	xc import "$STATE/old" >/dev/null
	old=$(rules)
	import_unwatched "$STATE/new" --replace
	assert_status 0 xc expire
	assert_error "$UNDID"
	assert_equal 1 "$(wc -l <"$STATE/err")" "notes"
	assert_equal "$old" "$(rules)" "rules"
	assert_status 0 xc status
	assert_output 'effect: +filters$'
	assert_status 0 xc check
}

# One of the kinds from before has been taken by another command's rule.
test_kinds_taken_meanwhile() {
	silence
	xc load vrx >/dev/null
	{ kinds 198.51.100.1 10.99.0.9 drop; kinds 198.51.100.1 10.99.0.9 pass | head -n 8; } >"$STATE/old"
	grep -v '^src 198.51.100.1 dst 10.99.0.9 action drop' "$STATE/old" >"$STATE/new"
	xc import "$STATE/old" >/dev/null
	xc import "$STATE/new" --replace --confirm 5s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	run xc add src 198.51.100.1 dst 10.99.0.9 action pass
	xc list | grep -qx 'src 198.51.100.1 dst 10.99.0.9' && skip "this machine was too slow: the time was over at once"
	assert_equal 0 "$STATUS" "exit status"
	await 'xc --json status | grep -q "\"seconds_left\": 0\.0$"'
	assert_status 0 xc del src 198.51.100.1
	assert_error "is undone, except for 1 earlier rule: 'src 198.51.100.1 dst 10.99.0.9': 32 kinds of rule"
	assert_equal 31 "$(xc list | wc -l)" "rules"
	assert_status 0 xc status
	assert_output 'effect: +filters$'
	assert_status 0 xc check
	assert_status 1 xc confirm --force
	assert_error 'nothing waits'
}

# full_disk [FAULT_LASTS=1] ARGUMENT...: the tool, where the first write to a store that is open fails; or all do.
full_disk() {
	faulty FAULT_KINDS=d FAULT_AT="$((OPENING + 1))" FAULT_ERRNO=28 "$@"
}

before_full_disk() {
	before_import
	faulty FAULT_ERRNO=28 FAULT_COUNT="$STATE/count" expire >/dev/null
	OPENING=$(awk '$1 == "d" { print $2 }' "$STATE/count")
	old=$(rules)
	import_unwatched "$STATE/list" --replace
}

# No room to undo it, nor to keep it; all else goes on, and all is well once there is room.
test_full_disk() {
	before_full_disk
	assert_status 1 full_disk FAULT_LASTS=1 confirm
	assert_error 'not confirmed in time cannot be undone yet: .*No space'
	assert_error 'too late: '
	assert_status 0 full_disk FAULT_LASTS=1 check
	assert_error 'cannot be undone yet'
	assert_status 0 full_disk FAULT_LASTS=1 unload vrx
	assert_status 0 xc load vrx
	assert_equal "$old" "$(rules)" "rules"
	assert_status 0 xc status
	assert_output 'effect: +filters$'
}

# Where it can be kept, though not undone.
test_forced_where_it_cannot_be_undone() {
	before_full_disk
	new=$(rules)
	assert_status 0 full_disk confirm --force
	assert_error 'cannot be undone yet'
	assert_equal "$new" "$(rules)" "rules"
	expect drop
	assert_status 1 xc confirm
}

run_tests "$0" "$@"
