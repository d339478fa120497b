# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: metrics to look at, in $STATE/metrics, and a filter that has some.
# shellcheck shell=sh disable=SC2034 # the variables are for those who source this

PROMTOOL=${PROMTOOL:-$(command -v promtool || echo "$BUILD/packages/prometheus/usr/bin/promtool")}

needs_promtool() {
	[ -x "$PROMTOOL" ] || skip "no promtool; make packages fetches it, with prometheus"
}

# value SAMPLE
value() {
	awk -v sample="$1" 'index($0, sample " ") == 1 { print $NF }' "$STATE/metrics"
}

# assert_value VALUE SAMPLE
assert_value() {
	assert_equal "$1" "$(value "$2")" "$2"
}

read_metrics() {
	assert_status 0 xc metrics
	cp "$STATE/out" "$STATE/metrics"
}

# filter_some: drops 30 packets of 58 bytes and passes 12.
filter_some() {
	xc load vrx --capacity 1000 >/dev/null
	xc add 203.0.113.7 >/dev/null
	xc add 192.0.2.0/24 timeout 1h >/dev/null
	{
		yes 'drop listed proto udp src 203.0.113.7 dst 198.18.0.1 sport 1 dport 2' | head -n 30
		yes 'pass other proto udp src 203.0.113.8 dst 198.18.0.1 sport 1 dport 2' | head -n 12
	} | traffic || fail "a wrong verdict"
}
