#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the tool does where something fails under it: it says so in a line and loses nothing. Kills and failing calls
# at its steps are those of tests/fault/run.sh, fewer.
# Takes minutes.
. tests/lib.sh
. tests/namespace/safety.sh
. tests/fault/fault.sh

KILLS=${KILLS:-40}
ERRORS=${ERRORS:-20}
EXCHANGES=${EXCHANGES:-25}
GARBLED=${GARBLED:-50}

# Only fast commands; make test-faults tries them all.
test_kills_and_failing_calls() {
	echo "SEED=$SEED"
	second_pair
	faults --kills "$KILLS" --errors "$ERRORS" >"$STATE/faults" || fail "$(cat "$STATE/faults")"
	note "$(awk '$1 == "all" { print $4 + $5 " kills, " $7 " failing calls" }' "$STATE/faults")"
}

# The last write makes the filter look at packets. A command that finds the filter without it starts again.
test_kill_while_a_filter_is_adopted() {
	silence
	xc add 192.0.2.66 >/dev/null 2>&1
	steps=
	for back in start 0 1 2 3; do
		case_begin "$back"
		ip -n "$RX" link set dev vrx xdp off
		ip -n "$RX" link set dev vrx xdp obj "$OBJECT" sec xdp 2>/dev/null
		if [ "$back" = start ]; then
			steps=$(stores 0 expire)
		else
			assert_status 137 faulty FAULT_KINDS=s "FAULT_AT=$((steps - back))" expire
			assert_status 0 xc expire
		fi
		expect drop
	done
}

# block_one: the filter runs, with one rule.
block_one() {
	xc load vrx >/dev/null
	block
}

# refused STATUS PATTERN COMMAND...: fails with one line of error, and the rule is still in force.
refused() {
	refused_status=$1
	refused_pattern=$2
	shift 2
	assert_status "$refused_status" "$@"
	assert_error "$refused_pattern"
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines of: $(cat "$STATE/err")"
	expect drop
}

# Another rule can be added, and store and filter hold the two rules.
all_is_well() {
	assert_status 0 xc add 192.0.2.77
	assert_equal 'src 192.0.2.66 src 192.0.2.77' "$(xc list | xargs)" "rules"
	assert_status 0 xc check
	expect drop
}

# mapped: how many bytes of BPF maps the process of $STATE/maps has mapped.
mapped() {
	bytes=0
	while IFS=' -' read -r start end rest; do
		case $rest in *bpf-map*) bytes=$((bytes + 0x$end - 0x$start)) ;; esac
	done <"$STATE/maps"
	echo "$bytes"
}

# A table for a million rules has 31 MB, or 12 MB without counts. One rule needs the buckets and one or two parts.
test_one_rule_maps_little_of_a_large_table() {
	# shellcheck disable=SC2016 # of the shell that runs it
	export FAULT_RUN='cat /proc/$PPID/maps >'"$STATE/maps"
	for options in '' --no-counters; do
		# shellcheck disable=SC2086 # words
		assert_status 0 xc load vrx --capacity 1000000 $options
		xc add 192.0.2.1 >/dev/null
		for change in add del; do
			case_begin "$change $options"
			rm -f "$STATE/maps"
			steps=$(stores 0 "$change" 192.0.2.66)
			assert_status 0 faulty FAULT_KINDS=s "FAULT_AT=$((steps - 1))" "$change" 192.0.2.77
			bytes=$(mapped)
			[ "$bytes" -gt 400000 ] || fail "only $bytes bytes are mapped"
			[ "$bytes" -lt 7000000 ] || fail "$bytes bytes are mapped"
		done
		assert_status 0 xc flush
		assert_status 0 xc unload --all
	done
}

# Each mapping that add makes fails in turn.
test_an_add_that_cannot_map() {
	: >"$STATE/said"
	block_one
	faulty "FAULT_COUNT=$STATE/count" add 192.0.2.77 >/dev/null
	for at in $(seq "$(sed -n 's/^m //p' "$STATE/count")"); do
		case_begin "mapping $at"
		xc del 192.0.2.77 >/dev/null 2>&1 || :
		run faulty FAULT_KINDS=m "FAULT_AT=$at" FAULT_ERRNO=12 add 192.0.2.77
		cat "$STATE/err" >>"$STATE/said"
		[ "$STATUS" -eq 0 ] || assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
		assert_status 0 xc check
		expect drop
	done
	grep -q "no memory to map the filter's table" "$STATE/said" || fail "$(cat "$STATE/said")"
}

