#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Lists in every format: what is imported blocks, --replace changes just what differs, and what is exported
# comes back the same, also through the real ipset and nft.
. tests/lib.sh
. tests/namespace/traffic.sh

# flow VERDICT SOURCE [DPORT]: a line for `traffic`.
flow() {
	echo "$1 $1 proto udp src $2 dst 198.51.100.7 sport 1 dport ${3:-2}"
}

generation() {
	xc status --verbose | sed -n 's/^generation: *//p'
}

# rules_of FILE: sorted, as `list` prints them, from a store of its own where no filter runs.
rules_of() {
	rm -rf "$STATE/other"
	in_tx "$TOOL" --state "$STATE/other" import "$1" --force >/dev/null 2>&1
	in_tx "$TOOL" --state "$STATE/other" list | sort
}

# --- formats

sample() {
	case $1 in
	text) echo '203.0.113.64-203.0.113.66' ;;
	ipset) printf 'create a hash:net timeout 0\nadd a 203.0.113.64/31\nadd a 203.0.113.66 timeout 3600\n' ;;
	nft) echo '{"nftables": [{"set": {"family": "inet", "table": "t", "name": "a", "type": "ipv4_addr",
		"elem": [{"range": ["203.0.113.64", "203.0.113.66"]}]}}]}' ;;
	spamhaus) echo '{"cidr":"203.0.113.64/31","sblid":"SBL1"}
		{"cidr":"203.0.113.66/32"}' ;;
	csv) printf 'source,comment\r\n203.0.113.64/31,"a, b"\r\n203.0.113.66,\r\n' ;;
	esac
}

test_each_format_blocks() {
	xc load vrx >/dev/null
	for format in text ipset nft spamhaus csv; do
		for named in '' "--format $format"; do
			case_begin "$format $named"
			sample "$format" >"$STATE/list"
			# shellcheck disable=SC2086 # words
			assert_shows '\badded 2\b' xc import "$STATE/list" $named
			{
				flow pass 203.0.113.63
				flow drop 203.0.113.64
				flow drop 203.0.113.65
				flow drop 203.0.113.66
				flow pass 203.0.113.67
			} | traffic || fail "wrong verdicts"
			xc flush >/dev/null
		done
	done
	assert_fails 2 "'xml': must be text, ipset, nft, spamhaus, csv, iptables, p2p or dshield" xc import "$STATE/list" --format xml
}

# The action of an import is that of each rule that names none, whatever its other words are, and however many.
test_action_of_an_import() {
	{
		printf '192.0.2.1\n192.0.2.2 comment drop\n192.0.2.3 COMMENT monitor\n192.0.2.4 comment "pass"\n'
		printf '192.0.2.7,%s\n' 192.0.2.8
	} >"$STATE/list"
	for action in monitor pass drop; do
		case_begin "$action"
		assert_fails 2 '192.0.2.7,' xc import "$STATE/list" --force --replace --action "$action"
		assert_equal 4 "$(xc list --json | grep -o "\"action\": *\"$action\"" | wc -l)" "rules with this action"
		assert_equal 4 "$(xc list | wc -l)" "rules"
	done
	case_begin 'a rule that names an action'
	printf '192.0.2.1 ACTION pass\n192.0.2.2 drop\n' >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --force --replace --monitor-only
	assert_equal 'src 192.0.2.1 action pass src 192.0.2.2' "$(xc list | xargs)" "rules"
}

# A pass rule would be no exception among rules that pass, and would change verdicts beside rules on trial.
test_exceptions_only_of_what_drops() {
	printf '%s\n' 'create a hash:net' 'add a 203.0.113.0/24' 'add a 203.0.113.7 nomatch' >"$STATE/list"
	for action in pass monitor; do
		assert_fails 2 "list:3: 'nomatch': rules with action $action can have no exceptions" \
			xc import "$STATE/list" --replace --list a --action "$action"
		assert_prints "src 203.0.113.0/24 action $action" xc list
	done
}

