#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Lists that are kept up to date each for itself, beside rules added by hand, in one filter.
. tests/lib.sh

# refresh NAME [OPTION...]: makes the list equal to its file.
refresh() {
	refresh_name=$1
	shift
	assert_status 0 xc import "$STATE/$refresh_name" --list "$refresh_name" --replace "$@"
}

# two_lists: list a has 1 to 4, list b has 3 to 6, and 4 and 7 are added by hand.
two_lists() {
	xc load vrx >/dev/null
	write_list a 1 2 3 4
	write_list b 3 4 5 6
	refresh a
	refresh b
	assert_status 0 xc add 203.0.113.4
	assert_status 0 xc add 203.0.113.7
}

# listed [OPTION...]: the last bytes of what is listed.
listed() {
	xc list "$@" | sed 's/^src 203\.0\.113\.//' | tr '\n' ' ' | sed 's/ $//'
}

# holds A B ALL: the rules of list a, of list b, and all rules; packets from 1 to 9 get the right verdicts.
holds() {
	assert_equal "$1" "$(listed --list a)" "rules of a"
	assert_equal "$2" "$(listed --list b)" "rules of b"
	assert_equal "$3" "$(listed)" "rules"
	for i in 1 2 3 4 5 6 7 8 9; do
		verdict=pass
		case " $3 " in *" $i "*) verdict=drop ;; esac
		echo "$verdict r$i proto udp src 203.0.113.$i dst 10.99.0.2 sport 1 dport 2"
	done | traffic || fail "packets meet other rules"
	assert_shows '^vrx +[0-9]+ +0 +0 +0$' xc check
}

test_lists_overlap() {
	two_lists
	holds '1 2 3 4' '3 4 5 6' '1 2 3 4 5 6 7'
	assert_status 0 xc lists
	assert_output "^a +4 +[0-9]{4}-[0-9-]*T[0-9:]*Z +2 +4 +$STATE/a\$"
	assert_output "^b +4 .* +$STATE/b\$"
	assert_status 0 xc list --json
	assert_output '"src 203.0.113.4", .*"by_hand": true, "lists": \["a", "b"\]'
	assert_output '"src 203.0.113.7", .*"by_hand": true, "lists": \[\]'
	assert_shows '^lists: +a; b$' xc test 203.0.113.3
}

test_a_refresh_leaves_the_others() {
	two_lists
	write_list a 2 8
	for dry in --dry-run ''; do
		# shellcheck disable=SC2086 # a word, or none
		refresh a $dry
		assert_output '\badded 1\b'
		assert_output '\bkept 1\b'
		assert_output '\bremoved 1\b'
		assert_output '\bleft to others 2\b'
	done
	holds '2 8' '3 4 5 6' '2 3 4 5 6 7 8'
	write_list b 8
	refresh b
	holds '2 8' '8' '2 4 7 8'
	refresh b
	assert_output '\bkept 1\b'
	# Without --replace it grows.
	write_list b 9
	assert_status 0 xc import "$STATE/b" --list b
	holds '2 8' '8 9' '2 4 7 8 9'
}

test_delete_a_list() {
	two_lists
	assert_shows '^removed: +2$' xc lists delete a --dry-run
	assert_status 0 xc lists delete a
	assert_output '^removed: +2$'
	assert_output '^left to others: +2$'
	assert_equal '3 4 5 6 7' "$(listed)" "rules"
	assert_fails 1 "no list 'a'" xc lists delete a
	assert_status 0 xc lists delete b
	assert_equal '4 7' "$(listed)" "rules"
	assert_notes 'there are no lists' xc lists
	assert_equal '[]' "$(xc lists --json)" "lists"
	# A new list does not inherit rules of a deleted one.
	refresh a
	assert_equal '1 2 3 4' "$(listed --list a)" "rules of a"
}

test_del_of_several_rules_names_the_lists_of_all() {
	two_lists
	assert_notes 'these lists had it: a, b; ' xc del 203.0.113.3,203.0.113.7
}

