#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# status: twelve lines for people, everything for --verbose and --json. What it says about packets that bypass the
# filter: test_bypass.sh.
. tests/lib.sh

assert_short() {
	[ "$(wc -l <"$STATE/out")" -le 12 ] || fail "more than 12 lines: $(cat "$STATE/out")"
}

test_twelve_lines() {
	assert_shows '^running: +none$' xc status
	assert_short
	second_pair
	xc load vrx >/dev/null
	xc --name web load vrx2 >/dev/null
	xc add 192.0.2.1 >/dev/null
	xc add 192.0.2.0/28 timeout 1h >/dev/null
	printf '%s\n' 198.51.100.1 198.51.100.2 >"$STATE/list"
	xc monitor-only on >/dev/null
	xc import "$STATE/list" --confirm 1h >/dev/null
	on_exit "xc confirm >/dev/null"
	assert_status 0 xc status
	assert_short
	for line in 'rules: +4, 1 with a timeout' 'policies that drop: +too-many-headers' \
		'unconfirmed change: +2 rules, undone in (1h|59m[0-9]+s)' 'effect: +UNCONFIRMED: passes everything in .*' \
		'interfaces: +vrx native' 'condition: +equal to the store' 'table: +exact, counted by rule' \
		'slots: +[1-9][0-9]* of [0-9]+ used, 0[.][0-9] %; [0-9.]+ MiB' \
		'other filters: +web on vrx2: filters'; do
		assert_output "^$line\$"
	done
}

# xc_configured ARGUMENT...: the tool on a host whose configuration names vrx, vrx2 and an interface that does not exist.
xc_configured() {
	# shellcheck disable=SC2016 # of the inner shell
	unshare -m sh -c 'mount --bind "$1" /etc && shift && exec "$@"' sh "$STATE/etc" \
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@"
}

test_an_interface_that_the_configuration_names() {
	second_pair
	cp -a /etc "$STATE/etc"
	mkdir -p "$STATE/etc/xdp-cuckoo"
	printf '%s\n' '[filter]' 'interfaces = vrx vrx2 absent0' >"$STATE/etc/xdp-cuckoo/default.conf"
	configured() {
		xc_configured metrics | sed -n 's/^xdp_cuckoo_interface_configured//p' | tr '\n' ' '
	}
	assert_status 1 xc_configured status
	assert_error 'no filter runs, though the configuration names interfaces; to load it: xdp-cuckoo up$'
	assert_equal '{name="default",interface="vrx",direction="received"} 1 {name="default",interface="vrx2",direction="received"} 1 {name="default",interface="absent0",direction="received"} 1 ' \
		"$(configured)" "metrics"
	if ip -n "$RX" link property add dev vrx2 altname other2 2>/dev/null; then
		printf '%s\n' '[filter]' 'interfaces = vrx vrx2 other2' >"$STATE/etc/xdp-cuckoo/default.conf"
		assert_equal 2 "$(configured | grep -o interface= | wc -l)" "samples of an interface with two names"
		ip -n "$RX" link property del dev vrx2 altname other2
	fi
	xc load vrx >/dev/null
	assert_status 0 xc status
	assert_status 1 xc_configured status
	assert_output '^effect: +filters, but NOT all that its configuration names$'
	assert_error "the filter is not on 'vrx2', which its configuration names; to load it there: xdp-cuckoo load vrx2"
	assert_error "there is no interface '[a-z0-9]*', which the configuration names"
	xc load vrx2 >/dev/null
	assert_status 1 xc_configured status
	printf '%s\n' '[filter]' 'interfaces = vrx vrx2' >"$STATE/etc/xdp-cuckoo/default.conf"
	assert_status 0 xc_configured status
	xc monitor-only on >/dev/null
	assert_status 1 xc_configured status
	assert_status 0 xc_configured up
	assert_error 'monitor-only is off now'
	assert_status 0 xc_configured status
	printf '%s\n' '[filter]' 'interfaces = vrx vrx2' '[crowdsec]' 'key-file = /nonexistent' '[list url]' 'preset = spamhaus-drop' >"$STATE/etc/xdp-cuckoo/default.conf"
	assert_status 1 xc_configured status
	assert_output '^not fed: +url: never; crowdsec: never$'
	xc_configured metrics | grep -qF 'xdp_cuckoo_list_not_fed{name="default",list="crowdsec"} 1' || fail "no metric"
	assert_status 3 xc_configured crowdsec
	assert_status 1 xc status
	assert_status 0 xc_configured lists delete crowdsec
	assert_error "the configuration still has the list 'crowdsec', and brings it back"
	assert_status 0 xc_configured lists delete crowdsec --exist
	assert_error "the configuration still has the list 'crowdsec', and brings it back"
	xc lists delete url >/dev/null
	printf '%s\n' '[filter]' 'interfaces = vrx vrx2' 'outgoing = yes' >"$STATE/etc/xdp-cuckoo/default.conf"
	assert_status 1 xc_configured status
	assert_error "the filter is not on 'vrx' in both directions, .* xdp-cuckoo load vrx --outgoing$"
	configured | grep -qF '{name="default",interface="vrx2",direction="sent"} 1' || fail "the metrics lack a direction"
	printf '%s\n' '[filter]' 'interfaces = vrx vrx2' 'outgoing = perhaps' >"$STATE/etc/xdp-cuckoo/default.conf"
	assert_status 1 xc_configured status
	assert_error 'not compared with the configuration, which has mistakes: xdp-cuckoo up --dry-run$'
	xc unload --all >/dev/null
	assert_status 1 xc_configured status
	assert_error 'no filter runs, and the configuration has mistakes: xdp-cuckoo up --dry-run$'
}

