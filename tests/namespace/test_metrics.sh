#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# metrics: what stats and status say, in the form that Prometheus reads; Debian's own node exporter reads it.
. tests/lib.sh
. tests/fault/fault.sh
. tests/namespace/metrics.sh

NODE_EXPORTER=${NODE_EXPORTER:-$BUILD/packages/prometheus-node-exporter/usr/bin/prometheus-node-exporter}
PORT=19100

test_nothing_runs() {
	read_metrics
	assert_equal 'xdp_cuckoo_build_info{version="0.3.0"} 1' "$(grep -v '^#' "$STATE/metrics")" "samples"
}

test_values() {
	filter_some
	read_metrics
	assert_value 30 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	assert_value 1740 'xdp_cuckoo_bytes_total{name="default",outcome="drop-rule",verdict="drop"}'
	# The host's own IPv6 packets count, too.
	[ "$(value 'xdp_cuckoo_packets_total{name="default",outcome="no-rule",verdict="pass"}')" -ge 12 ] ||
		fail "packets that passed are not counted"
	assert_value 0 'xdp_cuckoo_packets_total{name="default",outcome="pass-rule",verdict="pass"}'
	assert_value 2 'xdp_cuckoo_rules{name="default"}'
	assert_value 1 'xdp_cuckoo_timed_rules{name="default"}'
	assert_value 2 'xdp_cuckoo_table_used_slots{name="default"}'
	assert_value 1 'xdp_cuckoo_filtering{name="default"}'
	assert_value 1 'xdp_cuckoo_interface_info{name="default",interface="vrx",direction="received",mode="native"}'
	value 'xdp_cuckoo_false_positive_ratio{name="default",family="ipv4"}' | awk '{ exit !($1 > 1e-26 && $1 < 1e-18) }' ||
		fail "an exact table has false positives"
	slots=$(xc status --json | sed -n 's/.*"slots": \([0-9]*\),*/\1/p')
	assert_value "$slots" 'xdp_cuckoo_table_slots{name="default"}'
}

# row INTERFACE: of counters.
row() {
	in_rx ip -o link show "$1" | awk -F: '{ print $1 % 64 }'
}

test_interfaces() {
	second_pair
	xc load vrx vrx2 >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_from 0 vtx vrx 30 >/dev/null || fail "the flow passed"
	send_from 0 vtx2 vrx2 20 >/dev/null || fail "the flow passed"
	row=$(row vrx)
	row2=$(row vrx2)
	xc unload vrx2 >/dev/null
	read_metrics
	assert_value 30 "xdp_cuckoo_interface_packets_total{name=\"default\",interface=\"vrx\",direction=\"received\",row=\"$row\",outcome=\"drop-rule\",verdict=\"drop\"}"
	assert_value 1160 "xdp_cuckoo_interface_bytes_total{name=\"default\",interface=\"-\",direction=\"received\",row=\"$row2\",outcome=\"drop-rule\",verdict=\"drop\"}"
	for family in packets bytes; do
		awk -v family="xdp_cuckoo_interface_${family}_total{" -v whole="xdp_cuckoo_${family}_total{" '
			index($0, family) == 1 { parts += $NF }
			index($0, whole) == 1 { all += $NF }
			END { print parts, all; exit !(all && parts == all) }' "$STATE/metrics" || fail "sums of $family"
	done
	# While the interface was gone it had a series of its own, so no series jumps.
	xc load vrx2 >/dev/null
	read_metrics
	assert_value 20 "xdp_cuckoo_interface_packets_total{name=\"default\",interface=\"vrx2\",direction=\"received\",row=\"$row2\",outcome=\"drop-rule\",verdict=\"drop\"}"
	! grep -q 'interface="-"' "$STATE/metrics" || fail "$(grep 'interface="-".* [1-9]' "$STATE/metrics")"
}

# Prometheus would refuse everything if one byte were not UTF-8.
test_odd_names_of_interfaces() {
	ip -n "$RX" link set vrx down
	ip -n "$RX" link set vrx name "$(printf 'v\377\033')"
	xc load "$(printf 'v\377\033')" >/dev/null 2>&1
	row=$(in_rx ip -o link | awk -F: 'NR > 1 { print $1 % 64 }')
	read_metrics
	$PYTHON -c 'open(__import__("sys").argv[1], encoding="utf-8").read()' "$STATE/metrics" || fail "not UTF-8"
	assert_value 1 'xdp_cuckoo_interface_info{name="default",interface="v??",direction="received",mode="native"}'
	assert_value 0 'xdp_cuckoo_interface_packets_total{name="default",interface="v??",direction="received",row="'"$row"'",outcome="drop-rule",verdict="drop"}'
	assert_shows '"interface": "v[?][?]", *$' xc status --json
	assert_shows '^v[?][?] ' xc stats --by interface
}

