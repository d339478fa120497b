#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# batch: what it answers, that an answer holds, and that others get their turn beside it. SEED=N repeats a run.
. tests/lib.sh
. tests/namespace/safety.sh

LINES=${LINES:-20000} # of the random run

assert_answers() {
	cat >"$STATE/expected"
	diff -u "$STATE/expected" "$STATE/out" || fail "other answers"
}

test_answers() {
	xc load vrx >/dev/null
	cat >"$STATE/lines" <<-'END'
		add 192.0.2.1
		add src 192.0.2.1 comment "again"
		  # a comment, and a line without anything

		add 192.0.2.2 timeout 1h
		add 192.0.2.2 timeout 2d
		add 198.51.100.0/24 comment "a # list"
		add 198.51.100.7 action pass
		test 198.51.100.1
		test proto udp src 198.51.100.7 sport 1 dst 192.0.2.9 dport 2
		test 203.0.113.1
		del 192.0.2.1
		del 192.0.2.1
		test 192.0.2.1
		add 192.0.2.1
	END
	assert_status 1 xc batch "$STATE/lines"
	assert_answers <<-'END'
		added
		already there
		added
		updated
		added
		added
		blocked by src 198.51.100.0/24 comment "a # list"
		passed by src 198.51.100.7 action pass
		not blocked
		deleted
		no such rule
		not blocked
		added
	END
	assert_equal 4 "$(xc list | wc -l)" "rules"
	assert_verdict drop 192.0.2.1 192.0.2.2 198.51.100.1 pass 198.51.100.7
	printf 'del 192.0.2.1\nadd 192.0.2.3' >"$STATE/lines"
	assert_status 0 xc batch - <"$STATE/lines"
	assert_answers <<-'END'
		deleted
		added
	END
}

# A line may mean several rules. Its answer is the first word that is true of one of them.
test_lines_of_several_rules() {
	xc load vrx >/dev/null
	cat >"$STATE/lines" <<-'END'
		add 192.0.2.1-192.0.2.6 timeout 1h
		add 192.0.2.1,192.0.2.9
		add 192.0.2.9 192.0.2.1
		add 203.0.113.7/24
		add 10.99.0.1-10.99.0.3
		add tcp dport 80,443 list web
		test 192.0.2.1,192.0.2.2
		del 192.0.2.1-192.0.2.6
		del 192.0.2.1-192.0.2.6
		del 10.0.0.1-10.255.255.254 dport 1-65535
	END
	assert_status 2 xc batch "$STATE/lines"
	sed -i 's/; .*//; s/, but passed by .*//' "$STATE/out"
	assert_answers <<-END
		added
		added
		already there
		added
		error: $STATE/lines:5: 'src 10.99.0.2/31' would block packets from this host's address 10.99.0.2
		added
		error: $STATE/lines:7: these words mean 2 rules
		deleted
		no such rule
		error: $STATE/lines:10: its ranges mean 2760 rules
	END
	assert_error "^note: .*lines:4: '203.0.113.7/24' has host bits set"
	assert_prints 'src 192.0.2.9
src 203.0.113.0/24
proto tcp dport 80
proto tcp dport 443' xc list
	assert_verdict drop 192.0.2.9 203.0.113.9 pass 192.0.2.2
	echo 'add 203.0.114.7/24' | xc batch --strict - 2>"$STATE/err" && fail "host bits are taken"
	assert_error 'the network is 203.0.114.0/24'
	assert_status 0 xc check
}

# Like the command `test`, batch says if the policy drops a packet that no rule passes.
test_a_policy_that_drops() {
	xc policy no-rule drop --force >/dev/null
	printf 'test 192.0.2.1\nadd 192.0.2.1 action pass\ntest 192.0.2.1\n' >"$STATE/lines"
	assert_status 1 xc batch "$STATE/lines"
	assert_answers <<-'END'
		blocked: no rule passes it (policy no-rule drop)
		added
		passed by src 192.0.2.1 action pass
	END
	assert_status 0 xc batch - <<-'END'
		test 192.0.2.2
	END
}

