#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What `backup` writes, `restore` brings back: rules with owners and ends, lists, feeds, policies; or it changes nothing.
. tests/lib.sh
. tests/namespace/safety.sh

ROUNDS=${ROUNDS:-12}

# all [NAME]: everything that is stored, without the time of the backup.
all() {
	xc --name "${1:-default}" backup | sed 1d
}

# untimed OPTION...: the rules, without what is left of their timeouts.
untimed() {
	xc list "$@" 2>&1 | sed 's/ timeout [0-9dhms]*/ timeout/; s/xdp-cuckoo --name [a-z]* /xdp-cuckoo /'
}

# feed_of LIST: gives it, in the file `b`, what is known of fetches.
feed_of() {
	feed_text='"feed": {"tried": "2026-11-24T10:00:00Z", "fetched": "2026-11-24T10:00:00Z", "next": "2036-11-24T11:00:00Z",'
	feed_text="$feed_text \"wait_until\": \"\", \"imported\": \"2026-11-24T10:00:00Z\", \"rules\": 3, \"config\": -77, \"failures\": 2,"
	feed_text="$feed_text \"left_out\": 1, \"etag\": \"W/\\\\\"x#; y\\\\\"\", \"modified\": \"Tue, 24 Nov\", \"why\": \"no 'answer'\"}"
	sed -i "/^list $1 /s|}\$|, $feed_text}|" "$STATE/b"
}

# rich_store: has something of everything. Its backup is the file `b`.
rich_store() {
	printf '203.0.113.%s\n' 1 2 4 >"$STATE/größe 'ä'"
	printf '203.0.113.2\n203.0.113.3\n2001:db8:5::/48 comment "a # ; list bad until %%d owners"\n' >"$STATE/worse"
	assert_status 0 xc import "$STATE/größe 'ä'" --list bad --replace
	assert_status 0 xc import "$STATE/worse" --list worse --replace --timeout 1h
	assert_status 0 xc add 203.0.113.2 timeout 2h
	assert_status 0 xc add 203.0.113.9 comment "by hand; # 'x'"
	assert_status 0 xc add 203.0.113.10 list worse timeout 3h
	assert_status 0 xc add 198.51.100.0/24
	assert_status 0 xc add 198.51.100.7 action pass
	assert_status 0 xc add 198.51.100.8 action monitor timeout 1d
	assert_status 0 xc add proto icmp type 8 src 192.0.2.0/25
	assert_status 0 xc add dport 4711
	assert_status 0 xc add --list empty 203.0.113.77
	assert_status 0 xc flush empty
	assert_status 0 xc policy malformed drop
	assert_status 0 xc policy too-many-headers pass
	assert_status 0 xc backup "$STATE/b"
	feed_of bad
	assert_status 0 xc restore "$STATE/b"
	all >"$STATE/all"
	grep -q '"etag": "W/\\"x#; y\\""' "$STATE/all" || fail "no feed: $(grep '^list' "$STATE/all")"
}

rich_verdicts() {
	assert_verdict drop 203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.4 203.0.113.9 203.0.113.10 198.51.100.1 2001:db8:5::1 \
		pass 198.51.100.7 203.0.113.77 203.0.113.5 192.0.2.1
}

