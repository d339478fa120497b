# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by namespace tests and the demo, which run from the repository root: network namespaces
# that go away by themselves, assertions, and the runner of test_* functions.
# shellcheck shell=sh disable=SC2034 # the variables are for those who source this

BUILD=${BUILD:-build}
TOOL=${TOOL:-$BUILD/xdp-cuckoo}
OBJECT=${OBJECT:-$BUILD/xdp_cuckoo.bpf.o}
HELPERS=${HELPERS:-$BUILD/tests/helpers}
LISTS=${LISTS:-../shared/blocklists}
SEED=${SEED:-$$}
# Debian's, which sees Debian's packages; what another directory has in its place may search for one at each start.
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=python3
REPORTS=${REPORTS-} # where sanitizers write, see tests/full/run.sh

TX=xc$$tx # the namespace that sends, through the interface vtx
RX=xc$$rx # the namespace that filters and receives, on the interface vrx
EXIT_SKIP=77
NEEDS_ROOT=yes # a file whose tests need no namespaces says no
EXIT_LATE=75
SLOWER=${SLOWER:-1} # than a usual machine: what ends after a while has so many times as long

# --- cleaning up

CLEANUP=

# on_exit COMMAND: runs it when the shell ends, also by a signal; the last one first.
on_exit() {
	CLEANUP="$1
$CLEANUP"
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 141' PIPE
}

clean_up() {
	clean_up_status=$?
	trap - EXIT
	set +e
	eval "$CLEANUP"
	CLEANUP=
	exit "$clean_up_status"
}

# --- namespaces

# namespace NAME: makes it, with IPv6 and the loopback interface on, and with a small table of TCP connections: a guarded
# command reads all of it.
namespace() {
	unshare --net sh -c 'echo 1024 2>/dev/null >/proc/sys/net/ipv4/tcp_child_ehash_entries; ip netns add "$1"' sh "$1"
	on_exit "ip netns del $1"
	in_ns "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=0
	in_ns "$1" ip link set lo up
}

# in_ns NAME COMMAND...: `ip netns exec` would mount another /sys, without the pins in bpffs.
in_ns() {
	in_ns_name=$1
	shift
	nsenter --net="/run/netns/$in_ns_name" "$@"
}

in_tx() {
	in_ns "$TX" "$@"
}

in_rx() {
	in_ns "$RX" "$@"
}

# veth NAMESPACE IFACE NAMESPACE IFACE: joins the two, up.
veth() {
	ip -n "$1" link add "$2" type veth peer name "$4" netns "$3"
	ip -n "$1" link set "$2" up
	ip -n "$3" link set "$4" up
}

# pair: the namespaces $TX and $RX, joined by the interfaces vtx and vrx, with addresses.
pair() {
	namespace "$TX"
	namespace "$RX"
	veth "$TX" vtx "$RX" vrx
	ip -n "$TX" address add 10.99.0.1/24 dev vtx
	ip -n "$RX" address add 10.99.0.2/24 dev vrx
	ip -n "$TX" address add fd99::1/64 dev vtx nodad
	ip -n "$RX" address add fd99::2/64 dev vrx nodad
}

# second_pair: the interfaces vtx2 and vrx2, without addresses.
second_pair() {
	veth "$TX" vtx2 "$RX" vrx2
}

# silence: only the frames of the test, no router solicitations and no multicast reports.
silence() {
	in_tx sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	in_rx sysctl -qw net.ipv6.conf.all.disable_ipv6=1
}

# program_id IFACE: the number of the XDP program on an interface of the receiving namespace, or nothing.
program_id() {
	ip -n "$RX" -d link show "$1" | sed -n 's,.*prog/xdp id \([0-9]*\).*,\1,p'
}

# program_of IFACE: the number of the filter's program there, also behind a dispatcher.
program_of() {
	xc status --verbose | awk -v iface="$1" '$1 == "interface" && $3 == "program" { is_row = 1 } is_row && $1 == iface { print $3 }'
}

# maps_of PROGRAM: the numbers of its maps.
maps_of() {
	bpftool prog show id "$1" | sed -n 's/.* map_ids \([0-9,]*\).*/\1/p' | tr ',' ' '
}

# state: a directory of its own in $STATE, for the filter's store and for scratch files.
state() {
	STATE=$(mktemp -d)
	on_exit "rm -rf $STATE"
}

# xc ARGUMENT...: the tool, in the receiving namespace, with the test's own store.
xc() {
	in_rx "$TOOL" --state "$STATE/store" "$@"
}