test_columns_keep_their_side() {
	xc load vrx >/dev/null
	printf '%s\n' 'create a hash:ip,port,ip' 'add a 192.0.2.1,udp:53,198.51.100.7' 'create p hash:net' \
		'add p 203.0.113.0/24' 'add p 203.0.113.7 nomatch' >"$STATE/list"
	assert_notes "set 'a' \(hash:ip,port,ip\): src, dport, dst, action drop" xc import "$STATE/list"
	printf '%s\n' 'drop named proto udp src 192.0.2.1 dst 198.51.100.7 sport 1 dport 53' \
		'pass port proto udp src 192.0.2.1 dst 198.51.100.7 sport 53 dport 1' \
		'pass turned proto udp src 198.51.100.7 dst 192.0.2.1 sport 1 dport 53' \
		'drop net proto udp src 203.0.113.8 dst 198.51.100.7 sport 1 dport 53' \
		'pass nomatch proto udp src 203.0.113.7 dst 198.51.100.7 sport 1 dport 53' | traffic || fail "wrong verdicts"
}

# --- bad lines

test_bad_lines() {
	xc load vrx >/dev/null
	printf '192.0.2.1\nbogus\n10.0.0.1/38\n192.0.2.2\n' >"$STATE/list"
	assert_status 2 xc import "$STATE/list" --strict
	assert_error "list:2: 'bogus'"
	assert_error "list:3: '10.0.0.1/38': the prefix length must be"
	assert_error '2 bad lines: nothing was changed'
	assert_prints '' xc list
	assert_status 2 xc import "$STATE/list"
	assert_output '\bbad lines 2\b'
	assert_equal 2 "$(xc list | wc -l)" "rules"
	{
		seq 100
		echo 192.0.2.3
	} >"$STATE/many"
	assert_status 2 xc import "$STATE/many" --replace --strict
	assert_equal 2 "$(xc list | wc -l)" "rules"
	assert_status 2 xc import "$STATE/many"
	assert_equal 20 "$(grep -c 'not a word of a rule' "$STATE/err")" "bad lines named"
	assert_error 'many: 80 more bad lines$'
	assert_equal 3 "$(xc list | wc -l)" "rules"
	case_begin 'a ; inside of a word is no comment'
	printf '192.0.2.1;192.0.2.2\n192.0.2.3;dport=22\n192.0.2.4; x\n192.0.2.5;\n; x\n' >"$STATE/list"
	assert_status 2 xc import "$STATE/list" --replace --force
	assert_equal 'src 192.0.2.4 src 192.0.2.5' "$(xc list | xargs)" "rules"
}

# Some tools read 010 as 8, others as 10: every format refuses it.
test_leading_zeros() {
	while IFS='|' read -r format line; do
		case_begin "$format: $line"
		case $format in
		csv) echo src,proto,type >"$STATE/list" ;;
		*) : >"$STATE/list" ;;
		esac
		echo "$line" >>"$STATE/list"
		assert_fails 2 '/list:[12]: ' xc import --strict --format "$format" "$STATE/list"
		sed -i 's,\([/ :-]\|icmp.\)0\([1-9]\),\1\2,g' "$STATE/list"
		assert_status 0 xc import --strict --dry-run --format "$format" "$STATE/list"
	done <<-'END'
		text|45.0.0.0/024
		text|192.0.2.1 proto 06
		text|192.0.2.1 proto tcp dport 080
		text|192.0.2.1 proto tcp dport 080-081
		text|192.0.2.1 proto icmp type 08
		spamhaus|45.0.0.0/024 ; SBL1
		csv|45.0.0.0/024,,
		csv|192.0.2.1,icmp,08
		ipset|add set 45.0.0.0/024
		ipset|add set 192.0.2.1,icmp:08/0
		ipset|add set 192.0.2.1,tcp:080
		nft|{"nftables": [{"set": {"family": "ip", "name": "a", "table": "t", "type": "ipv4_addr", "elem": ["45.0.0.0/024"]}}]}
	END
	assert_prints '' xc list
}

