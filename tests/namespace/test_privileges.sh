#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the tool may do: a user with three capabilities works with it, and what it does not need it gives up.
. tests/lib.sh

NOBODY=65534
ALL='+bpf +net_admin +perfmon'

# bpf_dir: makes a BPF file system and a state directory that belong to the user.
bpf_dir() {
	mkdir "$STATE/bpf"
	mount -t bpf -o mode=0700 bpf "$STATE/bpf"
	on_exit "umount $STATE/bpf"
	chmod 0711 "$TMPDIR"
	chown "$NOBODY" "$STATE" "$STATE/bpf"
	PINS=$STATE/bpf/pins
}

# xu_with "CAPABILITY..." ARGUMENT...: runs the tool as a user with only these capabilities.
xu_with() {
	# shellcheck disable=SC2086 # words
	xu_set=-all$(printf ',%s' $1)
	shift
	in_rx setpriv --reuid "$NOBODY" --regid "$NOBODY" --clear-groups --inh-caps="$xu_set" \
		--ambient-caps="$xu_set" --bounding-set="$xu_set" \
		"$TOOL" --state "$STATE/store" --pins "$PINS" "$@"
}

xu() {
	xu_with "$ALL" "$@"
}

# pins: all that is pinned in PINS.
pins() {
	find "$PINS" -type f | sort
}

test_whole_life_as_a_user() {
	bpf_dir
	printf '192.0.2.1\n198.51.100.0/24\n' >"$STATE/list"
	assert_status 0 xu load vrx
	assert_status 0 xu import "$STATE/list"
	assert_status 0 xu add 2001:db8::1 timeout 1h
	assert_status 0 xu test 192.0.2.1
	assert_status 0 xu resize 100000
	assert_verdict drop 192.0.2.1 pass 192.0.2.2
	assert_shows '^src 192.0.2.1 # packets 1 ' xu list --counters
	assert_shows '^drop-rule .* 1 +[0-9]+$' xu stats
	assert_status 0 xu metrics
	assert_output '^xdp_cuckoo_packets_total[{].*"drop-rule",verdict="drop"[}] 1$'
	assert_output '^xdp_cuckoo_rules[{].*[}] 3$'
	assert_status 0 xu add 203.0.113.0/24 timeout 1s
	sleep 2
	assert_status 0 xu expire
	assert_equal 3 "$(xu list | wc -l)" "rules left"
	assert_status 0 xu policy malformed drop
	assert_status 0 xu monitor-only on
	assert_status 0 xu panic
	assert_status 0 xu panic off
	assert_notes '0 packets were seen' xu monitor --seconds 1
	assert_status 0 xu check
	assert_shows 'equal to the store' xu status
	assert_shows ' src 192.0.2.1 ' xu stats --by rule
	assert_status 0 xu top --count 1
	assert_status 0 xu stats --reset
	assert_status 0 when_free xu bench
	assert_status 0 xu export "$STATE/exported"
	assert_status 0 xu backup "$STATE/backup"
	assert_status 0 xu restore "$STATE/backup"
	echo 'del 192.0.2.1' | assert_status 0 xu batch -
	assert_status 0 xu flush
	assert_status 0 xu unload vrx
	ip -n "$RX" -d link show vrx | grep -q 'prog/xdp' && fail "a program is left"
	assert_equal '' "$(pins)" "pins left"
}

# Each interface has its own program over the same maps.
test_two_interfaces_as_a_user() {
	bpf_dir
	veth "$TX" vone "$RX" vtwo
	assert_status 0 xu load vrx
	assert_status 0 xu load vtwo
	assert_equal 12 "$(pins | wc -l)" "pins: ten maps, two programs"
	assert_status 0 xu resize 50000
	assert_status 0 xu unload vrx
	assert_equal 11 "$(pins | wc -l)" "pins"
	assert_status 0 xu add 192.0.2.1
	assert_shows '^vtwo +1 +0 +0 +0$' xu check
	assert_status 0 xu unload --all
	assert_equal '' "$(pins)" "pins left"
}

# No pin of the replaced filter is left.
test_another_version_as_a_user() {
	bpf_dir
	assert_status 0 xu load vrx
	assert_status 0 xu add 203.0.113.1
	before=$(pins)
	in_rx "$HELPERS/corrupt" version >/dev/null || fail "the version does not change"
	assert_fails 3 'of another version' xu stats
	assert_equal "$before" "$(pins)" "pins"
	assert_notes "replaced the filter of another version on vrx by this version's" xu load vrx
	assert_equal 11 "$(pins | wc -l)" "pins: ten maps, a program"
	! pins | grep -qF "$before" || fail "old pins are left"
	assert_shows 'equal to the store' xu status
	assert_status 0 xu unload vrx
	assert_equal '' "$(pins)" "pins left"
}