# timed ARGUMENT...: `xc` with --confirm, at most 30m, whose watchdog, which undoes it, waits for `later` and for no clock.
# Its own is ahead then: what it puts back with timeouts ends too early in the filter.
timed() {
	: >"$STATE/ahead_s"
	in_rx env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" CLOCK_FILE="$STATE/ahead_s" "$TOOL" --state "$STATE/store" "$@"
	on_exit 'later; kill -9 $(watchdogs) 2>/dev/null'
}

# watchdogs: those in the receiving namespace.
watchdogs() {
	for watchdog_pid in $(ip netns pids "$RX"); do
		tr '\0' ' ' 2>/dev/null <"/proc/$watchdog_pid/cmdline" | grep -q -- '--confirm' || continue
		echo "$watchdog_pid"
	done
}

# later: for the watchdogs of `timed`. time_is_over: and they have done their work.
later() {
	echo 2400 >"$STATE/ahead_s"
}

time_is_over() {
	later
	wait_for 'the end of the watchdog' eval '[ -z "$(watchdogs)" ]'
	! xc status --verbose 2>&1 | grep -Eq 'unconfirmed( change:|: *yes)' || fail "it is not undone"
}

# write_list NAME N...: the file $STATE/NAME with the addresses 203.0.113.N.
write_list() {
	list_file=$STATE/$1
	shift
	printf '203.0.113.%s\n' "$@" >"$list_file"
}

# traffic ARGUMENT...: sends the flows of standard input from vtx to vrx.
traffic() {
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" "$@"
}

# flows drop|pass ADDRESS... [drop|pass ADDRESS...]: for `traffic`, a flow from each address, with its verdict.
flows() {
	for flows_word; do
		case $flows_word in
		drop | pass) flows_verdict=$flows_word ;;
		*:*) echo "$flows_verdict it proto udp src $flows_word dst 2001:db8::99 sport 1 dport 2" ;;
		*) echo "$flows_verdict it proto udp src $flows_word dst 198.51.100.99 sport 1 dport 2" ;;
		esac
	done
}

# passes: whether a packet of 192.0.2.1 does.
passes() {
	flows pass 192.0.2.1 | traffic
}

# send_from CPU IFACE IFACE PACKETS: packets of one flow of 58 bytes, from 192.0.2.1, on that processor; fails where one passes.
send_from() {
	echo 'drop shared proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2' |
		taskset -c "$1" "$HELPERS/traffic" --from "$TX:$2" --to "$RX:$3" --repeat "$4"
}

# send_endlessly CPU IFACE IFACE: the same in the background, until the test ends; 20,000 a second, so that other tests have
# that processor, too.
send_endlessly() {
	echo 'drop shared proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2' >"$STATE/endless"
	taskset -c "$1" "$HELPERS/traffic" --from "$TX:$2" --to "$RX:$3" --repeat 100000000 --rate 20000 \
		<"$STATE/endless" >/dev/null 2>&1 &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
}

# probes FAMILY: how many shapes the running filter looks a packet of ipv4, or ipv6, up by.
probes() {
	xc status --json | sed -n "s/.*\"probes_$1\": \([0-9]*\).*/\1/p"
}

# --- assertions: each ends the test where it does not hold

# case_begin NAME: what follows is about this; a failure says so.
CASE=
case_begin() {
	CASE=$1
}

fail() {
	echo "failed${CASE:+ in case $CASE}: $*"
	exit 1
}

skip() {
	echo "$*" >"$TMPDIR/skip"
	exit "$EXIT_SKIP"
}

# now_ms: the time since boot, by which rules end.
now_ms() {
	awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime
}

# fail_by MS WHAT: something should have been so, as long as now_ms was under MS. Where it is over, the test was too slow to
# judge, and the runner tries it again with more time.
fail_by() {
	[ "$(now_ms)" -lt "$1" ] || { echo "too late to judge: $2"; exit "$EXIT_LATE"; }
	fail "$2"
}

# needs_linux VERSION: skips the test on an older kernel.
needs_linux() {
	printf '%s\n' "$1" "$(uname -r)" | sort -C -V || skip "needs Linux $1"
}

# note TEXT: what a test that passes has measured, shown beside its name.
note() {
	echo "$*" >"$TMPDIR/note"
}

# run COMMAND...: keeps its status in $STATUS and what it writes in $STATE/out and $STATE/err.
run() {
	STATUS=0
	RAN=$*
	"$@" >"$STATE/out" 2>"$STATE/err" || STATUS=$?
}

