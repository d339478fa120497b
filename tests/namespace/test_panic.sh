#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Panic: everything passes at once, whatever else is going on.
. tests/lib.sh
. tests/namespace/safety.sh
. tests/fault/fault.sh

test_panic() {
	block
	xc load vrx >/dev/null
	expect drop
	assert_shows 'panic: +yes' xc panic
	expect pass
	assert_equal 3 "$(counted panic passed)" "counted as such: two, and the frame behind them"
	assert_status 1 xc status --verbose
	assert_error "note: the filter 'default' on vrx: PANIC: passes everything; xdp-cuckoo panic off ends it"
	assert_output 'effect: +PANIC'
	assert_notes 'PANIC' xc stats
	assert_shows 'running filter: panic: passes everything' xc test 192.0.2.66
	# It lasts: over changes, new tables and further interfaces.
	assert_status 0 xc add 192.0.2.68
	assert_status 0 xc resize 5000
	expect pass
	second_pair
	assert_notes 'PANIC: passes everything' xc load vrx2
	assert_status 0 xc panic
	assert_shows 'panic: +no' xc panic off
	expect drop
}

test_panic_of_names() {
	block
	xc load vrx >/dev/null
	second_pair
	xc --name web load vrx2 >/dev/null
	assert_shows 'filters: +1$' xc --name web panic
	expect drop
	assert_shows 'filters: +2$' xc panic --all
	expect pass
	assert_status 0 xc panic off
	expect drop
	assert_notes "'web' on vrx2: PANIC" xc status
	assert_status 1 xc --name web status
	assert_status 0 xc panic off --all
	assert_status 0 xc status --verbose
	assert_equal '' "$(grep PANIC "$STATE/err")" "filters in panic"
}

# panic works while another process holds the store, and without a sound store.
test_panic_needs_no_store() {
	block
	xc load vrx >/dev/null
	flock --no-fork "$STATE/store/default/writer.lock" sleep 600 &
	holder=$!
	on_exit "kill $holder 2>/dev/null"
	await '! flock -n "$STATE/store/default/writer.lock" true'
	assert_status 0 timeout 60 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" panic
	expect pass
	assert_status 0 timeout 60 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" panic off
	expect drop
	head -c 65536 /dev/urandom >"$STATE/store/default/data.mdb"
	assert_status 0 timeout 60 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" panic
	expect pass
	rm -rf "$STATE/store"
	assert_status 0 xc panic off
	expect drop
}

# Set up by the next command, it still passes everything.
test_panic_of_a_filter_that_nobody_has_set_up() {
	silence
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_status 0 xc panic
	block
	expect pass
	assert_status 0 xc panic off
	expect drop
}

# panics ROUNDS: switches panic on and off; each state holds at once and to its end.
panics() {
	for round in $(seq "$1"); do
		case_begin "$round"
		assert_status 0 xc panic
		printf '%s\n' "pass blocked $BLOCKED" "pass other $OTHER" | traffic --repeat 2000 >"$STATE/expected" ||
			fail "dropped in panic: $(cat "$STATE/expected")"
		assert_status 0 xc panic off
		await 'xc status 2>/dev/null | grep -q "effect: *filters$"' 'xc panic off >/dev/null'
		expect drop
	done
}

# start_writer COMMAND...: again and again, from now on.
start_writer() {
	(while [ -d "$STATE" ]; do "$@" >/dev/null 2>&1 || :; done) &
	writer=$!
	on_exit "kill $writer 2>/dev/null"
}

test_panic_beside_an_endless_writer() {
	block
	xc load vrx >/dev/null
	awk 'BEGIN { for (i = 0; i < 20000; i++) {
		rule = sprintf("10.1.%d.%d", i / 250, i % 250)
		print "add " rule "\ndel " rule
	} }' >"$STATE/batch"
	start_writer xc batch "$STATE/batch"
	panics 5
}

test_panic_beside_endless_resizes() {
	block
	xc load vrx --capacity 900 >/dev/null
	resize_twice() {
		xc resize 5000
		xc resize 900
	}
	start_writer resize_twice
	panics 10
	kill "$writer"
	wait "$writer" 2>/dev/null || :
	assert_status 0 xc check
}

# speaker BEFORE AFTER: makes $STATE/speak, which runs at the last 12 kernel calls. It gives these words (on, off or
# none) before and after the new table takes its place, and records what runs then.
speaker() {
	cat >"$STATE/speak" <<-END
		#!/bin/sh
		echo >>"$STATE/steps"
		case \$(wc -l <"$STATE/steps") in 1) word=$1 ;; 11) word=$2 ;; *) exit ;; esac
		ip -d link show vrx | sed -n 's,.*prog/xdp id \([0-9]*\).*,\1,p' >>"$STATE/programs"
		[ \$word = - ] || "$TOOL" --state "$STATE/store" panic \${word#on}
	END
	chmod +x "$STATE/speak"
	: >"$STATE/steps"
	: >"$STATE/programs"
}

# exchanges: runs a command that replaces the table. The other version differs only by its number.
exchanges() {
	case $how in
	resize) capacity=$((7000 - ${capacity:-900})); exchange="resize $capacity" ;;
	version) in_rx "$HELPERS/corrupt" version >/dev/null; exchange=expire ;;
	esac
}

# The last word holds, whether the old table or the new one has received it.
test_words_while_tables_are_exchanged() {
	block
	xc load vrx --no-spare >/dev/null
	for how in resize version; do
		exchanges
		# shellcheck disable=SC2086 # words
		faulty "FAULT_COUNT=$STATE/count" $exchange >/dev/null 2>&1 || fail "$exchange does not work"
		steps=$(awk '$1 == "k" || $1 == "n" { n += $2 } END { print n }' "$STATE/count")
		while read -r first before after last; do
			case_begin "$how: $first, $before, $after"
			xc panic >/dev/null
			[ "$first" = on ] || xc panic off >/dev/null
			speaker "$before" "$after"
			exchanges
			# shellcheck disable=SC2086 # words
			assert_status 0 faulty FAULT_KINDS=kn "FAULT_AT=$((steps - 11))" FAULT_LASTS=1 \
				"FAULT_RUN=$STATE/speak" $exchange
			assert_equal 2 "$(sort -u "$STATE/programs" | wc -l)" "programs, of $(cat "$STATE/programs")"
			expect "$last"
		done <<-END
			on - off drop
			on off - drop
			on off on pass
			off on - pass
			off on off drop
			off - on pass
		END
	done
	xc panic off >/dev/null
	assert_status 0 xc check
}

run_tests "$0" "$@"
