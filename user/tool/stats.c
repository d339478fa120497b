// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stats: shows what filters passed and dropped, as sums or by interval. stats_by_rule.c has --by rule, list and prefix.
 * metrics, exporter: print or serve the state of all running filters for Prometheus.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tool/internal.h"
#include "base/clock.h"
#include "command/options.h"
#include "counters/counters.h"
#include "io/output.h"
#include "io/whole_file.h"
#include "kernel/interfaces.h"

/* ---- reading ---- */

static int read_tally(const struct invocation *invocation, bool is_quiet, struct tally *tally, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	size_t count = 0;
	int error = kernel_find_filters((struct kernel_wish){ .must_see = invocation->name }, &filters, &count, reason);

	*tally = (struct tally){};
	for (size_t f = 0; f < count && !error; f++) {
		if (!kernel_may_be_named(filters[f].config, invocation->name))
			continue;
		if (!is_quiet)
			command_report_run(&filters[f]);
		error = tally_add(tally, &filters[f], reason);
	}
	kernel_filters_free(filters, count);
	return error;
}

/* ---- rows ---- */

/* What to show. */
struct view {
	enum stats_by by;
	unsigned int row; /* of the only interface; TALLY_ALL: all */
};

/* Which columns rows have. */
struct form {
	bool has_dropped, has_would_drop;
	const char *direction; /* of the next row, in a column of its own; NULL: there is no such column */
	double seconds;        /* of the interval, to show rates; 0: show sums */
};

static void add_number(json_t *row, const char *done, const char *unit, json_int_t number)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", done, unit);
	json_object_set_new(row, name, json_integer(number));
}

static void add_row(json_t *rows, const char *column, const char *name, const struct abi_counter counter[VERDICTS],
		    const struct form *form)
{
	json_t *row = json_pack("{s:s}", column, name);

	if (form->direction)
		json_object_set_new(row, "direction", json_string(form->direction));
	for (enum abi_verdict verdict = 0; verdict < VERDICTS; verdict++) {
		const char *done = verdict_words[verdict].done;

		if ((verdict == VERDICT_WOULD_DROP && !form->has_would_drop) ||
		    (verdict == VERDICT_DROP && !form->has_dropped))
			continue;
		if (form->seconds > 0) {
			add_number(row, done, "pps", counter_rounded(counter[verdict].packets / form->seconds));
			add_number(row, done, "bps", counter_rounded(counter[verdict].bytes * 8. / form->seconds));
			continue;
		}
		add_number(row, done, "packets", counter[verdict].packets);
		add_number(row, done, "bytes", counter[verdict].bytes);
	}
	json_array_append_new(rows, row);
}

/* Adds a row with the sums over all outcomes. */
static void add_sums(json_t *rows, const char *column, const char *name,
		     const struct abi_counter counters[ABI_COUNTERS], const struct form *form)
{
	struct abi_counter verdicts[VERDICTS];

	tally_verdicts(counters, verdicts);
	add_row(rows, column, name, verdicts, form);
}

/* Text has a column for the direction only where sent packets are filtered or were counted. */
static void add_interfaces(json_t *rows, const struct tally *counts, struct form *form)
{
	struct abi_counter counters[ABI_COUNTERS];
	bool has_sent = output_is_json();

	for (unsigned int row = ABI_COUNTER_SENT; row < ABI_COUNTER_ROWS && !has_sent; row++) {
		tally_sum(counts, row, TALLY_ALL, counters);
		has_sent = *counts->interfaces[row] || tally_has_packets(counters);
	}
	for (unsigned int row = 0; row < ABI_COUNTER_ROWS; row++) {
		if (!*counts->interfaces[row])
			continue;
		tally_sum(counts, row, TALLY_ALL, counters);
		form->direction = has_sent ? tally_direction(row) : NULL;
		add_sums(rows, "interface", counts->interfaces[row], counters, form);
	}
	form->direction = has_sent ? "both" : NULL;
	tally_sum_elsewhere(counts, counters);
	if (tally_has_packets(counters))
		add_sums(rows, "interface", "-", counters, form);
}

