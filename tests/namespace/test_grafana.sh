#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The dashboard for Grafana asks for what the program tells, all of it, and in expressions that Prometheus understands.
. tests/lib.sh
. tests/namespace/metrics.sh

DASHBOARD=user/integrations/grafana/xdp-cuckoo.json
ALERTS=user/integrations/prometheus/alerts.yml
# Families that it does not show: only alerts are about them.
LEFT_OUT='xdp_cuckoo_configuration_wrong
xdp_cuckoo_interface_behind_another
xdp_cuckoo_interface_configured
'

dashboard() {
	$PYTHON tests/helpers/dashboard.py "$1" "$DASHBOARD"
}

test_it_is_json_with_an_id_for_each_panel() {
	"$HELPERS/json_check" <"$DASHBOARD" || fail "not JSON"
	dashboard ids >"$STATE/ids"
	[ "$(wc -l <"$STATE/ids")" -ge 10 ] || fail "no panels"
	assert_equal '' "$(sort "$STATE/ids" | uniq -d)" "ids that come twice"
}

test_metrics_are_those_of_the_program() {
	read_metrics
	sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$STATE/metrics" | sort >"$STATE/families"
	[ "$(wc -l <"$STATE/families")" -ge 15 ] || fail "families not found"
	{
		dashboard metrics
		printf '%s' "$LEFT_OUT"
	} | sort >"$STATE/shown"
	diff "$STATE/families" "$STATE/shown" || fail "the program has those with <, the dashboard those with >"
}

# The labels of each expression must be labels that the program writes.
test_labels_are_those_of_the_program() {
	filter_some
	read_metrics
	sed -n 's/^[a-z_]*{\(.*\)} [^ ]*$/\1/p' "$STATE/metrics" | grep -Eo '[a-z_]+="' | sed 's/="//' | sort -u >"$STATE/labels"
	echo instance >>"$STATE/labels"
	dashboard rules | grep -Eo 'by \([^)]*\)|[{,][a-z_]+(=|!)' | sed 's/^by//' | grep -Eo '[a-z_]+' | sort -u >"$STATE/used"
	[ "$(wc -l <"$STATE/used")" -ge 4 ] || fail "labels not found"
	assert_equal '' "$(sort -u "$STATE/labels" | comm -13 - "$STATE/used")" "labels that nothing has"
}

test_expressions_are_understood() {
	needs_promtool
	dashboard rules >"$STATE/rules.json"
	assert_status 0 "$PROMTOOL" check rules "$STATE/rules.json"
	assert_output "SUCCESS: $(grep -c '"expr"' "$STATE/rules.json") rules found"
}

# The alerts for Prometheus use existing metrics; each begins, lasts a day, and ends with its cause.
test_alerts() {
	read_metrics
	{
		sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$STATE/metrics"
		grep -Eo '\bxdp_cuckoo_fleet_[a-z_]+' user/fleet/hosts.c # of `fleet metrics`, which needs a broker
	} | sort >"$STATE/families"
	grep -Eo '\bxdp_cuckoo_[a-z_]+' "$ALERTS" | sort -u >"$STATE/asked"
	[ "$(wc -l <"$STATE/asked")" -ge 6 ] || fail "metrics not found"
	assert_equal '' "$(comm -13 "$STATE/families" "$STATE/asked")" "metrics that the program does not have"
	assert_equal "$(sed -n 's/.*alert: //p' "$ALERTS" | sort)" \
		"$(sed -n 's/.*{alertname="\(.*\)"}.*/\1/p' tests/namespace/alerts_of_a_day.yml | sort)" "alerts that last a day"
	needs_promtool
	assert_status 0 "$PROMTOOL" check rules "$ALERTS"
	for file in alerts alerts_of_a_day; do
		sed "s,RULES,$PWD/$ALERTS," "tests/namespace/$file.yml" >"$STATE/$file.yml"
		assert_status 0 "$PROMTOOL" test rules "$STATE/$file.yml"
	done
}

run_tests "$0" "$@"