test_del_and_add_beside_lists() {
	two_lists
	assert_notes 'these lists had it: a, b; the next import of a list brings it back' xc del 203.0.113.3
	assert_status 0 xc del 203.0.113.7
	! grep -q 'lists had it' "$STATE/err" || fail "a note about no list"
	holds '1 2 4' '4 5 6' '1 2 4 5 6'
	refresh a
	holds '1 2 3 4' '4 5 6' '1 2 3 4 5 6'
	assert_shows '^updated: src 203.0.113.1$' xc add 203.0.113.1
	assert_status 1 xc add 203.0.113.1
	printf '%s\n' 'add 203.0.113.2' 'add 203.0.113.2' 'del 203.0.113.5' >"$STATE/batch"
	assert_status 1 xc batch "$STATE/batch"
	assert_equal 'updated already there deleted' "$(tr '\n' ' ' <"$STATE/out" | sed 's/ $//')" "answers"
	assert_status 0 xc lists delete a
	assert_equal '1 2 4 6' "$(listed)" "rules"
}

# There is room for 63 lists. A dry run gives the same answer.
test_one_list_too_many() {
	write_list a 1
	for i in $(seq 63); do
		xc import "$STATE/a" --list "l$i" >/dev/null 2>&1 || fail "list $i"
	done
	for dry in --dry-run ''; do
		# shellcheck disable=SC2086 # a word, or none
		assert_status 4 xc import "$STATE/a" --list l64 $dry
		assert_error 'there are 63 lists already; delete one that nothing feeds: xdp-cuckoo lists delete NAME'
	done
	assert_status 0 xc lists delete l7
	assert_status 0 xc import "$STATE/a" --list l64 --dry-run
	assert_status 0 xc import "$STATE/a" --list l64
	assert_equal 63 "$(xc lists --json | grep -o '"list":' | wc -l)" "lists"
	# A deleted list that the undo would bring back keeps its place.
	assert_status 0 xc backup "$STATE/b"
	assert_status 0 xc lists delete l8
	assert_status 0 xc import "$STATE/a" --list l65
	assert_status 4 xc restore "$STATE/b" --confirm 1m
	assert_error 'there are 63 lists, with 1 that the undo of an unconfirmed change would bring back; do this without --confirm, or'
	assert_status 0 xc restore "$STATE/b"
}

test_a_file_that_changes_while_it_is_read() {
	xc load vrx >/dev/null
	echo 192.0.2.1 >"$STATE/l"
	assert_status 0 xc import "$STATE/l" --list a --replace
	awk 'BEGIN { for (i = 0; i < 200000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >"$STATE/l"
	while :; do
		echo 198.51.100.1
		sleep 0.001
	done >>"$STATE/l" &
	writer=$!
	on_exit "kill $writer 2>/dev/null"
	assert_status 3 xc import "$STATE/l" --list a --replace
	assert_error "was changed while it was read; nothing was changed; .*rename"
	kill "$writer"
	wait "$writer" 2>/dev/null || :
	assert_prints 'src 192.0.2.1' xc list --list a
	assert_status 0 xc import "$STATE/l" --list a --replace
}

test_replace_of_all_spares_lists() {
	two_lists
	write_list new 7 8
	for dry in --dry-run ''; do
		# shellcheck disable=SC2086 # a word, or none
		assert_status 2 xc import "$STATE/new" --replace $dry
		assert_error "would also delete the rules of lists, as of 'a'; nothing was changed; say --list NAME to replace one list$"
	done
	holds '1 2 3 4' '3 4 5 6' '1 2 3 4 5 6 7'
	assert_status 0 xc import "$STATE/new" --replace --force
	holds '' '' '7 8'
	# Lists without rules block nothing.
	assert_status 0 xc import "$STATE/new" --replace
	refresh a
	assert_status 0 xc flush --force
	assert_shows '^a +0 ' xc lists
}

test_wrong_usage() {
	write_list a 1
	for words in 'import LIST --list -x' 'import LIST --list a/b' 'lists purge' 'lists delete' 'lists --force' \
		'add 192.0.2.1 --list a/b' 'add 192.0.2.1 list' 'add 192.0.2.1 list a list a' \
		'lists delete a --dry-run --confirm 1s' 'import LIST --set x' 'import LIST --action allow' \
		'import LIST --monitor-only --action pass'; do
		case_begin "$words"
		# shellcheck disable=SC2046 # words
		assert_status 2 xc $(echo "$words" | sed "s,LIST,$STATE/a,")
	done
	for words in 'list --list a' 'export --list a' 'lists delete a' 'flush --list a' 'del 192.0.2.1 --list a' \
		'test 192.0.2.1 list a'; do
		case_begin "$words"
		# shellcheck disable=SC2086 # words
		assert_fails 1 "no list 'a'; see xdp-cuckoo lists" xc $words
		# shellcheck disable=SC2086
		assert_fails 1 "no list 'a'; see xdp-cuckoo --name web lists" xc --name web $words
	done
	assert_status 0 xc --name web add 192.0.2.2 --confirm 1m
	assert_fails 5 'another change waits for xdp-cuckoo --name web confirm; confirm it' xc --name web add 192.0.2.3 --confirm 1m
}