# Changes do not reach its program in the other namespace once the filter has a larger table.
test_an_interface_that_left() {
	second_pair
	xc load vrx vrx2 >/dev/null
	ip -n "$RX" link set vrx2 netns "$TX"
	assert_status 0 xc add 192.0.2.1
	! grep 'another network' "$STATE/err" || fail "its program has the same table"
	assert_status 1 xc status
	assert_error '^note: 1 of the interfaces that it was loaded on is not here any more: gone, or in another network names'
	assert_status 0 xc resize 3000000
	assert_notes 'it runs in another network namespace .*or a pin holds it' xc add 192.0.2.2
	assert_status 1 xc status
	assert_output '^effect: +filters, but NOT on all interfaces that it was loaded on$'
	assert_error '^note: a filter with these rules is on no interface here, so changes do not reach it'
	assert_fails 3 'done here, but a filter with these rules is on no interface here' xc panic
	assert_status 1 xc status --verbose
	assert_output '^ +panic: +yes'
	assert_fails 3 'done here, but .*type the same there, or move its interface back' xc panic off
	ip -n "$TX" link set vrx2 netns "$RX"
	in_rx ip link set vrx2 up
	assert_status 0 xc add 192.0.2.3
	! grep 'another network' "$STATE/err" || fail "it is back"
	assert_status 0 xc status
	assert_status 0 xc panic
}

# A trial that is undone forgets nothing.
test_an_interface_that_left_and_is_forgotten() {
	second_pair
	xc load vrx vrx2 >/dev/null
	ip -n "$RX" link set vrx2 netns "$TX"
	assert_status 0 timed load vrx --outgoing --confirm 30m
	time_is_over
	assert_status 1 xc status
	assert_status 0 xc load vrx
	assert_status 0 xc status
	assert_status 0 xc resize 3000000
	assert_notes 'it runs in another network namespace' xc add 192.0.2.2
	assert_status 1 xc status
	assert_fails 3 'done here, but a filter with these rules is on no interface here' xc panic
}

# As after rmmod: an interface of the same name is another one.
test_an_interface_that_is_gone() {
	second_pair
	xc load vrx vrx2 >/dev/null
	xc add 192.0.2.1
	ip -n "$RX" link del vrx2
	assert_status 1 xc status
	assert_output '^effect: +filters, but NOT on all interfaces that it was loaded on$'
	second_pair
	assert_status 1 xc status
	assert_error 'or to forget this: xdp-cuckoo load IFACE, also one where it runs$'
	assert_status 0 xc load vrx
	assert_status 0 xc status
	ip -n "$RX" link del vrx
	assert_status 0 xc status
	assert_error '^note: no filter runs, and whether one should is not known: no configuration names interfaces; '
}

# It stays known through growth and a trial, until the filter is loaded or unloaded there.
test_an_interface_that_another_tool_took_off() {
	is_lost() {
		assert_status 1 xc status
		assert_output '^effect: +filters, but NOT on all interfaces that it was loaded on$'
		assert_error "another tool has taken the filter off 'vrx2'; to put it back: xdp-cuckoo load vrx2; if it need"
		xc metrics | grep -q '^xdp_cuckoo_interface_lost_direction{.*interface="vrx2",direction="none".* 1$' ||
			fail "the metrics do not tell"
	}
	second_pair
	xc load vrx vrx2 >/dev/null
	assert_status 0 xc status
	in_rx ip link set dev vrx2 xdp off
	is_lost
	assert_status 0 xc resize 1000000
	is_lost
	assert_status 0 timed load vrx2 --confirm 30m
	assert_status 0 xc status
	time_is_over
	is_lost
	assert_status 0 xc load vrx2
	assert_status 0 xc status
	in_rx ip link set dev vrx2 xdp off
	is_lost
	assert_prints 'unloaded: vrx2' xc unload vrx2
	assert_status 0 xc status
	assert_status 1 xc unload vrx2
	xc load vrx2 >/dev/null
	in_rx ip link set dev vrx2 xdp off
	is_lost
	long=enp0s31f6np0-with-a-long-name
	if ip -n "$RX" link property add dev vrx2 altname "$long" 2>/dev/null; then
		case_begin 'unload by a long name'
		assert_prints 'unloaded: vrx2' xc unload "$long"
		assert_status 0 xc status
		xc load vrx2 >/dev/null
		in_rx ip link set dev vrx2 xdp off
		is_lost
	fi
	case_begin 'another filter is there now'
	xc --name web load vrx2 >/dev/null
	assert_status 0 xc status
	xc --name web unload vrx2 >/dev/null
	is_lost
	case_begin 'an interface that is gone'
	ip -n "$RX" link del vrx2
	assert_status 1 xc status
	case_begin 'up forgets what the file does not name, also an interface with a large index'
	ip -n "$RX" link add vrx2 index 70000 type veth peer name vtx2 netns "$TX"
	ip -n "$RX" link set vrx2 up
	assert_status 0 xc load vrx2
	in_rx ip link set dev vrx2 xdp off
	is_lost
	printf '%s\n' '[filter]' 'interfaces = vrx' >"$STATE/up.conf"
	assert_status 0 xc up "$STATE/up.conf"
	assert_status 0 xc status
}