test_endless_lines() {
	xc add 192.0.2.9 >/dev/null 2>&1
	awk 'BEGIN { print "192.0.2.1"; for (i = 0; i < 70000; i++) printf "x"; print ""; print "192.0.2.2" }' >"$STATE/list"
	for format in '' '--format text' '--format spamhaus'; do
		case_begin "$format"
		# shellcheck disable=SC2086 # words
		assert_status 2 xc import "$STATE/list" --replace $format
		assert_error 'list:2: the line is longer than 65536 bytes: this is no list; nothing was changed'
	done
	for format in '' '--format nft' '--format ipset'; do
		case_begin "/dev/zero $format"
		# shellcheck disable=SC2086 # words
		assert_status 2 timeout 60 "$TOOL" --state "$STATE/store" import /dev/zero --replace $format
		assert_error '/dev/zero:1: (a NUL byte|the line is longer)'
	done
	assert_equal 1 "$(xc list | wc -l)" "rules"
	awk 'BEGIN { printf "{\"nftables\": [{\"set\": {\"name\": \"a\", \"type\": \"ipv4_addr\", \"elem\": [\"192.0.2.1\""
		for (i = 0; i < 9000; i++) printf ", \"203.0.%d.%d\"", i / 256, i % 256; print "]}}]}" }' >"$STATE/nft"
	assert_shows '\badded 9001\b' xc import "$STATE/nft" --replace
}

test_special_addresses_are_counted() {
	xc load vrx >/dev/null
	printf '10.0.0.0/9\n10.128.0.0/9\n127.0.0.0/8\n192.0.2.1\n' >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --force
	assert_error "rarely meant to be dropped: private \(RFC 1918\); 2 rules, the first is 'src 10.0.0.0/9'"
	assert_error "loopback; 1 rule, "
}

# --- timeouts

test_timeouts() {
	xc load vrx >/dev/null
	printf '192.0.2.1\n192.0.2.2 timeout 1h\n' >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --timeout 1d
	assert_status 0 xc list
	assert_output '^src 192.0.2.1 timeout (1d|23h59m[0-9]+s)$'
	assert_output '^src 192.0.2.2 timeout (1h|59m[0-9]+s)$'
	assert_status 0 xc list --json
	"$HELPERS/json_check" <"$STATE/out" || fail "no JSON"
	assert_output '"timeout_s": (86400|863[0-9]{2}),'
	assert_shows '\bupdated 2\b' xc import "$STATE/list"
	assert_shows '^src 192.0.2.1$' xc list
	printf 'src,timeout\n192.0.2.3,0\n192.0.2.4,\n' >"$STATE/csv"
	assert_status 0 xc import "$STATE/csv" --timeout 1d
	assert_status 0 xc list
	assert_output '^src 192.0.2.3$'
	assert_output '^src 192.0.2.4 timeout '
}

# --- --replace and --dry-run

