#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What undoes itself unless it is confirmed, whatever becomes of the terminal, of the process that
# watches over it and of the machine.
# Takes minutes.
. tests/lib.sh
. tests/namespace/safety.sh
. tests/fault/fault.sh

# Sets WATCHDOG to the only watchdog, which ends with the test at the latest.
watchdog() {
	WATCHDOG=$(watchdogs)
	on_exit "kill -9 $WATCHDOG 2>/dev/null"
	[ "$(echo "$WATCHDOG" | wc -w)" -eq 1 ] || fail "not one watchdog: '$WATCHDOG'"
}

# An ended process may still have a number, but it has no command line.
watchdog_has_ended() {
	await '! grep -q . "/proc/$WATCHDOG/cmdline" 2>/dev/null'
}

# --- load --confirm

test_confirmed_load_stays() {
	block
	assert_status 0 xc load vrx --confirm 90s
	assert_output 'confirm within s: +90'
	assert_error "^note: this is undone at [0-9:]{8} unless you type before: xdp-cuckoo --state $STATE/store confirm\$"
	watchdog
	assert_status 0 xc status --verbose
	assert_error 'UNCONFIRMED: passes everything in [0-9ms]+ unless xdp-cuckoo confirm comes before'
	assert_output 'unconfirmed: +yes'
	expect drop
	assert_shows 'confirmed: default' xc confirm
	assert_fails 1 'nothing waits to be confirmed' xc confirm
	assert_shows 'unconfirmed: +no' xc status --verbose
	watchdog_has_ended
	expect drop
	assert_equal 0 "$(counted unconfirmed passed)" "packets passed for want of a confirmation"
}

test_unconfirmed_load_is_undone() {
	block
	assert_status 0 xc load vrx --confirm 1s
	await '! has_program vrx'
	expect pass
	assert_fails 1 'nothing waits to be confirmed' xc confirm
	assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
	assert_status 0 xc load vrx
	expect drop
}

# Nobody here can take the filter off there.
test_an_interface_leaves_the_namespace() {
	block
	second_pair
	namespace "$TX-other"
	assert_status 0 timed load vrx vrx2 --confirm 1s
	in_rx ip link set vrx2 netns "$TX-other"
	in_ns "$TX-other" ip link set vrx2 up
	time_is_over
	has_program vrx && fail "it runs still"
	await 'in_ns "$TX-other" "$TOOL" --state "$STATE/store" status 2>&1 | grep -q "effect: *UNCONFIRMED: passes everything;"'
	echo "pass blocked $BLOCKED" | "$HELPERS/traffic" --from "$TX:vtx2" --to "$TX-other:vrx2" || fail "it filters there"
}

# The command to type names the filter.
test_what_to_type() {
	assert_status 0 xc --name web load vrx --confirm 1s
	assert_error "type before: xdp-cuckoo --name web --state $STATE/store confirm\$"
	await '! has_program vrx'
	assert_shows '"confirm_within_s": 1' xc --json load vrx --confirm 1s
	await '! has_program vrx'
}

