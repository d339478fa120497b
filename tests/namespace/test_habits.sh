#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Commands as people type them who know ipset, nft, ufw, fail2ban-client, ip or xdp-filter: each does what it means, or
# one line names what to type.
. tests/lib.sh

# answers STATUS WORD... -- PATTERN: the command ends with this status, and a line of its output or error matches.
answers() {
	answers_status=$1 answers_words=
	shift
	while [ "$1" != -- ]; do
		answers_words="$answers_words $1"
		shift
	done
	# shellcheck disable=SC2086 # words
	assert_status "$answers_status" xc $answers_words
	cat "$STATE/out" "$STATE/err" | grep -Eq -e "$2" || { show_run; fail "no line is '$2'"; }
	[ "$answers_status" -lt 2 ] || assert_equal 1 "$(grep -vc '^note: ' "$STATE/err")" "lines of: $(cat "$STATE/err")"
}

test_words_of_rules() {
	xc load vrx >/dev/null 2>&1
	answers 0 add 192.0.2.1 drop -- '^added: src 192.0.2.1$'
	answers 0 add 192.0.2.1 tcp dport 443 drop -- '^added: proto tcp src 192.0.2.1 dport 443$'
	answers 0 allow 192.0.2.9 -- '^added: src 192.0.2.9 action pass$'
	answers 2 ban 192.0.2.3,tcp:22 -- 'write: src 192.0.2.3 proto tcp dport 22$'
	answers 0 ADD SRC 192.0.2.4 TCP DPORT 443 ACTION PASS COMMENT list -- '^added: proto tcp .* action pass comment "list"$'
	assert_verdict drop 192.0.2.1 pass 192.0.2.9
	[ ! -r /etc/services ] || answers 0 add 192.0.2.6 tcp dport http,https -- '^added rules: 2$'
}

test_chosen_by_action_or_state() {
	answers 0 allow tcp dport 22 -- 'lets every source pass'
	answers 0 add 192.0.2.1 comment "scan" -- '^added: src 192.0.2.1 comment "scan"$'
	printf '%s\n' 'add comment "never" 192.0.2.2 state new list feed' >"$STATE/lines"
	assert_prints added xc batch "$STATE/lines"
	assert_prints 'proto tcp dport 22 action pass' xc list action pass
	assert_prints 'proto tcp dport 22 action pass' xc list --action pass
	assert_prints 'src 192.0.2.2 state new comment "never"' xc list state new
	answers 0 list 192.0.2.1 state new -- '^src 192.0.2.1 comment "scan"$'
	answers 1 delete list office -- "no list 'office'"
	answers 2 load vrx,lo -- 'write several with spaces'
	echo 192.0.2.1 >"$STATE/lines"
	assert_status 0 xc import "$STATE/lines" --name office
	assert_error 'the name of a list is --list NAME'
}

# A range is one change: if it must not be made, none of its rules is there.
test_several_rules() {
	xc load vrx >/dev/null 2>&1
	answers 0 add 192.0.2.1-192.0.2.6 -- '^note: 4 rules, from .src 192.0.2.1. to .src 192.0.2.6.$'
	assert_verdict pass 192.0.2.0 drop 192.0.2.1 drop 192.0.2.4 drop 192.0.2.6 pass 192.0.2.7
	answers 0 add 192.0.2.1 198.51.100.1 -- '^already there: 1$'
	answers 1 add 192.0.2.1 198.51.100.1 -- 'already there: '
	answers 0 del 192.0.2.1-192.0.2.6 -- '^deleted rules: 4$'
	answers 1 del 192.0.2.1-192.0.2.6 -- 'no such rule: '
	assert_verdict pass 192.0.2.1 pass 192.0.2.4
	answers 0 add tcp dport 80,443 -- '^added rules: 2$'
	answers 2 add 10.99.0.1-10.99.0.3 -- 'nothing was changed'
	[ "$(xc list | grep -c 10.99.0)" -eq 0 ] || fail "a part of the refused range is there"
	answers 2 add sport 1-65535 dport 1-65535 -- '3600 rules; one line may have at most 1024'
	answers 0 add dport 1-65535 --force -- 'added rules: 60'
	answers 2 test 192.0.2.1 192.0.2.2 -- 'these words mean 2 rules'
}