test_replace_changes_what_differs() {
	xc load vrx >/dev/null
	cat >"$STATE/old" <<-'END'
		192.0.2.1
		192.0.2.2 comment "old"
		192.0.2.3 timeout 1h
		192.0.2.4
		203.0.113.0/24
		203.0.113.7 action pass
		2001:db8::/32
		proto udp dport 53
	END
	cat >"$STATE/new" <<-'END'
		2001:db8::/32
		192.0.2.1
		192.0.2.2 comment "new"
		192.0.2.3
		192.0.2.4 timeout 1h
		192.0.2.5
		203.0.113.0/24
		203.0.113.7
	END
	xc import "$STATE/old" >/dev/null
	before=$(xc list | sed 's/ timeout .*/ timeout/') # of which seconds go by
	at=$(generation)
	assert_status 0 xc import "$STATE/new" --replace --dry-run
	for count in '\badded 2\b' '\bupdated 3\b' '\bkept 3\b' '\bremoved 2\b' '^dry run: '; do
		assert_output "$count"
	done
	assert_equal "$before" "$(xc list | sed 's/ timeout .*/ timeout/')" "rules after a dry run"
	assert_equal "$at" "$(generation)" "generation after a dry run"
	assert_status 0 xc import "$STATE/new" --replace
	for count in '\badded 2\b' '\bupdated 3\b' '\bkept 3\b' '\bremoved 2\b' '; 8 rules in '; do
		assert_output "$count"
	done
	assert_equal "$((at + 1))" "$(generation)" "generation"
	assert_equal "$(rules_of "$STATE/new" | sed 's/ timeout .*//')" "$(xc list | sort | sed 's/ timeout .*//')" "rules"
	assert_equal 1 "$(xc list | grep -c timeout)" "rules with a timeout"
	{
		flow drop 192.0.2.1
		flow drop 192.0.2.4
		flow drop 192.0.2.5
		flow drop 203.0.113.7
		flow pass 203.0.114.7 53
		echo 'drop v6 proto udp src 2001:db8::1 dst 2001:db8:f::1 sport 1 dport 2'
	} | traffic || fail "wrong verdicts"
	assert_status 0 xc check
	# Equal rules are not written again.
	sed -i '/timeout/d' "$STATE/new"
	xc import "$STATE/new" --replace >/dev/null
	at=$(generation)
	assert_status 0 xc import "$STATE/new" --replace
	assert_output '\bkept 7\b'
	assert_output '\badded 0\b'
	assert_equal "$at" "$(generation)" "generation after no change"
}

test_replace_by_nothing_is_refused() {
	xc add 192.0.2.1 >/dev/null 2>&1
	assert_fails 2 'holds no rule; nothing was changed' xc import /dev/null --replace
	assert_equal 1 "$(xc list | wc -l)" "rules"
	assert_shows '\bremoved 1\b' xc import /dev/null --replace --force
	assert_prints '' xc list
}

# --- export

# kinds ipset|all: rules of all kinds, or of those that ipset can hold.
kinds() {
	cat <<-'END'
		192.0.2.1 comment "a, b; #c"
		203.0.113.0/24
		203.0.113.7 action pass
		dst 198.51.100.0/25
		192.0.2.1 proto tcp dport 80
		192.0.2.1 proto tcp sport 80 action pass
		dst 192.0.2.0/30 proto udp dport 53
		192.0.2.1 dst 198.51.100.7 proto sctp dport 9
		192.0.2.1 dst 198.51.100.0/24 proto tcp dport 80
		192.0.2.1 proto icmp type 8 code 0
		192.0.2.1 proto gre
		2001:db8::/32
		2001:db8::1 proto ipv6-icmp type 128 code 0
		2001:db8::1 proto tcp dport 443
		dst 2001:db8:1::1 action pass
	END
	[ "$1" = ipset ] || cat <<-'END'
		192.0.2.0/24 dst 198.51.100.0/24
		192.0.2.0/24 dst 198.51.100.0/24 proto tcp dport 80
		0.0.0.0/0 action pass
		proto tcp src ::/0 dport 22
		proto udp dport 53
		sport 1 dport 2
		proto ipv6-icmp type 135
		192.0.2.1 dport 53
		192.0.2.1 proto dccp sport 1 dport 2
		10.0.0.0/8
		10.0.0.0/9
		10.0.0.1
		10.128.0.0/9
		192.0.2.9 comment "x\y"
	END
}

# Deletes all rules and restores them from the export.
assert_import_restores() {
	xc list | sort >"$STATE/before"
	xc flush >/dev/null
	assert_status 0 xc import "$STATE/exported" --force
	assert_equal "$(cat "$STATE/before")" "$(xc list | sort)" "exported and imported again"
}

test_export_is_the_identity() {
	for format in text csv nft ipset; do
		case_begin "$format"
		kinds "$format" | xc import - --force --replace >/dev/null 2>&1
		assert_status 0 xc export --format "$format" "$STATE/exported"
		assert_output "^exported: +$(kinds "$format" | wc -l)\$"
		assert_import_restores
		xc export - --format "$format" >"$STATE/again"
		cmp "$STATE/exported" "$STATE/again" || fail "standard output holds something else"
	done
}