test_json_answers() {
	{
		printf 'add 192.0.2.1\n\ndel 192.0.2.9\nbogus "\n\377\ntest 192.0.2.1\n'
		# An error text cuts the long comment inside a character.
		printf 'add 192.0.2.3 comment "%s"\n' "$(printf '%0200d' 0 | sed 's/0/€/g')"
	} >"$STATE/lines"
	assert_status 2 xc --json batch "$STATE/lines"
	while read -r row; do
		printf '%s\n' "$row" | "$HELPERS/json_check" || fail "not JSON: $row"
	done <"$STATE/out"
	cat >"$STATE/expected" <<-'END'
		{"line": 1, "answer": "added", "changed": true}
		{"line": 3, "answer": "no such rule", "changed": false}
		{"line": 4, "error": "'bogus': a line starts with add, del or test"}
		{"line": 5, "error": "'?': a line starts with add, del or test"}
		{"line": 6, "answer": "blocked", "rule": "src 192.0.2.1"}
		{"line": 7, "error": "'comment €€€€€€??...': a comment has at most 255 bytes"}
	END
	diff -u "$STATE/expected" "$STATE/out" || fail "other answers"
}

test_bad_lines_do_not_stop_the_others() {
	{
		printf 'add 192.0.2.1\nadd 192.0.2.999\nadd\nfrobnicate 192.0.2.1\nadd 10.0.0.1/8\r\n'
		printf 'add 192.0.2.2\r\nadd 192.0.2.3 \000 x\n'
		printf 'add 192.0.2.3 comment "%01000000d"\n' 0
		printf '\tadd\t192.0.2.4\t\nadd 192.0.2.5 sprot 7'
	} >"$STATE/lines"
	assert_status 2 xc batch "$STATE/lines"
	assert_equal 'added error error error error added error error added error' \
		"$(sed 's/:.*//' "$STATE/out" | tr '\n' ' ' | sed 's/ $//')" "answers"
	assert_output "^error: $STATE/lines:2: '192.0.2.999'"
	assert_output "lines:3: "
	assert_output "lines:4: 'frobnicate': a line starts with add, del or test"
	assert_output "lines:5: .*10.0.0.0/8"
	assert_output "lines:7: a NUL byte"
	assert_output "lines:8: the line is too long"
	assert_output "lines:10: 'sprot'"
	assert_equal 3 "$(xc list | wc -l)" "rules"
	head -c 300000 /dev/urandom >"$STATE/lines"
	assert_status 2 xc batch "$STATE/lines"
	assert_fails 3 'No such file' xc batch "$STATE/nosuch"
	assert_fails 3 'directory' xc batch "$STATE"
	assert_status 0 xc batch /dev/null
	assert_equal '' "$(cat "$STATE/out")" "answers to nothing"
}

test_timeout_by_default() {
	printf 'add 192.0.2.1\nadd 192.0.2.2 timeout 5d\ndel 192.0.2.3\n' >"$STATE/lines"
	assert_status 1 xc batch --timeout 1h "$STATE/lines"
	assert_status 0 xc list
	assert_output '^src 192.0.2.1 timeout (1h|59m[0-9]+s)$'
	assert_output '^src 192.0.2.2 timeout (5d|4d23h)'
}

# model LINES: writes random lines about few rules to $STATE/lines. A model in awk writes the expected answers, rules
# and flows to files beside it. It does not say which of two matching rules batch names.
model() {
	awk -v seed="$SEED" -v lines="$1" -v state="$STATE" '
	function net(host) { return "src 10.7." int(host / 4) ".0/24" }
	function address(host) { return "src 10.7." int(host / 4) "." host % 4 }
	function verdict(host) {
		if (address(host) " action pass" in rule || net(host) " action pass" in rule)
			return "passed"
		return address(host) in rule || net(host) in rule ? "blocked" : "not blocked"
	}
	function add(what, timeout,    answer) {
		print "add " what (timeout ? " timeout " timeout "h" : "")
		answer = !(what in rule) ? "added" : rule[what] ? "updated" : "already there"
		if (answer != "already there")
			rule[what] = timeout
		return answer
	}
	function del(what,    answer) {
		print "del " what
		answer = what in rule ? "deleted" : "no such rule"
		delete rule[what]
		return answer
	}
	BEGIN {
		srand(seed)
		for (n = 1; n <= lines; n++) {
			host = int(rand() * 40)
			what = (rand() < 0.3 ? net(host) : address(host)) (rand() < 0.2 ? " action pass" : "")
			chance = rand()
			if (chance < 0.4)
				print add(what, chance < 0.15 ? n : 0) >(state "/answers")
			else if (chance < 0.8)
				print del(what) >(state "/answers")
			else {
				print "test " address(host)
				print verdict(host) >(state "/answers")
			}
		}
		for (what in rule)
			print what >(state "/rules")
		for (host = 0; host < 40; host++)
			print verdict(host) == "blocked" ? "drop" : "pass", "end proto udp " address(host) \
				" dst 198.51.100.7 sport 1 dport 2" >(state "/flows")
	}' >"$STATE/lines"
}

