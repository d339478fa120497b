#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A configuration file: what is wrong with it, and up and down, whatever was there before.
. tests/lib.sh

# config LINE...: the configuration of the tests.
config() {
	printf '%s\n' "$@" >"$STATE/conf"
}

# up STATUS: brings it up.
up() {
	assert_status "$1" xc up "$STATE/conf"
}

# --- the file

# refused PATTERN LINE...: check-config exits with 2 and names the line.
refused() {
	pattern=$1
	shift
	config "$@"
	case_begin "$pattern"
	assert_fails 2 "conf$pattern" xc check-config "$STATE/conf"
	assert_equal 2 "$(wc -l <"$STATE/err")" "lines of errors"
}

test_what_is_wrong_is_told_with_its_line() {
	filter='interfaces = vrx'
	refused ": there is no \[filter\]" '# nothing'
	refused ":1: \[filter\] names no interfaces" '[filter]'
	refused ":1: 'mode' is before any section" 'mode = skb' '[filter]' "$filter"
	refused ":3: unknown key 'modes' in \[filter\]; it knows interfaces, mode, " '[filter]' "$filter" 'modes = skb'
	refused ":3: mode = 'fast': must be auto, native or skb" '[filter]' "$filter" 'mode = fast'
	refused ":3: table = 'small': must be exact or compact" '[filter]' "$filter" 'table = small'
	refused ":3: capacity = '0'" '[filter]' "$filter" 'capacity = 0'
	refused ":1: fingerprint needs table = compact" '[filter]' "$filter" 'fingerprint = 8'
	refused ":3: counters = 'maybe': must be yes or no" '[filter]' "$filter" 'counters = maybe'
	refused ":3: wait = '1 year'" '[filter]' "$filter" 'wait = 1 year'
	refused ":3: wait = '1d': at most 10m" '[filter]' "$filter" 'wait = 1d'
	refused ":3: 'interfaces' is there twice" '[filter]' "$filter" 'interfaces = vtwo'
	refused ":2: interfaces: 'vrx' is there twice" '[filter]' 'interfaces = vrx vrx'
	longer=$(printf '%0128d' 0)
	refused ":2: interfaces: '$longer' is not the name of an interface" '[filter]' "interfaces = vrx $longer"
	refused ":3: 'mode' has no value" '[filter]' "$filter" 'mode ='
	refused ":3: 'mode' is neither \[SECTION\] nor KEY = VALUE" '[filter]' "$filter" 'mode'
	refused ":3: '  mode' is neither " '[filter]' "$filter" '  mode'
	refused ":3: \[filter\] is there twice, first in line 1" '[filter]' "$filter" '[filter]' 'mode = skb'
	refused ":3: a section ends with \]" '[filter]' "$filter" '[policy' 'x = y'
	refused ":3: unknown section \[lists\]; there are" '[filter]' "$filter" '[lists]' 'x = y'
	refused ":4: unknown key 'foo' in \[policy\]" '[filter]' "$filter" '[policy]' 'foo = drop'
	refused ":4: malformed = 'x': must be pass or drop" '[filter]' "$filter" '[policy]' 'malformed = x'
	refused ":4: 'drop' here drops ARP: .*force = yes" '[filter]' "$filter" '[policy]' 'not-ip = drop'
	refused ":3: \[list a\] must have one of these: file" '[filter]' "$filter" '[list a]'
	refused ":4: file = 'a': must be a path that starts with /" '[filter]' "$filter" '[list a]' 'file = a'
	refused ":5: format = 'pdf'" '[filter]' "$filter" '[list a]' 'file = /a' 'format = pdf'
	refused ":5: \[list a\] is there twice, first in line 3" '[filter]' "$filter" '[list a]' 'file = /a' '[list a]'
	refused ":3: \[list a b\]: a list's name" '[filter]' "$filter" '[list a b]'
	refused ":3: \[list flowspec\]: \[flowspec\] keeps this list" '[filter]' "$filter" '[list flowspec]' 'file = /a' \
		'[flowspec]' 'own-prefixes = any'
	refused ":6: \[flowspec\] and \[crowdsec\] keep the same list, x" '[filter]' "$filter" '[flowspec]' 'own-prefixes = any' \
		'list = x' '[crowdsec]' 'key-file = /k' 'list = x'
	refused ":3: \[fleet\]: the list 'a' is kept by a section \[list\] too" '[filter]' "$filter" '[fleet]' 'broker = b' 'lists = a' \
		'[list a]' 'file = /a'
	refused ":1: \[fleet\]: the list 'flowspec' is kept by \[flowspec\] too" '[fleet]' 'broker = b' 'lists = flowspec' '[flowspec]' \
		'own-prefixes = any'
	refused ":1: \[fleet\]: 'redis://b' must be HOST, HOST:PORT, " '[fleet]' 'broker = a redis://b'
	refused ":1: \[fleet\]: 'b:65536' must be HOST, HOST:PORT, " '[fleet]' 'broker = a b:65536'
	refused ":1: \[fleet\]: the list 'a' is there twice" '[fleet]' 'broker = b' 'lists = a b a'
	refused ":1: \[fleet\]: the list 'a' has a stage" '[fleet]' 'broker = b' 'lists = a a.next' 'staged = yes'
	refused ":1: \[fleet\]: the list '-a' is no name of a list" '[fleet]' 'broker = b' 'lists = -a'
	refused ":3: 'mode ;= skb' is neither " '[filter]' "$filter" 'mode ;= skb'
	refused ":1: 'mode = skb' after \]: write it on a line of its own" '[filter] mode = skb' "$filter"
	refused ":3: capacity = '9999999999': a table holds at most 1020054732 rules" '[filter]' "$filter" 'capacity = 9999999999'
	refused ":2: the line is longer than" '[filter]' "# $(printf '%5000s' x)" "$filter"
}