test_host_bits() {
	answers 0 add 192.0.2.1/24 -- "^note: '192.0.2.1/24' has host bits set"
	answers 1 add 192.0.2.0/24 -- 'already there'
	printf '198.51.100.1/24\n203.0.113.7/25\n' >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	assert_error "note: .*host bits cleared in 2 prefixes, the first is '198.51.100.1/24'"
	xc list | grep -qx 'src 203.0.113.0/25' || fail "the network is not there"
	assert_status 2 xc import "$STATE/list" --strict
	assert_error "'203.0.113.7/25' has host bits set; the network is 203.0.113.0/25"
}

# An address inside a listed network.
test_inside_a_network() {
	echo 203.0.113.0/24 | xc import - --list feed >/dev/null 2>&1
	answers 1 del 203.0.113.7 -- "'src 203.0.113.0/24' blocks it; to let it pass: xdp-cuckoo add src 203.0.113.7 action pass"
	# With another name the advice is for that name.
	assert_status 0 xc --name web add 203.0.113.0/24
	answers 0 --name web list 203.0.113.7 -- "to let it pass: xdp-cuckoo --name web add src 203.0.113.7 action pass"
	answers 1 --name web del 203.0.114.7 -- 'xdp-cuckoo --name web list shows the rules'
	answers 2 --name web flush 203.0.113.7 -- 'xdp-cuckoo --name web del 203.0.113.7'
	answers 1 --name web list nosuch -- 'xdp-cuckoo --name web lists'
	answers 1 --name web flush --list none -- '; see xdp-cuckoo --name web lists$'
	answers 0 list 203.0.113.7 -- "'src 203.0.113.0/24' blocks 'src 203.0.113.7'; to let it pass: "
	assert_equal 'src 203.0.113.0/24' "$(cat "$STATE/out")" "rules"
	assert_prints '' xc list 203.0.114.7
	answers 0 list feed -- '^src 203.0.113.0/24$'
	answers 1 list nosuch -- "no list 'nosuch'"
}

# Rules that block a port, or a part of a network, of what is asked about.
test_a_part_is_blocked() {
	printf 'add %s\n' 'tcp dport 80' '203.0.113.0/24 udp dport 53' '203.0.113.7 udp dport 53 action pass' \
		'198.51.100.9' 'proto icmp' >"$STATE/lines"
	xc batch "$STATE/lines" >/dev/null 2>&1
	assert_prints "$(printf '%s\n' 'proto icmp' 'proto udp src 203.0.113.0/24 dport 53' 'proto tcp dport 80')" \
		xc list 203.0.113.9
	assert_prints 'proto tcp dport 80' xc list 2001:db8::1
	answers 1 test 203.0.113.9 -- '^verdict: +not blocked$'
	assert_output '^blocked part: +proto .* src 203.0.113.9'
	assert_error '^note: all rules that match some of these packets: xdp-cuckoo list src 203.0.113.9$'
	answers 1 test 203.0.113.7 udp -- '^verdict: +not blocked$'
	! grep -q 'part' "$STATE/out" || fail "a part that a pass rule lets through: $(cat "$STATE/out")"
	answers 1 test 198.51.100.0/24 udp -- '^blocked by: +src 198.51.100.9$'
	answers 0 test 203.0.113.9 udp dport 53 -- '^verdict: +blocked$'
	answers 1 test 203.0.113.9 sctp -- '^verdict: +not blocked$'
	! grep -q 'part' "$STATE/out" || fail "no rule matches: $(cat "$STATE/out")"
	answers 1 del 203.0.113.9 -- "but '.*' blocks some of its packets; all such rules: xdp-cuckoo list src 203.0.113.9"
	# Only one kind of packet is blocked.
	for packet in 'fragment later' 'proto tcp flags ack' 'proto icmp type 0'; do
		xc flush --force >/dev/null
		xc add 203.0.113.9 $packet >/dev/null 2>&1
		answers 1 test 203.0.113.9 -- "^blocked part: +.*${packet#proto * }\$"
	done
}

