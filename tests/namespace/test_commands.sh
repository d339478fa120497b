#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The commands as an operator types them, right and wrong: output, exit status, one-line errors.
. tests/lib.sh

assert_json() {
	"$HELPERS/json_check" <"$STATE/$1" || { show_run; fail "$1 is not JSON"; }
}

# Each error is one line on stderr.
assert_one_line_error() {
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines of: $(cat "$STATE/err")"
}

# The tool finds the programs in its own folder. One that is not installed, or of another version, is one line.
test_programs() {
	if ldd "$TOOL" | grep -E 'curl|ssl|crypto|hiredis|microhttpd|ncurses'; then
		fail "the tool has the library of another program"
	fi
	cp "$TOOL" "$STATE/xdp-cuckoo"
	set -- bench:xdp-cuckoo top:xdp-cuckoo refresh:xdp-cuckoo-feed publish:xdp-cuckoo-fleet metrics:xdp-cuckoo-exporter
	for words; do
		assert_status 3 "$STATE/xdp-cuckoo" "${words%:*}"
		assert_error "^xdp-cuckoo: ${words%:*} is done by the program xdp-cuckoo-[a-z]*, which is not installed: "
		assert_error ": install the package ${words#*:}\$"
		assert_one_line_error
	done
	assert_status 0 "$STATE/xdp-cuckoo" help
	assert_output '^Many hosts: +fleet, publish, follow$'
	assert_fails 2 'xdp-cuckoo-fleet has no command add; write: xdp-cuckoo add$' "$BUILD/xdp-cuckoo-fleet" add
	assert_fails 3 'xdp-cuckoo-bench has version .*, and xdp-cuckoo 0.0: install packages of one version$' \
		env XDP_CUCKOO_STARTED_BY=0.0 "$BUILD/xdp-cuckoo-bench" bench
	assert_fails 3 '"status": 3' "$STATE/xdp-cuckoo" --json publish
	# A program that is no program.
	echo >"$STATE/xdp-cuckoo-fleet"
	assert_fails 3 "cannot start xdp-cuckoo-fleet for the command publish: Permission denied" "$STATE/xdp-cuckoo" publish
	# Folders in which somebody else can put a program: one that everybody may write, and one of another user.
	mkdir -p "$STATE/libexec/xdp-cuckoo" "$STATE/bin"
	mv "$STATE/xdp-cuckoo" "$STATE/bin"
	ln -s /bin/true "$STATE/libexec/xdp-cuckoo/xdp-cuckoo-fleet"
	assert_status 0 "$STATE/bin/xdp-cuckoo" publish
	for change in "chmod 1777 $STATE/libexec/xdp-cuckoo" "chown 65534 $STATE/libexec/xdp-cuckoo"; do
		$change
		assert_fails 3 'is not installed' "$STATE/bin/xdp-cuckoo" publish
	done
	# Who owns the tool's folder can replace the tool, too: a clone of one user in which root builds.
	chmod 755 "$STATE/libexec/xdp-cuckoo"
	assert_fails 3 'is not installed' "$STATE/bin/xdp-cuckoo" publish
	chown 65534 "$STATE/bin"
	assert_status 0 "$STATE/bin/xdp-cuckoo" publish
}

test_add_test_del_list_flush() {
	xc load vrx >/dev/null
	assert_status 0 xc add dport 443 proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7
	assert_output '^added: proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443$'
	assert_fails 1 'already there' xc add proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443
	assert_status 0 xc add '203.0.113.0/24 comment "a list, as one word"'
	assert_shows 'rule: +src 203.0.113.0/24 comment "a list, as one word"' xc test 203.0.113.77
	assert_status 1 xc test 203.0.114.77
	assert_output 'not blocked'
	assert_status 0 xc list
	assert_equal 2 "$(wc -l <"$STATE/out")" "rules listed"
	assert_fails 1 'no such rule: src 203.0.113.0/25' xc del 203.0.113.0/25
	assert_status 0 xc del 203.0.113.0/24
	assert_status 1 xc test 203.0.113.77
	assert_shows 'deleted rules: 1' xc flush
	assert_prints '' xc list
}