# What cannot be mapped is not taken for a filter that does not count, or that lacks the rule.
test_answers_that_cannot_map() {
	block_one
	for words in 'list --counters' 'test 192.0.2.66'; do
		: >"$STATE/said"
		# shellcheck disable=SC2086 # a command and its operands
		faulty "FAULT_COUNT=$STATE/count" $words >"$STATE/right"
		for at in $(seq "$(sed -n 's/^m //p' "$STATE/count")"); do
			case_begin "$words, mapping $at"
			# shellcheck disable=SC2086
			run faulty FAULT_KINDS=m "FAULT_AT=$at" FAULT_ERRNO=12 $words
			cat "$STATE/err" >>"$STATE/said"
			[ "$STATUS" -ne 0 ] || cmp "$STATE/out" "$STATE/right" || fail "another answer"
			[ "$STATUS" -eq 0 ] || assert_error 'no memory'
		done
		grep -q "no memory to map the filter's table" "$STATE/said" || fail "$(cat "$STATE/said")"
	done
}

# Each allocation fails in turn. A resize that fails has changed nothing; counts alone are no reason to fail.
test_a_resize_without_memory() {
	block_one
	for at in 0 $(seq 40); do
		case_begin "allocation $at"
		assert_status 0 xc resize 1000
		small=$(xc status | grep '^slots:')
		run faulty FAULT_KINDS=a "FAULT_AT=$at" FAULT_ERRNO=12 resize 100000
		[ "$at" -gt 0 ] || large=$(xc status | grep '^slots:')
		[ "$STATUS" -eq 0 ] && expected=$large || expected=$small
		assert_equal "$expected" "$(xc status | grep '^slots:')" "status $STATUS, $(cat "$STATE/err")"
		expect drop
	done
}

# Filter and store both know that a change waits for `confirm`, and a kill may leave that to one of them. The filter
# must not pass everything for a change that the store does not have.
test_kill_of_a_change_that_waits() {
	silence
	block_one
	echo 203.0.113.0/24 >"$STATE/list"
	faulty "FAULT_COUNT=$STATE/count" import --confirm 1m "$STATE/list" >/dev/null 2>&1 || fail "import does not work"
	steps=$(sed -n 's/^d //p' "$STATE/count")
	assert_status 0 xc confirm
	assert_status 0 xc del 203.0.113.0/24
	for back in 0 1 2 3 4 5 6 7; do
		case_begin "$back steps of the disk before the end"
		assert_status 137 faulty FAULT_KINDS=d "FAULT_AT=$((steps - back))" import --confirm 1s "$STATE/list"
		await "xc status 2>/dev/null | grep -q 'effect: *filters'" 'xc expire >/dev/null 2>&1 || :'
		assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
		expect drop
	done
}

# When the commit fails, the keys of the change are already in the table. They are removed, and nothing else is.
test_a_change_that_cannot_be_committed_is_taken_back() {
	block_one
	xc add 192.0.2.70 timeout 1h >/dev/null
	printf '%s\n' 'add 203.0.113.1' 'add 203.0.113.2 timeout 1h' 'del 203.0.113.1' 'del 192.0.2.66' 'add 192.0.2.66' \
		'del 192.0.2.70' >"$STATE/lines"
	for options in '' --compact; do
		assert_status 0 xc unload --all
		# shellcheck disable=SC2086 # words
		assert_status 0 xc load vrx $options
		at=20
		until grep -q 'cannot write to the store' "$STATE/err" 2>/dev/null; do
			case_begin "${options:-exact}, step $at of the disk"
			xc flush >/dev/null
			printf '192.0.2.66\n192.0.2.70 timeout 1h\n' | xc import - >/dev/null
			run faulty FAULT_KINDS=d "FAULT_AT=$at" FAULT_ERRNO=28 batch --strict "$STATE/lines"
			at=$((at + 1))
			[ "$at" -lt 100 ] || fail "the commit has not failed"
		done
		assert_status 0 xc check
		expect drop
	done
}

# One change adds a network and an exception to it, of a kind that no other rule has. No packet of the exception is dropped
# meanwhile, also if there were no drop rules before: then no kind of drop rule is known to packets until the commit.
test_an_exception_comes_with_its_rule() {
	xc load vrx >/dev/null
	printf 'add 198.48.0.0/12\nadd 198.51.100.64/28 action pass\n' >"$STATE/lines"
	printf '#!/bin/sh\ntouch "%s/stopped"\nuntil [ -e "%s/go" ]; do sleep 0.05; done\n' "$STATE" "$STATE" >"$STATE/stop"
	chmod +x "$STATE/stop"
	for before in '192.0.2.1 action pass' 192.0.2.1; do
		for back in 2 4 6 8 10; do
			case_begin "beside $before, step $back of the disk before the last"
			xc flush --force >/dev/null
			# shellcheck disable=SC2086 # words
			xc add $before >/dev/null
			assert_status 0 faulty "FAULT_COUNT=$STATE/count" batch "$STATE/lines"
			xc del 198.48.0.0/12 >/dev/null
			xc del 198.51.100.64/28 action pass >/dev/null
			rm -f "$STATE/stopped" "$STATE/go"
			faulty FAULT_KINDS=d "FAULT_AT=$(($(sed -n 's/^d //p' "$STATE/count") - back))" \
				"FAULT_RUN=$STATE/stop" \
				batch "$STATE/lines" >"$STATE/out" 2>&1 &
			wait_for "the step" [ -e "$STATE/stopped" ]
			flows pass 198.51.100.66 | traffic >"$STATE/seen" 2>&1 || touch "$STATE/lost"
			touch "$STATE/go"
			wait "$!" || fail "$(cat "$STATE/out")"
			[ ! -e "$STATE/lost" ] || fail "the exception is dropped"
		done
	done
	flows drop 198.51.100.63 pass 198.51.100.66 | traffic || fail "not in force"
}

