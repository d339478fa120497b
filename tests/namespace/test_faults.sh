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
# Of hundreds of calls each so manyth is tried, from another one on at each run.
STRIDE=${STRIDE:-5}
GARBLED=${GARBLED:-50}

# Of all fast commands, and of some slow ones; make test-faults tries them all. Every step of a change, without a kernel, is
# that of tests/unit/core/change/test_every_store.c and test_failures.c.
test_kills_and_failing_calls() {
	echo "SEED=$SEED"
	second_pair
	for slow in grows resize --replace; do
		faults --kills "$((KILLS / 4))" --only "$slow" >"$STATE/faults" || fail "$(cat "$STATE/faults")"
	done
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
	# An interface that comes later.
	printf '[filter]\ninterfaces = vrx vlate\nwait = 1m\nmonitor-only = yes\n' >"$STATE/conf"
	in_rx sh -c 'sleep 1; ip link add vlate type veth peer name vlate2' &
	assert_status 0 xc up "$STATE/conf"
	assert_output '^ +vlate +native +loaded$'
	assert_shows '^effect: +MONITOR-ONLY' xc status
	assert_status 0 xc unload vrx
	assert_status 0 xc unload vlate
	# While `up` waits, somebody takes the filter off: it is not called loaded.
	ip -n "$RX" link del vlate
	in_rx sh -c 'until [ "$(ip -d link show vrx | grep -c prog/xdp)" = 1 ]; do sleep 0.1; done
		"$1" --state "$2" unload --all; ip link add vlate type veth peer name vlate2' sh "$TOOL" "$STATE/store" &
	assert_status 0 xc up "$STATE/conf"
	assert_output '^ +vrx +native +loaded$'
	[ -n "$(program_id vrx)" ] || fail "vrx runs no filter"
	assert_status 0 xc unload --all
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_shows '^running filter: agrees$' xc test 192.0.2.66
	assert_notes 'until you make it writable, commands change, confirm and undo no rules' xc status
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
	# A trial ends there, too, and what it has stored ends when that can be written.
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx --monitor-only --confirm 2s
	mount -o remount,bind,ro "$STATE/store"
	wait_for 'the end of the trial' eval '[ -z "$(program_id vrx)" ]'
	mount -o remount,bind,rw "$STATE/store"
	wait_for 'the end of the watchdog' eval '[ -z "$(watchdogs)" ]'
	assert_status 0 xc load vrx
	assert_shows '^effect: +filters$' xc status
	# Nobody is told to confirm what nobody can.
	assert_status 0 xc add 192.0.2.78 --confirm 2s
	mount -o remount,bind,ro "$STATE/store"
	wait_for 'the end of the time' eval 'xc status | grep -q "^effect: *UNCONFIRMED: passes everything until the store"'
	assert_status 1 xc status
	! grep -h 'confirm --force' "$STATE/out" "$STATE/err" || fail "advises what cannot be done"
	mount -o remount,bind,rw "$STATE/store"
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
	run in_rx $PYTHON tests/helpers/garbled.py "$TOOL" "$STATE/store" "$SEED" "$GARBLED"
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
		for call in 1 15 30 35; do
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
	for call in $(seq $((1 + SEED % 2)) 2 40); do
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
		for call in $(seq $((1 + SEED % STRIDE)) "$STRIDE" 25); do
			case_begin "$command at call $call"
			# shellcheck disable=SC2086 # words
			assert_status 0 faulty FAULT_KINDS=kn "FAULT_AT=$call" "FAULT_RUN=$STATE/exchange" $command
		done
	done
	expect drop
	assert_equal $((3 * 25 / STRIDE)) "$(wc -l <"$STATE/exchanged")" "exchanges"
}

# `unload` takes no lock. If new maps replace the old ones meanwhile, the filter does not miss the interface.
test_unloaded_while_new_maps_come() {
	block_one
	second_pair
	for outer in resize unload; do
		for part in 0 $(seq $((1 + SEED % 3)) 3 15); do
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

# A signal finds the rule stored and in force, or neither, and the command says which.
test_a_signal_during_a_change() {
	silence
	xc load vrx >/dev/null
	printf '192.0.2.66\n203.0.113.9\n' >"$STATE/list"
	for command in 'add 192.0.2.66' "import --replace $STATE/list"; do
		xc flush >/dev/null
		unset FAULT_RUN
		# shellcheck disable=SC2086 # words
		assert_status 0 faulty "FAULT_COUNT=$STATE/count" $command
		# shellcheck disable=SC2016 # of the shell that runs it
		export FAULT_RUN='kill -TERM $PPID'
		steps=$(awk '$1 ~ /[sd]/ { steps += $2 } END { print steps }' "$STATE/count")
		for at in $(seq 1 "$((1 + steps / 60))" "$steps"); do
			case_begin "$command, step $at of $steps"
			xc flush >/dev/null
			# shellcheck disable=SC2086
			run faulty FAULT_KINDS=sd "FAULT_AT=$at" $command
			if [ -n "$(xc list)" ]; then expect drop; else expect pass; fi
			[ "$STATUS" -ne 3 ] || { assert_error 'interrupted: nothing was changed' && assert_equal '' "$(xc list)" rules; }
		done
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
		for at in $(seq $((1 + SEED % STRIDE)) "$STRIDE" "$steps"); do
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