# A permanent rule stays permanent, and the answer shows that rule.
test_add_of_what_is_there() {
	xc add 203.0.113.1 comment old >/dev/null 2>&1
	assert_status 1 xc add 203.0.113.1 timeout 1h comment new
	assert_error 'already there without a timeout, and stays until it is deleted: src 203.0.113.1 comment "old"; '
	assert_fails 1 'already there: src 203.0.113.1 comment "old"; ' xc add 203.0.113.1
	echo '203.0.113.1 timeout 1h' | xc import - >/dev/null 2>&1
	assert_equal 'src 203.0.113.1 comment "old"' "$(xc list)" "rules"
	echo '203.0.113.1 timeout 1h' | xc import - --replace >/dev/null 2>&1
	xc list | grep -q '^src 203.0.113.1 timeout ' || fail "import --replace sets no timeout"
}

# Another rule of the same shape stays, so the packet path still probes for the deleted one.
test_del_leaves_the_table() {
	xc load vrx >/dev/null
	printf '192.0.2.1\n192.0.2.2\n192.0.2.3\n' | xc import - >/dev/null
	xc del 192.0.2.2 >/dev/null
	assert_verdict drop 192.0.2.1 pass 192.0.2.2 drop 192.0.2.3
	assert_status 1 xc test 192.0.2.2
	assert_output 'running filter: agrees'
	xc flush >/dev/null
	xc add 192.0.2.4 >/dev/null
	assert_verdict pass 192.0.2.1 drop 192.0.2.4
}

# Fills a small table to 85 % and sends from the 64,666 other addresses of the /16. Outside of it, hints exclude a
# match.
crowd() {
	awk 'BEGIN { for (i = 0; i < 870; i++) printf "10.0.%d.%d\n", i / 256, i % 256 }' | xc import - >/dev/null
	awk 'BEGIN { for (i = 870; i < 65536; i++)
		printf "pass other proto udp src 10.0.%d.%d dst 198.51.100.7 sport 1 dport 2\n", i / 256, i % 256 }' |
		traffic --wrong "$STATE/wrong" >/dev/null 2>&1 || [ $? -eq 1 ] || fail "no traffic"
}

test_an_exact_table_has_no_false_positives() {
	xc load vrx --capacity 900 >/dev/null
	crowd
	assert_equal '' "$(cat "$STATE/wrong")" "innocent flows that were dropped"
}

# Some addresses match a fingerprint. `test` reports exactly these as false positives.
test_test_tells_false_positives() {
	assert_status 0 xc load vrx --capacity 900 --compact
	assert_error 'compact: at 95 % load one of 8.62e\+03 innocent flows is dropped'
	crowd
	[ -s "$STATE/wrong" ] || skip "by chance no address met a fingerprint (0.1 % of all runs)"
	while read -r _ _ flow; do
		# shellcheck disable=SC2086 # words
		assert_status 1 xc test $flow
		assert_output 'running filter: matches, though no rule does: a false positive'
	done <"$STATE/wrong"
	assert_shows 'running filter: agrees' xc test 10.0.0.1
	xc unload vrx >/dev/null
	assert_shows 'running filter: none' xc test 10.0.0.1
}

test_pass_rules_win() {
	xc load vrx >/dev/null
	xc add 203.0.113.0/24 >/dev/null
	xc add 203.0.113.7 action pass >/dev/null
	assert_status 1 xc test 203.0.113.7
	assert_output 'verdict: +passed'
	assert_status 0 xc test 203.0.113.8
	assert_verdict drop 203.0.113.8 pass 203.0.113.7
	xc del 203.0.113.7 action pass >/dev/null
	assert_verdict drop 203.0.113.7
}

test_a_rule_without_addresses_holds_for_both_families() {
	xc load vrx >/dev/null
	xc add proto udp dport 53 >/dev/null
	printf '%s\n' 'drop v4 proto udp src 192.0.2.1 dst 198.51.100.7 sport 1 dport 53' \
		'drop v6 proto udp src 2001:db8::1 dst 2001:db8::2 sport 1 dport 53' \
		'pass v6 proto tcp src 2001:db8::1 dst 2001:db8::2 sport 1 dport 53' | traffic ||
		fail "wrong verdicts"
	xc del proto udp dport 53 >/dev/null
	printf '%s\n' 'pass v4 proto udp src 192.0.2.1 dst 198.51.100.7 sport 1 dport 53' \
		'pass v6 proto udp src 2001:db8::1 dst 2001:db8::2 sport 1 dport 53' | traffic ||
		fail "deleted, and still in force"
}