# While it waits, the watchdog holds no file, no lock and no terminal.
test_the_watchdog_holds_nothing() {
	block
	assert_equal 1 "$(xc load vrx --confirm 1h 2>/dev/null | grep -c 'confirm within')" "output, to its end"
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

# The session ends right after the command, or before the command has printed anything.
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

# If the watchdog is killed, the kernel passes everything from the deadline on. A later confirmation is too late.
test_killed_watchdog() {
	block
	timed load vrx --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	await '[ "$(counted unconfirmed passed)" -gt 0 ]' \
		'printf "%s\n" "pass blocked $BLOCKED" | traffic >/dev/null 2>&1 || :'
	has_program vrx || fail "the program is gone"
	expect pass
	assert_fails 1 'UNCONFIRMED: passes everything; ' xc status
	assert_fails 1 "too late: 'default' passes everything since the time is over" xc confirm
	expect pass
	assert_fails 5 'was not confirmed in time' xc load vrx --confirm 90s
	assert_notes 'UNCONFIRMED: passes everything' xc load vrx
	assert_status 0 xc add 198.51.100.1
	expect pass
	assert_status 0 xc confirm --force
	expect drop
	assert_shows 'effect: +filters$' xc status
}

# Nobody undoes the load any more: every command says that everything passes, and the service is not green.
test_a_late_load_is_told() {
	block
	timed load vrx --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	await '[ "$(counted unconfirmed passed)" -gt 0 ]' \
		'printf "%s\n" "pass blocked $BLOCKED" | traffic >/dev/null 2>&1 || :'
	printf '%s\n' '[filter]' 'interfaces = vrx' >"$STATE/conf"
	assert_status 3 xc up "$STATE/conf"
	assert_error 'UNCONFIRMED: passes everything'
	for command in 'add 192.0.2.1' 'del 192.0.2.1' check; do
		# shellcheck disable=SC2086 # words
		run xc $command
		assert_error 'UNCONFIRMED: passes everything'
	done
	assert_equal 1 "$STATUS" "status of check"
	assert_status 0 xc confirm --force
	assert_status 0 xc up "$STATE/conf"
	assert_status 0 xc panic on
	assert_notes 'PANIC: passes everything' xc add 192.0.2.2
}

# If nobody confirms, the filter drops again where it ran before, or at its next load.
test_a_trial_of_monitor_only() {
	second_pair
	block
	assert_status 0 xc load vrx
	assert_status 0 xc load vrx2 --monitor-only --confirm 1s
	wait_for 'the end of the trial' eval '[ -z "$(program_id vrx2)" ]'
	assert_shows '^effect: +filters$' xc status
	expect drop
	assert_status 0 timed load vrx2 --monitor-only --confirm 30m
	assert_status 0 xc monitor-only on
	time_is_over
	has_program vrx2 && fail "it runs still"
	assert_shows '^effect: +MONITOR-ONLY' xc status
	assert_status 0 xc monitor-only off
	assert_status 0 xc unload --all
	assert_status 0 xc load vrx --monitor-only --confirm 1s
	wait_for 'the end of the third trial' eval '[ -z "$(program_id vrx)" ]'
	assert_status 0 xc load vrx
	assert_shows '^effect: +filters$' xc status
}

test_killed_watchdog_and_unload() {
	block
	timed load vrx --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	xc unload vrx >/dev/null
	assert_status 0 xc load vrx
	assert_shows 'effect: +filters$' xc status
	expect drop
}

test_one_confirmation_at_a_time() {
	block
	echo 198.51.100.1 >"$STATE/list"
	xc load vrx --confirm 1h >/dev/null 2>&1
	watchdog
	assert_fails 5 'already waits for xdp-cuckoo confirm' xc load vrx --confirm 90s
	assert_fails 5 'waits for xdp-cuckoo confirm' xc import "$STATE/list" --confirm 90s
	assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
	assert_equal "$WATCHDOG" "$(watchdogs)" "watchdogs"
	assert_status 0 xc confirm
	kill -9 "$WATCHDOG"
	assert_status 0 xc import "$STATE/list" --confirm 1h
	watchdog
	second_pair
	assert_status 5 xc load vrx2 --confirm 90s
	has_program vrx2 && fail "loaded"
	assert_status 0 xc load vrx2
	assert_status 0 xc confirm
}

# The filter runs already: only the new interface is taken off, and the others go on filtering.
test_another_interface() {
	second_pair
	block
	xc load vrx >/dev/null
	assert_status 0 xc load vrx2 --confirm 1s
	await '! has_program vrx2'
	has_program vrx || fail "vrx went with vrx2"
	await 'xc status 2>/dev/null | grep -q "effect: *filters$"'
	expect drop
	assert_status 0 xc load vrx2 --confirm 90s
	assert_status 0 xc confirm
	assert_fails 2 "'vrx' runs the filter 'default' already" xc load vrx vrx2 --confirm 90s
	assert_shows 'effect: +filters$' xc status
}

# A later load wants the interface in both worlds. A later unload wants it in none.
test_a_later_load_stays() {
	second_pair
	block
	printf '%s\n' '[filter]' 'interfaces = vrx2' >"$STATE/conf"
	for later in 'load vrx2' "up $STATE/conf" 'unload vrx2; load vrx2' 'load vrx2; resize 200000'; do
		case_begin "$later"
		assert_status 0 timed load vrx vrx2 --confirm 30m
		echo "$later" | tr ';' '\n' >"$STATE/later"
		while read -r command; do
			# shellcheck disable=SC2086 # words
			assert_status 0 xc $command
		done <"$STATE/later"
		time_is_over
		has_program vrx2 || fail "what was loaded later is undone"
		has_program vrx && fail "what nobody confirmed stays"
		await 'xc status 2>/dev/null | grep -q "effect: *filters$"'
		xc unload --all >/dev/null
	done
	case_begin 'sent packets'
	assert_status 0 xc load vrx
	assert_status 0 timed load vrx --outgoing --confirm 30m
	assert_status 0 xc load vrx --outgoing
	time_is_over
	assert_shows 'vrx .*outgoing' xc status
}

test_a_failed_load_leaves_nothing_behind() {
	block
	assert_status 2 xc load vrx nosuch0 --confirm 1h
	has_program vrx && fail "loaded"
	assert_equal '' "$(watchdogs)" "watchdogs"
	xc load vrx >/dev/null
	assert_status 2 xc load nosuch0 --confirm 1s
	assert_equal '' "$(watchdogs)" "watchdogs"
	assert_shows 'effect: +filters$' xc status
}

# After the confirmation the watchdog ends.
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

# A new table takes the place of the unconfirmed one. It is unconfirmed, too.
test_resized_while_it_waits() {
	block
	timed load vrx --confirm 30m >/dev/null 2>&1
	assert_status 0 xc resize 5000
	time_is_over
	has_program vrx && fail "it runs still"
	xc load vrx --confirm 1h >/dev/null 2>&1
	watchdog
	assert_status 0 xc resize 5000
	assert_shows 'unconfirmed: +yes' xc status --verbose
	assert_status 0 xc confirm
	assert_shows 'effect: +filters$' xc status
}

# --- import --confirm

# Three old rules, of which the new list keeps one, retimes one and drops one; and one new rule.
before_import() {
	silence
	xc load vrx >/dev/null
	printf '198.51.100.1 comment stays\n198.51.100.2 timeout 1h\n198.51.100.3 comment goes\n' >"$STATE/old"
	xc import "$STATE/old" >/dev/null
	printf '198.51.100.1\n198.51.100.2\n192.0.2.66\n' >"$STATE/list"
}

# rules: the rules without the rest of their timeouts.
rules() {
	xc list | sed 's/timeout [0-9a-z]*/timeout/' | sort
}

test_confirmed_import_stays() {
	before_import
	assert_status 0 xc import "$STATE/list" --replace --confirm 90s
	assert_error "undone at [0-9:]{8} unless you type before: xdp-cuckoo"
	watchdog
	expect drop
	assert_status 0 xc status --verbose
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
	assert_verdict drop 198.51.100.3
	assert_status 0 xc check
	assert_status 1 xc confirm
}

LATE='the last change was not confirmed in time, and is not undone yet'
UNDID='^note: undid a change of [0-9]+ rules? that was not confirmed in time: the rules are as before it$'

# import_unwatched ARGUMENT...: makes a pending import whose time is over, so that the kernel passes everything.
import_unwatched() {
	timed import "$@" --confirm 1s >/dev/null 2>&1
	watchdog
	kill -9 "$WATCHDOG"
	rm -f "$STATE/awaited"
	await_error 'UNCONFIRMED: passes everything;' 'xc status'
}

# Until the change is undone, every command that shows its rules says that they are not in force.
test_what_is_late_is_told() {
	before_import
	old=$(rules)
	import_unwatched "$STATE/list" --replace
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
	assert_shows 'running filter: +unconfirmed: passes everything' xc test 192.0.2.66
	for command in '0 stats' '1 status' '0 top --count 1'; do
		# shellcheck disable=SC2086 # words
		assert_status "${command%% *}" xc ${command#* }
		cat "$STATE/out" >>"$STATE/err"
		assert_error 'UNCONFIRMED: passes everything'
	done
	case_begin json
	assert_status 0 xc --json list
	assert_equal "$(xc list | wc -l)" "$(grep -c '"not_confirmed_in_time": true' "$STATE/out")" "rules"
	assert_error "^[{]\"note\": \"$LATE"
	assert_notes '^[{]"note": ".*UNCONFIRMED: passes everything' xc --json stats
	case_begin check
	assert_fails 1 "$UNDID" xc check
	assert_equal "$old" "$(rules)" "rules"
	assert_status 0 xc check
	assert_equal '' "$(cat "$STATE/err")" "notes"
	assert_status 0 xc --json list
	grep -q not_confirmed "$STATE/out" && fail "told of what is undone"
	:
}

# The command that undoes the change says so, even if it then fails or does nothing else.
test_who_undoes_it_says_so() {
	before_import
	old=$(rules)
	echo 192.0.2.99 >"$STATE/other"
	while read -r status command; do
		case_begin "$command"
		import_unwatched "$STATE/list" --replace
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
	import_unwatched "$STATE/list" --replace
	assert_fails 1 '^[{]"note": "undid a change of' xc --json check
	case_begin 'no filter runs'
	import_unwatched "$STATE/list" --replace
	assert_status 0 xc unload vrx
	assert_status 1 xc check
	assert_error "$UNDID"
	assert_error "no filter 'default' is running"
	assert_equal "$old" "$(rules)" "rules"
}

# The host reboots before the time is over. The new filter has the same deadline, and its load starts what undoes it.
test_import_and_quick_reboot() {
	before_import
	old=$(rules)
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	for again in 'load vrx' "up $STATE/conf"; do
		case_begin "$again"
		timed import "$STATE/list" --replace --confirm 30m >/dev/null 2>&1
		watchdog
		kill -9 "$WATCHDOG"
		xc unload vrx >/dev/null
		# shellcheck disable=SC2086 # words
		assert_status 0 timed $again
		[ "$(rules)" != "$old" ] || fail "undone at once"
		later
		await '[ "$(rules)" = "$old" ]'
		assert_shows 'effect: +filters$' xc status
	done
}

# uptime_s: the clock by which the time to confirm ends.
uptime_s() {
	cut -d ' ' -f 1 /proc/uptime
}

# The time to confirm starts after everything is done, also after a slow step of making the new table.
test_a_slow_import() {
	before_import
	printf '#!/bin/sh\nsleep 1\ncut -d " " -f 1 /proc/uptime >"%s"\n' "$STATE/slow_until" >"$STATE/slowly"
	chmod +x "$STATE/slowly"
	faulty FAULT_COUNT="$STATE/count" import "$STATE/list" --replace --confirm 90s >/dev/null 2>&1
	xc confirm >/dev/null
	step=$(awk '$1 == "m" { print int($2 * 0.4) }' "$STATE/count")
	echo 192.0.2.66 >"$STATE/list"
	run faulty FAULT_KINDS=m FAULT_AT="$step" FAULT_RUN="$STATE/slowly" \
		import "$STATE/list" --replace --confirm 1h
	watchdogs | xargs -r kill -9
	assert_equal 0 "$STATUS" "exit status"
	left_s=$(xc --json status | sed -n 's/.*"left_s": \([0-9.]*\).*/\1/p')
	printf '%s\n' "$(cat "$STATE/slow_until") $left_s $(uptime_s)" |
		awk '{ exit $2 + $3 < $1 + 3600 }' || fail "it ends in $left_s s"
	expect drop
	assert_status 0 xc confirm
	assert_equal 'src 192.0.2.66' "$(rules)" "rules"
}

# A pass rule of a pending change does not protect the session, because the undo takes it away.
test_relying_on_what_waits() {
	host
	silence
	xc load vrx >/dev/null
	echo "$PEER action pass" >"$STATE/list"
	assert_fails 2 'nothing was changed; first: xdp-cuckoo add ' xc_host add 203.0.113.0/24
	xc_host import "$STATE/list" --list admins --confirm 1h >/dev/null 2>&1
	watchdog
	assert_status 2 xc_host add 203.0.113.0/24
	assert_error "'src 203.0.113.0/24' would block this SSH session, from $PEER once the pending change is undone"
	assert_error 'nothing was changed; first: xdp-cuckoo confirm$'
	assert_fails 5 'confirm it first' xc_host policy no-rule drop --force
	assert_status 0 xc_host add 203.0.112.0/24
	case_begin 'a pass rule by hand, which stays'
	assert_status 0 xc_host add "$PEER" action pass
	assert_status 0 xc_host add 203.0.113.0/24
	assert_status 2 xc_host del "$PEER" action pass
	case_begin 'confirmed'
	assert_status 0 xc_host confirm
	assert_status 0 xc_host policy no-rule drop --force
}

# The opposite case: the undo would bring a drop rule back.
test_what_an_undo_would_bring_back() {
	host
	xc load vrx >/dev/null
	xc add "$PEER" action pass >/dev/null
	xc_host add 203.0.113.0/24 >/dev/null
	printf '%s action pass\n203.0.112.0/24\n' "$PEER" >"$STATE/list"
	xc_host import "$STATE/list" --replace --confirm 1h >/dev/null 2>&1
	watchdog
	assert_status 2 xc_host del "$PEER" action pass
	assert_error "'src 203.0.113.0/24' would block this SSH session, from $PEER once the pending change is undone"
	assert_status 0 xc_host confirm
	assert_status 0 xc_host del "$PEER" action pass

	watchdog_has_ended

	case_begin 'a kind of rule that no present rule has'
	xc_host flush >/dev/null
	xc add "$PEER" action pass >/dev/null
	xc_host add 203.0.113.0/25 >/dev/null
	xc_host import "$STATE/list" --replace --confirm 1h >/dev/null 2>&1
	watchdog
	assert_status 2 xc_host del "$PEER" action pass
	assert_error "'src 203.0.113.0/25' would block this SSH session, from $PEER once the pending change is undone"
}

# --- where it fails

# --- where it cannot all be undone

# full_disk [FAULT_LASTS=1] ARGUMENT...: runs the tool so that its first write to the open store fails, or all writes.
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

# On a full disk the change can be neither undone nor kept. Other commands work, and the undo is done once there is
# room.
test_full_disk() {
	before_full_disk
	assert_status 1 full_disk FAULT_LASTS=1 confirm
	assert_error 'not confirmed in time cannot be undone yet: .*No space'
	assert_error 'too late: '
	# However often the store is opened, the filter that passes everything goes on doing so.
	for _ in 1 2 3 4; do
		assert_status 1 full_disk FAULT_LASTS=1 check
		assert_error 'cannot be undone yet'
	done
	assert_status 0 full_disk FAULT_LASTS=1 unload vrx
	assert_status 0 xc load vrx
	assert_equal "$old" "$(rules)" "rules"
	assert_shows 'effect: +filters$' xc status
}

# The change can be kept, but not undone.
test_forced_where_it_cannot_be_undone() {
	before_full_disk
	new=$(rules)
	assert_notes 'cannot be undone yet' full_disk confirm --force
	assert_equal "$new" "$(rules)" "rules"
	expect drop
	assert_status 1 xc confirm
}

run_tests "$0" "$@"