/* `counts` is `sums`, or the growth of `sums` in an interval. */
static json_t *rows_of(const struct view *view, const struct tally *counts, const struct tally *sums, double seconds)
{
	static const char *const columns[] = {
		[STATS_BY_OUTCOME] = "outcome",
		[STATS_BY_INTERFACE] = "interface",
		[STATS_BY_CPU] = "cpu",
	};
	struct abi_counter counters[ABI_COUNTERS], verdicts[VERDICTS], all[ABI_COUNTERS], one[ABI_COUNTERS];
	struct form form = { .seconds = seconds };
	json_t *rows = json_array();
	char name[16];

	tally_sum(sums, view->row, TALLY_ALL, all);
	tally_verdicts(all, verdicts);
	form.has_would_drop = output_is_json() || sums->is_monitor_only || verdicts[VERDICT_WOULD_DROP].packets;
	form.has_dropped = output_is_json() || !sums->is_monitor_only || verdicts[VERDICT_DROP].packets;
	tally_sum(counts, view->row, TALLY_ALL, counters);
	if (view->by == STATS_BY_INTERFACE)
		add_interfaces(rows, counts, &form);
	/* CPUs that have filtered a packet. */
	for (unsigned int cpu = 0; view->by == STATS_BY_CPU && cpu < counts->cpus; cpu++) {
		tally_sum(sums, view->row, cpu, one);
		if (!tally_has_packets(one))
			continue;
		tally_sum(counts, view->row, cpu, one);
		snprintf(name, sizeof(name), "%u", cpu);
		add_sums(rows, "cpu", name, one, &form);
	}
	/* A rare outcome gets a row only if `all` has packets of it: otherwise the row would be noise. */
	for (enum abi_outcome outcome = 0; view->by == STATS_BY_OUTCOME && outcome < OUTCOMES; outcome++) {
		bool is_shown = output_is_json() || outcome == OUTCOME_NO_RULE || outcome == OUTCOME_NOT_IP ||
				outcome == OUTCOME_DROP_RULE || outcome == OUTCOME_PASS_RULE;

		for (enum abi_verdict verdict = 0; verdict < VERDICTS; verdict++)
			is_shown |= all[outcome * VERDICTS + verdict].packets > 0;
		if (is_shown)
			add_row(rows, "outcome", outcome_words[outcome].name, &counters[outcome * VERDICTS], &form);
	}
	add_sums(rows, columns[view->by], "all", counters, &form);
	return rows;
}

/* ---- intervals ---- */

/* Waits for one interval after the reading *before, and replaces that reading by a new one. */
static enum command_status run_interval(const struct invocation *invocation, const struct view *view,
					struct tally *before, bool is_first)
{
	const __s64 end_ms = clock_ms(CLOCK_MONOTONIC) + invocation->interval_ms;
	struct tally now = {}, growth = {};
	struct reason reason;
	json_t *rows;
	int error;

	while (clock_pause(end_ms - clock_ms(CLOCK_MONOTONIC)) == -EINTR)
		;
	error = read_tally(invocation, true, &now, &reason);
	if (!error && now.filters && tally_since(before, &now, &growth))
		error = reason_set(&reason, -ENOMEM, "not enough memory");
	if (!error && now.filters) {
		rows = rows_of(view, &growth, &now, growth.seconds);
		if (!output_is_json() && !is_first)
			putchar('\n');
		if (output_is_json())
			output_answer(json_pack("{s:o, s:f, s:o}", "time", output_time(time(NULL), -1), "interval_s",
						growth.seconds, "rates", rows),
				      "");
		else
			output_print(rows);
	}
	tally_close(&growth);
	tally_close(before);
	*before = now;
	if (error)
		return command_fail_because(error, &reason);
	if (!now.filters)
		return command_fail_not_running(invocation->name);
	return output_flush() ? STATUS_SYSTEM : STATUS_DONE;
}

/* ---- reset ---- */

static enum command_status reset(const struct invocation *invocation)
{
	struct session session;
	struct reason reason;
	int error = session_open(&session, invocation->state, invocation->name, &reason);
	const size_t count = session.filters_count;

	if (!error)
		command_report_undone(&session);
	for (size_t i = 0; i < count && !error; i++) {
		struct filter *filter = &session.filters[i];

		error = kernel_reset_counters(&filter->kernel, &reason);
		for (enum filter_part part = 0; part < FILTER_PARTS && !error; part++)
			if (table_reset_counts(&filter->tables.part[part]))
				error = filter_unmapped_reason(&reason);
	}
	session_close(&session);
	if (!error && !count)
		return command_fail_not_running(invocation->name);
	return command_answer(error, &reason,
			      json_pack("{s:I, s:b}", "reset_filters", (json_int_t)count, "changed", true));
}

/* ---- options ---- */

static enum command_status read_by(const struct invocation *invocation, enum stats_by *by, struct stats_prefix *prefix)
{
	static const char *const words[] = {
		[STATS_BY_INTERFACE] = "interface", [STATS_BY_CPU] = "cpu",   [STATS_BY_SOURCE] = "source",
		[STATS_BY_RULE] = "rule",           [STATS_BY_LIST] = "list",
	};
	const char *text = invocation->by;