# kinds_of_rules SRC DST HOST: 72 kinds, each with addresses of its own: "$SRC$n$HOST", "$DST$n$HOST".
kinds_of_rules() {
	for action in pass drop 'drop state new'; do
		for addresses in src dst both; do
			for proto in "" "proto udp"; do
				for sport in "" "sport 7"; do
					for dport in "" "dport 8"; do
						echo "$addresses $proto $sport $dport action $action"
					done
				done
			done
		done
	done | awk -v src="$1" -v dst="$2" -v host="$3" '{
		words = $1 != "dst" ? "src " src NR host : ""
		words = words ($1 != "src" ? " dst " dst NR host : "")
		sub($1, words)
		print
	}'
}

# flows_of_kinds SRC DST HOST: for each of these rules the packet that it matches, for `traffic`.
flows_of_kinds() {
	awk -v src="$1" -v dst="$2" -v host="$3" '{
		verdict = /action pass/ ? "pass" : "drop"
		print verdict " kind-" NR " proto udp src " src NR host " dst " dst NR host " sport 7 dport 8"
	}'
}

# Rules with different fields cannot share a probe. One table takes 64 kinds per family; one more is refused and changes
# nothing.
test_64_kinds_a_family() {
	xc load vrx >/dev/null
	kinds_of_rules 192.0. 198.51. .1 >"$STATE/kinds"
	kinds_of_rules 2001:db8:a: 2001:db8:b: ::1 >"$STATE/kinds6"
	for kinds in kinds kinds6; do
		head -n 64 "$STATE/$kinds" >"$STATE/list"
		assert_status 0 xc import "$STATE/list"
		# shellcheck disable=SC2046 # words
		assert_fails 4 '64 kinds of rule.*room for no more' xc add $(sed -n 65p "$STATE/$kinds")
	done
	assert_equal "64 64" "$(probes ipv4) $(probes ipv6)" "probes"
	assert_equal 128 "$(xc list | wc -l)" "rules"
	{
		head -n 64 "$STATE/kinds" | flows_of_kinds 192.0. 198.51. .1
		head -n 64 "$STATE/kinds6" | flows_of_kinds 2001:db8:a: 2001:db8:b: ::1
		flows pass 192.1.0.1 2001:db8:c::1
	} | traffic || fail "wrong verdicts"
	case_begin "new prefix lengths of a kind, as xdp-cuckoo-design(7) says"
	assert_fails 4 'room for no more' xc add 203.0.112.0/20 dport 8
	assert_status 0 xc add 203.0.112.0/21 dport 8
	assert_equal 64 "$(probes ipv4)" "probes"
	case_begin ""
	# shellcheck disable=SC2046 # words
	assert_status 0 xc del $(sed -n 1p "$STATE/kinds")
	# shellcheck disable=SC2046 # words
	assert_status 0 xc add $(sed -n 65p "$STATE/kinds")
}

test_import() {
	xc load vrx >/dev/null
	cat >"$STATE/list" <<-'END'
		# a FireHOL file
		192.0.2.1
		198.51.100.0/24
		203.0.113.0/24 ; SBL1234

		2001:db8::/32   # a comment
		proto udp dport 53 comment "DNS; all # of it"
	END
	assert_shows '\badded 5\b' xc import "$STATE/list"
	assert_shows '\bkept 5\b' xc import "$STATE/list"
	assert_equal 5 "$(xc list | wc -l)" "rules"
	assert_status 0 xc flush
	assert_status 0 xc import - <"$STATE/list"
	assert_equal 5 "$(xc list | wc -l)" "rules from standard input"
	xc list >"$STATE/listed"
	xc flush >/dev/null
	assert_status 0 xc import "$STATE/listed"
	assert_equal "$(cat "$STATE/listed")" "$(xc list)" "list, imported again"
}

# The result is one line. --quiet leaves that and the notes out, and keeps what is wrong.
test_import_says_one_line_or_none() {
	printf '%s\n' 192.0.2.1 192.0.2.2 bogus >"$STATE/list"
	assert_status 2 xc import "$STATE/list"
	assert_output '^added 2, updated 0, kept 0, removed 0, bad lines 1; 2 rules in [0-9.e-]+ s$'
	assert_equal 1 "$(wc -l <"$STATE/out")" "lines"
	assert_status 2 xc import "$STATE/list" --quiet
	assert_equal '' "$(cat "$STATE/out")" "what --quiet prints"
	assert_error "list:3: 'bogus'"
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines on standard error"
}

