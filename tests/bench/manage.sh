#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What an operator waits for, beside ipset, nft and xdp-filter doing the same: `manage.sh [--full] [ROUNDS]`. Each
# in a network namespace of its own, one after the other in every round; medians of ROUNDS. Ours is durable when it
# returns, which the others never are. --full also imports 10 M addresses. LISTS=DIR says where blocklists are.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib.sh

FULL=
[ "${1-}" != --full ] || { FULL=yes; shift; }
if [ -n "${BENCH_QUICK-}" ]; then
	ROUNDS=${1:-1} SIZES=${SIZES:-100000} SINGLES=${SINGLES:-50} CHANGES=${CHANGES:-20000} LOADED=${LOADED:-117964}
fi
ROUNDS=${1:-${ROUNDS:-3}}
SIZES=${SIZES:-100000 1000000}
SINGLES=${SINGLES:-200}    # commands by a process each
CHANGES=${CHANGES:-100000} # commands to one process
LOADED=${LOADED:-943718}   # beside so many entries: 90 % of ours, which has 2^20 slots; 2^17 where it is quick
BESIDE=${BESIDE:-100000}   # beside so many entries: commands by a process each
TOOLS="ours ipset nft xdp_filter"

# --- each tool doing the same: on lists as prepare() leaves them

in_other() {
	in_ns "$OTHER" "$@"
}

ours_setup() {
	xc unload vrx >/dev/null 2>&1 || :
	rm -rf "$STATE/store"
	# shellcheck disable=SC2086 # words
	xc load vrx ${CAPACITY:+--capacity $CAPACITY} >/dev/null
}
# The network list has this host's private address: only that one is forced past the look at what locks the host out.
ours_import() { xc import ${IS_FORCED:+--force} "$1"; }
ours_replace() { xc import ${IS_FORCED:+--force} --replace "$1"; }
ours_add() { xc add "$1"; }
ours_del() { xc del "$1"; }
# Through a pipe, as a program that goes on feeds it.
# shellcheck disable=SC2002
ours_feed() { cat "$1" | xc batch -; }
ours_members() { xc list | sed 's/^src //'; }

ipset_setup() {
	in_rx ipset destroy
	in_rx ipset create block "hash:$1" maxelem 20000000
}
ipset_import() { in_rx ipset restore -file "$1.ipset"; }
ipset_replace() { in_rx ipset restore -file "$1.swap"; }
ipset_add() { in_rx ipset add block "$1"; }
ipset_del() { in_rx ipset del block "$1"; }
# shellcheck disable=SC2002 # as ours
ipset_feed() { cat "$1.ipset" | in_rx ipset restore; }
ipset_members() { in_rx ipset save block | sed -n 's/^add block //p'; }

nft_setup() {
	in_rx nft flush ruleset
	in_rx nft add table ip filter
	case $1 in
	ip) in_rx nft add set ip filter block '{ type ipv4_addr; }' ;;
	net) in_rx nft add set ip filter block '{ type ipv4_addr; flags interval; auto-merge; }' ;;
	esac
}
nft_import() { in_rx nft -f "$1.nft"; }
nft_replace() { in_rx nft -f "$1.flush"; }
nft_add() { in_rx nft add element ip filter block "{ $1 }"; }
nft_del() { in_rx nft delete element ip filter block "{ $1 }"; }
# shellcheck disable=SC2002 # as ours
nft_feed() { cat "$1.nft" | in_rx nft -f -; }
nft_members() { in_rx nft list set ip filter block | grep -Eo '[0-9]+\.[0-9./-]+[0-9]'; }

# Its maps have 10,000 entries, and it takes them one by one.
xdp_filter_setup() {
	in_other xdp-filter unload vother >/dev/null 2>&1 || :
	in_other xdp-filter load vother >/dev/null
}
xdp_filter_add() { in_other xdp-filter ip -m src "$1"; }
xdp_filter_del() { in_other xdp-filter ip -m src -r "$1"; }
xdp_filter_members() { in_other xdp-filter status | sed -n 's/^ *\([0-9.]*\) .*src.*/\1/p'; }

# can_run TOOL: else says why not.
can_run() {
	why=$(
		exec 2>&1
		"$1_setup" ip && case $1 in
		ours) ours_members ;;
		*) "$1_add" 192.0.2.1 ;;
		esac
	) || { echo "left out: $1: $(echo "$why" | head -n 1)"; return 1; }
}

# --- lists

# addresses COUNT FIRST: different IPv4 addresses, in no order.
addresses() {
	awk -v count="$1" -v first="$2" 'BEGIN {
		for (i = first; i < first + count; i++) {
			low = i * 40503 % 16777216 # an odd factor: each once
			printf "%d.%d.%d.%d\n", 20 + int(i / 16777216), low / 65536, low / 256 % 256, low % 256
		}
	}'
}