# try_model LINES COMMAND...: the command writes the model's lines, which feed batch.
try_model() {
	xc load vrx --capacity 900 >/dev/null
	note "SEED=$SEED"
	model "$1"
	shift
	"$@" | xc batch - >"$STATE/out" || [ $? -eq 1 ] || fail "status"
	sed -i 's/, but passed by.*//; s/ by.*//' "$STATE/out"
	diff "$STATE/answers" "$STATE/out" >"$STATE/difference" ||
		{ head -20 "$STATE/difference"; fail "other answers than the model's"; }
	sort "$STATE/rules" >"$STATE/expected"
	xc list | sed 's/ timeout [^ ]*//' | sort >"$STATE/listed"
	diff "$STATE/expected" "$STATE/listed" || fail "other rules than the model's"
	traffic <"$STATE/flows" >/dev/null || fail "wrong verdicts"
	assert_status 0 xc check
}

slowly() {
	while read -r words; do
		echo "$words"
	done <"$STATE/lines"
}

test_lines_see_what_those_before_did() {
	try_model "$LINES" cat "$STATE/lines"
}

test_small_groups_see_what_those_before_did() {
	try_model 3000 slowly
}

# Deletions of a group make room for its additions: the table neither grows nor is replaced.
test_deletions_make_room_for_additions() {
	seq 60000 | awk '{ printf "src 10.%d.%d.%d\n", $1 / 65536, $1 / 256 % 256, $1 % 256 }' >"$STATE/rules"
	xc load vrx --capacity 60000 >/dev/null
	xc import "$STATE/rules" >/dev/null
	program=$(program_id vrx)
	{
		head -n 9000 "$STATE/rules" | sed 's/^/del /'
		head -n 9000 "$STATE/rules" | sed 's/^src 10/add src 11/'
	} >"$STATE/lines"
	assert_status 0 xc batch "$STATE/lines"
	assert_equal "$program" "$(program_id vrx)" "the program"
	assert_equal 60000 "$(xc list | wc -l)" "rules"
	assert_status 0 xc check
}

# Lines that would lock the host out are refused; the other lines are done.
test_refused_lines_do_not_take_others_along() {
	xc load vrx >/dev/null
	cat >"$STATE/lines" <<-'END'
		add 192.0.2.1
		add 10.99.0.2
		add 192.0.2.2
		add 10.99.0.0/24
		add 10.99.0.2 action pass
		add 10.99.0.2
		del 10.99.0.2 action pass
		add 192.0.2.3
	END
	run xc batch "$STATE/lines"
	sed -i 's/:.* would block/: would block/; s/, but passed by .*//; s/;.*//' "$STATE/out"
	assert_answers <<-'END'
		added
		error: would block packets from this host's address 10.99.0.2
		added
		error: would block packets from this host's address 10.99.0.2
		added
		added
		error: would block packets from this host's address 10.99.0.2
		added
	END
	assert_equal 5 "$(xc list | wc -l)" "rules"
	assert_status 0 xc check
	assert_status 0 xc batch --force - <<-'END'
		del 10.99.0.2 action pass
		add 10.0.0.0/8
	END
}