# A failed download is no import: the rules stay, and the time of the last import. Other files do not help.
test_a_file_without_a_rule_is_refused() {
	write_list a 1
	write_list good 2
	printf '# nothing\n\n' >"$STATE/comments"
	echo '<html>404</html>' >"$STATE/html"
	: >"$STATE/empty"
	refresh a
	xc lists --json | grep -v '"hit"' >"$STATE/before"
	sleep 1.1 # the time of an import has seconds
	for file in empty comments; do
		for words in '--list a --replace' '--list a' '--list a --replace --dry-run' ''; do
			case_begin "$file $words"
			# shellcheck disable=SC2086 # words
			assert_fails 2 "/$file holds no rule; nothing was changed; .* --force" xc import "$STATE/good" "$STATE/$file" $words
		done
	done
	assert_status 2 xc import "$STATE/html" --list a --replace
	assert_error 'no line of .*/html is a rule; nothing was changed; .* --format'
	assert_status 2 xc import - --list a </dev/null
	printf '[filter]\ninterfaces = vrx\n[list a]\nfile = %s\n' "$STATE/empty" >"$STATE/conf"
	assert_status 2 xc up "$STATE/conf"
	assert_error "list 'a': .*/empty holds no rule"
	assert_status 2 xc check-config --strict "$STATE/conf"
	assert_equal 1 "$(listed)" "rules"
	# `up` has loaded the filter, which counts hits.
	xc lists --json | grep -v '"hit"' | diff "$STATE/before" - || fail "the list is not as before"
	assert_status 0 xc import "$STATE/empty" --list a --replace --force
	assert_equal '' "$(listed)" "rules"
	! xc lists --json | grep -v '"hit"' | diff "$STATE/before" - >/dev/null || fail "no import"
}

test_several_files_are_one_list() {
	write_list a 1 2
	write_list b 2 3
	assert_status 0 xc import "$STATE/a" "$STATE/b" --list all --replace
	assert_output '^added 3,'
	assert_shows "^all +3 .* $STATE/a $STATE/b\$" xc lists
	assert_fails 3 "cannot read .*/nosuch" xc import "$STATE/a" "$STATE/nosuch" --list all --replace
	assert_equal '1 2 3' "$(listed --list all)" "rules"
}

# bans: the list of a program that bans addresses, beside a feed and rules by hand.
test_a_list_fed_rule_by_rule() {
	two_lists
	assert_status 0 xc add 203.0.113.1 timeout 1h --list bans
	assert_output '^updated: src 203.0.113.1 timeout 1h$'
	assert_shows '^added: src 203.0.113.9 timeout 1h$' xc add 203.0.113.9 timeout 1h list bans
	assert_shows '^list: +bans$' xc add 203.0.113.9 timeout 1h list bans comment list
	assert_shows '^bans +2 +-' xc lists
	assert_status 0 xc lists --json
	assert_output '"imported": null'
	# What is taken back stays with its other owners, and a plain ban on it stays a ban.
	assert_status 0 xc del 203.0.113.1 --list bans
	assert_output '^given up: src 203.0.113.1$'
	assert_output '^left to: +a$'
	assert_fails 1 "no such rule in the list 'bans': src 203.0.113.1; " xc del 203.0.113.1 --list bans
	assert_status 0 xc add 203.0.113.4 list bans
	assert_shows '^left to: +a; b; by hand$' xc del 203.0.113.4 list bans
	assert_shows '^deleted: src 203.0.113.9' xc del 203.0.113.9 --list bans
	holds '1 2 3 4' '3 4 5 6' '1 2 3 4 5 6 7'
	# One that ends does so, too.
	assert_status 0 xc add 203.0.113.1 timeout 1s --list bans
	assert_status 0 xc add 203.0.113.9 timeout 1s --list bans
	sleep 2
	holds '1 2 3 4' '3 4 5 6' '1 2 3 4 5 6 7'
	assert_status 1 xc test 203.0.113.1 --list bans
	assert_output '^verdict: +not listed$'
	assert_status 0 xc test 203.0.113.1 --list a
	assert_output '^verdict: +listed$'
	assert_output '^rule: +src 203.0.113.1$'
	assert_status 1 xc test 203.0.113.7 list a
}

