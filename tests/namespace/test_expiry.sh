#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Timeouts: the kernel ends rules by itself, and neither clock steps nor reboots change when. The machine's
# clock is never set: the tool sees another one. SEED=N repeats a run.
. tests/lib.sh

LATE_S=${LATE_S:-30} # after the end of a rule, by when its packets must pass: generous, for busy machines

# --- clocks

# xc_at WALL ARGUMENT...: runs the tool with the wall clock moved by so many seconds.
xc_at() {
	CLOCK_SHIFT_S=$1
	shift
	in_rx env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" CLOCK_SHIFT_S="$CLOCK_SHIFT_S" \
		"$TOOL" --state "$STATE/store" "$@"
}

# reboot_at WALL ARGUMENT...: the same in another boot, which began a minute ago, named by $BOOT.
reboot_at() {
	CLOCK_SHIFT_S=$1
	shift
	if [ "$BOOT" != "${LAST_BOOT:-}" ]; then
		LAST_BOOT=$BOOT
		BOOT_SHIFT_S=-$(($(now_ms) / 1000 - 60))
		echo "00000000-0000-4000-8000-00000000000$BOOT" >"$STATE/boot_id"
	fi
	in_rx unshare -m sh -c 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"' \
		sh "$STATE/boot_id" env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" \
		CLOCK_SHIFT_S="$CLOCK_SHIFT_S" BOOT_SHIFT_S="$BOOT_SHIFT_S" \
		"$TOOL" --state "$STATE/store" "$@"
}

# --- what is left

# left RULE: the seconds that a listed rule has, by the list on standard input; "never", "gone".
left() {
	awk -v rule="$1" '
	function seconds(time,    unit, sum) {
		unit["w"] = 604800; unit["d"] = 86400; unit["h"] = 3600; unit["m"] = 60; unit["s"] = 1
		for (; match(time, /^[0-9]+[wdhms]/); time = substr(time, RLENGTH + 1))
			sum += substr(time, 1, RLENGTH - 1) * unit[substr(time, RLENGTH, 1)]
		return sum
	}
	$0 == rule { print "never"; found = 1 }
	index($0, rule " timeout ") == 1 {
		split(substr($0, length(rule) + 10), word, " ")
		print seconds(word[1])
		found = 1
	}
	END { if (!found) print "gone" }'
}

# assert_left SECONDS RULE COMMAND...: what `list` says by that command, less than a minute under; a second over, too, since
# after a reboot by a wrong clock time goes on where the store last saw it, which may be ms before the rule came.
assert_left() {
	expected_left=$1 expected_rule=$2
	shift 2
	run "$@" list
	seen_left=$(left "$expected_rule" <"$STATE/out")
	case $seen_left in
	[0-9]*)
		[ "$((expected_left + 1))" -ge "$seen_left" ] && [ "$((expected_left - 60))" -lt "$seen_left" ] && return
		;;
	"$expected_left") return ;;
	esac
	show_run
	fail "left of '$expected_rule': $seen_left, expected $expected_left"
}

# --- traffic

# try_verdict VERDICT ADDRESS...: whether all of them get this verdict.
try_verdict() {
	flows "$@" | traffic >/dev/null 2>"$STATE/wrong"
}

# assert_late START_MS SECONDS VERDICT ADDRESS...: they get it without any command so many seconds after START_MS, and not before.
assert_late() {
	end_ms=$(($1 + 1000 * $2))
	shift 2
	until try_verdict "$@"; do
		[ "$(now_ms)" -lt $((end_ms + 1000 * LATE_S)) ] || fail "not so $LATE_S s late: $*"
		sleep 0.05
	done
	late_ms=$(($(now_ms) - end_ms))
	[ "$late_ms" -ge 0 ] || fail "$((-late_ms)) ms too early: $*"
	note "ended $late_ms ms after its time"
}

# assert_ends START_MS SECONDS ADDRESS...: they are blocked so long and then pass, without any command.
assert_ends() {
	begin_ms=$1 lasts_s=$2
	shift 2
	try_verdict drop "$@" || fail_by $((begin_ms + 1000 * lasts_s)) "passed before its time was over: $(cat "$STATE/wrong")"
	assert_late "$begin_ms" "$lasts_s" pass "$@"
}

# --- tests