# What was asked for is not talk: a backup job may be quiet.
test_quiet_documents() {
	xc add 192.0.2.1 >/dev/null
	for document in export 'export /dev/stdout' backup metrics 'metrics --json'; do
		case_begin "$document"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc -q $document
		assert_output '192.0.2.1|xdp.cuckoo|[a-z]+'
		assert_equal '' "$(cat "$STATE/err")" "notes"
	done
	case_begin 'a full disk'
	in_rx "$TOOL" --state "$STATE/store" -q export >/dev/full 2>"$STATE/err" && fail "a full disk is no error"
	case_begin 'to a file'
	assert_prints '' xc -q export "$STATE/exported"
	assert_equal 'src 192.0.2.1' "$(cat "$STATE/exported")" "the file"
}

test_import_names_bad_lines_and_takes_the_good() {
	printf '192.0.2.1\n192.0.2.999\n\n10.0.0.1/38\r\nbogus\n192.0.2.2' >"$STATE/list"
	assert_status 2 xc import "$STATE/list"
	assert_error "list:2: '192.0.2.999'"
	assert_error "list:4: .*10.0.0.1/38"
	assert_error "list:5: 'bogus'"
	assert_output '\badded 2\b'
	assert_output '\bbad lines 3\b'
	assert_equal 2 "$(xc list | wc -l)" "rules"
	head -c 100000 /dev/urandom >"$STATE/noise"
	{ echo 192.0.2.1; seq 25; } >"$STATE/many"
	assert_fails 2 'many: 5 more bad lines' xc import "$STATE/many" --dry-run
	assert_status 2 xc import "$STATE/noise"
	assert_error 'no line of .*noise is a rule; nothing was changed; see the formats in xdp-cuckoo help import'
	assert_fails 3 'No such file or directory; name a file, or - for standard input$' xc import "$STATE/nosuch"
	assert_fails 3 'directory' xc import "$STATE"
	assert_status 0 xc import /dev/null --force
}

test_import_shows_its_progress_on_a_terminal() {
	script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminals here (/dev/pts)"
	awk 'BEGIN { for (i = 0; i < 200000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >"$STATE/list"
	assert_status 0 in_rx env TERM=linux script -qec "$TOOL --state $STATE/terminal import $STATE/list" /dev/null
	assert_output '\[#+ +\] +[0-9]+ %, [0-9]+, [0-9]+/s, [0-9]+ s left'
	! tr '\r' '\n' <"$STATE/out" | grep '/s' | grep -v "^$(printf '\033')\[K" || fail "a line is not cleared"
	assert_status 0 in_rx "$TOOL" --state "$STATE/pipe" import "$STATE/list"
	assert_equal 0 "$(grep -c '#' "$STATE/err")" "bars on a pipe"
}

# Also if another loader has made the table too small.
test_load_makes_room_for_what_is_stored() {
	awk 'BEGIN { for (i = 0; i < 1100000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' |
		xc import - >/dev/null 2>&1
	assert_fails 4 'more than the capacity of 1000' xc load vrx --capacity 1000
	assert_shows 'slots: +1851392$' xc load vrx
	in_rx ip link set dev vrx xdp off
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_status 0 xc add 192.0.2.1
	assert_error "adopted the filter on vrx as 'default'"
	assert_error "the table of 'default' on vrx went from 524288 to [0-9]+ slots"
	assert_shows '^vrx +1100001( +0){3}$' xc check
	assert_verdict drop 10.16.200.191 192.0.2.1 pass 192.0.2.2
}

# Each rule is listed with its packets and bytes. The tool says if a table does not count.
test_list_counters() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 comment one >/dev/null
	xc add 192.0.2.2 action pass >/dev/null
	xc add 192.0.2.3 >/dev/null
	printf '%s\n' 'drop one proto udp src 192.0.2.1 dst 198.51.100.7 sport 1 dport 2' \
		'drop one proto udp src 192.0.2.1 dst 198.51.100.8 sport 1 dport 2' \
		'pass two proto udp src 192.0.2.2 dst 198.51.100.7 sport 1 dport 2' | traffic || fail "wrong verdicts"
	assert_status 0 xc list --counters
	assert_output '^src 192.0.2.1 comment "one" # packets 2 bytes [1-9][0-9]+$'
	assert_output '^src 192.0.2.2 action pass # packets 1 bytes [1-9][0-9]+$'
	assert_output '^src 192.0.2.3 # packets 0 bytes 0$'
	assert_status 0 xc list --counters --json
	assert_json out
	cp "$STATE/out" "$STATE/listed"
	for option in --no-counters --compact; do
		xc unload vrx >/dev/null
		xc load vrx "$option" >/dev/null 2>&1
		assert_fails 1 "the filter 'default' does not count by rule" xc list --counters
		assert_one_line_error
	done
}