# An upgrade must not stop a filter: only check-config refuses a key of an earlier version.
test_a_key_that_is_gone() {
	config '[filter]' 'interfaces = vrx' 'mode = skb' '[fleet]' 'broker = a' 'report = b'
	assert_fails 2 'keys of an earlier version, see above' xc check-config "$STATE/conf"
	assert_error "conf:6: the key 'report' is gone, and does nothing: hosts report to their broker"
	up 0
	assert_error "^note: .*conf:6: the key 'report' is gone"
	assert_notes '^\{"note": ".*the key .report. is gone' xc up "$STATE/conf" --json
	! grep -q '"error"' "$STATE/err" || fail "an error with status 0: $(cat "$STATE/err")"
	assert_shows 'vrx skb' xc status
}

test_what_is_right() {
	config '; a comment' '[filter] # a comment' 'interfaces = vrx, vtwo   # two' 'mode: skb ; generic' 'table=compact' \
		'fingerprint = 32' 'monitor-only = off' 'detach-on-stop = yes' 'wait = 10s' '' '[policy]' 'not-ip = drop' \
		'force = yes' '[list a]' 'file = /a' 'format = spamhaus' 'timeout = 1d' 'strict = yes' 'force = no'
	assert_status 0 xc check-config "$STATE/conf"
	assert_output '^interfaces: +2$'
	assert_output '^lists: +1$'
	assert_error "^note: no interface 'vtwo' is there now; up waits for it"
	assert_error "^note: list 'a': cannot read '/a'"
	! grep "'vrx'" "$STATE/err" || fail "it is there"
	assert_fails 2 "list 'a': cannot read '/a'" xc check-config --strict "$STATE/conf"
	printf '203.0.113.1\nbogus\n' >"$STATE/a"
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	assert_status 0 xc check-config "$STATE/conf"
	assert_fails 2 "a:2: 'bogus'" xc check-config --strict "$STATE/conf"
	[ ! -e "$STATE/store" ] || fail "something was changed"
}