test_round_trip() {
	xc load vrx >/dev/null
	rich_store
	assert_equal 600 "$(stat -c %a "$STATE/b")" "mode"
	rich_verdicts
	# Another store, which has other things; and the same one.
	write_list other 50 51
	assert_status 0 xc --name other import "$STATE/other" --list other
	assert_status 0 xc --name other import "$STATE/other" --list bad
	assert_status 0 xc --name other monitor-only on
	assert_shows '^lists: +3$' xc --name other restore "$STATE/b"
	all other | diff "$STATE/all" - || fail "another store is not equal"
	assert_fails 1 "no list 'other'" xc --name other list --list other
	assert_equal "$(untimed)" "$(untimed --name other)" "rules"
	assert_status 0 xc flush --force
	assert_verdict pass 203.0.113.1 198.51.100.1
	assert_status 0 xc restore "$STATE/b"
	rich_verdicts
	all | diff "$STATE/all" - || fail "not equal"
	assert_status 0 xc restore "$STATE/b"
	all | diff "$STATE/all" - || fail "not equal to itself"
	assert_shows '^vrx +[0-9]+ +0 +0 +0$' xc check
	assert_shows ' +2026-11-24T10:00:00Z +no .answer.$' xc lists
	# By a pipe, and an empty store.
	xc backup | assert_status 0 xc --name piped restore -
	all piped | diff "$STATE/all" - || fail "not equal by a pipe"
	assert_status 0 xc --name none add 192.0.2.1
	assert_status 0 xc --name none flush --force
	assert_status 0 xc --name none backup "$STATE/none"
	assert_status 0 xc --name piped restore "$STATE/none"
	assert_equal 'end rules 0 lists 0' "$(all piped | grep -v '^setting')" "what is left"
}

# The name is mistyped, or the disk of the store is not mounted: a good copy stays.
test_an_empty_store_replaces_no_file() {
	assert_status 0 xc add 192.0.2.1
	for command in backup export; do
		assert_status 0 xc "$command" "$STATE/copy"
		before=$(cat "$STATE/copy")
		assert_fails 1 "nothing is written: no rules are stored in $STATE/store/web" xc --name web "$command" "$STATE/copy"
		assert_fails 1 "nothing is written: no rules are stored in $STATE/store/web" xc --name web "$command"
		assert_equal '' "$(xc --name web "$command" 2>/dev/null)" "what $command writes"
		assert_equal "$before" "$(cat "$STATE/copy")" "$command"
	done
}

# How long a list may be silent is in a comment, which older versions skip. Some have written a member.
test_how_long_a_list_may_be_silent() {
	write_list bad 1
	assert_status 0 xc import "$STATE/bad" --list bad
	assert_status 0 xc backup "$STATE/b"
	while IFS='|' read -r edit stale; do
		case_begin "$edit"
		sed "$edit" "$STATE/b" >"$STATE/edited"
		! cmp -s "$STATE/b" "$STATE/edited" || fail "nothing is edited"
		assert_status 0 xc --name other restore "$STATE/edited"
		assert_equal "$stale" "$(all other | grep -v '^[lrse]')" "stale"
		! all other | grep -q stale_s || fail "older versions refuse it"
	done <<-'END'
		/^list/s/}$/, "stale_s": 7200}/|# stale bad 7200
		/^list/s/}$/, "stale_s": 4294967295}/|# stale bad 4294967295
		/^list/s/$/\n# stale bad 3600/|# stale bad 3600
		/^list/s/$/\n# stale bad 4294967296/|
		/^list/s/$/\n# stale bad -1/|
		/^list/s/$/\n# stale bad/|
		/^list/s/$/\n# stale bread 3600/|
		/^list/s/$/\n# stale  3600/|
	END
	for stale in -1 4294967296; do
		sed "/^list/s/}\$/, \"stale_s\": $stale}/" "$STATE/b" >"$STATE/edited"
		assert_fails 2 "'list bad': a time is not like" xc --name other restore "$STATE/edited"
	done
}

test_other_tables() {
	rich_store
	for options in --compact '--no-spare --capacity 100' '--compact --fingerprint 8 --no-spare' --no-counters; do
		case_begin "$options"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc --name t load vrx $options
		assert_status 0 xc --name t add 203.0.113.5
		assert_status 0 xc --name t restore "$STATE/b"
		assert_verdict drop 203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.9 198.51.100.1 2001:db8:5::1 pass 198.51.100.7
		assert_shows '^vrx +[0-9]+ +0 +0 +0$' xc --name t check
		assert_status 0 xc --name t unload vrx
	done
}