# prepare_for_all FILE KIND: from its entries, of KIND ip or net, what each tool reads to add them, or to have no others.
prepare_for_all() {
	nft_command="add element ip filter block"
	sed 's/^/add block /' "$1" >"$1.ipset"
	{ echo "$nft_command {"; sed 's/$/,/' "$1"; echo "}"; } >"$1.nft"
	{ echo "create fresh hash:$2 maxelem 20000000"; sed 's/^/add fresh /' "$1"; printf 'swap block fresh\ndestroy fresh\n'; } >"$1.swap"
	{ echo "flush set ip filter block"; cat "$1.nft"; } >"$1.flush"
	sort -u "$1" >"$1.sorted"
}

# prepare FILE KIND: it, and FILE.new with 1 % of its entries exchanged.
prepare() {
	count=$(wc -l <"$1")
	{ awk 'NR % 100' "$1"; addresses $((count / 100)) 50000000; } >"$1.new"
	prepare_for_all "$1" "$2"
	prepare_for_all "$1.new" "$2"
	assert_equal "$((count / 100)) $((count / 100))" "$(comm -23 "$1.sorted" "$1.new.sorted" | wc -l) $(
		comm -13 "$1.sorted" "$1.new.sorted" | wc -l)" "entries of $1 that go and come"
}

# prepare_changes: adds and deletes by turns, of addresses that are not in the list beside. The last 100 stay.
prepare_changes() {
	addresses "$((CHANGES / 2 + 50))" 60000000 | awk '
	{ print "add " $1; waiting[NR] = $1 }
	NR > 100 { print "del " waiting[NR - 100]; delete waiting[NR - 100] }' >"$STATE/changes"
	{ cat "$STATE/loaded"; sed -n 's/^add //p' "$STATE/changes" | tail -n 100; } | sort -u >"$STATE/changed.sorted"
	awk '{ print $1, "block", $2 }' "$STATE/changes" >"$STATE/changes.ipset"
	awk '{ print ($1 == "add" ? "add" : "delete"), "element ip filter block {", $2, "}" }' \
		"$STATE/changes" >"$STATE/changes.nft"
}

# --- measuring

# measure TASK TOOL COMMAND...
measure() {
	task=$1 tool=$2
	shift 2
	start=$(date +%s%N)
	"$@" >"$STATE/out" 2>"$STATE/err" || { tail -n 3 "$STATE/err"; fail "$tool: $task"; }
	echo "$(($(date +%s%N) - start))" >>"$STATE/times/$task.$tool"
}

# assert_members TOOL FILE WHEN: so that what was measured was done: the set is FILE.sorted. Of networks nft merges those
# that meet, so its set must only be another one than it was.
assert_members() {
	"$1_members" | sort -u >"$STATE/members"
	if [ "$1-$KIND" = nft-net ]; then
		! cmp -s "$STATE/members" "$STATE/members.before" || fail "$1: $3: the set is what it was"
		mv "$STATE/members" "$STATE/members.before"
		return
	fi
	# The kernel lists a set of nft incompletely while it still makes the set's hash table larger.
	for _ in 1 2 3 4 5; do
		! cmp -s "$STATE/members" "$2.sorted" || return 0
		[ "$1" = nft ] || break
		sleep 1
		"$1_members" | sort -u >"$STATE/members"
	done
	fail "$1: $3: of $(wc -l <"$2.sorted") entries $(
		comm -13 "$STATE/members" "$2.sorted" | wc -l) are missing, and $(
		comm -23 "$STATE/members" "$2.sorted" | wc -l) more are there"
}

# assert_reported FILE: ours has said of the replacement that it exchanged what is exchanged in FILE.new.
assert_reported() {
	exchanged=$(($(wc -l <"$1") / 100))
	assert_equal "$exchanged added, $exchanged removed" \
		"$(sed -n 's/^added \([0-9]*\), .* removed \([0-9]*\), .*/\1 added, \2 removed/p' \
			"$STATE/out")" "ours: replace: rules that it says"
}

# median TASK TOOL DIVISOR, in ms; "-" where it was not measured.
median() {
	[ -s "$STATE/times/$1.$2" ] || { echo -; return; }
	sort -n "$STATE/times/$1.$2" | awk -v divisor="$3" '{ t[NR] = $1 }
		END { printf "%.1f", (t[int((NR + 1) / 2)] + t[int(NR / 2) + 1]) / 2e6 / divisor }'
}