test_flush_asks_for_lists() {
	two_lists
	assert_fails 2 'lists have rules: a \(4\), b \(4\); nothing was deleted; say flush --list NAME to delete the rules of one list$' xc flush
	assert_status 0 xc flush --list a
	assert_output '^deleted rules: +2$'
	assert_output '^left to others: +2$'
	holds '' '3 4 5 6' '3 4 5 6 7'
	assert_shows '^a +0 ' xc lists
	assert_shows '^deleted rules: +5$' xc flush --force
	assert_status 0 xc add 203.0.113.1
	assert_shows '^deleted rules: +1$' xc flush
}

test_batches_of_lists() {
	two_lists
	cat >"$STATE/batch" <<-'END'
		add 203.0.113.1 timeout 1h
		add 203.0.113.8
		add 203.0.113.9 list other
		test 203.0.113.9
		test 203.0.113.9 list other
		test 203.0.113.9 list nosuch
		del 203.0.113.1
		del 203.0.113.1
		del 203.0.113.8
		del 203.0.113.9 list nosuch
		del 203.0.113.9 list other
	END
	assert_status 1 xc batch --list bans "$STATE/batch"
	cat >"$STATE/answers" <<-'END'
		updated
		added
		added
		not listed
		listed by src 203.0.113.9
		not listed
		left to others
		no such rule
		deleted
		no such rule
		deleted
	END
	diff "$STATE/answers" "$STATE/out" || fail "answers"
	holds '1 2 3 4' '3 4 5 6' '1 2 3 4 5 6 7'
	echo 'add 203.0.113.9 list a/b' >"$STATE/batch"
	assert_status 2 xc batch "$STATE/batch"
	assert_output "^error: .*:1: 'list a/b': a name has"
}

test_actions_of_a_list() {
	xc load vrx >/dev/null
	cat >"$STATE/sets" <<-'END'
		create office hash:net
		create bad hash:net
		create mac hash:mac
		add office 203.0.113.1
		add bad 203.0.113.0/24
		add bad 203.0.113.2 nomatch
	END
	assert_fails 2 "has no set 'ugly'; it has: office, bad, mac" xc import "$STATE/sets" --set ugly
	assert_status 0 xc import "$STATE/sets" --set office --action pass --list office
	# On trial the exception would be a pass rule, which wins over the drop rules of other lists.
	assert_status 2 xc import "$STATE/sets" --set bad --list bad --replace --monitor-only
	assert_output 'bad lines 1;'
	assert_equal 'src 203.0.113.1 action pass' "$(xc list --list office)" "office"
	assert_verdict pass 203.0.113.3
	assert_status 0 xc list --list bad
	assert_equal 'src 203.0.113.0/24 action monitor' "$(cat "$STATE/out")" "bad"
	assert_status 0 xc import "$STATE/sets" --set bad --list bad --replace
	assert_verdict drop 203.0.113.3
	assert_verdict pass 203.0.113.1
	assert_verdict pass 203.0.113.2
	# Our own sets name their action, but drop rules of any format can be on trial.
	xc add 203.0.113.0/24 --list plain >/dev/null
	for format in text csv ipset nft; do
		xc export --list plain --format "$format" >"$STATE/exported"
		assert_status 0 xc import "$STATE/exported" --format "$format" --list "trial-$format" --monitor-only
		assert_equal 'src 203.0.113.0/24 action monitor' "$(xc list --list "trial-$format")" "$format"
	done
	printf '%s\n' 192.0.2.1 '192.0.2.2 action drop' '192.0.2.3 comment drop' >"$STATE/text"
	assert_status 0 xc import "$STATE/text" --list text --action monitor
	assert_equal 'src 192.0.2.1 action monitor
src 192.0.2.2
src 192.0.2.3 action monitor comment "drop"' "$(xc list --list text | sort)" "text"
}