# Status 0 says that all of what is asked about is blocked.
test_a_part_passes() {
	printf 'add %s\n' 203.0.113.0/24 '203.0.113.7 action pass' 198.51.100.9 '198.51.100.9 tcp dport 22 action pass' \
		'dst 192.0.2.1 tcp dport 80' '10.20.0.0/16 tcp dport 80' '10.20.0.9 action pass' 2001:db8::/32 \
		'icmp type 8 action pass' >"$STATE/lines"
	xc batch "$STATE/lines" --force >/dev/null 2>&1
	answers 1 test 203.0.113.0/24 tcp -- '^verdict: +partly blocked$'
	assert_output '^passed by: +src 203.0.113.7 action pass$'
	answers 0 test 203.0.113.128/25 tcp -- '^verdict: +blocked$'
	answers 1 test 198.51.100.9 tcp -- '^passed part: +proto tcp src 198.51.100.9 dport 22$'
	answers 0 test 198.51.100.9 udp -- '^verdict: +blocked$'
	answers 0 test 2001:db8::1 -- '^verdict: +blocked$'
	answers 1 test 10.20.0.0/16 tcp -- '^verdict: +not blocked$'
	assert_output '^blocked part: +proto tcp src 10.20.0.0/16 dport 80$'
	assert_output '^passed part: +proto tcp src 10.20.0.9 dport 80$'
	assert_equal 'partly blocked by src 203.0.113.0/24' "$(echo 'test 203.0.113.0/24' | xc batch -)" batch
	xc policy no-rule drop --force >/dev/null
	answers 1 test 192.0.2.9 -- '^verdict: +partly blocked$'
	answers 0 test 192.0.2.9 udp -- '^later fragments: +not blocked$'
}

# A mistyped name has no rules; it is not said to have none to show.
test_a_name_without_rules() {
	xc add 192.0.2.1 >/dev/null 2>&1
	for words in list 'test 192.0.2.1'; do
		# shellcheck disable=SC2086 # words
		run xc --name web $words
		assert_error "^note: no rules are stored in $STATE/store/web; --name and --state name another place$"
	done
	assert_prints 'src 192.0.2.1' xc list
	assert_prints '' cat "$STATE/err"
}

# A rule describes received packets.
test_a_destination_elsewhere() {
	answers 0 add dst 203.0.113.99 -- "note: 'dst 203.0.113.99' describes received packets"
	for here in 10.99.0.2 10.99.0.0/24 10.99.0.255 224.0.0.1 fd99::2; do
		xc add dst "$here" --force >"$STATE/out" 2>"$STATE/err"
		! grep -q 'describes received' "$STATE/err" || fail "a note about $here"
	done
	printf '10.99.0.2\n203.0.113.97\n' | sed 's/^/dst /' >"$STATE/list"
	assert_notes "^note: 'dst 203.0.113.97' describes received packets" xc import "$STATE/list" --list a --force
	printf 'dst_ip\n203.0.113.96\n' >"$STATE/list"
	assert_notes "^note: 'dst 203.0.113.96' describes received packets" xc import "$STATE/list" --list b
	in_rx sysctl -qw net.ipv4.conf.all.forwarding=1
	xc add dst 203.0.113.98 2>"$STATE/err" >/dev/null
	! grep -q 'describes received' "$STATE/err" || fail "a note on a router"
}

