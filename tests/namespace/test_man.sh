#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The man pages say what the program does: each command, option, exit status and word of a rule is in them, and nothing
# else is.
. tests/lib.sh

PAGE=$BUILD/man/xdp-cuckoo.8
RULES_PAGE=user/package/man/xdp-cuckoo-rules.5
CONF_PAGE=user/package/man/xdp-cuckoo.conf.5

# assert_same WHAT: $STATE/program and $STATE/page hold the same lines.
assert_same() {
	[ -s "$STATE/program" ] || fail "no $1 found in the program"
	diff "$STATE/program" "$STATE/page" || fail "$1: the program has those with <, the page those with >"
}

# commands: as `help` names them.
commands() {
	"$TOOL" help --json | sed -n 's/.*"command": "\([^"]*\)".*/\1/p' | sort
}

# options: those in the text, each once; not those of other tools.
options() {
	sed 's/\\-/-/g; /^systemctl/d; /^cc /d; /^jq /d; /gobgp /d; /^setpriv/,/-caps/d' | grep -Eo -e '(^|[^a-z-])--[a-z][a-z-]*' | sed 's/.*--/--/' | sort -u
}

# A page without commands would be installed if nobody noticed that the tool is for another processor.
test_tool_does_not_run() {
	assert_fails 1 '^cannot make the man page: /bin/false does not run here$' sh user/package/man/make.sh /bin/false units
}

test_commands() {
	commands >"$STATE/program"
	sed -n 's/^\.SS //p' "$PAGE" | sort >"$STATE/page"
	assert_same commands
}

# A text that goes on in the next line of help, or that one space parts from its tag, is no tag.
test_texts_of_options_stay_together() {
	grep -Eq '^.fB.-.-list NAME.fP$' "$PAGE" || fail "the page has other marks"
	sed 's/\\-/-/g; s/\\f[BP]//g' "$PAGE" | tr '\n' ' ' >"$STATE/page"
	for text in 'made if there is none. You can also write list NAME in the rule' \
		'also write list NAME in the rule. The rule stays' 'added by hand too, stays. flush NAME is the same' \
		'.TP --action ACTION for rules that name no action:' \
		'drop, pass or monitor. It changes neither'; do
		grep -Fq -e "$text" "$STATE/page" || fail "not together: $text"
	done
}

test_options() {
	sed -n '/options_table\[\] = {/,/^};/ s/^[^"]*[{(][ ]*"\([a-z-]*\)".*/--\1/p' user/cli/command/options.c | sort >"$STATE/program"
	options <"$PAGE" >"$STATE/page"
	assert_same options
}

test_options_of_each_command() {
	for command in $(commands); do
		"$TOOL" help "$command" | head -n 1 | options >"$STATE/program"
		sed -n "/^\.SS $command\$/,/^\.S[SH]/p" "$PAGE" | options >"$STATE/page"
		comm -23 "$STATE/program" "$STATE/page" >"$STATE/missing"
		[ ! -s "$STATE/missing" ] || fail "$command: the page lacks $(cat "$STATE/missing")"
	done
}

test_options_are_known() {
	for page in "$PAGE" user/package/man/*.[57]; do
		for option in $(options <"$page"); do
			run "$TOOL" version "$option" 1
			! grep -q 'unknown option' "$STATE/err" || fail "$option is in $page, and no option of the tool"
		done
	done
}

test_exit_status() {
	sed -n '/^enum command_status/,/^}/ s/.*STATUS_[A-Z]* = \([0-9]\).*/\1/p' user/cli/command/command.h >"$STATE/program"
	sed -n '/^\.SH EXIT STATUS/,/^\.SH FILES/ s/^\.B \([0-9]\)$/\1/p' "$PAGE" >"$STATE/page"
	assert_same "exit status"
}

test_words_of_rules() {
	sed -n '/ keywords\[\] = {/,/^};/p' user/core/rule/parse.c | grep -Eo '[{] "[a-z]+"' | tr -d '{ "' |
		sort >"$STATE/program"
	sed -n '/^\.SH DESCRIPTION/,/^\.EX/p' "$RULES_PAGE" | grep '^\\fB' |
		grep -Eo '\\fB[a-z]+' | sed 's/...//' | sort -u >"$STATE/page"
	assert_same words
}

test_examples_of_rules_are_rules() {
	sed -n '/^\.SH LISTS/q; /^\.EX/,/^\.EE/ { /^\./d; p; }' "$RULES_PAGE" >"$STATE/list"
	[ "$(wc -l <"$STATE/list")" -ge 4 ] || fail "examples not found"
	assert_status 0 "$TOOL" --state "$STATE/store" import --dry-run --strict "$STATE/list"
}

test_formats_of_lists() {
	"$TOOL" help import | sed -n 's/^  \([a-z][a-z]*\)   *[^ ].*/\1/p' | sort -u >"$STATE/program"
	sed -n '/^\.SH LISTS/,/^\.SH SEE/ s/^\.B \([a-z]*\)$/\1/p' "$RULES_PAGE" | sort >"$STATE/page"
	assert_same "formats of lists"
}

# By section: SECTION KEY.
test_keys_of_configurations() {
	sed -n '/^} gone/,/^};/d; s/^	{ SECTION_\([A-Z]*\), "\([a-z-]*\)".*/\1 \2/p' user/cli/config/known_keys.c | tr '[:upper:]' '[:lower:]' |
		sort >"$STATE/program"
	awk '/^\.SS \[/ { section = $2; gsub(/[][]/, "", section) }
		/^\.SH/ { section = "" }
		section && /^\.B[IR] [a-z\\-]+\\ =/ { key = $2; gsub(/\\/, "", key); print section, key }' "$CONF_PAGE" |
		sort >"$STATE/page"
	assert_same "keys of configurations"
}

test_outcomes_of_configurations() {
	"$TOOL" --state "$STATE/store" policy | sed -n '2,$ s/ .*//p' | sort >"$STATE/program"
	sed -n '/^\.IR OUTCOME/,/^Those/ s/^\.BR \([a-z\\-]*\) .*/\1/p' "$CONF_PAGE" | sed 's,[\\],,g' | sort >"$STATE/page"
	assert_same outcomes
}

test_the_example_of_a_configuration_is_right() {
	sed -n '/^\.SH EXAMPLE/,$ { /^\.EX/,/^\.EE/ { /^\./d; p; }; }' "$CONF_PAGE" >"$STATE/conf"
	assert_shows '^lists: +3$' "$TOOL" --state "$STATE/store" check-config "$STATE/conf"
}

test_pages_are_laid_out_without_a_warning() {
	command -v groff >/dev/null || skip "no groff; on Debian: apt-get install groff-base"
	for page in "$PAGE" user/package/man/*.[57]; do
		assert_equal '' "$(groff -t -man -Tutf8 -ww -z "$page" 2>&1)" "warnings about $page"
	done
}

run_tests "$0" "$@"