test_a_byte_order_mark() {
	printf '\357\273\277[filter]\r\ninterfaces = vrx\r\n' >"$STATE/conf"
	assert_status 0 xc check-config "$STATE/conf"
	refused ":2: '" '[filter]' "$(printf '\357\273\277interfaces')" 'interfaces = vrx'
}

test_whose_file_it_is() {
	config '[filter]' 'interfaces = vrx'
	chmod 0666 "$STATE/conf"
	for command in check-config up; do
		assert_fails 3 '; chmod go-w' xc "$command" "$STATE/conf"
	done
	chmod 0600 "$STATE/conf"
	chown 65534 "$STATE/conf"
	assert_fails 3 'must belong to root or to you; chown root' xc up "$STATE/conf"
	assert_fails 3 "cannot read '$STATE/none'" xc up "$STATE/none"
	printf '[filter]\ninterfaces = vrx\n[list a]\nfile = %s\n' "$STATE/none" >"$STATE/missing"
	run xc up "$STATE/missing"
	assert_error "list 'a': cannot read '$STATE/none': No such file or directory$"
	xc unload --all >/dev/null
	assert_status 3 xc --name no.such.filter up
	assert_error "cannot read '/etc/xdp-cuckoo/no.such.filter.conf': .* copy the example there, share/doc/xdp-cuckoo/default.conf"
	assert_error 'name a FILE'
	assert_fails 3 'copy the example there.* name a FILE' xc --name no.such.filter check-config
	assert_fails 2 'is not a regular file' xc up "$STATE"
	assert_equal '' "$(program_id vrx)" "program"
}

# --- up

test_up_and_down() {
	write_list a 1 2
	write_list b 2 3
	config '[filter]' 'interfaces = vrx' '[policy]' 'malformed = drop' '[list a]' "file = $STATE/a" '[list b]' \
		"file = $STATE/b" 'timeout = 1d'
	assert_status 0 xc add 203.0.113.9
	up 0
	for i in 1 2 3 9; do
		assert_verdict drop "203.0.113.$i"
	done
	assert_verdict pass 203.0.113.4
	assert_shows '^malformed +drop$' xc policy
	assert_shows '^src 203.0.113.3 timeout (1d|23h59m)' xc list
	# Again: nothing changes.
	config '[filter]' 'interfaces = vrx' '[policy]' 'malformed = drop' '[list a]' "file = $STATE/a"
	before=$(program_id vrx) generation=$(xc status --verbose | grep '^generation')
	up 0
	assert_output '^ *vrx +native +runs already$'
	assert_output '^renewed tables: +0$'
	assert_equal "$before" "$(program_id vrx)" "program"
	assert_equal "$generation" "$(xc status --verbose | grep '^generation')" "changes"
	# One list file has changed, and one is no longer named.
	write_list a 5
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	up 0
	assert_verdict drop 203.0.113.5 pass 203.0.113.1 drop 203.0.113.2
	assert_notes "the list 'b' is not in the configuration, and stays" xc up "$STATE/conf"
	assert_error "the policy 'malformed drop' stays, though the file does not name it"
	assert_equal 'malformed drop' "$(xc policy | awk '$1 == "malformed" { print $1, $2 }')" "policy"
	assert_status 0 xc down --on-stop "$STATE/conf"
	assert_verdict drop 203.0.113.5
	config '[filter]' 'interfaces = vrx' 'detach-on-stop = yes'
	assert_shows '^unloaded: +vrx$' xc down --on-stop "$STATE/conf"
	assert_verdict pass 203.0.113.5
	assert_equal 4 "$(xc list | wc -l)" "rules left"
	up 0
	assert_verdict drop 203.0.113.5
	# A mistake in the file keeps no filter that the operator wants off.
	config '[filter]' 'interfaces = vrx' 'detach-on-stop = yes' 'no-such-key = 1'
	assert_fails 2 "to take the filter off: xdp-cuckoo --name default unload --all$" xc down --on-stop "$STATE/conf"
	assert_shows '^unloaded: +vrx$' xc down "$STATE/conf"
	assert_verdict pass 203.0.113.5
	assert_status 0 xc up "$(config '[filter]' 'interfaces = vrx' && echo "$STATE/conf")"
	assert_status 0 xc down
	assert_verdict pass 203.0.113.5
}