# when_free COMMAND...: bench, and as it advises, again with more --seconds where others have the processors.
BENCH_S=${BENCH_S:-1}
when_free() {
	for free_times in 1 2 4 8 16; do
		free_status=0
		"$@" --seconds "$((BENCH_S * free_times))" >"$STATE/free.out" 2>"$STATE/free.err" || free_status=$?
		grep -q 'the CPUs were too busy' "$STATE/free.err" || break
	done
	cat "$STATE/free.out"
	cat "$STATE/free.err" >&2
	return "$free_status"
}

# wait_for WHAT COMMAND...: until the command succeeds, which is soon or asked for less often; fails, and shows the end of
# $WAIT_LOG, where it never does.
WAIT_S=${WAIT_S:-60}
WAIT_LOG=/dev/null
wait_for() {
	waited_for=$1
	shift
	end=$(($(date +%s) + WAIT_S))
	wait_tries=0
	until "$@" >/dev/null 2>&1; do
		if [ "$(date +%s)" -ge "$end" ]; then
			tail -n 30 "$WAIT_LOG"
			fail "waited $WAIT_S s for $waited_for"
		fi
		wait_tries=$((wait_tries + 1))
		if [ "$wait_tries" -lt 20 ]; then sleep 0.05; else sleep 0.2; fi
	done
}

# has_ended PID: whether a process in the background has ended, also if the shell has not waited for it yet.
has_ended() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.*zombie' "/proc/$1/status"
}

# is_full_pipe FD: whether a pipe takes no more.
is_full_pipe() {
	$PYTHON -c 'import select, sys; sys.exit(bool(select.select([], [int(sys.argv[1])], [], 0)[1]))' "$1"
}

show_run() {
	echo "\$ $RAN"
	sed 's/^/  stdout: /' "$STATE/out"
	sed 's/^/  stderr: /' "$STATE/err"
}

# assert_status STATUS COMMAND...
assert_status() {
	expected_status=$1
	shift
	run "$@"
	[ "$STATUS" -eq "$expected_status" ] && return
	show_run
	fail "exit status $STATUS, expected $expected_status"
}

# assert_output PATTERN, assert_error PATTERN: extended regular expressions, about the last run.
assert_output() {
	grep -Eq -- "$1" "$STATE/out" && return
	show_run
	fail "no line of standard output matches '$1'"
}

assert_error() {
	grep -Eq -- "$1" "$STATE/err" && return
	show_run
	fail "no line of standard error matches '$1'"
}

# assert_shows PATTERN COMMAND...: status 0, and a line of standard output like this.
assert_shows() {
	shown_pattern=$1
	shift
	assert_status 0 "$@"
	assert_output "$shown_pattern"
}

# assert_notes PATTERN COMMAND...: status 0, and a line of standard error like this.
assert_notes() {
	assert_fails 0 "$@"
}

# assert_fails STATUS PATTERN COMMAND...: this status, and a line of standard error like this.
assert_fails() {
	failed_status=$1
	failed_pattern=$2
	shift 2
	assert_status "$failed_status" "$@"
	assert_error "$failed_pattern"
}

# assert_verdict drop|pass ADDRESS... [drop|pass ADDRESS...]: what happens to a packet from each.
assert_verdict() {
	flows "$@" | traffic >"$STATE/judged" 2>&1 || fail "not so: $*: $(cat "$STATE/judged")"
}

# assert_equal EXPECTED SEEN [WHAT]
assert_equal() {
	[ "$1" = "$2" ] || fail "${3:+$3: }expected '$1', seen '$2'"
}

# assert_prints TEXT COMMAND...: that is all of its standard output, and its status is 0; in "$(...)" that would be lost.
assert_prints() {
	expected_text=$1
	shift
	assert_status 0 "$@"
	assert_equal "$expected_text" "$(cat "$STATE/out")" "what it prints: $*"
}

# again COMMAND...: in the receiving namespace; started again and again as a unit is, even if it does not end by itself.
again() {
	: >"$STATE/starts"
	# shellcheck disable=SC2016 # of the inner shell
	nsenter --net="/run/netns/$RX" sh -c 'while sleep 0.5; do timeout -s KILL 3 "$@"; echo over >&3; done' sh "$@" \
		>/dev/null 2>"$STATE/again.err" 3>>"$STATE/starts" </dev/null &
	WAIT_LOG=$STATE/again.err
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
}

# ahead SECONDS ARGUMENT...: `xc` by a clock that is so far ahead, or less than 0: behind.
ahead() {
	ahead_s=$1
	shift
	in_rx env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" CLOCK_SHIFT_S="$ahead_s" "$TOOL" --state "$STATE/store" "$@"
}