# owned: the rules with their owners, and how many each list has.
owned() {
	xc list --json
	xc lists | awk '{ print $1, $2 }'
}

# Kills at writes to the disk and to the filter's memory leave the old list with all its owners, or the new one.
test_kill_while_a_list_is_refreshed() {
	silence
	block_one
	printf '203.0.113.%s\n' 1 2 3 >"$STATE/old"
	printf '203.0.113.%s\n' 3 5 >"$STATE/new"
	assert_status 0 xc import "$STATE/old" --list b
	assert_status 0 xc add 203.0.113.3 timeout 300d
	assert_status 0 xc import "$STATE/new" --list a --replace
	owned | sed 's/"timeout_s": [0-9]*/timed/' >"$STATE/owned.new"
	assert_status 0 xc import "$STATE/old" --list a --replace
	owned | sed 's/"timeout_s": [0-9]*/timed/' >"$STATE/owned.old"
	faulty "FAULT_COUNT=$STATE/count" import --list a --replace "$STATE/new" >/dev/null 2>&1 || fail "no import"
	killed=0
	awk '$1 == "d" { for (i = $2; i > 0; i -= int($2 / 16) + 1) print "d" i }
		$1 == "s" { for (i = $2; i > 0; i -= int($2 / 4) + 1) print "s" i }' "$STATE/count" >"$STATE/steps"
	while read -r at; do
		case_begin "$at"
		assert_status 0 xc import "$STATE/old" --list a --replace
		run faulty "FAULT_KINDS=${at%%[0-9]*}" "FAULT_AT=${at#?}" import --list a --replace "$STATE/new"
		[ "$STATUS" -ne 137 ] || killed=$((killed + 1))
		assert_status 0 xc expire
		owned | sed 's/"timeout_s": [0-9]*/timed/' >"$STATE/owned"
		cmp -s "$STATE/owned" "$STATE/owned.old" || diff "$STATE/owned.new" "$STATE/owned" || fail "neither"
		assert_status 0 xc check
		expect drop
	done <"$STATE/steps"
	[ "$killed" -gt 8 ] || fail "killed $killed times only"
	note "$killed kills"
}

# --- the disk

test_full_disk() {
	mkdir "$STATE/store"
	mount -t tmpfs -o size=400k tmpfs "$STATE/store" 2>/dev/null || skip "no tmpfs may be mounted here"
	on_exit "umount $STATE/store"
	block_one
	many_addresses 20000 >"$STATE/list"
	refused 4 'cannot write to the store: No space left .*; free some space' xc import "$STATE/list"
	refused 4 'cannot write to the store: No space left' xc import --replace "$STATE/list"
	all_is_well
	case_begin "to the last byte"
	dd if=/dev/zero of="$STATE/store/filler" bs=4096 2>/dev/null || :
	run xc add 192.0.2.78
	[ "$STATUS" -eq 0 ] || refused 4 'No space left|no space left' xc add 192.0.2.78
	assert_shows '^src 192.0.2.66$' xc list
	rm "$STATE/store/filler"
	assert_status 0 xc del 192.0.2.77
}

# As at the boot of a host whose root nobody can write: what is stored filters.
test_read_only_root() {
	silence
	xc add 192.0.2.66 >/dev/null
	xc add 192.0.2.68 timeout 1h >/dev/null
	mount --bind "$STATE/store" "$STATE/store" && on_exit "umount $STATE/store"
	mount -o remount,bind,ro "$STATE/store" 2>/dev/null || skip "nothing may be mounted read-only here"
	assert_fails 3 'nothing could confirm or undo the load' xc load vrx --confirm 1m
	assert_status 0 xc load vrx --monitor-only
	assert_error '^note: the store is on a read-only file system: its rules are used, and nothing is stored'
	assert_shows '^effect: +MONITOR-ONLY' xc status
	assert_fails 3 "its filter runs already on 'vrx': it stays as it is" xc load vrx
	assert_fails 3 'store .*: Read-only file system' xc check
	assert_shows '^effect: +MONITOR-ONLY' xc status
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx
	assert_shows '^effect: +filters$' xc status
	assert_shows '^condition: +equal to the store$' xc status
	assert_shows '^running filter: agrees$' xc test 192.0.2.66
	assert_shows '^running filter: agrees$' xc test 192.0.2.68
	refused 3 'store .*: Read-only file system' xc add 192.0.2.77
	refused 3 'store .*: Read-only file system' xc del 192.0.2.66
	assert_status 0 xc unload vrx
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_shows '^running filter: agrees$' xc test 192.0.2.66
	refused 3 'store .*: Read-only file system' xc --state "$STATE/store/none" load vtx
	mount -o remount,bind,rw "$STATE/store"
	assert_status 0 xc del 192.0.2.66
	assert_status 1 xc test 192.0.2.66
	assert_output '^running filter: agrees$'
}