test_export_of_timeouts() {
	for format in text csv nft ipset; do
		case_begin "$format"
		echo '192.0.2.1 timeout 1h comment x' | xc import - --force --replace >/dev/null 2>&1
		assert_status 0 xc export --format "$format" "$STATE/exported"
		xc flush >/dev/null 2>&1
		assert_status 0 xc import "$STATE/exported"
		assert_shows '^src 192.0.2.1 timeout (1h|59m[0-9]+s) comment "x"$' xc list
	done
}

test_export_to_files() {
	xc add 192.0.2.1 >/dev/null 2>&1
	echo old >"$STATE/file"
	assert_status 0 xc export "$STATE/file"
	assert_equal 'src 192.0.2.1' "$(cat "$STATE/file")" "the file"
	assert_equal 644 "$(stat -c %a "$STATE/file")" "permission of the file"
	assert_equal 1 "$(find "$STATE" -name 'file*' | wc -l)" "files"
	assert_status 3 xc export "$STATE/nosuch/file"
	assert_status 2 xc export "$STATE/file" --format spamhaus
	assert_shows '^,192.0.2.1,,,,,,,,,,,,,$' xc export --format csv
	[ ! -c /dev/full ] || assert_status 3 xc export /dev/full --format csv
	rm -rf "$STATE/store"
	assert_status 1 xc export "$STATE/file"
	assert_status 1 xc export
	assert_equal '' "$(cat "$STATE/out")" "export of nothing"
}

# Export keeps a link, and owner and mode of its file. It writes to special files directly.
test_export_and_metrics_follow_links() {
	xc add 192.0.2.1 >/dev/null 2>&1
	mkdir "$STATE/there"
	ln -s there/file "$STATE/link"
	ln -s link "$STATE/again"
	for command in export metrics; do
		case_begin "$command"
		echo old >"$STATE/there/file"
		chown 65534:65534 "$STATE/there/file"
		chmod 600 "$STATE/there/file"
		assert_status 0 xc "$command" "$STATE/again"
		assert_equal 'there/file link' "$(readlink "$STATE/link") $(readlink "$STATE/again")" "links"
		assert_equal '600 65534 65534' "$(stat -c '%a %u %g' "$STATE/there/file")" "mode and owner"
		! grep -qx old "$STATE/there/file" || fail "the file behind the links is the old one"
		assert_equal file "$(ls "$STATE/there")" "files"
		rm "$STATE/there/file"
		assert_status 0 xc "$command" "$STATE/again"
		{ [ -f "$STATE/there/file" ] && [ -L "$STATE/again" ]; } || fail "a link to nothing is not followed"
		# What a process has open, also by way of /proc.
		ln -s /proc/self/fd/1 "$STATE/output"
		assert_status 0 xc "$command" -
		cp "$STATE/out" "$STATE/expected"
		assert_status 0 xc "$command" "$STATE/output"
		[ -L "$STATE/output" ] || fail "the link was replaced"
		[ "$command" = metrics ] || cmp "$STATE/expected" "$STATE/out" || fail "standard output holds something else"
		rm "$STATE/output"
	done
	ln -s /dev/null "$STATE/nothing"
	assert_status 0 xc export "$STATE/nothing"
	{ [ -L "$STATE/nothing" ] && [ -c /dev/null ]; } || fail "a device was replaced"
}

test_what_ipset_does_not_hold_is_named() {
	printf '%s\n' 192.0.2.1 'proto udp dport 53' '192.0.2.1 proto tcp' | xc import - >/dev/null 2>&1
	assert_status 1 xc export --format ipset
	assert_error "'proto udp dport 53' is left out: ipset needs an address"
	assert_error "'proto tcp src 192.0.2.1' is left out: ipset needs a port"
	assert_output '^add xc-drop-src-net4 192.0.2.1$'
	assert_status 1 xc export --format ipset "$STATE/exported"
	assert_output '^exported: +1$'
	assert_output '^not whole: +2$'
}