test_names_of_commands() {
	answers 0 attach dev vrx -m skb -- 'vrx'
	answers 0 load vrx -m native -- "runs the filter already, in mode skb; only unload and load change it"
	answers 2 load vrx --confirm 1m -- '--confirm has nothing to undo'
	answers 2 load vrx xdpgeneric -- '--mode generic'
	answers 0 ls -j -- '^\['
	answers 0 rm 192.0.2.1 --help -- 'Other names: rm, remove, delete'
	answers 0 -V -- '^xdp-cuckoo: '
	answers 0 -v -- '^xdp-cuckoo: '
	answers 0 help timeout -- '^usage: xdp-cuckoo add RULE'
	answers 0 help rules -- '^usage: xdp-cuckoo add RULE'
	answers 0 rules --help -- '^usage: xdp-cuckoo list'
	answers 0 help ipset -- '^usage: xdp-cuckoo import FILE'
	answers 2 add - -- 'xdp-cuckoo import -'
	answers 0 -h -- '^usage: '
	answers 0 list -j -- '^\['
	answers 0 resize 20k -- 'slots'
	answers 2 resize 10X -- 'like 5000000 or 5M'
	answers 0 panic on -- '^panic: +yes$'
	answers 0 panic off -- '^panic: +no$'
	answers 0 policy default accept -- '^outcome: no-rule$'
	answers 2 policy default drop -- 'to try it, say --confirm TIME'
	answers 2 policy drop -- 'policy no-rule drop'
	answers 2 monitor -i nosuch -- "no interface 'nosuch'"
	answers 0 monitor dev vrx --seconds 1 -- '0 shown'
	answers 0 log --seconds 1 -- '0 shown'
	answers 0 stat -- '^outcome '
	answers 0 stats dev vrx -- '^outcome '
	answers 2 default deny -- "'no-rule drop' drops everything"
	answers 2 -nvL -- "unknown option '-L'; write the command: xdp-cuckoo list"
	answers 0 man add -- 'Other names: .*ban'
	answers 0 status -v -- '^ *false positive rate ipv6: '
	assert_prints '' xc -q add 192.0.2.9
	answers 0 list -n -- '^src 192.0.2.9$'
	answers 0 BANNED -- '^src 192.0.2.9$'
	answers 3 up lo -- 'xdp-cuckoo load lo'
	answers 3 down vrx -- 'xdp-cuckoo unload vrx'
	answers 3 fleet status --config /nosuch -- 'section .fleet. with broker'
	answers 0 detach vrx -- '^unloaded: vrx$'
}

test_lists() {
	printf '192.0.2.1\n' >"$STATE/list"
	answers 2 import -- 'which FILE. - is standard input'
	answers 2 object -- 'usage: xdp-cuckoo object FILE '
	assert_status 0 xc restore <"$STATE/list"
	assert_error '^note: this was no backup: its rules were added'
	assert_status 0 xc restore <"$STATE/list"
	assert_error '^note: this was no backup: no rule was added'
	printf '192.0.2.9\nx\n' >"$STATE/bad"
	assert_status 2 xc restore --dry-run <"$STATE/bad"
	assert_error '^note: this was no backup: its rules would be added'
	assert_status 0 xc import --list feed <"$STATE/list"
	# shellcheck disable=SC2002 # a pipe is what it is about
	cat "$STATE/list" | xc import --list other >"$STATE/out" || fail "a pipe is not read"
	answers 0 add feed 192.0.2.7 timeout 60 -- '^list:  feed$'
	answers 0 test feed 192.0.2.7 -- '^verdict: listed$'
	answers 0 add 192.0.2.7 list=feed timeout 60 -- '^updated: src 192.0.2.7'
	answers 0 del feed 192.0.2.7 -- '^list: +feed$'
	answers 1 test feed 192.0.2.7 -- '^verdict: not listed$'
	answers 2 export feed -- 'export --list feed'
	answers 2 save feed --format csv -- 'export --list feed'
	[ ! -e feed ] || fail "a file is written"
	tool=$(readlink -f "$TOOL")
	echo kept >"$STATE/feed"
	! (cd "$STATE" && in_rx "$tool" --state "$STATE/store" export feed) 2>/dev/null || fail "a file with the name of a list is replaced"
	assert_equal kept "$(cat "$STATE/feed")" "that file"
	answers 0 flush feed -- '^left to others: 1$'
	answers 1 flush nosuch -- "no list 'nosuch'"
	answers 2 flush 192.0.2.1 -- 'xdp-cuckoo del 192.0.2.1$'
	answers 2 flush feed --list other -- "'feed': --list names another list"
	answers 0 lists rm feed -- '^removed: +0$'
	answers 0 add list feed2 192.0.2.9 -- '^list: +feed2$'
	answers 0 destroy feed2 -- '^removed: +1$'
	answers 1 destroy feed2 -- "no list 'feed2'"
	answers 2 destroy -- 'which list'
	answers 2 lists show other -- 'xdp-cuckoo list NAME'
	answers 2 import "$STATE/list" other -- 'write --list other$'
	answers 2 del other -- 'xdp-cuckoo flush other; .*xdp-cuckoo lists delete other'
	answers 2 del list other -- 'xdp-cuckoo flush other'
	answers 1 show stats -- 'xdp-cuckoo stats'
	answers 1 show interfaces -- 'xdp-cuckoo status'
	answers 2 export json -- 'xdp-cuckoo list --json'
	answers 2 export "$STATE/x.json" -- 'format nft, .*xdp-cuckoo list --json$'
	answers 2 export "$STATE/x.csv" -- 'Write --format csv;'
	[ ! -e "$STATE/x.json" ] || fail "text with the name of JSON"
	answers 0 export "$STATE/x.json" --format nft -- '^exported:'
	gzip <"$STATE/list" >"$STATE/list.gz"
	answers 2 import "$STATE/list.gz" -- 'zcat .*list.gz . xdp-cuckoo import -$'
	# What `import $FILE --force` means if the variable is empty.
	assert_status 2 xc import --list other --replace --force </dev/null
	: | xc import --list other --replace --force 2>/dev/null && fail "the list is emptied"
	assert_prints 'src 192.0.2.1' xc list other
}