# The list still owns its rules: what its provider drops passes again.
test_a_delisted_address_after_the_restore() {
	xc load vrx >/dev/null
	rich_store
	assert_status 0 xc --name default flush --force
	assert_status 0 xc restore "$STATE/b"
	write_list bad 4
	assert_status 0 xc import "$STATE/bad" --list bad --replace
	assert_output 'removed 1,.* left to others 1'
	assert_verdict pass 203.0.113.1 drop 203.0.113.2 203.0.113.4
}

test_ends() {
	assert_status 0 xc add 203.0.113.1 timeout 1h
	assert_status 0 xc add 203.0.113.2 list a timeout 1h
	assert_status 0 xc add 203.0.113.2
	assert_status 0 xc add 203.0.113.3 timeout 1h
	end=$(date -u -d '+1 hour' +%Y-%m-%dT%H:)
	assert_shows "^rule src 203.0.113.1 until $end" xc backup
	assert_output "^rule src 203.0.113.2 list a until $end"
	assert_output '^rule src 203.0.113.2$'
	assert_output '^end rules 4 lists 1$'
	cp "$STATE/out" "$STATE/b"
	assert_status 0 xc add 203.0.113.3 timeout 1s
	wait_for "the end" xc_has_no 203.0.113.3
	assert_shows '^end rules 3 lists 1$' xc backup
	# A rule that has ended since is not restored; an owner whose time is over is none any more.
	sed -i -e 's/^\(rule src 203.0.113.2 list a until\).*/\1 2026-01-01T00:00:00Z/' \
		-e 's/^\(rule src 203.0.113.3 until\).*/\1 2026-01-01T00:00:00Z/' "$STATE/b"
	assert_shows '^ended since: +2$' xc --name other restore "$STATE/b"
	assert_shows '^src 203.0.113.1 timeout (1h|59m)' xc --name other list
	assert_equal '' "$(xc --name other list --list a)" "rules of the list"
	assert_output '^src 203.0.113.2$'
	assert_equal 2 "$(wc -l <"$STATE/out")" "rules"
}

xc_has_no() {
	! xc list | grep -q "$1"
}

# refused FILE PATTERN: with status 2 and this line; nothing changes.
refused() {
	assert_fails 2 "$2" xc restore "$1"
	all | diff "$STATE/all" - || fail "something changed"
}

test_a_cut_file_is_refused() {
	rich_store
	for lines in $(seq 0 $(($(wc -l <"$STATE/b") - 1))); do
		case_begin "$lines lines"
		head -n "$lines" "$STATE/b" >"$STATE/cut"
		[ "$lines" -gt 0 ] || { refused "$STATE/cut" 'holds no rule' && continue; }
		refused "$STATE/cut" 'cut ends too early: the last line, .end \.\.\.., is missing; nothing was changed$'
		sed "$((lines + 1))d" "$STATE/b" >"$STATE/cut"
		case $(sed -n "$((lines + 1))p" "$STATE/b") in
		rule* | list*) refused "$STATE/cut" "cut:[0-9]+: 'end rules .* are there: a line is missing, or was added" ;;
		esac
	done
	bytes=$(stat -c %s "$STATE/b")
	for cut in $(seq 1 29 $((bytes - 2))) $((bytes - 2)); do
		case_begin "$cut bytes"
		head -c "$cut" "$STATE/b" >"$STATE/cut"
		refused "$STATE/cut" .
	done
}

# What was read before the damage is not taken for all of it.
test_a_backup_of_a_damaged_store_is_refused() {
	printf 'add 203.0.113.%s comment scanner%s\n' 1 1 2 2 3 3 | xc batch - >/dev/null
	LC_ALL=C sed -i 's/scanner2/scanner\xff/' "$STATE/store/default/data.mdb"
	assert_fails 3 'data.mdb is damaged' xc backup
	xc backup >"$STATE/cut" 2>/dev/null || :
	grep -q '^rule src 203.0.113.1 ' "$STATE/cut" || fail "not the rule before the damage: $(cat "$STATE/cut")"
	assert_fails 2 'cut ends too early' xc restore "$STATE/cut" --name other
}