	*by = STATS_BY_OUTCOME;
	if (!text)
		return STATUS_DONE;
	for (*by = STATS_BY_INTERFACE; *by <= STATS_BY_LIST; ++*by)
		if (!strcmp(words[*by], text))
			return STATUS_DONE;
	if (!stats_prefix_parse(text, prefix))
		return STATUS_DONE;
	if (!strncmp(text, "prefix", 6))
		return command_fail(STATUS_USAGE,
				    "--by '%s': must be prefix, or the bits of IPv4 (1 to 32) and of IPv6 (1 to 128): "
				    "prefix=16,32",
				    text);
	return command_fail_choices("--by", text, "interface|cpu|source|rule|list|prefix");
}

static enum command_status run_once(const struct invocation *invocation, enum stats_by by)
{
	struct view view = { .by = by, .row = TALLY_ALL };
	enum command_status status = STATUS_DONE;
	struct interface interface;
	struct tally tally;
	unsigned int row = TALLY_ALL;
	const char *name;
	struct reason reason;
	const int error = read_tally(invocation, false, &tally, &reason);

	if (error)
		status = command_fail_because(error, &reason);
	else if (!tally.filters)
		status = command_fail_not_running(invocation->name);
	name = invocation->count ? invocation->operands[0] : NULL;
	if (status == STATUS_DONE && name) {
		/* The row of counters of an interface. */
		if (!interfaces_find(name, &interface))
			row = abi_counter_row(interface.index);
		if (row == TALLY_ALL || !*tally.interfaces[row])
			status = command_fail(STATUS_USAGE,
					      "the filter '%s' does not run on '%s'; see xdp-cuckoo status",
					      invocation->name, name);
		else if (strcmp(tally.interfaces[row], name))
			output_note("these are the counts of %s", tally.interfaces[row]);
		view.row = row | TALLY_BOTH;
	}
	if (status == STATUS_DONE && !invocation->interval_ms)
		output_print(rows_of(&view, &tally, &tally, 0));
	for (__u64 i = 0; status == STATUS_DONE && invocation->interval_ms; i++) {
		if (invocation->end_count && i == invocation->end_count)
			break;
		status = run_interval(invocation, &view, &tally, i == 0);
	}
	tally_close(&tally);
	return status;
}

static enum command_status run_stats(const struct invocation *words)
{
	struct invocation copy = *words;
	const struct invocation *invocation = &copy;
	struct stats_prefix prefix = {};
	const char *interface;
	struct reason reason;
	enum stats_by by;

	command_skip_dev(&copy);
	interface = copy.count ? copy.operands[0] : NULL;
	if (copy.count > 1)
		return command_fail(STATUS_USAGE, "stats: too many words: '%s'; " INSTEAD_INTERFACES, copy.operands[1]);
	if (read_by(invocation, &by, &prefix))
		return STATUS_USAGE;
	if (copy.is_reset && (copy.count || copy.by || copy.top || copy.interval_ms))
		return command_fail(STATUS_USAGE, "stats --reset takes no other options, and no interface");
	if (interface && by != STATS_BY_OUTCOME && by != STATS_BY_CPU)
		return command_fail(STATUS_USAGE, "stats %s: --by %s is for all interfaces: leave out one of them",
				    interface, copy.by);
	if (copy.end_count && !copy.interval_ms)
		return command_fail(STATUS_USAGE, "--count needs --interval");
	if (copy.end_count && by == STATS_BY_SOURCE)
		return command_fail(STATUS_USAGE, "--by source samples one interval: leave out --count");
	if (copy.top && by < STATS_BY_SOURCE)
		return command_fail(STATUS_USAGE, "--top needs --by source, rule, list or prefix");
	if (copy.interval_ms && by >= STATS_BY_RULE)
		return command_fail(STATUS_USAGE, "--interval and --by %s do not go together", copy.by);
	if (interface && !interfaces_index(interface) && strpbrk(interface, ".:"))
		return command_fail(STATUS_USAGE,
				    "stats '%s': packets of a rule are printed by: xdp-cuckoo%s list %s --counters",
				    interface, session_name_option(invocation->name), interface);
	if (interface && !interfaces_index(interface)) {
		kernel_no_interface_reason(interface, &reason);
		return command_fail(STATUS_USAGE, "%s; " INSTEAD_INTERFACES, reason.text);
	}
	if (invocation->is_reset)
		return reset(invocation);
	if (by == STATS_BY_SOURCE)
		return stats_by_source(invocation);
	if (by >= STATS_BY_RULE)
		return stats_by_rule(invocation, by, &prefix);
	return run_once(invocation, by);
}

const struct command command_stats = {
	.name = "stats",
	.usage = "[IFACE] [--by interface|cpu|source|rule|list|prefix] [--top N] [--interval TIME [--count N]] "
		 "[--reset]",
	.explain = explain_outcomes,
	.max = 2, /* "dev IFACE" */
	.instead = INSTEAD_INTERFACES,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_stats,
};