# Each line: words, then what the one line of the error names.
test_advice() {
	while IFS='|' read -r words names; do
		# shellcheck disable=SC2086 # words
		answers 2 $words -- "$names"
	done <<-END
		stop|xdp-cuckoo panic; .*xdp-cuckoo unload
		reload|xdp-cuckoo up
		--reload|xdp-cuckoo up
		config|xdp-cuckoo up --dry-run
		undo|--confirm
		swap a b|import FILE --list NAME --replace
		port 443|add dport N
		192.0.2.1|xdp-cuckoo add 192.0.2.1
		sport 5|xdp-cuckoo add sport
		-A set 192.0.2.1|xdp-cuckoo add RULE
		add 192.0.2.1 proto tcp port 443|write sport or dport
		add -s 192.0.2.1|src ADDRESS
		add --dport 443|words of a rule have no dashes: dport
		add 192.0.2.1 timeout -5|is not negative
		add 192.0.2.1 -exist|write --exist
		add not 192.0.2.1|action pass
		add any|xdp-cuckoo policy$
		add fe80::1%vrx|leave out the interface
		add 02:00:00:00:00:01|not those of Ethernet
		add 192.0.2.1 timeout never|leave the timeout out
		add 192.0.2.1 timeout 1 hour|like 1h30m
		add icmp type echo-request|ping is type 8
		test 192.0.2.1 feed|proto, src, sport
		test feed 192.0.2.1|a list is --list NAME
		import x.netset replace|--replace
		import https://example.com/list|curl -fsS https://example.com/list . xdp-cuckoo import -
		export --format json|xdp-cuckoo list --json
		export -j|xdp-cuckoo list --json
		unload --all --force|leave it out
		unload all|--all
		status eth0|leave it out
		check 192.0.2.1|xdp-cuckoo test ADDRESS
		import x -n|--dry-run
		top -n 1|--count N
		top eth0|stats --by interface
		top -d 1|an interval, of stats or top, is --interval TIME
		list -t|names of lists are printed by: xdp-cuckoo lists
		count|rules are counted by: xdp-cuckoo status
		dev eth0 status|write the command first: xdp-cuckoo status
		add [2001:db8::1]:80|without brackets, and the port as a field of its own: dport
		stats -i 1|--interval TIME
		stats rules|stats --by interface.cpu.source.rule
		stats 192.0.2.1|xdp-cuckoo list 192.0.2.1 --counters
		stats lo --by rule|--by rule is for all interfaces
		flush set inet filter bl|xdp-cuckoo flush NAME
		flush --all|xdp-cuckoo flush$
		unban --all|xdp-cuckoo flush$
		load -i vrx|xdp-cuckoo load IFACE
		load vrx mode=skb|write --mode=skb
		load vrx --generic|--mode generic
		load vrx -f ipv4|named without an option
		unload vrx -k|leave it out
		-f nft.conf|xdp-cuckoo import FILE
		-c status|--count 'status': .*--dry-run
		-br status|output is short
		-6 list|by its address
		-jp status|"error": "unknown option '-p'
		-jt status|"error": "unknown option '-t'
		-exist add 192.0.2.1|write --exist
		list -name|xdp-cuckoo lists
		--add-source=192.0.2.1 --zone=drop|xdp-cuckoo add ADDRESS
		import --check x|--dry-run
		resize --capacity 1M|xdp-cuckoo resize N
		rule add 192.0.2.1|xdp-cuckoo add RULE
		syncconf eth0 x|xdp-cuckoo up
		panic=on|did you mean 'panic'
		monitor-only=on|did you mean 'monitor-only'
		unbann 192.0.2.1|did you mean 'unban'
		delete 3|rules have no numbers
		allow ssh|a port is dport ssh
		add file list.netset|xdp-cuckoo import FILE
		add list.netset|xdp-cuckoo import FILE
		add 192.0.2.1 on vrx|leave out the interface
		add 192.0.2.0/24 except 192.0.2.5|action pass
		add 192.0.2.1 comment ssh bruteforce|quote a comment of several words: comment "ssh bruteforce"
		add [2001:db8::1]|write it without brackets
		add 10/8|four numbers
		add proto icmp 8|is type 8,
		add proto any src 192.0.2.1|leave proto out
		add 192.0.2.1 --reason x|no dashes: comment
		add vlan 5|VLAN tags do not matter
		add ping|proto icmp type 8
		whitelist 192.0.2.1|add ADDRESS action pass
		blackhole 192.0.2.1|add ADDRESS
		fetch|xdp-cuckoo refresh
		replace feed x|--replace
		bypass|xdp-cuckoo panic
		why 192.0.2.1|xdp-cuckoo test ADDRESS
		repair|xdp-cuckoo check
		grow|xdp-cuckoo resize
		commit|xdp-cuckoo confirm
		monitor --follow|leave it out
		stats --watch|--interval TIME
		import x --flush|--replace
		import x --append|leave it out
		check --fix|leave it out
		add 192.0.2.1 --timeout 1h|no dashes: timeout TIME$
		add 192.0.2.1 --action pass|no dashes: action drop
		list --state new|xdp-cuckoo list state new
		add 192.0.2.1 --monitor-only|write action monitor
		policy no-rule drop --dry-run|only add, del, flush, import, restore, refresh
		resize 5000 --confirm 1m|only load, add, del, flush, import, restore, policy
		load vrx --dry-run|--monitor-only
		up --confirm 1m|load IFACE --confirm TIME
		add ports 80|dport 80,443
		add +192.0.2.1|or prefix; write it like 192.0.2.1
		add proto icmp type 3/4|write type N code N
		add tcp/udp|written proto tcp,udp
		add proto tcp syn|write flags syn/syn,ack
		add country CN|write \[list CN\] with preset = country and country = CN into the configuration, then xdp-cuckoo refresh CN
		ban RU|with preset = country and country = RU into the configuration
		add AS64496|write \[list as64496\] with preset = asn and asn = 64496 into the configuration, then xdp-cuckoo refresh as64496
		add 192.0.2.1 comment never list feed|'list' follows the comment
		import x --ttl 1d|with import, takes --timeout TIME
		import x --allow|with import, takes --action pass
		-a 192.0.2.1|xdp-cuckoo add ADDRESS action pass
		-d 192.0.2.1|xdp-cuckoo add ADDRESS;
		-td 192.0.2.1 600|xdp-cuckoo add ADDRESS timeout TIME
		decisions list|add ADDRESS timeout
		list action allow|drop, pass or monitor
	END
}