test_read_only_disk() {
	block_one
	mount --bind "$STATE/store" "$STATE/store" && on_exit "umount $STATE/store"
	mount -o remount,bind,ro "$STATE/store" 2>/dev/null || skip "nothing may be mounted read-only here"
	refused 3 'store .*: Read-only file system: make it writable, or copy this directory' xc add 192.0.2.77
	assert_shows '^src 192.0.2.66$' xc list
	assert_status 0 xc status --verbose
	assert_status 0 xc panic
	assert_status 0 xc panic off
	mount -o remount,bind,rw "$STATE/store"
	all_is_well
}

# damage BYTES: cuts the store's file to so many.
damage() {
	head -c "$1" "$STATE/sound" >"$STATE/store/default/data.mdb"
}

# Commands refuse a cut store; none of them ends by a signal.
test_cut_store() {
	block_one
	many_addresses 5000 >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	xc list >"$STATE/listed"
	cp "$STATE/store/default/data.mdb" "$STATE/sound"
	pages=$(($(stat -c %s "$STATE/sound") / 4096))
	for bytes in 1 100 4096 8192 12288 65536 $((pages * 2048 / 4096 * 4096)); do
		for command in list 'add 192.0.2.77' check 'import /dev/null --force' expire; do
			case_begin "$command with $bytes bytes left"
			damage "$bytes"
			# shellcheck disable=SC2086 # words
			refused 3 'data.mdb is damaged' xc $command
		done
	done
	case_begin "as JSON"
	assert_status 3 xc list --json
	"$HELPERS/json_check" <"$STATE/err" || fail "not JSON: $(cat "$STATE/err")"
	case_begin "a sound copy"
	cp "$STATE/sound" "$STATE/store/default/data.mdb"
	assert_status 0 xc check
	assert_equal "$(cat "$STATE/listed")" "$(xc list)" "rules"
}

# Damage at random places: each command answers as on the sound store, or refuses. None ends by a signal, or hangs.
test_garbled_stores() {
	silence
	{
		awk 'BEGIN { for (i = 1; i <= 600; i++) printf "203.%d.%d.%d\n", i % 3, i * 7 % 250, i * 13 % 250 + 1 }'
		awk 'BEGIN { for (i = 1; i <= 100; i++) printf "2001:db8:%x::/48\n", i * 77 }'
	} >"$STATE/a"
	awk 'BEGIN { for (i = 1; i <= 100; i++) printf "proto tcp src 192.0.%d.%d dport 443\n", i % 3 + 5, i * 2 }' >"$STATE/b"
	assert_status 0 xc import "$STATE/a" --list a
	assert_status 0 xc import "$STATE/b" --list b
	assert_status 0 xc add 198.51.100.0/28
	run in_rx python3 tests/helpers/garbled.py "$TOOL" "$STATE/store" "$SEED" "$GARBLED"
	cat "$STATE/out"
	[ "$STATUS" -eq 0 ] || fail "SEED=$SEED: $(cat "$STATE/err")"
	note "$(tail -n 1 "$STATE/out")"
}

# The guard looks for a pass rule beside a damaged one. It must not take what it cannot read for a flow that nothing blocks.
test_a_damaged_rule_does_not_disarm_the_guard() {
	block_one
	assert_status 0 xc add 198.51.102.201 action pass comment damaged
	cp "$STATE/store/default/data.mdb" "$STATE/sound"
	# In the same file: the tool takes another one for a copy, and notes that.
	sed 's/damaged/\xff\xff\xff\xff\xff\xff\xff/' "$STATE/sound" | dd of="$STATE/store/default/data.mdb" conv=notrunc status=none
	refused 3 'data.mdb is damaged' xc list
	refused 3 'data.mdb is damaged' env SSH_CONNECTION='198.51.102.200 50000 192.0.2.9 22' \
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" add 198.51.102.200
	cmp -n 8192 "$STATE/sound" "$STATE/store/default/data.mdb" || fail "the store was changed"
	cp "$STATE/sound" "$STATE/store/default/data.mdb"
	assert_status 0 xc check
}

# LMDB's own limit of 32 GiB, made small for the test.
test_full_address_space() {
	block_one
	many_addresses 20000 >"$STATE/list"
	refused 4 'cannot write to the store: No space left' faulty FAULT_MAP=300000 import "$STATE/list"
	all_is_well
}

# --- the kernel

