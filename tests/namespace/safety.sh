# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh by the tests of what keeps an operator from being locked out.
# shellcheck shell=sh

# counted OUTCOME passed|dropped|would_drop: packets, by the running filters.
counted() {
	xc --json stats | awk -v outcome="\"$1\"," -v field="\"$2_packets\":" '
	$1 == "\"outcome\":" { of = substr($0, index($0, ":") + 2) }
	of == outcome && $1 == field { print $2 + 0 }'
}

AWAIT_S=${AWAIT_S:-60}

# await CONDITION [ACTION]: evaluates both, again and again, until the condition holds.
await() {
	await_until=$(($(date +%s) + AWAIT_S))
	until eval "$1"; do
		[ "$(date +%s)" -lt "$await_until" ] || fail "not within $AWAIT_S s: $1"
		eval "${2:-sleep 0.05}"
	done
}

# await_error PATTERN ACTION: until the action has written a line like this to standard error.
await_error() {
	await "grep -Eq '$1' '$STATE/awaited' 2>/dev/null" "{ $2; } >/dev/null 2>'$STATE/awaited' || :"
}

# many_addresses N: as many, none of them the tests' others.
many_addresses() {
	awk -v count="$1" 'BEGIN { for (i = 0; i < count; i++) printf "11.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }'
}

# --- a host with a gateway, a name server and an SSH session

PEER=203.0.113.9
SSH_SESSION="$PEER 50000 10.99.0.2 22"

host() {
	ip -n "$RX" route add default via 10.99.0.254
	ip -n "$RX" -6 route add default via fd99::fe
	printf 'nameserver 10.98.0.53\nnameserver 2001:db8::53\n' >"$STATE/resolv.conf"
}

# xc_host ARGUMENT...: the tool on that host, in that session; with $STATE/etc, if there is one, as its /etc.
xc_host() {
	# shellcheck disable=SC2016 # of the inner shell
	unshare -m sh -c '[ ! -d "$1/etc" ] || mount --bind "$1/etc" /etc
		mount --bind "$1/resolv.conf" /etc/resolv.conf; shift; exec "$@"' sh "$STATE" \
		nsenter --net="/run/netns/$RX" env "SSH_CONNECTION=$SSH_SESSION" \
		"$TOOL" --state "$STATE/store" "$@"
}

# configure_fleet LINE...: the section [fleet] of the host's configuration.
configure_fleet() {
	[ -d "$STATE/etc" ] || cp -a /etc "$STATE/etc"
	mkdir -p "$STATE/etc/xdp-cuckoo"
	printf '%s\n' '[filter]' 'interfaces = vrx' '[fleet]' "$@" '[policy]' 'broker = 10.97.0.1' >"$STATE/etc/xdp-cuckoo/default.conf"
}

# connection FROM TO ADDRESS PORT [--from PORT] [--sent BYTES]: of the namespace FROM to a listener in TO that sends so many
# bytes; with TO "-", nobody answers. It stays until the test ends or end_connections.
CONNECTIONS=''
connection() {
	connection_from=$1 connection_to=$2
	shift 2
	rm -f "$STATE/listener" "$STATE/begun"
	on_exit end_connections
	if [ "$connection_to" != - ]; then
		nsenter --net="/run/netns/$connection_to" $PYTHON tests/helpers/connection.py listen "$@" >"$STATE/listener" &
		CONNECTIONS="$CONNECTIONS $!"
		wait_for 'the listener' grep -q listening "$STATE/listener"
	fi
	nsenter --net="/run/netns/$connection_from" $PYTHON tests/helpers/connection.py connect "$@" >"$STATE/begun" &
	CONNECTIONS="$CONNECTIONS $!"
	wait_for 'the connection' grep -q begun "$STATE/begun"
	[ "$connection_to" = - ] || wait_for 'its listener' grep -q taken "$STATE/listener"
}

end_connections() {
	for process in $CONNECTIONS; do
		kill "$process" 2>/dev/null
		wait "$process" 2>/dev/null
	done
	CONNECTIONS=''
}

# --- one flow that a rule blocks, and one beside it

BLOCKED='proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 2'
OTHER='proto udp src 192.0.2.67 dst 10.99.0.2 sport 1 dport 2'

# expect drop|pass: of the flow that is blocked; the other passes.
expect() {
	printf '%s\n' "$1 blocked $BLOCKED" "pass other $OTHER" | traffic >"$STATE/expected" 2>&1 ||
		fail "expected $1 of the blocked flow: $(cat "$STATE/expected")"
}

block() {
	silence
	xc add 192.0.2.66 >/dev/null 2>&1
}

has_program() {
	ip -n "$RX" link show dev "$1" | grep -q 'prog/xdp'
}

# Two flows that rules block, one that the policy for malformed packets does, one that nothing does.
small_safety_list() {
	printf '192.0.2.66\n198.51.100.0/24\n'
}

# judge_flows drop|pass: what should become of those that are to be blocked.
judge_flows() {
	printf '%s\n' "$1 listed proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 2" \
		"$1 listed proto tcp src 198.51.100.7 dst 10.99.0.2 sport 1 dport 2" \
		"$1 malformed proto udp src 192.0.2.67 dst 10.99.0.2 sport 1 dport 2 broken malformed" \
		'pass other proto udp src 192.0.2.67 dst 10.99.0.2 sport 1 dport 2' | traffic >"$STATE/judged" ||
		fail "wrong verdicts, expected $1: $(cat "$STATE/judged")"
}
