#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# top, on a terminal of its own: what it shows, its keys, other sizes, how it ends; and where there is no terminal.
. tests/lib.sh
. tests/fault/fault.sh

needs_terminals() {
	$PYTHON -c 'import pty; pty.openpty()' 2>/dev/null || skip "no pseudo-terminals here (/dev/pts)"
}

# terminal SIZE ARGUMENT...: the tool on a terminal of that size, which does what standard input says.
terminal() {
	needs_terminals
	size=$1
	shift
	$PYTHON tests/helpers/terminal.py "$size" nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@" ||
		fail "see above"
}

# under_traffic: packets that are dropped, on vrx2 of two interfaces, until the test ends.
under_traffic() {
	second_pair
	xc load vrx vrx2 "$@" >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_endlessly 0 vtx2 vrx2
}

test_figures_and_keys() {
	under_traffic
	terminal 80x24 top <<-'END'
	wait ^default: filters; loaded [0-9a-z]+ ago$
	wait ^dropped +[1-9][0-9.]*[kM]? packets/s +[1-9][0-9.]*[kMG] bits/s, [0-9.]+ % of all$
	wait ^passed +[0-9.]+[kM]? packets/s
	wait ^table +0.0 % of [0-9.]+[kM] slots, 1 filled
	wait ^dropped packets/s, at most [1-9]
	wait #
	wait ^interface by dropped
	wait ^vrx2 +[1-9][0-9.]*[kM]? +[1-9][0-9.]*[kMG] +[0-9]
	wait ^vrx +0 +0 +[0-9]
	wait ^ +[1-9][0-9.]*[kM]?  src 192.0.2.1$
	key s
	wait ^interface by passed
	key c
	wait ^CPU by passed
	wait ^0 +[1-9]
	key i
	wait ^interface by
	key p
	wait PAUSED$
	key c
	wait ^CPU by passed
	wait ^0 +[1-9]
	key i
	wait ^vrx2 +[1-9]
	key p
	wait ago$
	key ?
	wait ^q  +end
	key ?
	wait ^table
	key q
	end 0
	END
}

# The first figures do not wait for the end of a long interval.
test_long_interval() {
	under_traffic
	terminal 80x24 top --interval 1h <<-'END'
	wait ^vrx2 +[1-9]
	key q
	end 0
	END
}