# bpf(2) fails from some call on: while the filter is searched, its maps are made, or its program is loaded.
test_refusing_kernel() {
	block_one
	for errno in 12:'(no memory|Cannot allocate memory)' 7:'Argument list too long' 1:'(not permitted|CAP_SYS_ADMIN)' \
		24:'Too many open files'; do
		for call in 1 5 15 25 30 35; do
			case_begin "errno ${errno%%:*} from call $call on"
			run faulty FAULT_KINDS=k "FAULT_ERRNO=${errno%%:*}" "FAULT_AT=$call" FAULT_LASTS=1 resize 300000
			[ "$STATUS" -ge 3 ] || fail "status $STATUS: $(cat "$STATE/err")"
			assert_error "^xdp-cuckoo: .*${errno#*:}"
			expect drop
		done
	done
	case_begin ''
	all_is_well
}

# After the commit the tool reads the kernel's clock to set a key's new end. A failure is reported, and nothing else.
test_what_settling_lacks_is_told() {
	xc load vrx >/dev/null
	xc add 192.0.2.66 timeout 2h >/dev/null
	: >"$STATE/told"
	for call in $(seq 1 40); do
		run faulty FAULT_KINDS=k FAULT_ERRNO=12 "FAULT_AT=$call" FAULT_LASTS=1 add 192.0.2.66 timeout 3h
		cat "$STATE/err" >>"$STATE/told"
	done
	grep -q "cannot read the kernel's clock: " "$STATE/told" || fail "the clock was always read: $(cat "$STATE/told")"
	! grep 'a table lacked' "$STATE/told" || fail "no key was missing"
	assert_status 0 xc check
	expect drop
}

# If the kernel refuses a step of the exchange, the old filter stays.
test_another_version() {
	block_one
	in_rx "$HELPERS/corrupt" version >/dev/null || fail "the version does not change"
	for call in 5 15 25 35; do
		case_begin "out of memory from call $call on"
		run faulty FAULT_KINDS=k FAULT_ERRNO=12 "FAULT_AT=$call" FAULT_LASTS=1 expire
		[ "$STATUS" -ge 3 ] || fail "status $STATUS: $(cat "$STATE/err")"
		xc status | grep -q 'condition: *of another version' || fail "it was exchanged"
		expect drop
	done
	case_begin ''
	assert_notes "replaced the filter of another version on vrx by this version's" xc expire
	all_is_well
}

# On two interfaces, the tool is killed before, between and after the two exchanges. The next command finishes them.
test_kills_while_another_version_goes() {
	second_pair
	block_one
	xc load vrx2 >/dev/null
	in_rx "$HELPERS/corrupt" version >/dev/null || fail "the version does not change"
	faulty "FAULT_COUNT=$STATE/count" expire >/dev/null 2>&1 || fail "it is not exchanged"
	for at in 'k 0' 'n 0' 'n 2' 's 0'; do
		steps=$(sed -n "s/^${at% *} //p" "$STATE/count")
		case_begin "${at% *}, ${at#* } before the last of $steps"
		xc unload --all >/dev/null
		xc load vrx vrx2 >/dev/null
		in_rx "$HELPERS/corrupt" version >/dev/null || fail "the version does not change"
		assert_status 137 faulty "FAULT_KINDS=${at% *}" "FAULT_AT=$((steps - ${at#* }))" expire
		expect drop
		assert_status 0 xc expire
		expect drop
		assert_status 0 xc check
		! xc status | grep -q 'of another version' || fail "it is not exchanged"
	done
	case_begin ''
	all_is_well
}

# As root the tool ignores pins: it does not matter whether they stay.
test_lost_pins() {
	pins=/sys/fs/bpf/xc$$pins
	bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)
	mkdir "$pins" 2>/dev/null || skip "no BPF file system is mounted"
	on_exit "rm -rf $pins"
	"$bpftool" prog load "$OBJECT" "$pins/program" type xdp pinmaps "$pins/maps" 2>/dev/null ||
		fail "bpftool does not load"
	in_rx "$bpftool" net attach xdp pinned "$pins/program" dev vrx
	block
	expect drop
	rm -rf "$pins"
	expect drop
	all_is_well
}

# --- interfaces, while a command is at work

# meddle COMMAND: evaluates it while batch waits for its next line.
meddle() {
	meanwhile=$1
	mkfifo "$STATE/pipe"
	in_rx "$TOOL" --state "$STATE/store" batch - <"$STATE/pipe" >"$STATE/answers" 2>"$STATE/err" &
	batch=$!
	exec 7>"$STATE/pipe"
	echo 'add 192.0.2.66' >&7
	await "grep -q added '$STATE/answers'"
	eval "$meanwhile"
	echo 'add 192.0.2.77' >&7
	exec 7>&-
	STATUS=0
	wait "$batch" || STATUS=$?
	rm "$STATE/pipe"
	assert_equal 0 "$STATUS" "status; $(cat "$STATE/err")"
	assert_equal 'added added' "$(xargs <"$STATE/answers")" "answers"
}