test_load_is_undone_as_a_user() {
	bpf_dir
	assert_status 0 xu load vrx --confirm 1s
	wait_for "the undo" eval 'xu status | grep -q "^running: *none$"'
}

# The file gives everybody who runs it the capabilities, so the kernel lets nobody look into the process.
test_a_binary_with_capabilities() {
	command -v setcap >/dev/null || skip "setcap is not installed"
	bpf_dir
	cp "$TOOL" "$STATE/tool"
	setcap cap_bpf,cap_net_admin,cap_perfmon+ep "$STATE/tool" || skip "no capabilities on files here"
	of_file() {
		in_rx setpriv --reuid "$NOBODY" --regid "$NOBODY" --clear-groups --inh-caps=-all \
			"$STATE/tool" --state "$STATE/store" --pins "$PINS" "$@"
	}
	assert_status 0 of_file load vrx
	assert_status 0 of_file add 192.0.2.1
	assert_status 0 of_file resize 50000
	assert_shows 'equal to the store' of_file status
	# The environment of a caller must not influence a process with more privileges.
	SSH_CONNECTION='192.0.2.9 1 10.99.0.2 22' assert_status 0 of_file add 192.0.2.9
	SSH_CONNECTION='192.0.2.10 1 10.99.0.2 22' assert_status 2 xu add 192.0.2.10
	assert_status 0 of_file unload vrx
	assert_equal '' "$(pins)" "pins left"
}

# commands_refused CAPABILITIES: the commands of the list that end with status 3 while a filter runs.
commands_refused() {
	while read -r command; do
		STATUS=0
		# shellcheck disable=SC2086 # words
		xu_with "$1" $command >/dev/null 2>&1 || STATUS=$?
		[ "$STATUS" -ne 3 ] || echo "$command"
	done
}

# Without one of the capabilities, exactly these commands are refused.
test_what_each_capability_is_for() {
	bpf_dir
	assert_status 0 xu load vrx
	cat >"$STATE/commands" <<-'END'
		load vtwo
		status
		stats
		stats --by rule
		stats --reset
		top --count 1
		add 192.0.2.1
		add 192.0.2.2 timeout 1h
		del 192.0.2.1
		test 192.0.2.2
		list --counters
		expire
		policy no-rule pass
		monitor-only off
		panic off
		confirm
		resize 500000
		check
		export
		flush
		unload vrx
	END
	veth "$TX" vone "$RX" vtwo
	assert_equal "load vtwo
add 192.0.2.2 timeout 1h
confirm
resize 500000" "$(commands_refused '+net_admin +perfmon' <"$STATE/commands")" "without CAP_BPF"
	xu load vrx >/dev/null 2>&1
	assert_equal "load vtwo
add 192.0.2.2 timeout 1h
confirm
resize 500000
unload vrx" "$(commands_refused '+bpf +perfmon' <"$STATE/commands")" "without CAP_NET_ADMIN"
	xu load vrx >/dev/null 2>&1
	assert_equal "load vtwo
resize 500000" "$(commands_refused '+bpf +net_admin' <"$STATE/commands")" "without CAP_PERFMON"
}

# ---- pins

test_pins_are_the_users_alone() {
	bpf_dir
	(umask 0 && xu load vrx >/dev/null)
	assert_equal 11 "$(pins | wc -l)" "pins: ten maps, and the program that runs, of two"
	assert_equal '' "$(find "$PINS" -type d ! -perm 0700 -o -type f ! -perm 0600 -o ! -uid "$NOBODY")" \
		"of other modes, or another user's"
	for pin in $(pins); do
		setpriv --reuid 65533 --clear-groups bpftool map show pinned "$pin" >/dev/null 2>&1 &&
			fail "another user opens $pin"
	done
	:
}

test_pins_follow_a_new_table_and_go_with_the_interface() {
	bpf_dir
	assert_status 0 xu load vrx
	before=$(pins)
	assert_status 0 xu resize 200000
	assert_shows 'equal to the store' xu status
	[ "$before" != "$(pins)" ] || fail "the same pins"
	assert_equal "$(echo "$before" | wc -l)" "$(pins | wc -l)" "pins"
	ip -n "$RX" link del vrx
	assert_status 0 xu status --verbose
	assert_equal '' "$(pins)" "pins left"
}