test_json() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 comment one >/dev/null
	for command in status stats list "list --counters" check "resize 1000" version help "help add" \
		"test 192.0.2.1" "add 192.0.2.2" "del 192.0.2.2"; do
		# shellcheck disable=SC2086 # words
		assert_status 0 xc --json $command
		assert_json out
		assert_equal '' "$(cat "$STATE/err")" "standard error of $command"
	done
	assert_status 1 xc --json del 192.0.2.99
	assert_json err
	assert_error '^{"error": "no such rule: src 192.0.2.99; xdp-cuckoo list shows the rules", "status": 1}$'
	assert_status 2 xc load vrx --foo --json
	assert_json err
	assert_status 2 xc --json stauts
	assert_error '^{"error": "no command .stauts.; did you mean .status.[?] See xdp-cuckoo help", "status": 2}$'
}

# A wrong command line, its exit status, and its one line of error.
test_wrong_usage() {
	xc load vrx >/dev/null
	printf '192.0.2.1\n192.0.2.2\n' | xc import - >/dev/null
	while IFS='|' read -r expected says words; do
		case_begin "$words"
		eval "assert_status $expected xc $words"
		assert_error "$says"
		assert_one_line_error
	done <<-'END'
		2|no command 'lod'; did you mean 'load'[?] See xdp-cuckoo help$|lod vrx
		2|no command 'nosuch'; see xdp-cuckoo help$|nosuch
		2|unknown option '--foo'; see xdp-cuckoo help$|load vrx --foo
		2|unknown option '--capcity=5'; did you mean '--capacity'[?] See xdp-cuckoo help$|load vrx --capcity=5
		2|unknown option '-json'; did you mean '--json'|list -json
		2|unknown option '-x'; see|list -x
		2|'-j DROP': -j is --json here; write what a rule does as: action drop|add 192.0.2.1 -j DROP
		2|'-j ACCEPT': -j is --json here|add 192.0.2.1 -jACCEPT
		2|'--co' is short for several: --compact, --confirm, --counters|load vrx --co
		2|'--json=1': --json takes no value|list --json=1
		2|'--capacity' needs a value: --capacity N$|load vrx --capacity
		2|'--mode' needs a value: --mode auto.native.skb$|load vrx --mode
		2|'many'|load vrx --capacity many
		2|'0'|load vrx --capacity 0
		2|'-5'|load vrx --capacity -5
		2|'fast': must be auto, native or skb$|load vrx --mode fast
		2|'skp': must be auto, native or skb; did you mean 'skb'|load vrx --mode skp
		2|'ntf': must be text, ipset, nft, spamhaus, csv, iptables, p2p or dshield; did you mean 'nft'|import - --format ntf
		2|'ipest': must be text, ipset, nft or csv; did you mean 'ipset'|export --format ipest
		2|'intrface': must be interface, .*; did you mean 'interface'|stats --by intrface
		2|'fo': must be on or off|monitor-only fo
		2|'offf': must be on or off; did you mean 'off'|monitor-only offf
		2|write pass or drop after it: xdp-cuckoo policy malformed pass.drop$|policy malformed
		2|'no-rules': no such outcome; did you mean 'no-rule'[?] See xdp-cuckoo policy|policy no-rules pass
		2|'drpo': must be pass or drop; did you mean 'drop'|policy malformed drpo
		2|'action drpo': the action is drop, pass or monitor; did you mean 'drop'|add 192.0.2.1 action drpo
		2|comment; did you mean 'dport'[?]$|add 192.0.2.1 dprt 53
		2|'tpc' is not a protocol.*; did you mean 'tcp'[?]$|add proto tpc dport 53
				2|'example.com' is not an IPv4 or IPv6 address or prefix; names are not looked up|add example.com
		2|too few words|load
		2|too few words|add
		2|too many words|status 192.0.2.1
		2|'sprot'|add proto tcp sprot 5
		2|--name '../x'|--name ../x list
		2|--name ''|--name '' list
		2|list does not take the option --all: leave it out; usage|list --all
		2|unload takes interfaces or --all|unload
		2|unload takes interfaces or --all|unload vrx --all
		1|'lo' runs no xdp-cuckoo filter; see xdp-cuckoo status$|unload lo
		1|no interface 'vrxx' here; did you mean 'vrx'|unload vrxx
		1|no interface 'vtx' here; did you mean 'vrx'|unload vtx
		2|no interface 'nosuch0' here; see ip link$|load nosuch0
		2|no interface 'vrxx' here; did you mean 'vrx'[?] See ip link$|load vrxx
		2|at most|--name big load nosuch0 --capacity 99999999999
		2|no command 'nosuch'|help nosuch
		2|no command 'stauts'; did you mean 'status'|help stauts
		1|no filter 'other' is running here; see xdp-cuckoo status, or run it: xdp-cuckoo --name other load IFACE$|--name other stats
		1|no filter 'defualt' is running here; did you mean 'default'[?] See xdp-cuckoo status$|--name defualt stats
		1|no filter 'other' is running here; see xdp-cuckoo status, or run it: xdp-cuckoo --name other load|--name other panic
		1|no such rule: src 192.0.2.9; xdp-cuckoo list shows|del 192.0.2.9
		2|'src' needs a value after it: ADDRESS|add src
		1|no list 'x'; xdp-cuckoo lists shows the lists|list x
		2|version: too many words; usage: xdp-cuckoo version$|version x
		2|is running with 16384 slots; xdp-cuckoo resize|load vrx --capacity 5000000
		2|runs with another --compact|load vrx --compact
		2|'12': must be 8, 16, 17 or 32 bits|load vrx --compact --fingerprint 12
		2|needs --compact|load vrx --fingerprint 8
		2|'0': must be a number of rules|resize 0
		2|'-1'|resize -1
		2|'-1': must be a number of rules|resize -- -1
		2|'many': must be a number of rules|resize many
		2|'': must be a number of rules|resize ''
		2|must be a number of rules|resize 00000000000000000000001garbage
		2|'5x': must be a number of rules|resize 5x
		2|at most 1020054732 rules|resize 99999999999999
		2|must be a number|resize 99999999999999999999999
		4|the store holds 2 keys: more than the capacity of 1|resize 1
		2|too few words|resize
		2|too many words|resize 5 6
		2|does not take the option|resize 5 --compact
		1|no filter 'other' is running here|--name other resize 5
		2|too many words|check vrx
		2|does not take the option|check --all
		1|no filter 'other' is running here|--name other check
		1|no filter 'other' is running here|--name other list --counters
	END
}