test_filters_that_do_not_filter() {
	filter_some
	for command in panic 'panic off' 'monitor-only on' 'monitor-only off'; do
		# shellcheck disable=SC2086 # words
		xc $command >/dev/null 2>&1
		read_metrics
		case $command in
		*\ off) assert_value 1 'xdp_cuckoo_filtering{name="default"}' ;;
		*) assert_value 0 'xdp_cuckoo_filtering{name="default"}' ;;
		esac
	done
}

test_filters_of_several_names() {
	filter_some
	veth "$RX" vweb "$TX" vwebtx
	xc --name web load vweb --compact >/dev/null
	xc --name web add 203.0.113.9 >/dev/null
	xc --name edge.config add --list far 203.0.113.10 >/dev/null 2>&1 # it does not run
	read_metrics
	assert_value 1 'xdp_cuckoo_list_rules{name="edge.config",list="far"}'
	assert_value 1 'xdp_cuckoo_rules{name="web"}'
	assert_value 2 'xdp_cuckoo_rules{name="default"}'
	assert_value 30 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	assert_value 0 'xdp_cuckoo_packets_total{name="web",outcome="drop-rule",verdict="drop"}'
	assert_value 1 'xdp_cuckoo_interface_info{name="web",interface="vweb",direction="received",mode="native"}'
	value 'xdp_cuckoo_false_positive_ratio{name="web",family="ipv4"}' | awk '{ exit !($1 > 1e-18) }' ||
		fail "a compact table has no false positives: $(grep false_positive "$STATE/metrics")"
}

# Each as `lists` has it, as long as there is one.
test_lists() {
	xc load vrx --capacity 1000 >/dev/null
	read_metrics
	! grep -q '^xdp_cuckoo_list_rules{' "$STATE/metrics" || fail "a list where there is none"
	printf '192.0.2.1\n192.0.2.2\n203.0.113.0/24\n' >"$STATE/list"
	before=$(date +%s)
	xc import "$STATE/list" --list first >/dev/null
	head -n 2 "$STATE/list" | xc import - --list second >/dev/null
	xc add 198.51.100.1 >/dev/null
	read_metrics
	assert_value 4 'xdp_cuckoo_rules{name="default"}'
	assert_value 3 'xdp_cuckoo_list_rules{name="default",list="first"}'
	assert_value 2 'xdp_cuckoo_list_rules{name="default",list="second"}'
	imported=$(value 'xdp_cuckoo_list_import_timestamp_seconds{name="default",list="first"}')
	[ "$imported" -ge "$before" ] || fail "imported at '$imported'"
	[ "$imported" -le "$(date +%s)" ] || fail "imported at '$imported'"
	xc lists delete first >/dev/null
	head -n 1 "$STATE/list" | xc import - --list second --replace >/dev/null
	read_metrics
	assert_equal '' "$(value 'xdp_cuckoo_list_rules{name="default",list="first"}')" "rules of a list that is deleted"
	assert_value 1 'xdp_cuckoo_list_rules{name="default",list="second"}'
}

# A list that is fed rule by rule has no time of an import, so no alert calls it old.
test_what_lists_matched() {
	filter_some
	xc add 203.0.113.7 --list bans >/dev/null
	printf '203.0.113.7\n203.0.113.8 action pass\n' | xc import - --list feed >/dev/null
	read_metrics
	for list in - bans feed; do
		assert_value 30 "xdp_cuckoo_list_matched_packets{name=\"default\",list=\"$list\",action=\"drop\"}"
		assert_value 1740 "xdp_cuckoo_list_matched_bytes{name=\"default\",list=\"$list\",action=\"drop\"}"
	done
	assert_value 0 'xdp_cuckoo_list_matched_packets{name="default",list="feed",action="pass"}'
	assert_value 1 'xdp_cuckoo_list_rules{name="default",list="bans"}'
	assert_equal '' "$(value 'xdp_cuckoo_list_import_timestamp_seconds{name="default",list="bans"}')" "an import"
	xc unload --all >/dev/null 2>&1
	xc load vrx --no-counters >/dev/null
	read_metrics
	! grep -q '^xdp_cuckoo_list_matched_packets{' "$STATE/metrics" || fail "counts of a table that does not count"
	assert_value 2 'xdp_cuckoo_list_rules{name="default",list="feed"}'
}