# Without CAP_NET_ADMIN the tool cannot see which programs run at tc.
test_a_look_with_fewer_capabilities_leaves_pins() {
	bpf_dir
	assert_status 0 xu load --outgoing vrx
	before=$(pins)
	assert_shows '^effect: +filters$' xu_with '+bpf +perfmon' status
	assert_equal "$before" "$(pins)" "pins"
	assert_shows '^interfaces: +vrx native outgoing$' xu status
}

test_a_filter_at_tc_is_not_overlooked() {
	bpf_dir
	in_rx ip tuntap add dev tun0 mode tun
	in_rx ip link set tun0 up
	assert_status 0 xu load tun0
	for command in status 'add 192.0.2.1'; do
		# shellcheck disable=SC2086 # words
		assert_fails 3 'only CAP_NET_ADMIN shows whether it runs at tc' xu_with '+bpf +perfmon' $command
	done
	assert_shows '^rules: +0$' xu status
	assert_status 0 xu unload tun0
	assert_status 0 xu_with '+bpf +perfmon' add 192.0.2.1
}

# metrics keeps no CAP_NET_ADMIN, so it cannot tell whether the filter still runs at tc. No command says that it does not.
test_an_interface_at_tc_is_not_called_lost() {
	bpf_dir
	in_rx ip tuntap add dev tun0 mode tun
	in_rx ip link set tun0 up
	veth "$TX" vone "$RX" vtwo
	assert_status 0 xu load vrx vtwo tun0
	assert_status 0 xu metrics
	grep 'direction="none"' "$STATE/out" && fail "metrics call an interface lost"
	assert_status 0 xu_with '+bpf +perfmon' status
	assert_fails 3 "only CAP_NET_ADMIN shows whether the filter runs on 'tun0'" xu_with '+bpf +perfmon' unload tun0
	assert_fails 3 'only CAP_NET_ADMIN shows the filters at tc' xu_with '+bpf +perfmon' unload --all
	assert_shows '^interfaces: .*tun0' xu status
	in_rx ip link set vtwo xdp off
	assert_shows 'interface="vtwo",direction="none"' xu metrics
}

# The configuration names where the filter runs unseen.
test_a_look_with_fewer_capabilities_misses_nothing() {
	bpf_dir
	in_rx ip tuntap add dev tun0 mode tun
	in_rx ip link set tun0 up
	cp -a /etc "$STATE/etc"
	mkdir -p "$STATE/etc/xdp-cuckoo"
	printf '%s\n' '[filter]' 'interfaces = vrx tun0' 'outgoing = yes' >"$STATE/etc/xdp-cuckoo/default.conf"
	assert_status 0 xu load --outgoing vrx tun0
	in_rx() {
		# shellcheck disable=SC2016 # of the inner shell
		unshare -m sh -c 'mount --bind "$1" /etc && shift && exec "$@"' sh "$STATE/etc" \
			nsenter --net="/run/netns/$RX" "$@"
	}
	assert_status 0 xu status
	assert_status 0 xu_with '+bpf +perfmon' status
	in_rx ip link set tun0 name tun1
	assert_fails 1 "there is no interface 'tun0', which the configuration names" xu_with '+bpf +perfmon' status
	assert_status 0 xu unload tun1
	in_rx ip link set tun1 name tun0
	assert_fails 1 "the filter is not on 'tun0'" xu status
}

# Completion only looks.
test_completion_leaves_pins() {
	bpf_dir
	assert_status 0 xu load vrx
	assert_shows '^default	running$' xu complete -- --name ''
	before=$(pins)
	ip -n "$RX" link del vrx
	assert_status 0 xu complete -- --name ''
	assert_equal "$before" "$(pins)" "pins after completion"
	assert_status 0 xu status --verbose
	assert_equal '' "$(pins)" "pins after status"
}

# The kernel finds by ids for root, so nothing is pinned.
test_root_pins_nothing() {
	bpf_dir
	chown 0 "$STATE" "$STATE/bpf"
	assert_status 0 xc --pins "$PINS" load vrx
	[ ! -e "$PINS" ] || assert_equal '' "$(pins)" "pins"
}

# is_refused WHAT: the directory for pins.
is_refused() {
	assert_fails 3 "not a directory of this user's in a BPF file system, with mode 0700" xu load vrx
	ip -n "$RX" -d link show vrx | grep -q 'prog/xdp' && fail "loaded all the same: $1"
	:
}