# A change fails, and so does its removal from the table. The same process goes on with other changes.
test_batch_goes_on_after_a_failed_change() {
	xc load vrx >/dev/null
	printf 'add 192.0.2.%s\n' 1 2 3 4 5 6 7 8 >"$STATE/lines"
	tried=0 call=0 STATUS=3
	while [ "$STATUS" -ne 0 ]; do
		call=$((call + 3)) tried=$((tried + 1))
		run faulty FAULT_KINDS=dknmpa FAULT_ERRNO=12 "FAULT_AT=$call" FAULT_LASTS=1 batch "$STATE/lines"
		xc expire >/dev/null 2>&1
		xc check >"$STATE/checked" || fail "from call $call on, then repaired: $(cat "$STATE/checked")"
		grep -Eq ' 0 +0$' "$STATE/checked" || fail "from call $call on, then repaired: $(cat "$STATE/checked")"
		xc flush >/dev/null 2>&1 || :
	done
	[ "$tried" -gt 20 ] || fail "only $tried calls failed"
	note "$tried times"
}

# rename_interface FROM TO: by steps, since not every kernel renames one that is up.
rename_interface() {
	ip -n "$RX" link set dev "$1" down
	ip -n "$RX" link set dev "$1" name "$2"
	ip -n "$RX" link set dev "$2" up
}

test_renamed_interface() {
	silence
	xc load vrx >/dev/null
	meddle 'rename_interface vrx vrx9'
	assert_shows 'vrx9' xc status
	rename_interface vrx9 vrx
	expect drop
}

test_deleted_interface() {
	xc load vrx >/dev/null
	meddle 'ip -n "$RX" link del vrx'
	assert_equal 'src 192.0.2.66 src 192.0.2.77' "$(xc list | xargs)" "rules"
	assert_fails 1 'no filter .default. is running here' xc check
	assert_fails 2 "there is no interface 'vrx' here" xc load vrx
}

test_removed_program() {
	silence
	xc load vrx >/dev/null
	meddle 'ip -n "$RX" link set dev vrx xdp off'
	assert_status 0 xc load vrx
	expect drop
}

# A command searches the filter without a lock. Before each of its kernel calls, another table and program take the
# place of the running ones.
test_exchanged_while_looked_at() {
	block_one
	cat >"$STATE/exchange" <<-END
		#!/bin/sh
		if rm "$STATE/large" 2>/dev/null; then capacity=900; else capacity=5000; : >"$STATE/large"; fi
		"$TOOL" --state "$STATE/store" resize \$capacity >/dev/null && echo >>"$STATE/exchanged"
	END
	chmod +x "$STATE/exchange"
	for command in stats panic 'panic off'; do
		for call in $(seq "$EXCHANGES"); do
			case_begin "$command at call $call"
			# shellcheck disable=SC2086 # words
			assert_status 0 faulty FAULT_KINDS=kn "FAULT_AT=$call" "FAULT_RUN=$STATE/exchange" $command
		done
	done
	expect drop
	assert_equal $((3 * EXCHANGES)) "$(wc -l <"$STATE/exchanged")" "exchanges"
}

# `unload` takes no lock. If new maps replace the old ones meanwhile, the filter does not miss the interface.
test_unloaded_while_new_maps_come() {
	block_one
	second_pair
	for outer in resize unload; do
		for part in $(seq 0 15); do
			case_begin "$part sixteenths of $outer"
			xc load vrx2 >/dev/null 2>&1
			resize="resize $((1000000 - 900000 * (part % 2)))" # not within the same maps
			inner='unload vrx2'
			command=$resize
			[ "$outer" = resize ] || { inner=$resize; command='unload vrx2'; }
			printf '#!/bin/sh\n%s --state %s %s\n' "$TOOL" "$STATE/store" "$inner" >"$STATE/inner"
			chmod +x "$STATE/inner"
			fault="FAULT_COUNT=$STATE/count"
			[ "$part" -eq 0 ] || fault="FAULT_KINDS=dknm FAULT_AT=$((calls * part / 16)) FAULT_RUN=$STATE/inner"
			# shellcheck disable=SC2086 # words
			assert_status 0 faulty $fault $command
			[ "$part" -ne 0 ] || calls=$(awk '/^[dknm]/ { calls += $2 } END { print calls }' "$STATE/count")
			[ "$part" -eq 0 ] || assert_shows 'effect: +filters$' xc status
		done
	done
	expect drop
}

# Whoever reads counts while a table is replaced, in the same maps or by new ones, sees what the rule has counted before.
test_counts_do_not_go_back_while_a_table_is_replaced() {
	block_one
	expect drop
	xc list --counters | grep -o 'packets .*' >"$STATE/before"
	grep -q 'packets [1-9]' "$STATE/before" || fail "$(cat "$STATE/before")"
	printf '#!/bin/sh\n"%s" --state "%s" list --counters >>"%s"\n' "$TOOL" "$STATE/store" "$STATE/seen" >"$STATE/look"
	chmod +x "$STATE/look"
	for capacity in 900 400000; do
		for back in 0 1 2 3; do
			case_begin "$capacity, $back stores before the end"
			xc resize 2000 >/dev/null
			steps=$(stores 0 resize "$capacity")
			xc resize 2000 >/dev/null
			assert_status 0 faulty FAULT_KINDS=s "FAULT_AT=$((steps - back))" "FAULT_RUN=$STATE/look" resize "$capacity"
		done
	done
	case_begin ''
	[ "$(wc -l <"$STATE/seen")" -ge 8 ] || fail "$(wc -l <"$STATE/seen") looks"
	! grep -vF "$(cat "$STATE/before")" "$STATE/seen" || fail "other counts than $(cat "$STATE/before")"
}