# says CHANGED STATUS ARGUMENT...: CHANGED: what --json says of it.
says() {
	says_changed=$1 says_status=$2
	shift 2
	assert_status "$says_status" xc --json "$@"
	assert_equal "$says_changed" "$(jq -c 'if type == "array" then .[] else . end | .changed' "$STATE/out")" "$*: changed"
}

# Each command that changes something, twice.
test_changed() {
	printf '192.0.2.7\n198.51.100.0/24\n' >"$STATE/list"
	printf '[filter]\ninterfaces = vrx\n[list a]\nfile = %s\n' "$STATE/list" >"$STATE/conf"
	while read -r first second words; do
		# shellcheck disable=SC2086 # words
		says "${first%:*}" "${first#*:}" $words
		# shellcheck disable=SC2086 # words
		says "${second%:*}" "${second#*:}" $words
	done <<-END
		true:0 true:0 add 192.0.2.1 --dry-run
		true:0 :1 add 192.0.2.1
		false:0 false:0 add 192.0.2.1 --exist
		false:0 false:0 add 192.0.2.1 --exist --dry-run
		true:0 false:0 add 192.0.2.1-192.0.2.3 --exist
		false:0 false:0 del 192.0.2.9 --exist
		false:0 false:0 del 192.0.2.1 --list nosuch --exist
		true:0 :1 del 192.0.2.1-192.0.2.3
		true:0 false:0 import $STATE/list --list a
		false:0 false:0 import $STATE/list --list a --replace
		true:0 false:0 flush a
		true:0 :1 lists delete a
		false:0 false:0 lists delete a --exist
		true:0 false:0 policy no-rule drop --force
		true:0 false:0 policy no-rule pass
		true:0 false:0 monitor-only on
		true:0 false:0 monitor-only off
		true:0 false:0 up $STATE/conf
		false:0 false:0 load vrx
		true:0 false:0 panic
		true:0 false:0 panic off
		true:0 false:0 resize 100000
		false:0 false:0 check
		false:0 false:0 expire
		true:0 true:0 stats --reset
		true:0 false:1 unload vrx
		false:0 false:0 unload vrx --exist
		false:0 false:0 unload nosuch --exist
		true:0 false:0 load vrx
		true:0 false:0 down
		true:0 false:0 flush --force
	END
	xc import "$STATE/list" >/dev/null
	xc backup "$STATE/backup"
	says false 0 restore "$STATE/backup"
	xc add 192.0.2.9 timeout 1h comment other >/dev/null
	says true 0 restore "$STATE/backup" --dry-run
	says true 0 restore "$STATE/backup"
	says false 0 restore "$STATE/backup"
	printf '%s 192.0.2.77\n' add add test del del >"$STATE/lines"
	says "true$(printf '\n%s' false null true false)" 1 batch "$STATE/lines"
}