try_end() {
	xc load vrx "$@" >/dev/null
	start=$(now_ms)
	xc batch - >/dev/null <<-END
		add 192.0.2.1 timeout $((2 * SLOWER))s
		add 2001:db8::1 timeout $((2 * SLOWER))s
		add proto udp src 203.0.113.0/24 dport 2 timeout $((2 * SLOWER))s
		add 192.0.2.2 timeout 1h
		add 192.0.2.3
	END
	assert_ends "$start" $((2 * SLOWER)) 192.0.2.1 2001:db8::1 203.0.113.7
	assert_verdict drop 192.0.2.2 192.0.2.3
	assert_status 1 xc test 192.0.2.1
	assert_output 'running filter: agrees'
	assert_status 0 xc test 192.0.2.2
	assert_left 3600 'src 192.0.2.2' xc
	assert_left never 'src 192.0.2.3' xc
	assert_shows 'used slots: +5$' xc status --verbose
	assert_shows '^deleted rules: 3$' xc expire
	assert_left gone 'src 192.0.2.1' xc
	assert_status 0 xc status --verbose
	assert_output 'used slots: +2$'
	assert_output 'equal to the store'
	assert_status 0 xc check
	assert_shows '^deleted rules: 0$' xc expire
	assert_verdict pass 192.0.2.1 2001:db8::1 203.0.113.7
	assert_verdict drop 192.0.2.2 192.0.2.3
}

test_rules_end_by_themselves() {
	try_end
}

# A command is stopped in the middle of its change, for longer than check tolerates. The rules must not end later for
# that.
test_slow_changes_end_rules_in_time() {
	xc load vrx >/dev/null
	awk 'BEGIN { for (i = 0; i < 100000; i++) print "60." int(i / 65536) "." int(i / 256) % 256 "." i % 256 }' >"$STATE/list"
	for delay in 0.1 0.2 0.3 0.4; do
		case_begin "stopped after $delay s"
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" import --timeout 1h "$STATE/list" \
			>/dev/null 2>&1 &
		pid=$!
		on_exit "kill -9 $pid 2>/dev/null"
		sleep "$delay"
		kill -STOP "$pid" 2>/dev/null && sleep 3
		kill -CONT "$pid" 2>/dev/null || :
		wait "$pid" || fail "the import failed"
		assert_status 0 xc check
		xc flush --force >/dev/null
	done
}

# A delay between reading the kernel's clock and its own does not make a command end a rule early.
test_a_command_held_up_between_clocks_ends_no_rule_early() {
	xc load vrx >/dev/null
	start=$(now_ms)
	printf "add %s timeout $((5 * SLOWER))s\\n" 192.0.2.1 192.0.2.2 >"$STATE/lines"
	assert_status 0 in_rx env LD_PRELOAD="$PWD/$HELPERS/slow_tick.so" SLOW_TICK_S=2 \
		"$TOOL" --state "$STATE/store" batch "$STATE/lines"
	assert_ends "$start" $((5 * SLOWER)) 192.0.2.2
}

# age_table: makes the table look so old that its records cannot hold an end more than a second away.
age_table() {
	in_rx "$HELPERS/corrupt" epoch >/dev/null || fail "the epoch stays"
}

# counted: the permanent rules with their counts.
counted() {
	xc list --counters | grep -v timeout
}

# The new table has its own epoch and takes over the counts.
test_an_old_table_is_made_anew() {
	xc load vrx >/dev/null
	printf 'add %s\n' 192.0.2.1 192.0.2.0/28 203.0.113.0/24 | xc batch - >/dev/null
	assert_verdict drop 192.0.2.1 203.0.113.9 203.0.113.10
	counted >"$STATE/before"
	soon="timeout $((2 * SLOWER))s"
	for timed in "add 198.51.100.1 $soon" "add 192.0.2.2 action pass $soon" 'add 198.51.100.2 timeout 1h'; do
		case_begin "$timed"
		age_table
		start=$(now_ms)
		# shellcheck disable=SC2086 # words
		assert_notes 'rebuilt the table of .default. on vrx: it was too old' xc $timed
		case $timed in
		*pass*) assert_late "$start" $((2 * SLOWER)) drop 192.0.2.2 ;;
		*1h) assert_verdict drop 198.51.100.2 ;;
		*) assert_ends "$start" $((2 * SLOWER)) 198.51.100.1 ;;
		esac
	done
	assert_equal "$(sed 1,1d "$STATE/before")" "$(counted | sed 1,1d)" "counts"
	assert_status 0 xc check
	assert_equal "" "$(cat "$STATE/err")" "notes"
}