# Whoever looks later sees that lines of a file were no rules.
test_bad_lines_of_a_file_are_seen() {
	printf '192.0.2.1\nx\ny\n' >"$STATE/bad"
	assert_status 2 xc import "$STATE/bad" --list office
	assert_shows '^left out: +office: 2$' xc status
	assert_shows '^ +"left_out": 2$' xc status --json
	assert_shows '^ +"left_out": 2,?$' xc lists --json
	assert_shows "office .* bad lines: 2; $STATE/bad" xc lists
	assert_shows '^xdp_cuckoo_list_left_out\{name="default",list="office"\} 2$' xc metrics
	assert_status 0 xc add 192.0.2.9 --list office
	! grep -q URL "$STATE/err" || fail "a list by file is told to come from a URL"
	echo 192.0.2.1 >"$STATE/bad"
	assert_status 0 xc import "$STATE/bad" --list office --replace --confirm 1m
	assert_shows '^xdp_cuckoo_list_left_out\{name="default",list="office"\} 0$' xc metrics
	! xc status | grep -q 'left out' || fail "bad lines of an earlier import"
	for clean in 'bad lines: 77; x' 'fleet a b c refused 4'; do
		cp "$STATE/bad" "$STATE/$clean"
		assert_status 0 in_rx sh -c 'cd "$1" && "$2" --state store import "$3" --list office' x \
			"$STATE" "$(realpath "$TOOL")" "$clean"
		assert_shows '^ +"left_out": 0,?$' xc lists --json
	done
	odd="$STATE/$(printf '"\377')"
	printf '192.0.2.1\nx\n' >"$odd"
	assert_status 2 xc import "$odd" --list office
	assert_shows "office .* bad lines: 1; $STATE/[?][?]" xc lists
}

# --- the real tools

test_through_ipset() {
	in_tx ipset list -n >/dev/null 2>&1 || skip "no ipset here"
	kinds ipset | xc import - --force >/dev/null 2>&1
	xc add 192.0.2.99 timeout 1h >/dev/null 2>&1
	xc export --format ipset "$STATE/made" >/dev/null
	in_tx ipset restore -file "$STATE/made" || fail "ipset refuses what was exported"
	in_tx ipset save >"$STATE/exported"
	assert_equal "$(xc list | wc -l)" "$(grep -c ^add "$STATE/exported")" "elements in ipset"
	xc list | sed 's/ timeout .*/ timed/' | sort >"$STATE/before"
	xc flush >/dev/null
	assert_status 0 xc import "$STATE/exported" --force
	assert_equal "$(cat "$STATE/before")" "$(xc list | sed 's/ timeout .*/ timed/' | sort)" "through ipset"
	# A rule for all of IPv4 as well.
	echo 0.0.0.0/0 | xc import - --force --replace >/dev/null 2>&1
	xc export --format ipset "$STATE/made" >/dev/null
	in_tx ipset destroy
	in_tx ipset restore -file "$STATE/made" || fail "ipset refuses the halves"
}

test_through_nft() {
	in_tx nft list ruleset >/dev/null 2>&1 || skip "no nft here"
	kinds all | xc import - --force >/dev/null 2>&1
	xc add 192.0.2.99 timeout 1h >/dev/null 2>&1
	xc export --format nft "$STATE/made" >/dev/null
	in_tx nft -j -f "$STATE/made" || fail "nft refuses what was exported"
	in_tx nft -j list ruleset >"$STATE/exported"
	xc list | sed 's/ timeout .*/ timed/' | sort >"$STATE/before"
	xc flush >/dev/null
	assert_status 0 xc import "$STATE/exported" --force
	assert_equal "$(cat "$STATE/before")" "$(xc list | sed 's/ timeout .*/ timed/' | sort)" "through nft"
}