# As many as there can be, by the longest names.
test_all_lists() {
	xc load vrx --capacity 1000 >/dev/null
	for i in $(seq 63); do
		printf '192.0.2.%d\n' "$i" | xc import - --list "$(printf 'l%030d' "$i")" >/dev/null
	done
	read_metrics
	assert_equal 63 "$(grep -c '^xdp_cuckoo_list_rules{.*} 1$' "$STATE/metrics")" "lists"
	assert_equal 63 "$(grep -c '^xdp_cuckoo_list_import_timestamp_seconds{' "$STATE/metrics")" "their times"
}

test_store_that_cannot_be_read() {
	filter_some
	dd if=/dev/zero of="$STATE/store/default/data.mdb" bs=4096 count=4 conv=notrunc 2>/dev/null
	read_metrics
	assert_error "^note: no rules of 'default': "
	assert_equal '' "$(value 'xdp_cuckoo_rules{name="default"}')" "rules"
	assert_value 0 'xdp_cuckoo_store_readable{name="default"}'
	assert_value 2 'xdp_cuckoo_table_used_slots{name="default"}'
}

# Reading a store whose pages are gone raises a signal. The filter's metrics are written all the same.
test_store_that_was_cut_short() {
	filter_some
	read_metrics
	assert_value 1 'xdp_cuckoo_store_readable{name="default"}'
	for bytes in 8192 4096; do
		case_begin "$bytes bytes left"
		truncate -s "$bytes" "$STATE/store/default/data.mdb"
		read_metrics
		assert_error "^note: no rules of 'default': .*data.mdb (has been cut short|is damaged)"
		assert_value 30 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
		assert_value 0 'xdp_cuckoo_store_readable{name="default"}'
		assert_equal '' "$(value 'xdp_cuckoo_rules{name="default"}')" "rules"
	done
}

# samples: the lines without their values.
samples() {
	sed 's/ [^ ]*$//'
}

# Whichever allocation fails, the metrics are complete or the command fails.
test_short_of_memory() {
	filter_some
	assert_status 0 faulty FAULT_JSON=1 FAULT_KINDS=a "FAULT_COUNT=$STATE/count" metrics
	samples <"$STATE/out" >"$STATE/whole"
	steps=$(sed -n 's/^a \([0-9]*\)$/\1/p' "$STATE/count")
	[ "$steps" -gt 1000 ] || fail "only ${steps:-no} allocations: $(cat "$STATE/count")"
	refused=0
	for step in 1 2 10 $((steps / 4)) $((steps / 2)) $((steps * 3 / 4)) $((steps - 5)) "$steps"; do
		case_begin "allocation $step of $steps"
		run faulty FAULT_JSON=1 FAULT_KINDS=a "FAULT_AT=$step" FAULT_ERRNO=12 metrics
		case $STATUS in
		0) samples <"$STATE/out" | cmp -s - "$STATE/whole" || fail "samples are missing" ;;
		4)
			assert_error 'memory'
			assert_equal 0 "$(grep -c . "$STATE/out")" "lines of a failure"
			refused=$((refused + 1))
			;;
		*) fail "status $STATUS: $(cat "$STATE/err")" ;;
		esac
	done
	[ "$refused" -ge 4 ] || fail "no more than $refused failures"
}

# What Prometheus' own tool makes of form, names and types.
test_promtool_finds_nothing() {
	needs_promtool
	filter_some
	read_metrics
	assert_status 0 "$PROMTOOL" check metrics <"$STATE/metrics"
	assert_equal '' "$(cat "$STATE/out" "$STATE/err")" "what it says"
}

# A packet of a drop rule never passes, one of a pass rule is never dropped. Where nothing is looked up, everything passes.
test_series_that_cannot_grow_are_absent() {
	xc load vrx >/dev/null
	read_metrics
	assert_equal 28 "$(grep -c '^xdp_cuckoo_packets_total' "$STATE/metrics")" "series"
	for series in 'drop-rule",verdict="pass' 'pass-rule",verdict="drop' 'panic",verdict="drop' 'monitor-rule",verdict="drop' 'not-set-up",verdict="would-drop'; do
		! grep -q "outcome=\"$series\"" "$STATE/metrics" || fail "$series"
	done
	for series in 'drop-rule",verdict="would-drop' 'no-rule",verdict="drop' 'panic",verdict="pass'; do
		grep -q "^xdp_cuckoo_packets_total.*outcome=\"$series\"" "$STATE/metrics" || fail "no $series"
	done
}