test_bad_lines_are_named() {
	rich_store
	while IFS='|' read -r edit pattern; do
		case_begin "$edit"
		sed "$edit" "$STATE/b" >"$STATE/edited"
		! cmp -s "$STATE/b" "$STATE/edited" || fail "nothing is edited"
		refused "$STATE/edited" "$pattern"
	done <<-'END'
		1s/1 of/2 of/|edited is of another version \('xdp-cuckoo backup 2 of .*'\): restore it with the tool that wrote it
		2s/pass/maybe/|edited:2: 'setting no-rule maybe': no such setting, or no such value
		2s/no-rule/nothing/|edited:2: 'setting nothing pass': no such
		3s/setting/colour/|edited:3: 'colour .*': a line starts with setting, list, rule or end
		s/^rule src 203.0.113.9 /rule src 203.0.113.999 /|edited:[0-9]+: '203.0.113.999' is not an IPv4
		s/list bad$/list nosuch/|edited:[0-9]+: 'list nosuch': no line before names such a list
		s/until 20.*/until soon/|edited:[0-9]+: a rule ends at a moment, written last: until 2026-
		s/until 20.*/timeout 1h/|edited:[0-9]+: .*a rule ends at a moment|
		s/"source"/"sauce"/|edited:[0-9]+: 'list bad': .*source
		s/"source"/"x": 1, "source"/|edited:[0-9]+: 'list bad': .*left unpacked: x
		s/"etag"/"tag"/|edited:[0-9]+: 'list bad': .*etag
		s/"tried": "2026/"tried": "x/|edited:[0-9]+: 'list bad': a time is not like
		s/^list worse/list bad/|edited:[0-9]+: 'list bad': no name of a list, or named twice
		$a rule src 203.0.113.200|edited:[0-9]+: 'rule src 203.0.113.200': behind the line end
	END
	case_begin "comments and empty lines"
	sed '3s/^/\n# a comment\n/' "$STATE/b" >"$STATE/edited"
	assert_status 0 xc restore "$STATE/edited"
	all | diff "$STATE/all" - || fail "something changed"
}

test_the_guard() {
	xc load vrx >/dev/null
	assert_status 0 xc add 10.99.0.0/24 --force
	assert_status 0 xc backup "$STATE/b"
	assert_status 0 xc del 10.99.0.0/24
	export SSH_CONNECTION='10.99.0.1 1 10.99.0.2 22'
	assert_fails 2 "'src 10.99.0.0/24' would block .*; nothing was changed; first: " xc restore "$STATE/b"
	assert_prints '' xc list
	sed -e 's/no-rule pass/no-rule drop/' -e '/^rule/d' -e 's/rules 1/rules 0/' "$STATE/b" >"$STATE/closed"
	assert_fails 2 "the policy 'no-rule drop' would block " xc restore "$STATE/closed"
	sed -e 's/not-ip pass/not-ip drop/' -e '/^rule/d' -e 's/rules 1/rules 0/' "$STATE/b" >"$STATE/closed"
	assert_fails 2 "the backup sets the policy 'not-ip drop', which drops ARP" xc restore "$STATE/closed"
	assert_verdict pass 10.99.0.1
	assert_status 0 xc restore "$STATE/b" --force
	assert_prints 'src 10.99.0.0/24' xc list
}

# undo: what waits, as if its time were over and the watchdog were dead.
undo() {
	watchdogs | xargs kill -9
	in_rx "$HELPERS/overdue" "$STATE/store/default"
	assert_notes 'undid a change' xc expire
}