# The filter follows the interfaces in the file. Filters of other names are left alone.
test_interfaces_follow_the_file() {
	veth "$TX" vone "$RX" vtwo
	veth "$TX" vthree "$RX" vfour
	assert_status 0 xc --name other load vfour
	config '[filter]' 'interfaces = vrx'
	up 0
	config '[filter]' 'interfaces = vtwo vrx'
	up 0
	[ -n "$(program_id vtwo)" ] || fail "not loaded"
	config '[filter]' 'interfaces = vtwo'
	up 0
	assert_output '^ *vrx +native +taken off$'
	assert_equal '' "$(program_id vrx)" "program"
	[ -n "$(program_id vtwo)" ] || fail "taken off"
	config '[filter]' 'interfaces = vtwo vfour'
	up 5
	assert_error 'vfour.* runs another XDP program'
	assert_output '^ *vfour +- +not loaded$'
	assert_status 0 xc down
	[ -n "$(program_id vfour)" ] || fail "another filter was taken off"
}

# Nobody writes to the FIFO, and neither the service nor check-config waits for a writer.
test_a_fifo_is_not_waited_for() {
	mkfifo "$STATE/fifo"
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/fifo"
	for command in "check-config $STATE/fifo" "up $STATE/fifo" "down --on-stop $STATE/fifo"; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_status 2 in_rx timeout "$WAIT_S" "$TOOL" --state "$STATE/store" $command
		assert_error "'$STATE/fifo' is not a regular file; write the configuration into one"
	done
	for command in "check-config --strict $STATE/conf" "up $STATE/conf"; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_status 2 in_rx timeout "$WAIT_S" "$TOOL" --state "$STATE/store" $command
		assert_error "list 'a': '$STATE/fifo' is a FIFO; write the list into a file"
	done
	case_begin "a list by process substitution"
	{ echo 192.0.2.66 | xc import /dev/fd/0 && echo 192.0.2.67 >"$STATE/fifo" & } >"$STATE/out"
	assert_status 0 xc import "$STATE/fifo"
	wait
	assert_equal 2 "$(xc list | wc -l)" "rules"
}

# Alternative names, from ip-link(8) or systemd-udevd, may have up to 127 bytes; others have at most 15.
test_an_interface_has_other_names() {
	longest=$(printf '%0127d' 0)
	for other in vother enp0s31f6np0with-a-long-name "$longest"; do
		case_begin "$other"
		ip -n "$RX" link property add dev vrx altname "$other" 2>/dev/null || skip "no other names here"
		config '[filter]' "interfaces = $other"
		for done in 'loaded' 'runs already'; do
			up 0
			assert_output "^ *vrx +native +$done\$"
		done
		config '[filter]' 'interfaces = vrx'
		up 0
		assert_output '^ *vrx +native +runs already$'
		for name in vrx "$other"; do
			assert_notes "'$name' runs the filter" xc load "$name"
		done
		assert_shows "^$other\$" xc complete -- unload "$other"
		assert_shows '^unloaded: +vrx$' xc unload "$other"
		assert_equal '' "$(program_id vrx)" "program"
		assert_shows '^ *vrx +native$' xc load "$other"
		assert_status 0 xc unload vrx
	done
	for name in enp0s31f6np0with-a-lung-name "0$longest"; do
		assert_fails 2 "there is no interface '$name' here" xc load "$name"
	done
}