# The command of another tool counts more than its options.
test_command_before_options() {
	for words in 'create bl hash:net -exist' 'ip 192.0.2.1 -m src' 'port 80 -p tcp'; do
		# shellcheck disable=SC2086 # words
		assert_fails 2 "no command '${words%% *}'; " "$TOOL" $words
	done
}

# Each line of batch may start with the word of another tool.
test_lines_of_batch() {
	printf '%s\n' 'ban 192.0.2.1' 'Block 192.0.2.2' 'allow 192.0.2.3 tcp dport 22' 'unban 192.0.2.1' 'get 192.0.2.2' \
		>"$STATE/lines"
	assert_prints "$(printf '%s\n' added added added deleted 'blocked by src 192.0.2.2')" xc batch "$STATE/lines"
	assert_prints "$(printf '%s\n' 'src 192.0.2.2' 'proto tcp src 192.0.2.3 dport 22 action pass')" xc list
	printf '%s\n' 'add 192.0.2.8 # a comment, "quoted' 'add 192.0.2.9 comment "a # in it"' '  # no answer' >"$STATE/lines"
	assert_prints "$(printf '%s\n' added added)" xc batch "$STATE/lines"
	assert_prints 'src 192.0.2.9 comment "a # in it"' xc list 192.0.2.9
	printf '%s\n' 'list' 'add 192.0.2.1 --list x' >"$STATE/lines"
	assert_status 2 xc batch "$STATE/lines"
	assert_output "lines:1: 'list': a line starts with add, del or test"
	assert_output "lines:2: .*no dashes: list$"
}