test_unsafe_directories_for_pins_are_refused() {
	bpf_dir
	mkdir -m 0700 "$STATE/bpf/other" "$STATE/bpf/open"
	PINS=$STATE/bpf/other
	is_refused "another user's"
	chown "$NOBODY" "$STATE/bpf/open"
	chmod 0770 "$STATE/bpf/open"
	PINS=$STATE/bpf/open
	is_refused "others may write to it"
	chmod 0700 "$STATE/bpf/open"
	ln -s "$STATE/bpf/open" "$STATE/bpf/link"
	PINS=$STATE/bpf/link
	is_refused "a link"
	PINS=$STATE/elsewhere
	is_refused "no BPF file system"
	[ ! -e "$STATE/elsewhere" ] || fail "left behind"
	# The user cannot look at programs of others, so the tool cannot know whether they are filters.
	assert_status 0 in_rx "$TOOL" --state "$TMPDIR/root-store" load vrx
	for PINS in "$STATE/elsewhere" "$STATE/bpf/open"; do
		for command in status 'add 192.0.2.1' 'unload vrx'; do
			# shellcheck disable=SC2086 # words
			assert_fails 3 "cannot see what runs: 'vrx' runs a program.*[(]now ${PINS}[)]" xu $command
		done
	done
	ip -n "$RX" link set dev vrx xdp off
	assert_status 0 xu load vrx
}

# The pin has the right name, but it is not the map that the running program uses.
test_foreign_pins_are_not_taken() {
	bpf_dir
	assert_status 0 xu load vrx
	xu add 192.0.2.1 >/dev/null
	for pin in $(pins | grep /map_); do
		bpftool map show pinned "$pin" | grep -q 'name xc_config ' && config=$pin
	done
	bytes=$(bpftool map show pinned "$config" | sed -n 's/.* value \([0-9]*\)B .*/\1/p')
	bpftool map pin pinned "$config" "$STATE/bpf/kept"
	rm "$config"
	bpftool map create "$config" type array key 4 value "$bytes" entries 1 name xc_config flags 1024
	chown "$NOBODY" "$config"
	assert_fails 3 "cannot see what runs: 'vrx' runs a program" xu status
	rm "$config"
	bpftool map pin pinned "$STATE/bpf/kept" "$config"
	chown "$NOBODY" "$config"
	assert_shows 'equal to the store' xu status
}

# ---- what is given up

# set_of CAPABILITY...: as /proc shows it.
set_of() {
	set_of_sum=0
	for set_of_bit; do
		case $set_of_bit in
		chown) set_of_bit=0 ;;
		dac_override) set_of_bit=1 ;;
		dac_read_search) set_of_bit=2 ;;
		fowner) set_of_bit=3 ;;
		kill) set_of_bit=5 ;;
		setgid) set_of_bit=6 ;;
		setuid) set_of_bit=7 ;;
		net_admin) set_of_bit=12 ;;
		sys_ptrace) set_of_bit=19 ;;
		sys_admin) set_of_bit=21 ;;
		perfmon) set_of_bit=38 ;;
		bpf) set_of_bit=39 ;;
		esac
		set_of_sum=$((set_of_sum | 1 << set_of_bit))
	done
	printf '%016x' "$set_of_sum"
}

# has_kept FILE WHAT: what /proc says of the process is the set $kept, and in the bounding set $bound.
has_kept() {
	assert_equal "CapInh: 0000000000000000 CapPrm: $kept CapEff: $kept CapBnd: $bound CapAmb: 0000000000000000 \
NoNewPrivs: 1" "$(grep -e '^Cap' -e '^NoNewPrivs' "$1" | tr '\t\n' '  ' | sed 's/ *$//')" "$2"
}

# keeps "CAPABILITY..." ARGUMENT...: what the command, run by root, has when it ends; BOUND: in the bounding set.
keeps() {
	# shellcheck disable=SC2086 # words
	kept=$(set_of $1) bound=$(set_of ${BOUND-$1})
	shift
	rm -f "$STATE/status"
	in_rx env LAST_STATUS="$STATE/status" LD_PRELOAD="$PWD/$HELPERS/last_status.so" \
		"$TOOL" --state "$STATE/store" "$@" >/dev/null 2>&1 </dev/null || [ $? -eq "${MAY_FAIL:-1}" ] ||
		fail "$*: failed"
	has_kept "$STATE/status" "$*"
}