test_strict_changes_all_or_nothing() {
	xc load vrx >/dev/null
	xc add 192.0.2.9 >/dev/null
	for bad in 'add 192.0.2.999' 'frob' 'add 10.99.0.2' 'del 192.0.2.7 sprot 7'; do
		case_begin "$bad"
		printf 'del 192.0.2.9\nadd 192.0.2.1\n%s\nadd 192.0.2.2\n' "$bad" >"$STATE/lines"
		run xc batch --strict "$STATE/lines"
		[ "$STATUS" -ge 2 ] || fail "status $STATUS"
		assert_error 'nothing was changed'
		assert_equal '' "$(cat "$STATE/out")" "answers"
		assert_equal 'src 192.0.2.9' "$(xc list)" "rules"
	done
	case_begin "the line is named"
	assert_error "$STATE/lines:3: 'sprot'"
	case_begin "a good one"
	printf 'del 192.0.2.9\nadd 192.0.2.1\ndel 192.0.2.8\nadd 192.0.2.2\n' >"$STATE/lines"
	assert_status 1 xc batch --strict "$STATE/lines"
	assert_equal 'deleted added no such rule added ' "$(tr '\n' ' ' <"$STATE/out")" "answers"
	assert_verdict drop 192.0.2.2
	assert_status 0 xc check
}

# --- a pipe that stays open

# feed_begin: starts batch, which reads from descriptor 7 and answers on descriptor 8.
feed_begin() {
	rm -f "$STATE/in" "$STATE/answers"
	mkfifo "$STATE/in" "$STATE/answers"
	in_rx sh -c 'echo $$ >"$1/pid"; exec "$2" --state "$1/store" batch -' sh "$STATE" "$TOOL" \
		<"$STATE/in" >"$STATE/answers" 2>"$STATE/err" &
	FEEDER=$!
	on_exit 'kill $(cat "$STATE/pid") 2>/dev/null || :'
	exec 7>"$STATE/in" 8<"$STATE/answers"
}

# ask LINE: sets ANSWER.
ask() {
	echo "$1" >&7
	read -r ANSWER <&8
}

# feed_end: sets STATUS.
feed_end() {
	exec 7>&-
	STATUS=0
	wait "$FEEDER" || STATUS=$?
	exec 8<&-
}

test_stays_open_and_lets_others_work() {
	xc load vrx >/dev/null
	feed_begin
	for i in 1 2 3; do
		ask "add 192.0.2.$i"
		assert_equal added "$ANSWER" "answer"
		echo "drop added proto udp src 192.0.2.$i dst 198.51.100.7 sport 1 dport 2" | traffic >/dev/null ||
			fail "answered, and not in force"
		# Half a line does not keep the store locked.
		printf 'del 192.0' >&7
		assert_status 0 timeout 60 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" \
			add "192.0.3.$i"
		ask ".3.$i"
		assert_equal deleted "$ANSWER" "answer"
	done
	ask 'test 192.0.2.3'
	assert_equal 'blocked by src 192.0.2.3' "$ANSWER" "answer"
	feed_end
	assert_equal 0 "$STATUS" "status"
	assert_equal 3 "$(xc list | wc -l)" "rules"
}

# pour FILE: starts batch with this input; its answers go to $STATE/poured.
pour() {
	rm -f "$STATE/poured"
	in_rx sh -c 'echo $$ >"$1/pid"; exec "$2" --state "$1/store" batch -' sh "$STATE" "$TOOL" \
		<"$1" >"$STATE/poured" 2>"$STATE/err" &
	FEEDER=$!
	on_exit 'kill $(cat "$STATE/pid") 2>/dev/null || :'
	while ! [ -s "$STATE/poured" ]; do
		kill -0 "$FEEDER" || fail "batch has ended"
	done
}

# pour_end SIGNAL: ends batch by a signal and sets STATUS.
pour_end() {
	kill "-$1" "$(cat "$STATE/pid")" || fail "batch has ended by itself"
	STATUS=0
	wait "$FEEDER" 2>/dev/null || STATUS=$?
}

# Other commands get their turn although the input of batch never pauses.
test_lets_others_in_under_constant_input() {
	xc load vrx >/dev/null
	yes 'add 10.1.1.1
del 10.1.1.1' | head -n 10000000 >"$STATE/long"
	pour "$STATE/long"
	for i in 1 2 3 4 5; do
		assert_status 0 xc add "192.0.3.$i"
	done
	pour_end TERM
	assert_equal 3 "$STATUS" "status of batch, which had not come to the end"
	assert_equal 5 "$(xc list | grep -c '192.0.3')" "rules of others"
	assert_status 0 xc check
}