# A misspelt interface name leaves no interface unfiltered.
test_where_none_is_filtered_all_keep_it() {
	config '[filter]' 'interfaces = vrx'
	up 0
	config '[filter]' 'interfaces = vrc'
	up 3
	assert_error "'vrx' keeps the filter, though the file does not name it: no interface that the file names has the filter"
	assert_output '^ *vrx +native +kept$'
	[ -n "$(program_id vrx)" ] || fail "taken off"
}

# A list that is empty from the start is accepted. A list that becomes empty, or has only bad lines, is refused.
test_empty_lists() {
	printf '# nothing yet\n' >"$STATE/a"
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	assert_fails 2 "list 'a': .*/a holds no rule; .* force = yes" xc check-config --strict "$STATE/conf"
	up 2
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a" 'force = yes'
	up 0
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	printf '<html>\n' >"$STATE/a"
	up 2
	assert_error "list 'a': no line of .*/a is a rule"
	write_list a 1
	up 0
	printf '# nothing any more\n' >"$STATE/a"
	for command in 'check-config --strict' up; do
		# shellcheck disable=SC2086 # words
		assert_fails 2 "list 'a': .*/a holds no rule" xc $command "$STATE/conf"
	done
	assert_verdict drop 203.0.113.1
}

# A compact table knows no times. Rules that have ended do not come back in it.
test_what_has_ended_stays_so_in_a_compact_table() {
	config '[filter]' 'interfaces = vrx'
	up 0
	assert_status 0 xc add 203.0.113.1 timeout 1h
	assert_verdict drop 203.0.113.1
	assert_status 0 xc add 203.0.113.1 timeout 1s
	wait_for "the end" eval 'flows pass 203.0.113.1 | traffic'
	config '[filter]' 'interfaces = vrx' 'table = compact'
	up 0
	assert_output '^renewed tables: +1$'
	assert_verdict pass 203.0.113.1
}

# If one part fails, the others are done.
# The command that is told to insist means the same list.
test_a_list_that_shrinks_too_much() {
	printf '203.0.113.%s\n' 1 2 3 >"$STATE/list"
	config '[filter]' 'interfaces = vrx' '[list trial]' "file = $STATE/list" 'format = text' 'action = monitor' 'new-only = yes' \
		'max-shrink = 10%'
	up 0
	echo 203.0.113.1 >"$STATE/list"
	up 2
	command=$(sed -n "s|.*if it is meant: xdp-cuckoo ||p" "$STATE/err")
	assert_equal "import --list trial --replace --new-only --format text --action monitor $STATE/list" "$command" "command"
	# shellcheck disable=SC2086 # words
	assert_status 0 xc $command
	assert_equal 'src 203.0.113.1 state new action monitor' "$(xc list trial)" "rules"
}

test_what_fails_leaves_the_rest() {
	write_list a 1
	write_list c 3
	printf 'bogus\n' >"$STATE/b"
	config '[filter]' 'interfaces = vnone vrx' '[list none]' 'file = /no/such/file' '[list a]' "file = $STATE/a" \
		'[list b]' "file = $STATE/b" 'strict = yes' '[list own]' "file = $STATE/own" '[list c]' "file = $STATE/c" \
		'[list empty]' "file = $STATE/empty"
	echo 10.99.0.2 >"$STATE/own"
	: >"$STATE/empty"
	up 3
	assert_error "there is no interface 'vnone' here"
	assert_error "list 'none': cannot read '/no/such/file'"
	assert_error "list 'b': 1 bad line: nothing was changed"
	assert_error "list 'empty': .* if it is meant to be empty, write force = yes in its section"
	assert_error "list 'own': .* would block packets from this host's address 10.99.0.2; nothing was changed; first: "
	assert_verdict drop 203.0.113.1 203.0.113.3
	# The rules of a list stay if its file cannot be read any more.
	rm "$STATE/a"
	up 3
	assert_verdict drop 203.0.113.1
	# The good lines of a list count, and the bad one is no success.
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	printf '203.0.113.1\n203.0.113.2x\n' >"$STATE/a"
	up 2
	assert_error "a:2: '203.0.113.2x'"
	assert_verdict drop 203.0.113.1
	# A file with an error changes nothing.
	config '[filter]' 'interfaces = vrx' '[list c]' 'file = /none' 'x = y'
	up 2
	assert_verdict drop 203.0.113.3
}