# One filter of two: the older down, and unload --all with a --name, leave the other.
test_down_is_unload_of_one_filter() {
	ip -n "$RX" link add other type veth peer name another
	for words in down 'unload --all' 'unload --all --on-stop'; do
		xc load other >/dev/null
		xc --name two load vrx >/dev/null
		printf '[filter]\ninterfaces = vrx\ndetach-on-stop = yes\n' >"$STATE/conf"
		[ "${words%on-stop}" = "$words" ] || words="$words $STATE/conf"
		# shellcheck disable=SC2086 # words
		assert_shows '^unloaded: vrx$' xc --name two $words
		assert_shows 'interfaces: +other' xc status
	done
	assert_fails 2 'unload takes interfaces or --all' xc unload --all vrx
	assert_fails 2 '--on-stop goes with --all' xc unload vrx --on-stop
	assert_shows '^unloaded: other$' xc unload --all
}

# has_words FILE: the page shown has the words of its text, in order; @ stands for what the command explains.
has_words() {
	tr -s ' \n' '  ' <"$STATE/out" >"$STATE/page"
	{ sed 's/^@$/\a/' "$1" | tr -s ' \n' '  ' | tr '\a' '\n' | sed 's/^ //; s/ $//'; echo; } >"$STATE/parts"
	while read -r part; do
		grep -qF -- "$part" "$STATE/page" || fail "the page of $1 lost words"
	done <"$STATE/parts"
}