# A filter starts before one of the calls by which a command searches for it. The command finds it or says that there is
# none, and never suggests the name it was given.
test_started_while_looked_at() {
	silence
	printf '#!/bin/sh\n"%s" --state "%s" load vrx >"%s"\n' "$TOOL" "$STATE/store" "$STATE/loaded" >"$STATE/start"
	chmod +x "$STATE/start"
	for call in $(seq 12); do
		case_begin "at call $call"
		faulty FAULT_KINDS=kn "FAULT_AT=$call" "FAULT_RUN=$STATE/start" stats >"$STATE/out" 2>"$STATE/err" ||
			grep -q "no filter 'default' is running here; see xdp-cuckoo status, or run it" "$STATE/err" ||
			fail "$(cat "$STATE/err")"
		[ ! -s "$STATE/loaded" ] || started=$call
		: >"$STATE/loaded"
		ip -n "$RX" link set dev vrx xdp off
	done
	[ "${started-0}" -gt 4 ] || fail "it was started at its first calls only: ${started-none}"
}

# Another program has taken the filter's place: no command takes it off.
test_replaced_program() {
	silence
	xc load vrx >/dev/null
	meddle 'ip -n "$RX" -force link set dev vrx xdp obj "$HELPERS/live_rival.bpf.o" sec xdp'
	assert_fails 5 "'vrx' runs another XDP program" xc load vrx
	assert_status 1 xc unload vrx
	ip -n "$RX" link set dev vrx xdp off
	assert_status 0 xc load vrx
	expect drop
}

# --- processes and files of the tool itself

# If no watchdog can be started, the tool says so. From the deadline on everything passes all the same.
test_no_process_for_the_watchdog() {
	block_one
	echo 192.0.2.77 >"$STATE/list"
	assert_status 3 faulty FAULT_KINDS=p FAULT_AT=1 FAULT_ERRNO=11 import "$STATE/list" --confirm 1h
	assert_error 'cannot start the process that would undo it: Resource temporarily unavailable; everything passes'
	assert_status 0 xc confirm
	assert_equal 'src 192.0.2.66 src 192.0.2.77' "$(xc list | xargs)" "rules"
	assert_status 3 faulty FAULT_KINDS=p FAULT_AT=1 FAULT_ERRNO=11 load vrx lo --confirm 1h
	assert_status 0 xc confirm
	expect drop
}

# A signal finds the rule stored and in force, or neither.
test_a_signal_during_a_change() {
	silence
	xc load vrx >/dev/null
	assert_status 0 faulty "FAULT_COUNT=$STATE/count" add 192.0.2.66
	steps=$(awk '$1 ~ /[sd]/ { steps += $2 } END { print steps }' "$STATE/count")
	# shellcheck disable=SC2016 # of the shell that runs it
	export FAULT_RUN='kill -TERM $PPID'
	for at in $(seq "$steps"); do
		case_begin "step $at of $steps"
		xc del 192.0.2.66 >/dev/null
		run faulty FAULT_KINDS=sd "FAULT_AT=$at" add 192.0.2.66
		if [ -n "$(xc list)" ]; then expect drop; else expect pass; fi
	done
}

# at_each_store VERDICTS COMMAND...: before each store of the command the kernel is asked about packets of 192.0.2.66 and .67,
# and always drops (D) or passes (P) them so. tests/unit/core/change/test_every_store.c goes through changes, without a kernel.
at_each_store() {
	store_verdicts=$1
	shift
	printf '#!/bin/sh\nexec "%s" vrx "%s" "%s" >>"%s"\n' "$HELPERS/verdicts" "$BLOCKED" "$OTHER" "$STATE/seen" >"$STATE/ask"
	chmod +x "$STATE/ask"
	: >"$STATE/seen"
	assert_status 0 faulty FAULT_KINDS=snk FAULT_AT=1 FAULT_LASTS=1 "FAULT_RUN=$STATE/ask" "$@"
	in_rx "$STATE/ask"
	assert_equal "$store_verdicts" "$(sort -u "$STATE/seen" | xargs)" "verdicts during $*"
}

# A drop rule that has ended comes back while the rule goes that had the same packets meanwhile.
test_a_rule_that_had_ended_comes_back() {
	silence
	xc load vrx >/dev/null
	printf 'add 192.0.2.66 timeout 1s\nadd 192.0.2.0/26\nadd 192.0.2.64/26\n' | xc batch - >/dev/null
	wait_for "its end" eval '! xc list 192.0.2.66/32 | grep -q "src 192.0.2.66 "'
	printf 'del 192.0.2.64/26\nadd 192.0.2.66 timeout 1h\nadd 192.0.2.67\n' >"$STATE/lines"
	at_each_store DD batch --strict "$STATE/lines"
}

