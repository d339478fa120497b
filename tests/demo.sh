#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Shows the filter on live traffic: sh tests/demo.sh [LIST], where LIST is a file of IPv4 addresses
# and prefixes (FireHOL, Spamhaus). Works in two network namespaces of its own and leaves nothing.
set -eu
LIST=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
. tests/lib.sh
. tests/traffic.sh

OUTSIDE=20000 # innocent flows beside those of LIST

step() {
	printf '\n%s\n' "$*"
}

# show ARGUMENT...: a command of the tool as one would type it, and what it prints.
show() {
	echo "   # xdp-cuckoo $*"
	xc "$@" | sed 's/^/   /'
}

prepare_traffic() {
	if [ -n "$LIST" ]; then
		"$HELPERS/list_flows" --hosts 3 --outside "$OUTSIDE" --seed "$SEED" "$LIST"
	else
		small_flows
	fi >"$STATE/flows"
	[ -n "$LIST" ] || small_list >"$STATE/small.list"
}

# Status 1 is traffic's "not all as expected": what that means is judged afterwards.
send_traffic() {
	traffic --wrong "$STATE/wrong" <"$STATE/flows" >"$STATE/table" || [ $? -eq 1 ]
	sed 's/^/   /' "$STATE/table"
}

report_false_positives() {
	innocent=$(total 6 "$STATE/table")
	expect_false_positives "$innocent"
	echo "   $FALSE_POSITIVES of $innocent innocent flows are false positives: they met a fingerprint by chance" \
		"(expected $EXPECTED)"
}

verdict() {
	dropped=$(total 3 "$STATE/table")
	problem=
	[ "$MISMATCHES" -eq 0 ] || problem="$MISMATCHES flows fared otherwise than expected"
	[ "$FALSE_POSITIVES" -le "$MOST" ] || problem="more false positives than chance explains"
	[ "$COUNTED" -eq "$dropped" ] || problem="filter counted $COUNTED drops, receiver misses $dropped"
	[ -z "$problem" ] || { printf '\nFAILED: %s\n' "$problem"; exit 1; }
}

[ "$(id -u)" -eq 0 ] || { echo "the demo makes network namespaces: run it as root" >&2; exit 1; }
[ -z "$LIST" ] || [ -r "$LIST" ] || { echo "cannot read $LIST" >&2; exit 2; }
state
pair
prepare_traffic

echo "Two network namespaces joined by a cable (veth): $TX sends, $RX has the filter on vrx."
step "1. Load the filter into the interface's driver"
show load vrx --mode native

step "2. Block what a list names${LIST:+: $LIST}"
[ -n "$LIST" ] || { cd "$STATE"; TOOL=$OLDPWD/$TOOL; sed 's/^/   | /' small.list; }
show import "${LIST:-small.list}"
[ -n "$LIST" ] || cd "$OLDPWD"

step "3. Send a packet of each flow, blocked and innocent, and see which arrive"
send_traffic
judge "$STATE/wrong"
report_false_positives

step "4. The filter's own count, by reason (those that are not 0)"
COUNTED=$(dropped_by_rule)
echo "   # xdp-cuckoo stats"
xc stats | awk 'NR == 1 || $NF + $(NF - 1) + $(NF - 2) + $(NF - 3)' | sed 's/^/   /'

step "5. Unload"
show unload vrx
verdict

cat <<EOF

Every packet fared as expected. Next:
   make demo LIST=FILE                  the same with a list of yours
   build/xdp-cuckoo load eth0           filter a real interface
   build/xdp-cuckoo add 192.0.2.1       block one source
   build/xdp-cuckoo help add            what a rule can name
