// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/view_metrics.h"

#include <stdlib.h>

#include "metrics/metrics.h"

/* A number of the host's status, once for each host. */
static void add_field(json_t *metrics, const struct fleet_view *view, const char *fleet, const char *name,
		      enum metric_type type, const char *help, const char *field)
{
	json_t *family = metrics_family(metrics, name, type, help);

	for (size_t i = 0; i < view->hosts_count; i++)
		metrics_sample(family, json_pack("{s:s, s:s}", "fleet", fleet, "host", view->hosts[i].name),
			       fleet_host_number(&view->hosts[i], field));
}

static void add_hosts(json_t *metrics, const struct fleet_view *view, const char *fleet, __s64 now_ms)
{
	json_t *states = metrics_family(metrics, "xdp_cuckoo_fleet_host_state", METRIC_GAUGE,
					"1: the state of the host; xdp-cuckoo-fleet(7) explains them.");
	json_t *seen = metrics_family(metrics, "xdp_cuckoo_fleet_host_last_seen_timestamp_seconds", METRIC_GAUGE,
				      "When the host last reported, by the broker's clock.");
	json_t *skew = metrics_family(metrics, "xdp_cuckoo_fleet_host_clock_skew_seconds", METRIC_GAUGE,
				      "The clock of the host minus that of the broker.");

	for (size_t i = 0; i < view->hosts_count; i++) {
		const struct fleet_host *host = &view->hosts[i];
		json_t *labels = json_pack("{s:s, s:s}", "fleet", fleet, "host", host->name);

		metrics_sample(states,
			       json_pack("{s:s, s:s, s:s}", "fleet", fleet, "host", host->name, "state",
					 fleet_host_state(view, host, now_ms)),
			       1);
		metrics_sample(seen, json_incref(labels), fleet_host_number(host, "seen") / 1000.0);
		metrics_sample(skew, labels, fleet_host_number(host, "skew") / 1000.0);
	}
	add_field(metrics, view, fleet, "xdp_cuckoo_fleet_host_rules", METRIC_GAUGE,
		  "Rules of the fleet's lists on the host.", "rules");
	add_field(metrics, view, fleet, "xdp_cuckoo_fleet_host_refused_rules", METRIC_GAUGE,
		  "Rules that the host has left out.", "refused");
	add_field(metrics, view, fleet, "xdp_cuckoo_fleet_host_dropped_packets_total", METRIC_COUNTER,
		  "Packets that the host's filter has dropped, by rules of any list and by policies.", "dropped");
}

int view_metrics(const struct fleet_view *view, const char *fleet, bool is_panic, __s64 now_ms, json_t **metrics)
{
	json_t *panic, *rules;
	int error;

	*metrics = metrics_begin();
	panic = metrics_family(*metrics, "xdp_cuckoo_fleet_panic", METRIC_GAUGE,
			       "1: the fleet passes everything; 0: it filters.");
	metrics_sample(panic, json_pack("{s:s}", "fleet", fleet), is_panic);
	rules = metrics_family(*metrics, "xdp_cuckoo_fleet_list_rules", METRIC_GAUGE, "Rules of a list at the broker.");
	for (size_t i = 0; i < view->lists_count; i++)
		if (!*view->lists[i].broken.text)
			metrics_sample(rules, json_pack("{s:s, s:s}", "fleet", fleet, "list", view->lists[i].name),
				       view->lists[i].head.rules);
	add_hosts(*metrics, view, fleet, now_ms);
	error = metrics_end();
	if (error)
		json_decref(*metrics);
	return error;
}
