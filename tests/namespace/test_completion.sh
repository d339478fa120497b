#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What `complete` offers for a word that is being typed, and what bash and zsh make of it.
. tests/lib.sh

# offers WORD...: the candidates for the last word.
offers() {
	xc complete -- "$@" | sed 's/	.*//'
}

# assert_offers EXPECTED WORD...: exactly these candidates, one per line.
assert_offers() {
	offers_expected=$1
	shift
	assert_equal "$offers_expected" "$(offers "$@")" "candidates for the last of: $*"
}

# described KEY [COMMAND]: the strings under KEY in what help --json says of the command, or of all.
described() {
	described_key=$1
	shift
	"$TOOL" help --json "$@" | sed -n "s/.*\"$described_key\": \"\([^\"]*\)\".*/\1/p"
}

# Everything that help lists is offered.
test_every_command_and_option_is_offered() {
	described command >"$STATE/expected"
	[ "$(wc -l <"$STATE/expected")" -ge 20 ] || fail "commands not found"
	offers '' >"$STATE/offered"
	diff "$STATE/expected" "$STATE/offered" || fail "commands: expected are those with <"
	for command in $(described command); do
		case_begin "$command"
		described option "$command" | sed 's/^/--/' >"$STATE/expected"
		offers "$command" -- >"$STATE/offered"
		diff "$STATE/expected" "$STATE/offered" || fail "options: expected are those with <"
		assert_offers "$(described command | grep "^$command")" help "$command"
	done
}

# Each option is offered with the values that `help` names.
test_values_of_options_are_offered() {
	assert_offers 'auto
native
skb' load vrx --mode ''
	assert_offers 'spamhaus' import list --format s
	assert_offers 'text
ipset
nft
csv' export --format ''
	assert_offers '16
17' load vrx --compact --fingerprint 1
	assert_offers '' load vrx --capacity ''
	assert_offers ':dir' --state ''
	# As zsh has it, and as bash: there '=' is a word.
	assert_offers '--mode=native' load --mode=n
	assert_offers 'native' load --mode = n
	assert_offers 'auto
native
skb' load --mode =
	# A value is no operand, and an option that was given is not offered again.
	assert_offers 'off' monitor-only --name web of
	assert_offers '' import list --strict --stri
}

test_operands_are_offered() {
	assert_offers 'lo
vrx' load ''
	assert_offers 'vrx' load lo v
	assert_offers 'vrx' unload v
	assert_offers ':file
-' import ''
	assert_offers 'on
off' monitor-only ''
	assert_offers 'on
off' panic o
	assert_offers 'later-fragment' policy l
	assert_offers 'pass
drop' policy later-fragment ''
	assert_offers 'help' hel
	assert_offers '' nosuch ''
	assert_offers '' load -- --
	# If no word can follow, options are offered.
	assert_equal "$(offers status -)" "$(offers status '')" "what may follow status"
	assert_status 0 xc complete
}

test_words_of_rules_are_offered() {
	assert_equal "$(sed -n '/ keywords\[\] = {/,/^};/p' user/core/rule/parse.c | grep -Eo '[{] "[a-z]+"' | tr -d '{ "')" \
		"$(offers add '')" "words"
	assert_offers 'src
sport
state' test 192.0.2.1 s
	assert_offers 'dport' add proto tcp src 192.0.2.1 dp
	assert_offers '' add proto tcp dport 53 dp
	assert_offers 'tcp' del proto t
	assert_offers 'drop
pass
monitor' add 192.0.2.1 action ''
	assert_offers '' add 192.0.2.1 dport ''
	# A value that is spelt like a word; an address as bash cuts it.
	assert_offers 'src' add comment sport sr
	assert_offers 'timeout' add 2001 : db8 :: 1 tim
}

test_names_of_filters_are_offered() {
	xc load vrx >/dev/null
	xc --name web add 192.0.2.1 >/dev/null 2>&1
	mkdir "$STATE/store/no name"
	assert_equal 'default
web' "$(offers --name '' | sort)" "names"
	assert_offers web list --name w
	echo 192.0.2.2 | xc import - --list feed >/dev/null 2>&1
	echo 192.0.2.3 | xc --name web import - --list bans >/dev/null 2>&1
	for words in 'list --list' 'flush --list' list flush 'lists delete' refresh 'import x --list'; do
		# shellcheck disable=SC2086 # words
		assert_offers feed $words fe
	done
	assert_offers bans --name web flush ''
	# A running filter is found whatever --state says, a stored one only in its --state.
	assert_offers default --state "$STATE/nosuch" --name ''
	mkdir -p "$STATE/other/office"
	assert_equal 'default
office' "$(offers --state "$STATE/other" --name '' | sort)" "names with --state"
}

test_names_that_a_shell_would_run_are_not_offered() {
	ip -n "$RX" link add 'x;reboot' type veth peer name xother || fail "no such name is to be had"
	assert_offers 'xother' load x
}

test_json_and_meanings() {
	assert_shows '^status	show the stored rules' xc complete -- stat
	assert_status 0 xc --json complete -- stat
	"$HELPERS/json_check" <"$STATE/out" || fail "not JSON"
}