# report TASK TEXT [DIVISOR]
report() {
	printf '%-46s' "$2"
	for tool in $TOOLS; do
		ms=$(median "$1" "$tool" "${3:-1}")
		printf ' %11s' "$ms"
		[ -z "${BENCH_JSON-}" ] || [ "$ms" = - ] || printf '{%s, %s, %s, %s}\n' '"bench": "manage"' \
			"\"task\": \"$1\", \"variant\": \"$tool\"" '"unit": "ms"' "\"median\": $ms" >>"$BENCH_JSON"
	done
	echo
}

# --- tasks

# try_list NAME KIND TOOL: into an empty set; then the list with 1 % exchanged in its place, and the first one again.
try_list() {
	case $3 in xdp_filter) return ;; esac
	KIND=$2 IS_FORCED=
	[ "$2" = ip ] || IS_FORCED=yes
	: >"$STATE/members.before"
	"$3_setup" "$2"
	measure "import-$1" "$3" "$3_import" "$STATE/$1"
	assert_members "$3" "$STATE/$1" import
	measure "replace-$1" "$3" "$3_replace" "$STATE/$1.new"
	assert_members "$3" "$STATE/$1.new" replace
	[ "$3" != ours ] || assert_reported "$STATE/$1"
	measure "replace-$1" "$3" "$3_replace" "$STATE/$1"
	assert_members "$3" "$STATE/$1" "replace back"
}

each() {
	while read -r entry; do
		"$1" "$entry" || return
	done <"$STATE/singles"
}

try_singles() {
	KIND=ip IS_FORCED=
	beside=$STATE/beside
	"$1_setup" ip
	case $1 in xdp_filter) beside=/dev/null ;; *) "$1_import" "$beside" >/dev/null ;; esac
	sort -u "$beside" >"$STATE/deleted.sorted"
	sort -u "$beside" "$STATE/singles" >"$STATE/added.sorted"
	measure add "$1" each "$1_add"
	assert_members "$1" "$STATE/added" add
	measure del "$1" each "$1_del"
	assert_members "$1" "$STATE/deleted" del
}

try_changes() {
	case $1 in xdp_filter) return ;; esac
	KIND=ip IS_FORCED=
	CAPACITY=$((LOADED * 95 / 90)) "$1_setup" ip
	"$1_import" "$STATE/loaded" >/dev/null 2>&1
	measure changes "$1" "$1_feed" "$STATE/changes"
	assert_members "$1" "$STATE/changed" "adds and deletes"
}

# --- all of them

state
pair
OTHER=xc$$other # for xdp-filter
namespace "$OTHER"
veth "$OTHER" vother "$OTHER" vpeer
mkdir "$STATE/times"
HERE=
for tool in $TOOLS; do
	! can_run "$tool" || HERE="$HERE $tool"
done

export LC_ALL=C # for sort and comm
LISTED=
if [ -r "$LISTS/firehol_level1.netset" ]; then
	sed 's/#.*//; /^$/d' "$LISTS/firehol_level1.netset" >"$STATE/firehol_level1"
	prepare "$STATE/firehol_level1" net
	LISTED=firehol_level1:net
else
	echo "left out: no firehol_level1.netset in $LISTS"
fi
for size in $SIZES; do
	addresses "$size" 0 >"$STATE/$size"
	prepare "$STATE/$size" ip
	LISTED="$LISTED $size:ip"
done
addresses "$BESIDE" 0 >"$STATE/beside"
prepare_for_all "$STATE/beside" ip
addresses "$LOADED" 0 >"$STATE/loaded"
prepare_for_all "$STATE/loaded" ip
addresses "$SINGLES" 60000000 >"$STATE/singles"
prepare_changes

for _ in $(seq "$ROUNDS"); do
	for tool in $HERE; do
		for list in $LISTED; do
			try_list "${list%:*}" "${list#*:}" "$tool"
		done
		try_singles "$tool"
		try_changes "$tool"
	done
done

echo "ms, median of $ROUNDS rounds"
printf '%-46s %11s %11s %11s %11s\n' '' xdp-cuckoo ipset nft xdp-filter
for list in $LISTED; do
	name=${list%:*}
	report "import-$name" "import $name ($(wc -l <"$STATE/$name") entries)"
	report "replace-$name" "replace it by one with 1 % exchanged"
done
report add "add one, a process each, beside $BESIDE" "$SINGLES"
report del "delete one, the same" "$SINGLES"
report changes "$CHANGES adds and deletes piped to one process"
echo "(beside $LOADED entries; 943718, or 117964, are 90 % load for ours. xdp-filter: beside none.)"

if [ -n "$FULL" ]; then
	addresses 10000000 0 >"$STATE/10000000"
	ours_setup
	measure import-10000000 ours ours_import "$STATE/10000000"
	assert_equal 10000000 "$(ours_members | wc -l)" "rules"
	report import-10000000 "import 10,000,000 addresses"
fi
