#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Shows the filter on live traffic: sh tests/demo/filter.sh [LIST], where LIST is a file of IPv4 addresses
# and prefixes (FireHOL, Spamhaus). Works in two network namespaces of its own and leaves nothing.
set -eu
LIST=${1:+$(realpath "$1")}
cd "$(dirname "$0")/../.."
. tests/lib.sh
. tests/namespace/traffic.sh

OUTSIDE=20000 # innocent flows beside those of LIST

# show COMMAND PATTERN ARGUMENT...: runs the tool with the arguments; shows the command as one would
# type it, and the lines of its output that match.
show() {
	echo "   # xdp-cuckoo $1"
	pattern=$2
	shift 2
	assert_status 0 xc "$@"
	grep -E "$pattern" "$STATE/out" | sed 's/^ */   /'
}

prepare() {
	if [ -n "$LIST" ]; then
		"$HELPERS/list_flows" --hosts 3 --outside "$OUTSIDE" --seed "$SEED" "$LIST" \
			>"$STATE/flows"
		return
	fi
	small_flows >"$STATE/flows"
	small_list >"$STATE/small.list"
}

import_list() {
	if [ -n "$LIST" ]; then
		show "import $LIST" '^(added|rules per)' import "$LIST"
		return
	fi
	sed 's/^/   | /' "$STATE/small.list"
	show "import small.list" '^added' import "$STATE/small.list"
}

send() {
	traffic <"$STATE/flows" >"$STATE/table" || fail "packets fared otherwise than expected"
	sed 's/^/   /' "$STATE/table"
}

show_stats() {
	show "stats" '^(outcome|drop-rule|all) ' stats
	counted=$(dropped_by_rule)
	show "list --counters" '# packets [1-9]' list --counters | head -n 7
}

conclude() {
	dropped=$(total 3 "$STATE/table")
	[ "$counted" -eq "$dropped" ] ||
		fail "$dropped packets did not arrive, the filter counted $counted dropped"
	cat <<-EOF

	Every packet fared as expected; receiver and filter agree on $dropped dropped. Next:
	   make demo LIST=FILE              the same with a list of yours
	   build/xdp-cuckoo load eth0       filter a real interface
	   build/xdp-cuckoo add 192.0.2.1   block one source
	   build/xdp-cuckoo help add        what a rule can name
	EOF
}

[ "$(id -u)" -eq 0 ] || { echo "the demo makes network namespaces: run it as root" >&2; exit 1; }
[ -z "$LIST" ] || [ -r "$LIST" ] || { echo "cannot read $LIST" >&2; exit 2; }
state
pair
prepare

echo "Two network namespaces joined by a veth pair: one sends, the other filters on its vrx."
echo "1. Load the filter into the interface's driver"
show "load vrx --mode native" '^ *vrx ' load vrx --mode native
echo "2. Block what a list names"
import_list
echo "3. Send a packet of each flow, to be dropped or to pass, and see which arrive"
send
echo "4. Ask the filter what it counted"
show_stats
echo "5. Give it room for ten times as many rules, while it goes on filtering, and send all again"
show "resize 10000000" '^(interface|vrx) ' resize 10000000
counted_before=$counted
send
counted=$(($(dropped_by_rule) - counted_before))
echo "6. Unload"
show "unload vrx" . unload vrx
conclude