# Nobody reads the answers, and their pipe is full. Signals end batch all the same.
test_ends_by_signals_while_answers_wait() {
	xc load vrx >/dev/null
	yes 'test 192.0.2.1' | head -n 20000 >"$STATE/many"
	mkfifo "$STATE/unread"
	for options in '' --strict; do
		case_begin "$options"
		exec 9<>"$STATE/unread"
		# shellcheck disable=SC2086 # words
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" batch "$STATE/many" $options \
			>"$STATE/unread" 2>"$STATE/err" &
		FEEDER=$!
		on_exit "kill -9 $FEEDER 2>/dev/null || :"
		wait_for "a full pipe" is_full_pipe 9
		kill -TERM "$FEEDER"
		wait_for "its end" has_ended "$FEEDER"
		STATUS=0
		wait "$FEEDER" || STATUS=$?
		assert_equal 3 "$STATUS" "status"
		assert_error 'interrupted: nobody reads the answers; the lines after 20000 were not done'
		exec 9<&-
	done
}

# count_up LINES: writes the file $STATE/count, which takes longer than the test waits.
count_up() {
	[ -e "$STATE/count" ] || awk -v lines="$1" 'BEGIN { for (i = 0; i < lines; i++)
		printf "add 10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >"$STATE/count"
}

test_ends_in_order_by_signals() {
	xc load vrx >/dev/null
	for signal in TERM INT; do
		case_begin "$signal while lines come"
		count_up 3000000
		pour "$STATE/count"
		pour_end "$signal"
		assert_equal 3 "$STATUS" "status"
		assert_error 'interrupted: the lines after [0-9]+ were not done'
		assert_equal "$(wc -l <"$STATE/poured")" "$(xc list | wc -l)" "rules, and answers"
		assert_equal added "$(sort -u "$STATE/poured")" "answers"
		assert_status 0 xc check
		xc flush >/dev/null
		case_begin "$signal while none comes"
		feed_begin
		ask 'add 192.0.2.1'
		kill -"$signal" "$(cat "$STATE/pid")"
		feed_end
		assert_equal 0 "$STATUS" "status"
		assert_equal 'src 192.0.2.1' "$(xc list)" "rules"
		xc flush >/dev/null
	done
}

# An answered line is durable, and in force after the next command.
test_kill_9_loses_no_answer() {
	xc load vrx >/dev/null
	count_up 1000000
	for round in 1 2 3 4; do
		case_begin "round $round"
		pour "$STATE/count"
		sleep "0.$(($(od -An -N2 -tu2 /dev/urandom) % 10))"
		pour_end KILL
		answered=$(grep -c '^added$' "$STATE/poured") # the last one may be cut
		assert_status 0 xc add 192.0.2.1
		listed=$(xc list | grep -c '^src 10\.')
		[ "$listed" -ge "$answered" ] || fail "$answered lines were answered, $listed rules are there"
		xc list | sed -n "s/^src 10.*/drop rest proto udp & dst 198.51.100.7 sport 1 dport 2/p" |
			awk 'NR % 97 == 0' | traffic >/dev/null || fail "listed, and not in force"
		assert_status 0 xc check
		xc flush >/dev/null
	done
}

test_strict_blames_no_line_for_the_store() {
	mkfifo "$STATE/lines"
	xc batch --strict "$STATE/lines" >"$STATE/out" 2>"$STATE/err" &
	batch=$!
	exec 3>"$STATE/lines"
	wait_for "the first look at the store" grep -q 'no filter' "$STATE/err"
	rm -rf "$STATE/store"
	: >"$STATE/store"
	echo 'add 192.0.2.1' >&3
	exec 3>&-
	STATUS=0
	wait "$batch" || STATUS=$?
	assert_equal 3 "$STATUS" "status"
	grep -q '^xdp-cuckoo: store .*Not a directory' "$STATE/err" || fail "$(cat "$STATE/err")"
}

