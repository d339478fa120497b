#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a terminal gets and a pipe does not: colours, and tables that are as wide as it is.
. tests/lib.sh

ESCAPE=$(printf '\033')
RED="$ESCAPE\\[31m"
GREEN="$ESCAPE\\[32m"
YELLOW="$ESCAPE\\[33m"
BOLD="$ESCAPE\\[1m"

# on_terminal COLUMNS ARGUMENT...: the tool, as xc runs it, but on a terminal; what both streams get is in $STATE/out.
on_terminal() {
	on_terminal_columns=$1
	shift
	in_rx env TERM="${TERMINAL-xterm}" NO_COLOR="${REFUSED-}" $PYTHON tests/helpers/on_terminal.py "$on_terminal_columns" \
		"$TOOL" --state "$STATE/store" "$@"
}

needs_terminals() {
	$PYTHON tests/helpers/on_terminal.py 80 true 2>/dev/null || skip "no pseudo-terminals here (/dev/pts)"
}

assert_plain() {
	! grep -q "$ESCAPE" "$STATE/$1" || { show_run | cat -v; fail "escape sequences in $1"; }
}

# fill: a filter that has dropped a packet.
fill() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 >/dev/null
	assert_verdict drop 192.0.2.1
}

test_colours_on_a_terminal() {
	needs_terminals
	fill
	assert_status 0 on_terminal 200 status
	assert_output "effect: +${GREEN}filters$ESCAPE"
	assert_output "condition: +${GREEN}equal to the store$ESCAPE"
	assert_status 0 on_terminal 200 status --verbose
	assert_output "${BOLD}running$ESCAPE\\[0m:"
	assert_status 0 on_terminal 200 stats
	assert_output "${BOLD}outcome"
	assert_output "^drop-rule .* ${RED}1$ESCAPE\\[0m "
	assert_output "^pass-rule +0 +0 +0 +0$"
	assert_shows "${RED}blocked" on_terminal 200 test 192.0.2.1
	assert_status 2 on_terminal 200 stauts
	assert_output "^${RED}xdp-cuckoo:$ESCAPE\\[0m no command"
	xc panic >/dev/null
	assert_status 1 on_terminal 200 status
	assert_output "^${YELLOW}note:$ESCAPE\\[0m the filter"
	assert_output "effect: +${RED}PANIC"
}