# A file that is no list gets one line, and a list with bad lines one for each.
test_no_list() {
	printf '192.0.2.1\n' >"$STATE/list"
	head -c 20000 "$TOOL" >"$STATE/binary"
	printf 'add element inet filter bl { 192.0.2.1 }\n' >"$STATE/nft"
	answers 2 import "$STATE/binary" -- 'no line of .*/binary is a rule; .*; the first: .*/binary:1: a NUL byte'
	answers 2 import "$STATE/list" "$STATE/binary" -- 'no line of .*/binary is a rule'
	answers 2 import "$STATE/nft" -- 'nft -j list set'
	printf 'add 192.0.2.1 timeout 1h\ndel 192.0.2.2\n' >"$STATE/list"
	answers 2 import "$STATE/list" -- 'xdp-cuckoo batch FILE'
	printf 'add src 192.0.2.1\nadd 192.0.2.0/24 192.0.2.3\n' >"$STATE/list"
	answers 2 import "$STATE/list" -- 'xdp-cuckoo batch FILE'
	printf 'bad\nworse\n192.0.2.1\nworst\n' >"$STATE/list"
	assert_status 2 xc import "$STATE/list"
	assert_equal 3 "$(grep -c '/list:[124]: ' "$STATE/err")" "bad lines"
	printf 'bad\nworse\n' >"$STATE/list"
	assert_status 2 xc import "$STATE/list" --strict
	assert_equal 3 "$(wc -l <"$STATE/err")" "lines under --strict"
}

# nft without -j
test_text_of_nft() {
	printf 'table inet filter {\n\tset blocked {\n\t\ttype ipv4_addr\n\t\telements = { 192.0.2.1 }\n\t}\n}\n' |
		xc import - >"$STATE/out" 2>"$STATE/err" && fail "it is taken"
	assert_error 'nft -j list set'
	assert_prints '' xc list
}

# What another user sees of a filter that runs, and of the store.
test_without_root() {
	xc load vrx >/dev/null 2>&1
	cp "$TOOL" "$STATE/tool"
	chmod 755 "$STATE" "$STATE/tool"
	chmod 700 "$STATE/store"
	for words in 'add 192.0.2.1' 'load vrx' 'list' 'stats' 'unload vrx' 'panic' 'flush'; do
		# shellcheck disable=SC2086 # words
		in_rx setpriv --reuid=65534 --regid=65534 --clear-groups "$STATE/tool" --state "$STATE/store" $words \
			>"$STATE/out" 2>"$STATE/err" && fail "$words: done"
		grep -q '^xdp-cuckoo: run it as root' "$STATE/err" || fail "$words: $(cat "$STATE/err")"
	done
}

# Root gives up the right to pass other users' directories, so `run as root` would be no advice.
test_root_in_the_directory_of_another_user() {
	mkdir -m 700 "$STATE/home"
	chown 65534 "$STATE/home"
	assert_fails 3 'permission denied: run as its owner, or name a directory' xc --state "$STATE/home/rules" add 192.0.2.1
}

test_help_fits_80_columns() {
	for command in $(in_rx "$TOOL" help --json | sed -n 's/.*"command": "\([^"]*\)".*/\1/p'); do
		in_rx "$TOOL" help "$command" | awk 'length > 80 { print; bad = 1 } END { exit bad }' ||
			fail "help $command is wider"
	done
}

run_tests "$0" "$@"