# No completion changes anything.
test_nothing_is_changed_and_nothing_said() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 timeout 1s >/dev/null
	sleep 2
	xc status >"$STATE/status"
	find "$STATE/store" -printf '%p %T@ %s %m\n' >"$STATE/before"
	for words in '' 'st' '--name d' 'load v' 'add pro' 'import x' 'list --' '--state /nosuch --name d'; do
		for as in '' 'setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all'; do
			# shellcheck disable=SC2086 # words
			assert_status 0 in_rx $as "$TOOL" complete -- --state "$STATE/store" $words
			assert_equal '' "$(cat "$STATE/err")" "errors about $words"
		done
	done
	find "$STATE/store" -printf '%p %T@ %s %m\n' >"$STATE/after"
	diff "$STATE/before" "$STATE/after" || fail "the store was changed"
	xc status | diff "$STATE/status" - || fail "the filter was changed"
	[ ! -e /nosuch ] || fail "made /nosuch"
}

test_without_privileges_commands_are_offered() {
	chmod 0711 "$STATE"
	assert_equal 'status
stats' "$(setpriv --reuid 65534 --clear-groups --inh-caps=-all "$TOOL" complete -- stat | sed 's/	.*//')" "commands"
}

# ---- bash

# in_bash WORD...: what its completion has for the last of the words, as bash splits them, sorted.
in_bash() {
	in_rx bash --norc -c '
		. user/package/completion/xdp-cuckoo.bash
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_xdp_cuckoo
		printf "%s\n" "${COMPREPLY[@]}"' bash "$TOOL" "$@" 2>"$STATE/err" | sort
	assert_equal '' "$(cat "$STATE/err")" "errors of bash for: $*"
}

test_bash() {
	xc load vrx >/dev/null
	for words in '' 'sta' 'load ' 'load vrx --' 'load --mode = n' 'import --format ' 'add 192.0.2.1 ' 'policy no'; do
		# shellcheck disable=SC2046,SC2086 # words
		set -- $words
		case $words in '' | *' ') set -- "$@" '' ;; esac
		assert_equal "$(offers "$@" | sort)" "$(in_bash "$@")" "for: $words"
		[ -n "$(in_bash "$@")" ] || fail "nothing for: $words"
	done
	assert_equal default "$(in_bash --state "$STATE/store" --name '')" "names"
	assert_equal '' "$(in_bash nosuch '')" "for what is no command"
}

test_bash_completes_files() {
	mkdir "$STATE/files" "$STATE/files/list dir"
	touch "$STATE/files/list one" "$STATE/files/list*"
	assert_equal "$STATE/files/list dir
$STATE/files/list one
$STATE/files/list*" "$(in_bash import "$STATE/files/li")" "files"
	assert_equal "$STATE/files/list dir" "$(in_bash --state "$STATE/files/")" "directories"
	assert_equal "$STATE/files/list dir" "$(in_bash --state = "$STATE/files/")" "directories behind ="
}

# As bash-completion looks for it.
test_bash_knows_the_tool() {
	# shellcheck disable=SC2016 # bash expands it
	assert_equal 'complete -F _xdp_cuckoo xdp-cuckoo' \
		"$(bash --norc -c '. user/package/completion/xdp-cuckoo.bash; complete -p xdp-cuckoo')" "the completion"
}

# ---- zsh

# in_zsh LINE: what it is completed to, and what zsh lists, without escape sequences.
in_zsh() {
	in_rx timeout 60 zsh -f tests/helpers/completion.zsh "$STATE/bin" "$PWD/user/package/completion" "$1" >"$STATE/screen" 2>&1 || :
	sed 's/\x1b\[[0-9;?]*[A-Za-z]//g; s/\r//g' "$STATE/screen"
}

# assert_zsh LINE EXPECTED [LISTED]
assert_zsh() {
	seen=$(in_zsh "xdp-cuckoo $1")
	printf '%s\n' "$seen" | grep -qF "<<xdp-cuckoo $2>>" || fail "'$1' is completed to: $seen"
	printf '%s\n' "$seen" | grep -q -- "${3:-}" || fail "'$1': no line '$3' in: $seen"
}

test_zsh() {
	command -v zsh >/dev/null || skip "no zsh; on Debian: apt-get install zsh"
	mkdir "$STATE/bin" "$STATE/lists"
	touch "$STATE/lists/a list"
	ln -s "$PWD/$TOOL" "$STATE/bin/xdp-cuckoo"
	assert_zsh imp 'import '
	assert_zsh stat stat '^status *-- show the stored rules'
	assert_zsh 'load v' 'load vrx '
	assert_zsh 'load vrx --mode=n' 'load vrx --mode=native '
	assert_zsh 'import --format s' 'import --format spamhaus '
	assert_zsh 'add 192.0.2.1 dp' 'add 192.0.2.1 dport '
	assert_zsh "import $STATE/lists/a" "import $STATE/lists/a\\ list "
	assert_zsh "--state=$STATE/lis" "--state=$STATE/lists/"
	assert_zsh 'nosuch ' 'nosuch '
}

run_tests "$0" "$@"
