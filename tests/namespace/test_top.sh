#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# top, on a terminal of its own: what it shows, its keys, other sizes, how it ends; and where there is no terminal.
. tests/lib.sh

needs_terminals() {
	python3 -c 'import pty; pty.openpty()' 2>/dev/null || skip "no pseudo-terminals here (/dev/pts)"
}

# terminal SIZE ARGUMENT...: the tool on a terminal of that size, which does what standard input says.
terminal() {
	needs_terminals
	size=$1
	shift
	python3 tests/terminal.py "$size" nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@" ||
		fail "see above"
}

# under_traffic: packets that are dropped, on vrx2 of two interfaces, until the test ends.
under_traffic() {
	veth "$TX" vtx2 "$RX" vrx2
	xc load vrx vrx2 "$@" >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_endlessly 0 vtx2 vrx2
}

test_figures_and_keys() {
	under_traffic
	terminal 80x24 top <<-'END'
	wait ^default: filters; loaded [0-9a-z]+ ago$
	wait ^dropped +[1-9][0-9.]*[kM]? packets/s +[1-9][0-9.]*[kMG] bits/s$
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

test_sizes() {
	under_traffic
	terminal 40x10 top <<-'END'
	wait ^dropped +[1-9].* bits/s$
	wait ^interface by dropped +dropped/s +passed/s$
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
		wait ^vrx2 +
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

# The one rule that drops, among many, by the process that looks; and none where nothing is counted by rule.
test_rules() {
	veth "$TX" vtx2 "$RX" vrx2
	xc load vrx vrx2 --capacity 40000 >/dev/null
	awk 'BEGIN { for (i = 0; i < 30000; i++) printf "11.0.%d.%d\n", i / 250, i % 250 }' | xc import - >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_endlessly 0 vtx2 vrx2
	terminal 80x24 top <<-'END'
	wait ^drops/s  rule
	wait ^ +[1-9][0-9.]*[kM]?  src 192.0.2.1$
	key q
	end 0
	END
}

test_no_rules_to_count() {
	under_traffic --compact 2>/dev/null
	terminal 80x24 top <<-'END'
	wait ^drops/s  rule; this table does not count by rule$
	wait ^vrx2 +[1-9]
	key q
	end 0
	END
}

# A larger table takes the place of the one that is looked at; then the filter ends.
test_a_filter_that_changes() {
	under_traffic
	{
		echo 'wait ^table .* 1 filled'
		echo 'wait src 192.0.2.1$'
		sleep 5
		xc add 192.0.2.9 >/dev/null
		xc resize 200000 >/dev/null
		echo 'wait ^table .* 2 filled'
		echo 'wait src 192.0.2.1$'
		sleep 5
		xc unload --all >/dev/null
		echo 'end 1'
	} | terminal 80x24 top
}

test_without_a_terminal() {
	under_traffic
	assert_status 0 xc top --count 2
	assert_equal 2 "$(grep -Ec '^[0-9:]{8} passed +[0-9.]+[kM]? packets/s .*; dropped +[1-9][0-9.]*[kM]? packets/s .* bits/s; load 0.0 %$' \
		"$STATE/out")" "lines"
	assert_equal 2 "$(wc -l <"$STATE/out")" "lines in all"
	[ "$(tr -d '\033' <"$STATE/out" | wc -c)" -eq "$(wc -c <"$STATE/out")" ] || fail "escape codes"
	assert_status 0 xc top --count 3 --json
	python3 -c '
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

# A terminal that nobody knows gets lines, too.
test_unknown_terminal() {
	needs_terminals
	under_traffic
	in_rx script -qec "env TERM=nosuch '$TOOL' --state '$STATE/store' top --count 1" /dev/null >"$STATE/out" 2>&1 ||
		fail "$(cat "$STATE/out")"
	assert_output '^[0-9:]{8} passed '
}

test_nothing_runs() {
	assert_status 1 xc top
	assert_error "no filter 'default' is running here"
	assert_status 2 xc top --interval never
	assert_error "must be a time"
}

run_tests "$0" "$@"