test_help_and_version() {
	assert_status 0 xc help
	[ "$(wc -l <"$STATE/out")" -le 24 ] || fail "help has more than one screen"
	! grep -E '^.{81}' "$STATE/out" || fail "a line of help is too long"
	cp "$STATE/out" "$STATE/overview"
	# shellcheck disable=SC2013 # words
	for command in $(xc help --json | sed -n 's/.*"command": "\([^"]*\)".*/\1/p'); do
		grep -qE "^  $command |[ ,]$command(,|\$)" "$STATE/overview" || [ "$command" = help ] || fail "help names no $command"
		assert_status 0 xc help "$command"
		assert_output "^usage: xdp-cuckoo $command"
		assert_output "^  (.*[|] )?xdp-cuckoo .*$command"
		has_words user/*/help/"$command.txt"
		assert_status 0 xc "$command" --help
		assert_status 0 xc "$command" --force --capacity 7 --help
	done
	assert_status 2 xc
	assert_status 0 xc --help
	assert_status 0 xc version
	commit=$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null) && assert_output "^commit: +${commit%-dirty}"
	cp "$STATE/out" "$STATE/version"
	assert_status 0 xc --version
	cmp "$STATE/version" "$STATE/out" || fail "--version is not version"
	assert_status 0 xc list --version
}

test_output_that_cannot_be_written() {
	[ -c /dev/full ] || skip "no /dev/full"
	STATUS=0
	xc help >/dev/full 2>/dev/null || STATUS=$?
	assert_equal 3 "$STATUS" "status of help to a full device"
}

# If a standard file is closed, the store must not get its descriptor: output would be written into the store.
test_closed_standard_files() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 <&- >&- 2>&- || fail "add with closed files"
	xc list <&- >&- 2>&- || fail "list with closed files"
	assert_shows '^src 192.0.2.1$' xc list
	assert_shows 'equal to the store' xc status
}

test_a_filter_of_another_store_is_not_touched() {
	xc load vrx >/dev/null
	assert_fails 3 'filled from another store' in_rx "$TOOL" --state "$STATE/elsewhere" add 192.0.2.1
	assert_status 0 xc add 192.0.2.1
}

test_foreign_store() {
	mkdir -p "$STATE/store/default"
	head -c 8192 /dev/urandom >"$STATE/store/default/data.mdb"
	cp "$STATE/store/default/data.mdb" "$STATE/before"
	assert_status 3 xc add 192.0.2.1
	assert_one_line_error
	cmp "$STATE/before" "$STATE/store/default/data.mdb" || fail "the foreign file was written to"
}

test_what_list_shows_first() {
	for rule in '192.0.2.1 comment "SSH scan"' '192.0.2.2 timeout 2h' '192.0.2.3 timeout 1h comment "ssh, again"' \
		192.0.2.4 '192.0.2.5 timeout 3h'; do
		eval "assert_status 0 xc add $rule"
	done
	assert_equal '192.0.2.3 192.0.2.2 192.0.2.5' \
		"$(xc list --sort end --limit 3 | awk '{ printf "%s%s", sep, $2; sep = " " }')" "the first to end"
	assert_equal 2 "$(xc list --limit 2 | wc -l)" "with a limit"
	assert_equal '192.0.2.1 192.0.2.3' "$(xc list --search ssh | awk '{ printf "%s%s", sep, $2; sep = " " }')" "searched"
	assert_prints '' xc list --search nothing
	assert_status 0 xc load vrx
	for _ in 1 2 3; do
		echo 'drop four src 192.0.2.4 dst 10.99.0.2 proto udp sport 1 dport 2' | traffic >/dev/null
	done
	echo 'drop two src 192.0.2.2 dst 10.99.0.2 proto udp sport 1 dport 2' | traffic >/dev/null
	assert_equal 'src 192.0.2.4' "$(xc list --sort packets --limit 1)" "what matched most"
	assert_shows '^src 192.0.2.4 # packets [1-9]' xc list --sort bytes --limit 2 --counters
	assert_fails 2 'needs --limit' xc list --sort end
	assert_fails 2 "packets, bytes or end|packets\|bytes\|end" xc list --sort address --limit 1
}

test_who_added_it() {
	assert_status 0 env SUDO_UID=12345 "$TOOL" --state "$STATE/store" add 192.0.2.1 --force
	assert_shows '^src 192.0.2.1 # added 20[0-9T:-]+Z by uid 12345$' xc list --long
	assert_equal '"uid 12345"' "$(xc --json list | jq '.[0].added_by')" "who"
	assert_prints 'src 192.0.2.1' xc list
	added=$(xc --json list | jq -r '.[0].added')
	[ $(($(date +%s) - $(date -d "$added" +%s))) -lt 60 ] || fail "added at $added"
	printf '192.0.2.1\n192.0.2.2\n' >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --list a
	assert_shows '^src 192.0.2.1 # added ' xc list --long
	assert_shows '^src 192.0.2.2$' xc list --long
	case_begin "with the rule, it goes"
	assert_status 0 xc del 192.0.2.1
	assert_status 0 xc import "$STATE/list" --list a
	assert_shows '^src 192.0.2.1$' xc list --long
	assert_status 0 xc add 192.0.2.1
	assert_shows '^src 192.0.2.1 # added .* by root' xc list --long
	echo 'add 192.0.2.3' >"$STATE/batch"
	assert_status 0 xc batch "$STATE/batch"
	assert_shows '^src 192.0.2.3 # added .* by root' xc list --long
	assert_status 0 xc flush --force
	assert_status 0 xc import "$STATE/list"
	assert_shows '^src 192.0.2.1$' xc list --long
	assert_status 0 xc load vrx
	assert_status 0 xc check
}

test_moments() {
	assert_status 0 xc add 192.0.2.1 expires "$(date -u -d '+2 hours' +%Y-%m-%dT%H:%MZ)"
	assert_shows '^src 192.0.2.1 timeout 1h5[89]m' xc list
	ends=$(xc --json list | jq -r '.[0].ends')
	[ $(($(date -d "$ends" +%s) - $(date +%s))) -gt 7000 ] || fail "ends at $ends"
	assert_fails 2 'this time is over' xc add 192.0.2.2 expires 2020-01-01T00:00Z
	assert_fails 2 'or a moment like' xc add 192.0.2.2 expires 2026-13-41T00:00Z
	assert_fails 2 'or a moment like' xc add 192.0.2.2 expires 2030-11-31T00:00Z
	assert_fails 2 'more than 68 years away' xc add 192.0.2.2 timeout 2999-01-01T00:00:00Z
	assert_status 0 xc backup "$STATE/backup"
	assert_status 0 xc --name other restore "$STATE/backup"
	assert_shows '^src 192.0.2.1 timeout 1h5[89]m' xc --name other list
}

run_tests "$0" "$@"