# Interface names with control characters, with bytes that are not UTF-8, and with characters of several bytes.
test_odd_names_of_interfaces() {
	for name in 'v\033[31m' 'v\377x' '\303\251\303\251'; do
		set -- "$@" "$(printf %b "$name")"
		veth "$TX" "vtx$#" "$RX" "odd$#"
		ip -n "$RX" link set "odd$#" down
		ip -n "$RX" link set "odd$#" name "$(printf %b "$name")"
	done
	xc load "$@" >/dev/null 2>&1
	# All the width, whatever the bytes.
	terminal 80x24 top <<-'END'
	wait ^(?=v[?]\[31m ).{80}$
	wait ^(?=v[?]x ).{80}$
	wait ^(?=éé ).{80}$
	key q
	end 0
	END
	assert_status 0 xc top --json --count 1
	$PYTHON -c '
import json, sys
names = {row["interface"] for row in json.load(sys.stdin)["interfaces"]}
assert names == {"v?[31m", "v?x", "éé"}, names' <"$STATE/out" || fail "other names"
}

# Ctrl-Z: the shell has its terminal back; and goes on.
test_stopped_and_continued() {
	needs_terminals
	under_traffic
	# shellcheck disable=SC2016 # the inner shell's
	{
		echo 'wait ^vrx2 +[1-9]'
		printf 'stop ^the shell$\nkey \r\nwait ^vrx2 +[1-9]\nkey q\nend 0\n'
	} | $PYTHON tests/helpers/terminal.py 80x24 nsenter --net="/run/netns/$RX" \
		bash -mc '"$@"; stty -a >"$0"; printf "\33[H\33[2Jthe shell\n"; read -r _; fg' \
		"$STATE/stty" "$TOOL" --state "$STATE/store" top || fail "see above"
	grep -q ' icanon' "$STATE/stty" || fail "not what it was: $(cat "$STATE/stty")"
	grep -q '\(^\| \)echo ' "$STATE/stty" || fail "not what it was: $(cat "$STATE/stty")"
}

test_sizes() {
	under_traffic
	terminal 40x10 top <<-'END'
	wait ^dropped +[1-9].* bits/s
	wait ^interface by dropped +drop pps +pass pps$
	wait ^vrx2 +[1-9][0-9.]*[kM]? +[0-9.]+[kM]?$
	wait src 192.0.2.1$
	wait ^q quit
	resize 100x30
	wait ^passed +[0-9]
	wait ^dropped packets/s, at most .* passed packets/s, at most
	wait src 192.0.2.1$
	resize 10x3
	wait ^default: f$
	resize 80x24
	wait ^vrx2 +[1-9]
	key q
	end 0
	END
}

test_signals() {
	under_traffic
	for signal in SIGTERM SIGINT SIGHUP; do
		case_begin "$signal"
		terminal 80x24 top <<-END
		wait ^default: filters
		signal $signal
		end $signal
		END
	done
}

test_count_ends_it() {
	under_traffic
	terminal 80x24 top --count 2 <<-'END'
	wait ^vrx2 +[1-9]
	end 0
	END
}

# What only would be dropped passes, and is never called dropped.
test_would_drop() {
	under_traffic --monitor-only
	terminal 80x24 top <<-'END'
	wait ^passed +[0-9.]+[kM]? packets/s +[0-9.]+[kMG]? bits/s; would drop +[1-9][0-9.]*[kM]? packets/s
	wait ^dropped +0 packets/s +0 bits/s, 0.0 % of all$
	wait ^drop [+] would drop packets/s, at most [1-9]
	wait ^interface by dropped +drop pps +drop bps +pass pps +pass bps +would pps +would bps$
	wait ^vrx2 +0 +0 +[0-9.]+[kM]? +[0-9.]+[kMG]? +[1-9][0-9.]*[kM]? +[1-9][0-9.]*[kMG]?$
	key q
	end 0
	END
	assert_shows '; would drop +[1-9].*; dropped +0 packets/s +0 bits/s;' xc top --count 1
}

# top shows the one rule that drops among many, and no rule if the table does not count.
test_rules() {
	second_pair
	xc load vrx vrx2 --capacity 40000 >/dev/null
	awk 'BEGIN { for (i = 0; i < 30000; i++) printf "11.0.%d.%d\n", i / 250, i % 250 }' | xc import - >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_endlessly 0 vtx2 vrx2
	terminal 80x24 top <<-'END'
	wait ^packets/s  rule
	wait ^ +[1-9][0-9.]*[kM]?  src 192.0.2.1$
	key q
	end 0
	END
}

# The axis says how much time the chart covers: a column is an interval.
test_time_axis() {
	under_traffic
	terminal 80x24 top --interval 2s <<-'END'
	wait ^1m18s ago +40s ago +now +1m18s ago +40s ago +now
	key q
	end 0
	END
}

# hold_the_store: locks the store until the test ends.
hold_the_store() {
	$PYTHON -c 'import fcntl, signal, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()' "$STATE/store/default/lock.mdb" >"$STATE/holder" &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	wait_for "the store's lock" test -s "$STATE/holder"
}

# looker: the process that searches rules for the only top on this store.
looker() {
	ps -eo pid=,ppid=,comm=,args= | awk -v store="$STATE/store" '
		$3 ~ /^xdp-cuckoo/ && index($0, store) { parent[$1] = $2 }
		END { for (pid in parent) if (parent[pid] in parent) print pid }'
}

has_looker() {
	[ -n "$(looker)" ]
}

# SIGWINCH and SIGTSTP, which ncurses catches.
leaves_the_terminal_alone() {
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$(looker)/status")
	[ $((0x$caught & (1 << 27 | 1 << 19))) = 0 ]
}

# The process that searches rules does not touch the terminal, and ends with top.
test_who_looks_for_rules() {
	under_traffic
	hold_the_store
	{
		echo 'wait ^ +[1-9].* [?]$'
		wait_for "a search" has_looker >&2
		wait_for "a search without the signals of a terminal" leaves_the_terminal_alone >&2
		touch "$STATE/was_seen"
		printf 'key q\nend 0\n'
	} | terminal 80x24 top
	[ -e "$STATE/was_seen" ] || fail "see above"
	! has_looker || fail "it still looks"
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" top --json >/dev/null &
	top=$!
	on_exit "kill -9 $top 2>/dev/null"
	wait_for "a search" has_looker
	looker=$(looker)
	kill -9 "$top"
	is_gone() { ! kill -0 "$looker"; }
	WAIT_S=20 wait_for "the end of the search" is_gone
}

# An allocation fails near the end of the first reading. top goes on without a ranking, and reports missing figures.
test_short_of_memory() {
	xc load vrx >/dev/null
	assert_status 0 faulty FAULT_KINDS=a "FAULT_COUNT=$STATE/count" top --json --count 1
	steps=$(sed -n 's/^a \([0-9]*\)$/\1/p' "$STATE/count")
	[ "$steps" -gt 100 ] || fail "only ${steps:-no} allocations"
	for step in $(seq $((steps / 2 - 15)) $((steps / 2 + 15))); do
		(
			STATUS=0
			faulty FAULT_KINDS=a "FAULT_AT=$step" FAULT_ERRNO=12 top --json --count 1 >/dev/null 2>&1 || STATUS=$?
			echo "$STATUS" >>"$STATE/statuses"
		) &
	done
	wait
	assert_equal '0 4' "$(sort -u "$STATE/statuses" | xargs)" "statuses"
}

test_no_rules_to_count() {
	under_traffic --compact 2>/dev/null
	terminal 80x24 top <<-'END'
	wait ^packets/s  rule; this table does not count by rule$
	wait ^vrx2 +[1-9]
	key q
	end 0
	END
}

# A larger table replaces the watched one; then the filter ends.
test_a_filter_that_changes() {
	under_traffic
	tool="nsenter --net=/run/netns/$RX $TOOL --state $STATE/store"
	terminal 80x24 top <<-END
	wait ^table .* 1 filled
	wait src 192.0.2.1\$
	run $tool add 192.0.2.9
	run $tool resize 200000
	wait ^table .* of 2[0-9]{2}k slots, 2 filled
	wait ^ +[1-9].* src 192.0.2.1\$
	run $tool unload --all
	end 1
	END
}

test_without_a_terminal() {
	under_traffic
	assert_status 0 xc top --count 2
	assert_equal 2 "$(grep -Ec '^[0-9:]{8} passed +[0-9.]+[kM]? packets/s .*; dropped +[1-9][0-9.]*[kM]? packets/s .* bits/s; load 0.0 %$' \
		"$STATE/out")" "lines"
	assert_equal 2 "$(wc -l <"$STATE/out")" "lines in all"
	[ "$(tr -d '\033' <"$STATE/out" | wc -c)" -eq "$(wc -c <"$STATE/out")" ] || fail "escape codes"
	assert_status 0 xc top --count 3 --json
	$PYTHON -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == 3, lines
for line in lines:
    rates = {row["interface"]: row for row in line["interfaces"]}
    assert rates["vrx2"]["dropped_pps"] == line["dropped_pps"] > 0 and rates["vrx"]["dropped_pps"] == 0
assert len(lines[-1]["rules"]) == 1 and lines[-1]["rules"][0]["pps"] > 0, lines[-1]' "$STATE/out" || {
		show_run
		fail "no sound figures"
	}
}

# An unknown terminal gets lines, too.
test_unknown_terminal() {
	needs_terminals
	under_traffic
	in_rx script -qec "env TERM=nosuch '$TOOL' --state '$STATE/store' top --count 1" /dev/null >"$STATE/out" 2>&1 ||
		fail "$(cat "$STATE/out")"
	assert_output '^[0-9:]{8} passed '
}

test_nothing_runs() {
	assert_fails 1 "no filter 'default' is running here" xc top
	assert_fails 2 "must be a time" xc top --interval never
}

run_tests "$0" "$@"