# One line each at 80 columns. What is wrong with a list comes before its source.
test_lists_fit() {
	needs_terminals
	echo 192.0.2.1 >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --list a-list-with-a-long-name-of-30ch
	printf '[filter]\ninterfaces = vrx\n[list url]\nurl = http://127.0.0.1:1/list-with-a-long-name\n' >"$STATE/conf"
	assert_status 3 xc refresh url --config "$STATE/conf"
	assert_status 0 on_terminal 80 lists
	assert_output '^url +0 +0 +unknown +never fed; Failed t'
	assert_equal 3 "$(grep -c . "$STATE/out")" "lines"
	assert_equal 0 "$(sed "s/$ESCAPE\\[[0-9]*m//g" "$STATE/out" | tr -d '\r' | grep -c '.\{81\}')" "long lines"
	assert_status 0 on_terminal 80 lists presets
	assert_equal "$(($(xc lists presets | wc -l)))" "$(grep -c . "$STATE/out")" "lines"
	! grep '~' "$STATE/out" || fail "a preset is cut"
}

# Colours are only added; the text is the same.
test_colours_add_nothing_but_colours() {
	needs_terminals
	fill
	# No packet changes what is counted.
	ip -n "$TX" link set vtx down
	for command in status stats 'test 192.0.2.1'; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc $command
		assert_plain out
		cp "$STATE/out" "$STATE/piped"
		# shellcheck disable=SC2086 # words
		assert_status 0 on_terminal 200 $command
		sed "s/$ESCAPE\\[[0-9]*m//g" "$STATE/out" >"$STATE/stripped"
		diff "$STATE/piped" "$STATE/stripped" || fail "differs"
	done
}

# assert_refused WHAT: no run on a terminal writes an escape sequence.
assert_refused() {
	case_begin "$1"
	for command in status stauts; do
		run on_terminal 200 "$command"
		[ -s "$STATE/out" ] || fail "$command: no output"
		assert_plain out
	done
}

test_where_colours_are_refused() {
	needs_terminals
	fill
	REFUSED=1 assert_refused "NO_COLOR=1"
	REFUSED=0 assert_refused "NO_COLOR=0: any value says no"
	TERMINAL=dumb assert_refused "TERM=dumb"
	TERMINAL='' assert_refused "no TERM"
	case_begin "NO_COLOR='': empty says nothing"
	REFUSED='' assert_status 0 on_terminal 200 status
	assert_output "$GREEN"
}

test_json_and_pipes_have_no_colours() {
	needs_terminals
	fill
	for command in status stauts; do
		run on_terminal 200 --json "$command"
		assert_plain out
		"$HELPERS/json_check" <"$STATE/out" || fail "$command: not JSON"
	done
	case_begin "a pipe"
	xc panic >/dev/null
	for command in status stats stauts; do
		run xc "$command"
		assert_plain out
		assert_plain err
	done
}

# Words of the command line that are quoted in errors and notes, and comments, do nothing to a terminal.
test_quoted_words_are_harmless() {
	fill
	override=$(printf '\342\200\256')
	for word in "a${ESCAPE}[31mb" "a${override}b" "$(printf 'a\302\233b')"; do
		case_begin "$(echo "$word" | cat -v)"
		for options in '' --json; do
			for command in stauts "export $STATE/none/" 'import --list' 'help' "backup $STATE/none/"; do
				# shellcheck disable=SC2086 # words
				run xc $options $command"$word"
				[ "$STATUS" -ne 0 ] || fail "status 0"
				assert_plain err
				! grep -qF -e "$override" -e "$(printf '\302\233')" "$STATE/err" || fail "raw: $(cat -v "$STATE/err")"
			done
		done
	done
	case_begin "a comment"
	assert_status 0 xc add 192.0.2.2 comment "a${override}b"
	assert_shows '^src 192.0.2.2 comment "a[?]{3}b"$' xc list
	assert_shows '"comment": "a[?]{3}b"' xc list --json
}

test_tables_are_aligned() {
	fill
	assert_status 0 xc stats
	# Numbers end below the ends of their headings.
	awk '
	function ends(line,    n, at, i) {
		n = 0
		while (match(substr(line, at + 1), /[^ ]( [^ ]+|[^ ])*(  |$)/)) {
			at += RSTART + RLENGTH - 1
			end[++n] = at - (substr(line, at, 1) == " " ? 2 : 0)
		}
		return n
	}
	NR == 1 { columns = ends($0); for (i = 2; i <= columns; i++) heading[i] = end[i]; next }
	{
		if (ends($0) != columns) { print "columns of: " $0; bad = 1 }
		for (i = 2; i <= columns; i++)
			if (end[i] != heading[i]) { print "column " i " of: " $0; bad = 1 }
	}
	END { exit bad || columns < 5 }' "$STATE/out" || fail "not aligned"
	# As wide as there is: a name of 15 characters.
	veth "$TX" wide0 "$RX" interfacename15
	assert_status 0 xc load interfacename15
	assert_status 0 xc status --verbose
	assert_output '^ +interface        mode    program  lost by card  outgoing$'
	assert_output '^ +vrx              native +[0-9]+ +[0-9]+ +no$'
	assert_output '^ +interfacename15  native +[0-9]+ +[0-9]+ +no$'
}

# A table too wide for the terminal is shown object by object: no row breaks, and nothing is left out.
test_a_table_too_wide_for_the_terminal() {
	needs_terminals
	fill
	assert_status 0 xc stats
	widest=$(awk '{ if (length > widest) widest = length } END { print widest }' "$STATE/out")
	REFUSED=1 assert_status 0 on_terminal "$widest" stats
	assert_output '^outcome +passed packets '
	assert_status 0 xc stats
	cp "$STATE/out" "$STATE/piped"
	REFUSED=1 assert_status 0 on_terminal "$((widest - 1))" stats
	assert_output '^outcome: +drop-rule$'
	assert_output '^dropped packets: +1$'
	[ "$(awk '{ if (length > widest) widest = length } END { print widest }' "$STATE/out")" -lt "$widest" ] ||
		fail "a line is as wide as the table"
	assert_equal "$(($(wc -l <"$STATE/piped") - 1))" "$(grep -c '^outcome:' "$STATE/out")" "outcomes"
}

run_tests "$0" "$@"