test_an_interface_without_an_ethernet_header() {
	ip -n "$RX" tuntap add dev tun0 mode tun 2>/dev/null || skip "no tun devices here"
	config '[filter]' 'interfaces = tun0 vrx'
	up 0
	assert_output '^ *tun0 +tc +loaded$'
	assert_output '^ *vrx +native +loaded$'
	xc unload --all >/dev/null
	ip -n "$RX" link add vmon type nlmon 2>/dev/null || return 0
	config '[filter]' 'interfaces = vmon vrx'
	up 2
	assert_error "packets of 'vmon' start neither"
	assert_output '^ *vmon +- +not loaded$'
	assert_output '^ *vrx +native +loaded$'
}

test_an_interface_that_comes_later() {
	config '[filter]' 'interfaces = vrx vtwo' 'wait = 2m'
	write_list a 1
	{
		sleep 1
		veth "$TX" vone "$RX" vtwo
	} &
	maker=$!
	up 0
	wait "$maker"
	[ -n "$(program_id vtwo)" ] || fail "not loaded"
	assert_verdict pass 203.0.113.1
	config '[filter]' 'interfaces = vrx vthree' 'wait = 1s'
	up 3
	assert_output '^ *vthree +- +not there$'
	assert_equal '' "$(program_id vtwo)" "program"
}

# The stored rules are in force from the first packet on, even if the list files are gone.
test_stored_rules_are_in_force_at_once() {
	write_list a 1
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	up 0
	assert_status 0 xc down
	rm "$STATE/a"
	up 3
	assert_verdict drop 203.0.113.1
}

# --- as a service

# The capabilities and the read-only file system of the unit, without the rest of systemd.
test_up_with_what_the_service_may_do() {
	capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' user/package/systemd/xdp-cuckoo@.service | tr '[:upper:]' '[:lower:]')
	write_list a 1
	config '[filter]' 'interfaces = vrx' 'detach-on-stop = yes' '[list a]' "file = $STATE/a"
	mkdir -m 0700 "$STATE/state"
	serve() {
		# shellcheck disable=SC2086 # words
		in_rx unshare --mount sh -c 'mount --make-rprivate / && mount --bind "$1" "$1" && mount --bind "$1/state" "$1/state" &&
			mount -o remount,bind,ro "$1" && mount -o remount,bind,ro / && ! touch "$1/written" 2>/dev/null &&
			shift && exec "$@"' sh "$STATE" setpriv --no-new-privs \
			--inh-caps=-all --bounding-set="-all$(printf ',+%s' $capabilities | sed 's/cap_//g')" \
			"$TOOL" --state "$STATE/state" "$@"
	}
	for _ in first again; do
		assert_status 0 serve up "$STATE/conf"
		assert_verdict drop 203.0.113.1
	done
	assert_status 0 serve down --on-stop "$STATE/conf"
	assert_verdict pass 203.0.113.1
}

# may_choose_cpus UNIT: whether the unit's last filter allows the call.
may_choose_cpus() {
	awk '/^SystemCallFilter=~.*@resources/ { word = "may-not" }
		/^SystemCallFilter=[^~]*sched_setaffinity/ { word = "may" }
		END { print word }' "user/package/systemd/$1"
}