test_names_of_interfaces_that_cannot_be_read() {
	assert_status 0 xc load vrx
	printf '%s\n' '[filter]' 'interfaces = vrx' >"$STATE/up.conf"
	for command in status metrics "up $STATE/up.conf" 'add 192.0.2.1'; do
		# shellcheck disable=SC2086 # words
		assert_status 0 in_rx env "LD_PRELOAD=$PWD/$HELPERS/no_names.so" "$TOOL" --state "$STATE/store" $command
	done
}

# The filter of another name is no answer to whether this one runs.
test_another_name() {
	xc --name web load vrx >/dev/null
	assert_shows '^running: +none$' xc status
	assert_output '^other filters: +web on vrx: filters$'
	! grep -q '^effect' "$STATE/out" || fail "it shows the other filter as its own"
}

# The kernel's settings are those of the first network namespace; here a file system in memory shows them.
test_settings_of_the_kernel_that_cost() {
	xc load vrx >/dev/null
	for setting in jit_enable:0 jit_harden:2; do
		in_rx unshare -m sh -c "mount -t tmpfs none /proc/sys/net/core && echo ${setting#*:} >/proc/sys/net/core/bpf_${setting%:*} &&
			exec \"\$@\"" sh "$TOOL" --state "$STATE/store" status >"$STATE/out" 2>"$STATE/err"
		grep -q "^note: net.core.bpf_${setting%:*} is ${setting#*:}: .* a packet costs .* as much; xdp-cuckoo bench measures it$" \
			"$STATE/err" || fail "$setting is not told: $(cat "$STATE/err")"
	done
	assert_status 0 xc status
	! grep -q bpf_jit "$STATE/err" || fail "a setting is told that costs nothing"
}

test_verbose_has_what_json_has() {
	xc load vrx >/dev/null
	xc add 192.0.2.0/24 >/dev/null
	xc status --json | grep -o '"[a-z0-9_]*":' | tr -d '":' | tr _ ' ' | sort -u >"$STATE/names"
	[ "$(wc -l <"$STATE/names")" -ge 30 ] || fail "few names"
	assert_status 0 xc status --verbose
	while read -r name; do
		grep -qE "(^| )$name( |:|\$)" "$STATE/out" || fail "no '$name'"
	done <"$STATE/names"
}

# What the card loses, nobody else sees.
test_losses_of_the_card() {
	assert_status 0 xc load vrx
	losses() {
		echo "$1" >"$STATE/losses"
		shift
		assert_status 0 in_rx env "LD_PRELOAD=$PWD/$HELPERS/lossy_card.so" LOSSY_CARD=vrx "LOSSES=$STATE/losses" \
			"$TOOL" --state "$STATE/store" "$@"
	}
	losses 0 status
	! grep -q 'the card of' "$STATE/err" || fail "no card loses anything"
	losses 5000000000 status
	assert_error "^note: the card of 'vrx' has lost packets before the filter sees them: 5000000000 so far"
	losses 70 --json status --verbose
	assert_output '"lost_by_card": 70'
	losses 70+ status
	assert_error "the card of 'vrx' loses packets before the filter sees them: [0-9]+ so far, beside [0-9]+ received"
	losses 80+ --json top --count 2 --interval 1s
	assert_output '"lost_by_card_ps": *[1-9]'
	case_begin "once for both directions"
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx --outgoing
	losses 5000000000 status
	assert_equal 1 "$(grep -c 'the card of' "$STATE/err")" "notes"
	losses 90 metrics
	assert_output '^xdp_cuckoo_interface_lost_packets_total\{.*interface="vrx".*\} 90$'
}

run_tests "$0" "$@"