# Everything comes back: rules, owners, lists and settings.
test_an_unconfirmed_restore_is_undone() {
	xc load vrx >/dev/null
	rich_store
	write_list other 3 50
	assert_status 0 xc import "$STATE/other" --list other
	assert_status 0 xc lists delete worse
	assert_status 0 xc policy malformed pass
	assert_status 0 xc policy truncated drop
	assert_status 0 xc monitor-only on
	all >"$STATE/before"
	assert_notes 'this is undone at ' xc restore "$STATE/b" --confirm 1h
	all | diff "$STATE/all" - || fail "not restored"
	assert_notes '^note: a change waits for xdp-cuckoo confirm: the backup has the rules with that change$' xc backup "$STATE/c"
	assert_fails 5 'another change waits for xdp-cuckoo confirm' xc restore "$STATE/b"
	rich_verdicts
	undo
	all | diff "$STATE/before" - || fail "not as before"
	assert_verdict pass 203.0.113.1 203.0.113.50
	assert_shows 'monitor only: +yes' xc status --verbose
	assert_shows '^vrx +[0-9]+ +0 +0 +0$' xc check
	# A setting that is changed meanwhile outlasts the undo.
	assert_status 0 xc restore "$STATE/b" --confirm 1h
	assert_status 0 xc policy unsettled drop
	assert_status 0 xc policy truncated drop
	undo
	sed -i 's/unsettled pass/unsettled drop/' "$STATE/before"
	all | diff "$STATE/before" - || fail "not as before, with the new policy"
	assert_status 0 xc restore "$STATE/b" --confirm 1m
	assert_status 0 xc confirm
	all | diff "$STATE/all" - || fail "not restored"
	rich_verdicts
}

# The guard knows what the undo brings back: with the settings from before, pass rules are not needed.
test_the_guard_and_the_undo_of_settings() {
	export SSH_CONNECTION='10.99.0.1 1 10.99.0.2 22'
	for family in 0.0.0.0/0 ::/0; do
		assert_status 0 xc add "$family" action pass
	done
	assert_status 0 xc policy no-rule drop --force
	assert_status 0 xc backup "$STATE/b"
	assert_status 0 xc policy no-rule pass
	assert_status 0 xc flush --force
	assert_status 0 xc restore "$STATE/b" --confirm 1m
	assert_status 0 xc add 203.0.113.1
	assert_status 0 xc confirm
}

test_plain_lists() {
	write_list plain 1 2
	assert_status 0 xc import "$STATE/plain" --list plain
	assert_output '^added 2,'
	assert_status 0 xc restore <"$STATE/plain"
	assert_output '^added 0, updated 2,'
	assert_status 0 xc save "$STATE/saved" --list plain
	assert_status 0 xc --name other restore "$STATE/saved" --dry-run
	assert_output '^dry run: added 2'
	assert_notes '^note: lists, owners of rules, policies and monitor-only are left out; .*: xdp-cuckoo backup FILE$' xc export
	assert_status 0 xc --name plain add 192.0.2.1
	assert_status 0 xc --name plain export
	assert_prints '' cat "$STATE/err"
	assert_status 0 xc backup "$STATE/b"
	assert_fails 2 "'.*/b' is a backup: xdp-cuckoo restore .*/b\$" xc import "$STATE/b" --list x
	assert_fails 2 'a backup is restored as a whole.*; for a list: xdp-cuckoo import FILE$' xc restore "$STATE/plain" --list x
	assert_fails 2 'a backup is restored as a whole' xc restore "$STATE/b" --replace
	assert_fails 2 'a backup is restored as a whole' xc restore "$STATE/b" "$STATE/plain"
	assert_fails 2 'a backup is no JSON' xc backup --json
	assert_shows '^rules: +2$' xc --name other restore "$STATE/b" --dry-run
	assert_notes 'no rules are stored' xc --name other list
}