# A file that has the drop rule and the monitor rule for the same packets keeps both, wherever they are sorted.
test_both_actions_for_the_same_packets() {
	for flag in syn ack fin rst psh; do
		printf '%s\n' "proto tcp src 192.0.2.1 flags $flag/$flag" "proto tcp src 192.0.2.1 flags $flag/$flag action monitor"
	done >"$STATE/both"
	xc import "$STATE/both" --list both >/dev/null
	assert_equal 10 "$(xc list --list both | wc -l)" "rules"
}

# A list on trial drops after the same import without --monitor-only, and back. Rules of other lists stay.
test_end_of_a_trial() {
	xc load vrx >/dev/null
	printf '203.0.113.1\n203.0.113.2 timeout 1h\n203.0.113.3 action pass\n' >"$STATE/new"
	xc import "$STATE/new" --list new --monitor-only >/dev/null
	xc import "$STATE/new" --list other --monitor-only >/dev/null
	echo '192.0.2.1 action monitor' | xc import - --list new >/dev/null
	assert_verdict pass 203.0.113.1 203.0.113.2
	assert_status 0 xc import "$STATE/new" --list new --dry-run
	assert_output '^dry run: added 2, updated 0, kept 1, removed 0, bad lines 0, left to others 2$'
	assert_status 0 xc import "$STATE/new" --list new
	assert_output '^added 2, updated 0, kept 1, removed 0, bad lines 0, left to others 2; '
	assert_verdict drop 203.0.113.1 203.0.113.2 pass 203.0.113.3
	assert_equal 'src 192.0.2.1 action monitor
src 203.0.113.1
src 203.0.113.2
src 203.0.113.3 action pass' "$(xc list new | sed 's/ timeout .*//')" "rules of the list"
	assert_status 0 xc import "$STATE/new" --list other --confirm 1s
	assert_output 'removed 2, bad lines 0; '
	wait_for "the undo" list_has other 'src 203.0.113.1 action monitor'
	assert_verdict drop 203.0.113.1
	assert_status 0 xc import "$STATE/new" --list new --monitor-only
	assert_output '^added 0, updated 2, kept 1, removed 2, bad lines 0; '
	assert_verdict pass 203.0.113.1 203.0.113.2
	printf '203.0.113.1\n203.0.113.1 action monitor\n' >"$STATE/both"
	assert_status 0 xc import "$STATE/both" --list new
	echo '203.0.113.1 action monitor' | xc import - --list new >/dev/null
	assert_verdict drop 203.0.113.1
	assert_status 0 xc import "$STATE/both" --list new
	assert_output '^added 0, updated 0, kept 2, removed 0, '
	assert_status 0 xc check
}

list_has() {
	xc list "$1" | grep -qx "$2"
}

test_export_a_list() {
	two_lists
	assert_shows '^exported: +4$' xc export --list b "$STATE/exported"
	assert_equal '3 4 5 6' "$(sed 's/.*\.//' "$STATE/exported" | tr '\n' ' ' | sed 's/ $//')" "exported"
	assert_status 0 xc export --list a --format ipset
	assert_equal 4 "$(grep -c '^add ' "$STATE/out")" "exported"
}

# Which lists earn their place.
test_rules_that_only_a_list_has() {
	write_list one 1 2 3 4
	write_list two 3 4 5
	for list in one two; do
		assert_status 0 xc import "$STATE/$list" --list "$list"
	done
	assert_status 0 xc add 203.0.113.5
	assert_shows '"only_here": 2,' xc lists --json
	assert_output '"hit": null,'
	assert_shows '^two +3 .* 0 +unknown ' xc lists
	xc load vrx >/dev/null 2>&1
	flows drop 203.0.113.1 203.0.113.4 203.0.113.4 203.0.113.5 | traffic || fail "packets meet other rules"
	assert_shows '^one +4 .* 2 +2 ' xc lists
	assert_output '^two +3 .* 0 +2 '
	assert_status 0 xc lists delete one
	assert_shows '^two +3 .* 2 +2 ' xc lists
	assert_shows '"only_here": 2,' xc lists --json
	assert_output '"hit": 2,'
	xc unload vrx >/dev/null 2>&1
	xc load vrx --compact >/dev/null 2>&1
	assert_shows '^two +3 .* 2 +unknown ' xc lists
}

run_tests "$0" "$@"