# keeps_running "CAPABILITY..." WHAT ARGUMENT...: the same for a command that goes on, once it has written WHAT.
keeps_running() {
	# shellcheck disable=SC2086 # words
	kept=$(set_of $1) bound=$(set_of $1)
	said=$2
	shift 2
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@" >/dev/null 2>"$STATE/running" </dev/null &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	WAIT_LOG=$STATE/running
	wait_for "$*" grep -q "$said" "$STATE/running"
	has_kept "/proc/$!/status" "$*"
}

test_root_keeps_what_the_command_needs() {
	kernel='bpf net_admin perfmon sys_admin'
	store="$kernel dac_read_search"
	guarded="$store sys_ptrace"
	echo 192.0.2.1 >"$STATE/list"
	keeps '' help
	keeps '' version
	keeps '' help add
	keeps "$guarded" load vrx
	keeps "$store" status
	keeps 'sys_admin dac_read_search dac_override fowner chown' metrics
	keeps_running 'sys_admin dac_read_search kill setgid setuid' 'serving http' exporter
	keeps "$store" stats
	# Once the file is open, the rest is given up. The bounding set cannot be changed any more then; the tool runs
	# no program.
	BOUND="$store dac_override fowner chown" keeps "$store" monitor --seconds 1
	keeps "$store" top --count 1
	keeps "$guarded" add 192.0.2.9
	keeps "$guarded" import "$STATE/list"
	keeps "$guarded" batch -
	keeps "$guarded" policy
	keeps "$store" list
	keeps "$guarded" lists
	keeps "$store" test 192.0.2.1
	keeps "$store" expire
	keeps "$guarded" monitor-only off
	keeps "$store" confirm
	keeps "$store" resize 1000
	keeps "$store" check
	keeps "$store" bench --seconds 1
	keeps 'dac_read_search dac_override fowner chown' export "$STATE/exported"
	keeps 'dac_read_search dac_override fowner chown' backup "$STATE/backup"
	keeps "$guarded" restore "$STATE/backup"
	keeps "$kernel dac_override fowner chown" object "$STATE/object"
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	keeps "$guarded" up "$STATE/conf"
	MAY_FAIL=0 BOUND="$guarded" keeps 'dac_read_search' up --dry-run "$STATE/conf"
	MAY_FAIL=3 keeps "$guarded setuid setgid kill" lists add x http://127.0.0.1 --config "$STATE/none"
	keeps "$guarded setuid setgid kill" refresh --config "$STATE/conf"
	printf '%s\n' '[fleet]' 'broker = /nonexistent' 'lists = bad' >"$STATE/fleet"
	# What a broker sends is read without any.
	for verb in init status metrics check 'forget h1'; do
		# shellcheck disable=SC2086 # words
		MAY_FAIL=3 BOUND='dac_read_search dac_override fowner chown' keeps '' fleet $verb --config "$STATE/fleet"
	done
	for verb in 'add 192.0.2.1 --list bad' 'add 192.0.2.1 --list bad --dry-run' "import $STATE/list --list bad" \
		'panic on' 'accept bad' 'delete-list bad' 'release bad' 'resend --list bad'; do
		# shellcheck disable=SC2086 # words
		MAY_FAIL=3 BOUND='dac_read_search' keeps '' publish $verb --config "$STATE/fleet"
	done
	keeps_running "$store setuid setgid kill" 'cannot connect' follow --config "$STATE/fleet"
	printf '%s\n' '[flowspec]' 'own-prefixes = 198.51.100.0/24' >"$STATE/flowspec"
	MAY_FAIL=3 keeps "$store setuid setgid kill" flowspec - --config "$STATE/flowspec"
	MAY_FAIL=3 BOUND="$store setuid setgid kill" keeps '' flowspec - --print --config "$STATE/flowspec"
	printf '%s\n' '[crowdsec]' "key-file = $STATE/key" 'url = http://127.0.0.1:1' >"$STATE/crowdsec"
	(umask 077 && echo key >"$STATE/key")
	keeps_running "$store setuid setgid kill" 'cannot read decisions' crowdsec --config "$STATE/crowdsec"
	keeps "$guarded" del 192.0.2.9
	keeps "$guarded" flush
	keeps "$kernel" panic
	keeps "$store" complete -- --name ''
	keeps "$store" down
	keeps "$store" unload vrx
}

# Every command has a row here: only help and version need no capability.
test_every_command_is_told_of() {
	for command in $("$TOOL" help --json | sed -n 's/.*"command": "\([a-z-]*\)".*/\1/p'); do
		grep -q "^	*\(MAY_FAIL=3 \)\?\(BOUND='[^']*' \)\?keeps[a-z_]* .* $command" "$0" || fail "$command"
	done
}

run_tests "$0" "$@"