# Lists of random rules that overlap, some with timeouts; then random changes by hand.
random_store() {
	$PYTHON - "$1" "$STATE" <<-'END'
		import random, sys
		rng = random.Random(sys.argv[1])
		def rule():
		    kind = rng.randrange(6)
		    text = "203.0.113.%d" % rng.randrange(12)
		    if kind == 1: text = "10.%d.0.0/%d" % (rng.randrange(4) * 64, rng.choice([10, 16, 20]))
		    if kind == 2: text = "2001:db8:%x::/48" % rng.randrange(9)
		    if kind == 3: text = "proto %s dst 198.51.100.%d dport %d" % (rng.choice(["tcp", "udp"]), rng.randrange(9), rng.randrange(3))
		    if kind == 4: text = "proto icmp type %d" % rng.randrange(4)
		    act = rng.choice(["drop", "drop", "drop", "pass", "monitor"])
		    if act != "pass" and rng.random() < .4: text += " rate %d%s" % (rng.randrange(1, 9), rng.choice(["/s", "Mbit/s"]))
		    if act != "pass" and rng.random() < .2: text += " state new"
		    text += " action " + act
		    if rng.random() < .3: text += " timeout %dm" % rng.randrange(60, 600)
		    if rng.random() < .3: text += ' comment "%s"' % "".join(rng.choice("ab #;%'\\{}|ü list until") for _ in range(rng.randrange(1, 30)))
		    return text
		for n in range(6):
		    with open("%s/random%d" % (sys.argv[2], n), "w") as to:
		        for _ in range(rng.randrange(1, 25)):
		            to.write(rule() + "\n")
		with open(sys.argv[2] + "/commands", "w") as to:
		    for n in range(rng.randrange(2, 6)):
		        to.write("import STATE/random%d --list l%d %s\n" % (n, rng.randrange(5), rng.choice(["", "--replace", "--timeout 2h"])))
		    to.write("import STATE/random5\n")
		    if rng.random() < .5: to.write("flush l%d\n" % rng.randrange(5))
		    if rng.random() < .5: to.write("lists delete l%d\n" % rng.randrange(5))
		    for what in "later-fragment truncated malformed unsettled too-many-headers".split():
		        to.write("policy %s %s\n" % (what, rng.choice(["pass", "drop"])))
		    to.write("monitor-only %s\n" % rng.choice(["on", "off"]))
	END
	sed "s,STATE,$STATE,g" "$STATE/commands" | while read -r words; do
		# shellcheck disable=SC2086 # words
		xc --name "$2" $words --force >/dev/null 2>&1 || xc --name "$2" $words >/dev/null 2>&1 || :
	done
}

# owned NAME: rules by list, without what is left of their timeouts.
owned() {
	for list in l0 l1 l2 l3 l4; do
		untimed --name "$1" --list "$list"
	done
	untimed --name "$1"
}

test_random_stores() {
	note "SEED=$SEED"
	for round in $(seq "$ROUNDS"); do
		case_begin "round $round of SEED=$SEED"
		random_store "$SEED.$round" a
		random_store "$SEED.$round.b" b
		all a >"$STATE/all.a"
		all b >"$STATE/all.b"
		[ "$(grep -c '^rule' "$STATE/all.a")" -gt 2 ] || fail "hardly a rule"
		xc --name a backup "$STATE/a"
		xc --name b backup "$STATE/b"
		assert_status 0 xc --name b restore "$STATE/a" --force --confirm 1m
		all b | diff "$STATE/all.a" - || fail "not equal"
		assert_status 0 xc --name b confirm
		assert_status 0 xc --name b restore "$STATE/b" --force
		all b | diff "$STATE/all.b" - || fail "not as it was"
		assert_status 0 xc --name c restore "$STATE/a" --force
		all c | diff "$STATE/all.a" - || fail "not equal, with what was there"
		assert_equal "$(owned a)" "$(owned c)" "rules by list"
	done
}

run_tests "$0" "$@"