# Queries and configuration name outcomes as metrics do: without spaces.
test_names_have_no_spaces() {
	xc load vrx >/dev/null
	read_metrics
	assert_equal '' "$(grep -Eo '(outcome|verdict)="[^"]*[^a-z"-][^"]*"' "$STATE/metrics")" "labels with other characters"
	grep -o 'outcome="[^"]*"' "$STATE/metrics" | sort -u | sed 's/.*="//; s/"//' >"$STATE/outcomes"
	"$TOOL" help stats | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' | sort | diff "$STATE/outcomes" - || fail "help stats has others"
	xc policy | sed '1d; s/ .*//' | sort | comm -13 "$STATE/outcomes" - >"$STATE/only"
	assert_equal '' "$(cat "$STATE/only")" "outcomes that only policy knows"
	assert_equal '' "$(sed -n 's/^# HELP [^ ]* //p' "$STATE/metrics" | awk 'length > 80')" "long help"
}

# Each family is described once, before its samples, and each sample appears once.
test_form() {
	filter_some
	read_metrics
	assert_equal '' "$(grep -v '^#' "$STATE/metrics" | sed 's/ [^ ]*$//' | sort | uniq -d)" "samples that come twice"
	awk '
	$1 == "#" && $2 == "HELP" { help[$3]++; next }
	$1 == "#" && $2 == "TYPE" { type[$3]++; family = $3; next }
	{ name = $1; sub(/[{].*/, "", name); if (name != family || help[name] != 1 || type[name] != 1) { print; bad = 1 } }
	END { exit bad }' "$STATE/metrics" || fail "samples out of place"
}

test_json_says_the_same() {
	silence
	filter_some
	read_metrics
	xc metrics --json >"$STATE/json"
	$PYTHON -c '
import json, sys
for family in json.load(open(sys.argv[1])):
    for sample in family["samples"]:
        labels = ",".join("%s=\"%s\"" % (name, value) for name, value in sample["labels"].items())
        print(family["metric"] + "{" + labels + "}", "%.5g" % sample["value"])' "$STATE/json" >"$STATE/expected"
	grep -v '^#' "$STATE/metrics" | awk '{ sub(/ [^ ]*$/, sprintf(" %.5g", $NF)); print }' |
		diff "$STATE/expected" - || fail "text and JSON differ"
}

test_a_file_is_there_whole_or_not() {
	filter_some
	read_metrics
	assert_status 0 xc metrics "$STATE/file.prom"
	assert_equal "$(grep -c . "$STATE/metrics")" "$(grep -c . "$STATE/file.prom")" "lines"
	assert_equal "644" "$(stat -c %a "$STATE/file.prom")" "who may read it"
	mkdir "$STATE/full"
	mount -t tmpfs -o size=4k none "$STATE/full"
	on_exit "umount '$STATE/full'"
	assert_fails 3 "cannot write '.*/full/file.prom': No space left on device" xc metrics "$STATE/full/file.prom"
	assert_equal '' "$(ls "$STATE/full")" "files left"
	assert_status 3 xc metrics "$STATE/none/file.prom"
}

# fetch: what the node exporter serves.
fetch() {
	in_rx $PYTHON -c 'import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())' "http://127.0.0.1:$PORT/metrics"
}

test_node_exporter() {
	[ -x "$NODE_EXPORTER" ] || skip "no prometheus-node-exporter; make packages fetches it"
	filter_some
	mkdir "$STATE/textfiles"
	xc metrics "$STATE/textfiles/xdp-cuckoo.prom"
	# Not by in_rx: it would be a shell in between that is killed.
	nsenter --net="/run/netns/$RX" "$NODE_EXPORTER" --collector.disable-defaults --collector.textfile --log.level=error \
		--collector.textfile.directory="$STATE/textfiles" --web.listen-address="127.0.0.1:$PORT" \
		>"$STATE/exporter.log" 2>&1 &
	exporter=$!
	on_exit "kill $exporter 2>/dev/null; wait $exporter 2>/dev/null"
	WAIT_LOG=$STATE/exporter.log
	wait_for "the node exporter" fetch
	fetch >"$STATE/metrics"
	assert_value 0 node_textfile_scrape_error
	assert_value 30 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	assert_equal "$(grep -vc '^#' "$STATE/textfiles/xdp-cuckoo.prom")" "$(grep -c '^xdp_cuckoo_' "$STATE/metrics")" \
		"samples that it serves"
}

run_tests "$0" "$@"