# If nobody reads the answers any more, batch ends and lets others work.
test_closed_output_ends_it() {
	xc load vrx >/dev/null
	count_up 3000000
	xc batch "$STATE/count" | head -n 1 >"$STATE/first"
	assert_equal added "$(cat "$STATE/first")" "the first answer"
	assert_status 0 timeout 60 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" add 192.0.2.1
	[ -c /dev/full ] || return 0
	STATUS=0
	echo 'add 192.0.2.2' | xc batch - >/dev/full 2>/dev/null || STATUS=$?
	assert_equal 3 "$STATUS" "status where answers cannot be written"
}

# While nobody reads the answers and notes, others can work, and no answer is lost.
test_answers_that_wait_keep_nobody_waiting() {
	xc load vrx >/dev/null
	count_up 20000
	mkfifo "$STATE/unread"
	exec 9<>"$STATE/unread"
	$PYTHON -c 'import fcntl; fcntl.fcntl(9, 1031, 65536)' # F_SETPIPE_SZ: the more room, the larger the machine's pages
	for options in '' --json --strict; do
		case_begin "$options"
		xc flush >/dev/null
		in_rx sh -c 'echo $$ >"$1/pid"; exec "$2" --state "$1/store" batch "$1/count" $3' sh "$STATE" "$TOOL" \
			"$options" >"$STATE/unread" 2>&1 9<&- &
		FEEDER=$!
		on_exit 'kill -9 $(cat "$STATE/pid") 2>/dev/null || :'
		await 'before=$(xc list | wc -l); sleep 0.3; [ "$before" -gt 1000 ] && [ "$before" = "$(xc list | wc -l)" ]'
		for i in 1 2 3; do
			assert_status 0 in_rx timeout 10 "$TOOL" --state "$STATE/store" add "192.0.2.$i"
		done
		kill -0 "$FEEDER" || fail "batch does not wait"
		cat <&9 >"$STATE/read" &
		reader=$!
		on_exit "kill $reader 2>/dev/null || :"
		assert_status 0 wait "$FEEDER"
		await '[ "$(grep -c added "$STATE/read")" = 20000 ]'
		kill "$reader"
	done
}

# On a full disk, lines that fit are done, the others say why they are not, and deletions make room.
test_full_disk_fails_only_what_does_not_fit() {
	mkdir "$STATE/store"
	mount -t tmpfs -o size=300k tmpfs "$STATE/store" 2>/dev/null || skip "no tmpfs may be mounted here"
	on_exit "umount $STATE/store"
	xc load vrx --capacity 10000 >/dev/null
	awk 'BEGIN { for (i = 0; i < 9000; i++) printf "add 10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >"$STATE/lines"
	run xc batch "$STATE/lines"
	[ "$STATUS" -ge 3 ] || fail "status $STATUS"
	assert_output 'lines:[0-9]+: .*[Nn]o space left'
	added=$(grep -c '^added$' "$STATE/out")
	assert_equal 9000 "$(wc -l <"$STATE/out")" "answers"
	[ "$added" -gt 100 ] || fail "only $added lines fitted"
	assert_equal "$added" "$(xc list | wc -l)" "rules"
	note "$added of 9000 lines fitted"
	assert_status 0 xc check
}

# Lines of addresses come from others: no text of a line makes another rule.
test_addresses_and_nothing_else() {
	printf '%s\n' 192.0.2.1 '192.0.2.0/28 timeout 1h' 2001:db8::1 '# a comment' '192.0.2.2 action pass' 'add 192.0.2.3' \
		'192.0.2.4-192.0.2.9' 'proto tcp' dst '192.0.2.5 timeout' '192.0.2.6 timeout 1h comment x' \
		'192.0.2.7 comment "x"' any 0.0.0.0/0 'list timeout 192.0.2.8' 'list=x timeout 1h' >"$STATE/lines"
	assert_status 2 xc batch "$STATE/lines" --addresses --timeout 2h --list log
	assert_equal 3 "$(grep -c '^added$' "$STATE/out")" "lines that are addresses"
	assert_equal 12 "$(grep -c '^error' "$STATE/out")" "other lines"
	assert_equal 3 "$(xc list --list log | grep -cE '^src (192.0.2.1 timeout (2h|1h59m)|192.0.2.0/28 timeout (1h|59m)|2001:db8::1 timeout)')" "rules"
	assert_equal 3 "$(xc list | wc -l)" "rules"
}

run_tests "$0" "$@"