# On a kernel with nohz_full CPUs the tool visits each CPU to wait for packets.
test_services_where_cpus_have_no_tick() {
	write_list a 1
	write_list b 2
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a" '[list b]' "file = $STATE/b"
	for _ in first again; do
		assert_status 0 in_rx "$HELPERS/full_nohz" "$(may_choose_cpus xdp-cuckoo@.service)" \
			"$TOOL" --state "$STATE/store" up "$STATE/conf"
		assert_verdict drop 203.0.113.1 203.0.113.2
		assert_status 0 xc flush --force
	done
	xc add 203.0.113.0/25 timeout 1s >/dev/null
	sleep 1.1
	assert_status 0 in_rx "$HELPERS/full_nohz" "$(may_choose_cpus xdp-cuckoo-expire@.service)" \
		"$TOOL" --state "$STATE/store" expire
	assert_verdict pass 203.0.113.1
}

# --- a new program or table, while packets go on

test_the_table_becomes_what_the_file_says() {
	write_list a 1 2
	assert_status 0 xc load vrx --compact --capacity 1000
	assert_status 0 xc import "$STATE/a" --list a
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	for kind in 'table = exact:exact, counted by rule' 'counters = no:exact' 'table = compact:compact, 16 bits' \
		'table = exact:exact, counted by rule'; do
		config '[filter]' 'interfaces = vrx' "${kind%%:*}" '[list a]' "file = $STATE/a"
		before=$(program_id vrx)
		up 0
		assert_output '^renewed tables: +1$'
		[ "$before" != "$(program_id vrx)" ] || fail "the same program"
		assert_shows "^  table: +${kind#*:}\$" xc status --verbose
		assert_verdict drop 203.0.113.1 203.0.113.2 pass 203.0.113.3
		assert_status 0 xc check
		up 0
		assert_output '^renewed tables: +0$'
	done
	# Larger, and never smaller.
	config '[filter]' 'interfaces = vrx' 'capacity = 100000'
	up 0
	assert_output '^renewed tables: +1$'
	assert_verdict drop 203.0.113.1
	config '[filter]' 'interfaces = vrx' 'capacity = 1000'
	up 0
	assert_output '^renewed tables: +0$'
}

# Every packet meets the old or the new table, with the old or the new list.
test_no_packet_gets_through_meanwhile() {
	write_list a 1 2
	config '[filter]' 'interfaces = vrx' '[list a]' "file = $STATE/a"
	up 0
	{
		echo 'drop blocked proto udp src 203.0.113.1 dst 10.99.0.2 sport 1 dport 2'
		echo 'pass innocent proto udp src 203.0.113.200 dst 10.99.0.2 sport 1 dport 2'
	} >"$STATE/flows"
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --endless --wrong "$STATE/wrong" <"$STATE/flows" >"$STATE/sent" &
	sender=$!
	on_exit "kill $sender 2>/dev/null"
	for change in 'counters = no' 'table = compact' 'capacity = 50000'; do
		write_list a 1 3
		config '[filter]' 'interfaces = vrx' "$change" '[list a]' "file = $STATE/a"
		up 0
		assert_output '^renewed tables: +1$'
	done
	write_list a 1 4
	up 0
	kill "$sender"
	wait "$sender" || fail "wrong verdicts: $(cat "$STATE/sent" "$STATE/wrong")"
	[ "$(awk '$1 == "blocked" { print $2 }' "$STATE/sent")" -gt 0 ] || fail "no packets were sent"
}

# A different build of the program, as after an upgrade. The tool recognises it by the kernel's tag of its instructions.
test_another_program_is_replaced() {
	in_rx ip link set dev vrx xdp obj "$HELPERS/hasty.bpf.o" sec xdp
	assert_status 0 xc add 203.0.113.1
	assert_verdict drop 203.0.113.1
	before=$(program_id vrx)
	config '[filter]' 'interfaces = vrx'
	up 0
	assert_output '^renewed tables: +1$'
	[ "$before" != "$(program_id vrx)" ] || fail "the same program"
	assert_verdict drop 203.0.113.1
	up 0
	assert_output '^renewed tables: +0$'
}

run_tests "$0" "$@"