# The filter blocks the packets that nft's set matches.
test_a_set_of_nft_blocks() {
	in_tx nft list ruleset >/dev/null 2>&1 || skip "no nft here"
	in_tx nft -f - <<-'END' || fail "nft"
		table inet t {
			set blocked {
				type ipv4_addr . inet_service
				flags interval, timeout
				elements = { 192.0.2.0/31 . 80-81 timeout 1h, 192.0.2.7-192.0.2.9 . 53 comment "x" }
			}
		}
	END
	xc load vrx >/dev/null
	in_tx nft -j list set inet t blocked >"$STATE/list"
	assert_notes "set 'inet t blocked': src, dport, action drop" xc import "$STATE/list"
	{
		flow drop 192.0.2.0 80
		flow drop 192.0.2.1 81
		flow pass 192.0.2.2 80
		flow pass 192.0.2.1 53
		flow pass 192.0.2.6 53
		flow drop 192.0.2.7 53
		flow drop 192.0.2.8 53
		flow drop 192.0.2.9 53
		flow pass 192.0.2.10 53
	} | traffic || fail "wrong verdicts"
}

# --- lists as they are

# Exports and imports with --replace in every format: nothing changes.
assert_list_survives() {
	assert_status 0 xc import "$1" --force --replace
	rules=$(xc list | wc -l)
	assert_equal "$(grep -vc '^[#;]' "$1")" "$rules" "rules"
	for format in text csv nft ipset; do
		case_begin "$(basename "$1") as $format"
		xc export --format "$format" "$STATE/exported" >/dev/null
		assert_status 0 xc import "$STATE/exported" --force --replace
		assert_output "\bkept $rules\b"
		assert_output '\bremoved 0\b'
		assert_output '\badded 0\b'
	done
}

test_real_lists() {
	lists=
	for list in firehol_level1.netset spamhaus_drop.netset country_us.netset stopforumspam_180d.ipset; do
		[ ! -e "$LISTS/$list" ] || lists="$lists $LISTS/$list"
	done
	[ -n "$lists" ] || skip "no lists in $LISTS"
	xc load vrx >/dev/null
	for list in $lists; do
		assert_list_survives "$list"
	done
	note "$(echo "$lists" | wc -w) lists in four formats"
}

test_generated_lists() {
	xc load vrx >/dev/null
	generated_list 3000 | sort -u >"$STATE/list"
	assert_list_survives "$STATE/list"
}

# Who leaves iptables must know each line that stays behind. A comment in quotes is no reason to refuse the lines behind it.
test_every_line_of_iptables_is_named() {
	{
		echo '# Generated by iptables-save v1.8.9'
		echo '*filter'
		for i in $(seq 30); do echo "-A INPUT -s 192.0.2.$i/32 -p tcp -m tcp --ttl-eq 1 -j DROP"; done
		cat <<-'END'
			-A INPUT -s 198.51.100.1/32 -m comment --comment "bad \"guy\" of C:\\" -j DROP
			-A INPUT --source 198.51.100.2 --protocol tcp --match tcp --dport 22 --jump DROP
			-A INPUT -s 198.51.100.3 --goto elsewhere
			-A INPUT -s 198.51.100.4 -j DROP
			-A INPUT -s 198.51.100.0/28 -j DROP
			COMMIT
		END
	} >"$STATE/saved"
	assert_status 2 xc import "$STATE/saved"
	for i in $(seq 3 32); do
		grep -q "^xdp-cuckoo: $STATE/saved:$i: '--ttl-eq': no rule can say this$" "$STATE/err" || fail "line $i"
	done
	assert_error "saved:35: '-j elsewhere': only DROP, REJECT and ACCEPT are read"
	assert_error "saved:37: line 35 comes first"
	assert_equal 32 "$(grep -c "$STATE/saved:" "$STATE/err")" "lines that are named"
	xc list >"$STATE/rules"
	diff - "$STATE/rules" <<-'END' || fail "other rules"
		src 198.51.100.1 comment "bad 'guy' of C:\"
		proto tcp src 198.51.100.2 dport 22
		src 198.51.100.4
	END
}

run_tests "$0" "$@"