# Records can hold ends within 2^28 ticks: 2.2 years at 250 jiffies per second, 5.5 at 100.
test_what_ends_in_years_ends_by_expire() {
	xc load vrx >/dev/null
	years='timeout 400w'
	start=$(now_ms)
	# shellcheck disable=SC2086 # words
	assert_status 0 xc add 192.0.2.1 $years
	assert_status 0 xc add 192.0.2.2 timeout $((2 * SLOWER))s
	assert_equal '' "$(cat "$STATE/err")" "notes: the table is not old"
	assert_ends "$start" $((2 * SLOWER)) 192.0.2.2
	assert_verdict drop 192.0.2.1
	assert_status 0 xc resize 3000
	assert_verdict drop 192.0.2.1
	assert_status 0 xc check
	assert_left $((400 * 604800)) 'src 192.0.2.1' xc
	assert_status 0 in_rx env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" BOOT_SHIFT_S=$((401 * 604800)) \
		"$TOOL" --state "$STATE/store" expire
	assert_output '^deleted rules: 2$'
	assert_verdict pass 192.0.2.1
}

# Compact tables hold no times. Only expire ends their rules.
test_compact_tables_end_rules_by_expire() {
	xc load vrx --compact >/dev/null 2>&1
	xc batch - >/dev/null <<-'END'
		add 192.0.2.1 timeout 2s
		add 192.0.2.2 timeout 1h
	END
	wait_for "the end" eval '! xc test 192.0.2.1'
	assert_verdict drop 192.0.2.1 192.0.2.2
	assert_shows '^deleted rules: 1$' xc expire
	assert_verdict pass 192.0.2.1
	assert_verdict drop 192.0.2.2
	assert_shows 'used slots: +1$' xc status --verbose
}

test_expire_reclaims_slots() {
	xc load vrx >/dev/null
	awk 'BEGIN { for (i = 0; i < 20000; i++)
		printf "add 10.%d.%d.%d%s\n", i / 65536, i / 256 % 256, i % 256, i % 4 ? " timeout 1s" : "" }' |
		xc batch - >/dev/null
	wait_for "the end" eval '! xc test 10.0.78.31' # the last one
	assert_shows '^deleted rules: 15000$' xc expire
	assert_shows 'used slots: +5000$' xc status --verbose
	assert_status 0 xc check
}

# Its CLOCK_BOOTTIME is another one.
test_a_time_namespace() {
	assert_status 0 xc add 192.0.2.1 timeout 1h
	for offset in 1000000 -10; do
		assert_status 0 in_rx unshare -T --boottime "$offset" --fork "$TOOL" --state "$STATE/store" expire
		assert_equal 1 "$(xc list | grep -c 'timeout \(1h\|59m\)')" "rules, as long as before"
	done
}

# The host is off for an hour. Rules whose time was over by then have ended; the others go on in the new table.
test_reboots_count_by_the_wall_clock() {
	xc load vrx >/dev/null
	start=$(now_ms)
	xc batch - >/dev/null <<-'END'
		add 192.0.2.1 timeout 30m
		add 192.0.2.2 timeout 2h
		add 192.0.2.3
	END
	xc unload vrx >/dev/null
	BOOT=1
	assert_status 1 reboot_at 3600 test 192.0.2.1
	assert_left 3600 'src 192.0.2.2' reboot_at 3600
	reboot_at 3600 load vrx >/dev/null
	assert_verdict pass 192.0.2.1
	assert_verdict drop 192.0.2.2 192.0.2.3
	case_begin "a rule added in the second boot, and a third boot"
	start=$(now_ms)
	assert_status 0 reboot_at 3600 add 192.0.2.4 timeout 4h
	assert_status 0 reboot_at 3600 add 192.0.2.5 timeout $((2 * SLOWER))s
	assert_ends "$start" $((2 * SLOWER)) 192.0.2.5
	xc unload vrx >/dev/null
	BOOT=2
	assert_left 7200 'src 192.0.2.4' reboot_at 10800
	assert_left gone 'src 192.0.2.9' reboot_at 10800
	reboot_at 10800 load vrx >/dev/null
	assert_verdict pass 192.0.2.1 192.0.2.2 192.0.2.5
	assert_verdict drop 192.0.2.3 192.0.2.4
	assert_shows '^deleted rules: 3$' reboot_at 10800 expire
}

run_tests "$0" "$@"