# heard LIST: when its source has said something.
heard() {
	xc lists --json | jq -r --arg list "$1" '.[] | select(.list == $list) | "\(.imported) \(.fetched)"'
}

# stays LIST: whether that is the same after two starts of `again`.
stays() {
	stays_as=$(heard "$1")
	stays_until=$(($(wc -l <"$STATE/starts") + 3))
	while [ "$(wc -l <"$STATE/starts")" -lt "$stays_until" ]; do sleep 0.1; done
	[ "$stays_as" = "$(heard "$1")" ]
}

# silence_is LIST SILENT [SECONDS]: whether status and the alert's metric say that its source is silent, 0 or 1, so much later.
silence_is() {
	run ahead "${3:-0}" status
	[ "$STATUS" -ge "$2" ] && [ "$(grep -cE "^not fed: *(.*; )?$1: (never|for )" "$STATE/out")" -eq "$2" ] &&
		ahead "${3:-0}" metrics | grep -q "^xdp_cuckoo_list_not_fed{name=\"default\",list=\"$1\"} $2\$"
}

# assert_silent LIST STALE_S: starts of its feed are no word of its source: after the stale time it is told.
assert_silent() {
	wait_for "silence" stays "$1"
	silence_is "$1" 1 "$2" || { show_run; fail "a silent source is called fed"; }
}

# --- the runner

# run_one FUNCTION: in a shell of its own, with fresh namespaces and state.
run_one() {
	(
		set -eu
		CLEANUP= # the parent's stays the parent's
		export TMPDIR="$run_tests_scratch"
		[ -z "$REPORTS" ] || report_in "$REPORTS/$run_tests_name.$1"
		state
		[ "$NEEDS_ROOT" = no ] || pair
		"$1"
	) </dev/null
}

# report_in DIR: sanitizers write there what they find. Tests look at few exit statuses of processes in the background.
report_in() {
	mkdir -m 1777 "$1"
	export ASAN_OPTIONS="${ASAN_OPTIONS-}:log_path=$1/report" UBSAN_OPTIONS="${UBSAN_OPTIONS-}:log_path=$1/report"
}

# has_reports TEST: shows what sanitizers have written during it. A process that is killed during the search for leaks
# leaves a line that means nothing.
has_reports() {
	[ -n "$REPORTS" ] && grep -hrv 'Unable to get registers from thread' "$REPORTS/$run_tests_name.$1"
}

# run_tests FILE [FUNCTION...]: runs every test_* function of FILE, or those named; prints TAP.
run_tests() {
	run_tests_file=$1
	run_tests_name=$(basename "$1" .sh)
	shift
	# shellcheck disable=SC2046 # one word a function
	[ $# -gt 0 ] || set -- $(sed -n 's/^\(test_[A-Za-z0-9_]*\)().*/\1/p' "$run_tests_file")
	[ $# -gt 0 ] || { echo "not ok $run_tests_file has no test_* function"; exit 1; }
	run_tests_scratch=$(mktemp -d)
	on_exit "rm -rf $run_tests_scratch"
	run_tests_failed=0
	for test_name; do
		run_tests_report "$test_name"
	done
	exit "$run_tests_failed"
}

run_tests_report() {
	if [ "$NEEDS_ROOT" = yes ] && [ "$(id -u)" -ne 0 ]; then
		echo "ok $1 # SKIP needs root"
		return
	fi
	rm -f "$run_tests_scratch/note"
	run_tests_slower=$SLOWER
	for SLOWER in "$SLOWER" $((4 * SLOWER)) $((16 * SLOWER)); do
		run_tests_status=0
		run_one "$1" >"$run_tests_scratch/log" 2>&1 || run_tests_status=$?
		[ "$run_tests_status" -eq "$EXIT_LATE" ] || break
		[ -z "$REPORTS" ] || rm -rf "$REPORTS/$run_tests_name.$1"
	done
	SLOWER=$run_tests_slower
	! has_reports "$1" >>"$run_tests_scratch/log" || run_tests_status=1
	case $run_tests_status in
	0) echo "ok $1$(sed 's/^/ # /' "$run_tests_scratch/note" 2>/dev/null)" ;;
	"$EXIT_SKIP") echo "ok $1 # SKIP $(cat "$run_tests_scratch/skip")" ;;
	*)
		sed 's/^/# /' "$run_tests_scratch/log"
		echo "not ok $1"
		run_tests_failed=1
		;;
	esac
}