# Killed at each of its last steps: neither what is left nor the repair by the next command shows a mixture.
test_repair() {
	silence
	xc load vrx >/dev/null
	set -- 'add 192.0.2.66' 'add 192.0.2.0/24' 'add 192.0.2.67 action pass' 'del 10.79.0.1' 'del 192.0.2.66 proto udp dport 2'
	printf '%s\n' "$@" >"$STATE/old"
	printf '%s\n' "$@" | sed 's/^del/ADD/; s/^add/del/; s/^ADD/add/' >"$STATE/new"
	xc batch "$STATE/old" >/dev/null 2>&1 || :
	steps=$(stores 0 batch --strict "$STATE/new")
	for back in $(seq 0 2 32); do
		xc batch "$STATE/old" >/dev/null 2>&1 || :
		case_begin "killed $back stores before the end"
		run faulty FAULT_KINDS=s "FAULT_AT=$((steps - back))" batch --strict "$STATE/new"
		at_each_store DP expire
	done
}

# The last that a failing disk takes may be the commit. The change is undone all the same.
test_a_disk_that_fails_at_the_commit() {
	block_one
	last=$(faulty FAULT_COUNT="$STATE/count" policy malformed drop --confirm 1h >/dev/null 2>&1; sed -n 's/^d //p' "$STATE/count")
	done=0
	for step in $(seq "$last"); do
		case_begin "step $step"
		xc confirm --force >/dev/null 2>&1 || :
		assert_status 0 xc policy malformed pass
		run faulty FAULT_KINDS=d FAULT_AT="$step" FAULT_LASTS=1 FAULT_ERRNO=5 policy malformed drop --confirm 1h
		[ "$STATUS" -ne 0 ] && continue
		done=$((done + 1))
		assert_error 'this is undone at'
	done
	assert_equal 1 "$((done > 1))" "done, in spite of the disk"
	xc confirm >/dev/null
}

test_no_more_files() {
	block_one
	for call in 1 2 3 4; do
		case_begin "from call $call on"
		refused 3 'Too many open files' faulty FAULT_KINDS=d FAULT_ERRNO=24 "FAULT_AT=$call" FAULT_LASTS=1 add 192.0.2.77
	done
	case_begin ''
	all_is_well
}

to_a_full_device() {
	"$@" >/dev/full
}

# If the output cannot be written, the status is 3. A change is made all the same.
test_full_output() {
	[ -c /dev/full ] || skip "no /dev/full"
	block_one
	echo 'del 192.0.2.1' >"$STATE/lines"
	for command in list 'list --json' status stats export 'export --format nft' 'test 192.0.2.66' policy check \
		version 'add 192.0.2.77' expire 'top --count 1' 'top --count 1 --json' "batch $STATE/lines"; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_fails 3 'cannot write .*No space left on device' to_a_full_device xc $command
		! grep -v 'cannot write' "$STATE/err" | grep -E 'xdp-cuckoo:|error' || fail "another error"
	done
	case_begin ''
	assert_equal 'src 192.0.2.66 src 192.0.2.77' "$(xc list | xargs)" "rules"
	expect drop
}

# If nobody reads the output, the tool ends by a signal or with status 3, not with success.
test_broken_pipe() {
	block_one
	many_addresses 30000 >"$STATE/list"
	xc import "$STATE/list" >/dev/null 2>&1
	for command in list 'list --json' export 'export --format nft'; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		{ piped=0; xc $command 2>/dev/null || piped=$?; echo "$piped" >"$STATE/status"; } | head -c 1 >/dev/null
		case $(cat "$STATE/status") in
		3 | 141) ;;
		*) fail "status $(cat "$STATE/status")" ;;
		esac
	done
}

test_closed_input() {
	block_one
	assert_status 2 xc import --replace - <&-
	assert_status 0 xc batch - <&-
	assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
	expect drop
}

# Whatever allocation fails, no filter runs that the tool does not know or has not filled.
test_no_memory_to_load() {
	xc add 203.0.113.1 >/dev/null 2>&1
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	for command in 'load vrx' "up $STATE/conf"; do
		# shellcheck disable=SC2086 # words
		assert_status 0 faulty FAULT_COUNT="$STATE/count" $command
		steps=$(awk '$1 == "a" { print $2 }' "$STATE/count")
		for at in $(seq "$steps"); do
			case_begin "$command, allocation $at of $steps"
			xc unload vrx >/dev/null 2>&1 || :
			# shellcheck disable=SC2086 # words
			run faulty FAULT_KINDS=a FAULT_AT="$at" FAULT_ERRNO=12 $command
			failed=$STATUS
			[ -n "$(program_id vrx)" ] || continue
			case $command in load*) assert_equal 0 "$failed" "status, and it runs" ;; esac
			assert_shows '^effect: +filters$' xc status
		done
	done
}

run_tests "$0" "$@"
