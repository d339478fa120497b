// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "watch/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/rule.h"

int top_model_open(struct top_model *model, enum top_view view)
{
	*model = (struct top_model){ .view = view, .line = calloc(TOP_LINES_MAX, sizeof(*model->line)) };
	return model->line ? 0 : -ENOMEM;
}

void top_model_close(struct top_model *model)
{
	free(model->line);
	*model = (struct top_model){};
}

static double per_second(double amount, double seconds)
{
	return seconds > 0 ? amount / seconds : 0;
}

static struct top_rates rates_of(const struct abi_counter counters[ABI_COUNTERS], double seconds)
{
	struct abi_counter verdicts[VERDICTS];
	struct top_rates rates;

	tally_verdicts(counters, verdicts);
	for (enum abi_verdict verdict = 0; verdict < VERDICTS; verdict++) {
		rates.pps[verdict] = per_second(verdicts[verdict].packets, seconds);
		rates.bps[verdict] = per_second(8. * verdicts[verdict].bytes, seconds);
	}
	return rates;
}

static void add_line(struct top_model *model, const char *name, const struct abi_counter counters[ABI_COUNTERS],
		     double seconds)
{
	if (model->lines == TOP_LINES_MAX)
		return;
	model->line[model->lines] = (struct top_line){ .rates = rates_of(counters, seconds) };
	snprintf(model->line[model->lines++].name, TALLY_NAME_BYTES, "%s", name);
}

static int compare_lines(const void *a, const void *b, void *by)
{
	const struct top_line *x = a, *y = b;
	const enum top_sort sort = *(const enum top_sort *)by;
	double of_x = 0, of_y = 0;

	if (sort == TOP_SORT_DROPPED) {
		const bool is_equal = x->rates.pps[VERDICT_DROP] == y->rates.pps[VERDICT_DROP];

		of_x = x->rates.pps[is_equal ? VERDICT_WOULD_DROP : VERDICT_DROP];
		of_y = y->rates.pps[is_equal ? VERDICT_WOULD_DROP : VERDICT_DROP];
	} else if (sort == TOP_SORT_PASSED) {
		of_x = x->rates.pps[VERDICT_PASS];
		of_y = y->rates.pps[VERDICT_PASS];
	}
	return of_x == of_y ? strverscmp(x->name, y->name) : (of_x < of_y) - (of_x > of_y);
}

static void sort_lines(struct top_model *model)
{
	qsort_r(model->line, model->lines, sizeof(*model->line), compare_lines, &model->sort);
}

void top_model_add(struct top_model *model, const struct tally *difference, const struct tally *now)
{
	struct abi_counter counters[ABI_COUNTERS], verdicts[VERDICTS];
	const __u64 at = model->intervals++ % TOP_HISTORY;

	tally_sum(now, TALLY_ALL, TALLY_ALL, counters);
	tally_verdicts(counters, verdicts);
	model->has_would_drop = now->is_monitor_only || verdicts[VERDICT_WOULD_DROP].packets;
	tally_sum(difference, TALLY_ALL, TALLY_ALL, counters);
	model->has_rates = true;
	model->seconds = difference->seconds;
	model->total = rates_of(counters, difference->seconds);
	model->by_policy =
		model->total.pps[VERDICT_DROP] -
		per_second(counters[OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP].packets, difference->seconds);
	model->stopped = per_second(counters[ABI_COUNTER_STOPPED].packets, difference->seconds);
	model->retries = per_second(counters[ABI_COUNTER_RETRIES].packets, difference->seconds);
	model->lost = 0;
	for (int row = 0; row < ABI_COUNTER_ROWS; row++)
		model->lost += per_second(difference->lost[row], difference->seconds);
	model->passed[at] = model->total.pps[VERDICT_PASS];
	model->dropped[at] = model->total.pps[VERDICT_DROP] + model->total.pps[VERDICT_WOULD_DROP];
	top_model_list(model, difference, now);
}

void top_model_list(struct top_model *model, const struct tally *difference, const struct tally *now)
{
	struct abi_counter counters[ABI_COUNTERS];
	char name[TOP_NUMBER_BYTES], line[TALLY_NAME_BYTES + sizeof(" sent")];

	model->lines = 0;
	if (model->view == TOP_BY_CPU) {
		/* CPUs that have ever filtered a packet. */
		for (unsigned int cpu = 0; cpu < now->cpus; cpu++) {
			tally_sum(now, TALLY_ALL, cpu, counters);
			if (!tally_has_packets(counters))
				continue;
			tally_sum(difference, TALLY_ALL, cpu, counters);
			snprintf(name, sizeof(name), "%u", cpu);
			add_line(model, name, counters, difference->seconds);
		}
	} else {
		for (unsigned int row = 0; row < ABI_COUNTER_ROWS; row++) {
			if (!*difference->interfaces[row])
				continue;
			tally_sum(difference, row, TALLY_ALL, counters);
			snprintf(line, sizeof(line), "%s%s", difference->interfaces[row],
				 row < ABI_COUNTER_SENT ? "" : " sent");
			add_line(model, line, counters, difference->seconds);
		}
		tally_sum_elsewhere(difference, counters);
		if (tally_has_packets(counters))
			add_line(model, "-", counters, difference->seconds);
	}
	sort_lines(model);
}

void top_model_rank(struct top_model *model, const struct hits *hits, const struct top_names *names)
{
	size_t unknown = 0;

	model->rules = 0;
	for (size_t i = 0; i < hits->ranked_count; i++) {
		const struct top_name *name = top_names_find(names, hits->ranked[i].tag);

		if (name && name->action == RULE_PASS)
			continue;
		unknown += !name;
		model->rule[model->rules++] = (struct top_rule){ hits->ranked[i].rate, name };
	}
	model->rules_note[0] = '\0';
	if (unknown)
		snprintf(model->rules_note, sizeof(model->rules_note), "%zu %s not looked up yet", unknown,
			 unknown == 1 ? "rule is" : "rules are");
	else if (!hits->passes)
		snprintf(model->rules_note, sizeof(model->rules_note), "being counted for the first time");
}

bool top_model_key(struct top_model *model, int key)
{
	switch (key) {
	case 's':
		model->sort = (model->sort + 1) % TOP_SORTS;
		sort_lines(model);
		return true;
	case 'p':
	case ' ':
		model->is_paused = !model->is_paused;
		return true;
	case 'i':
	case 'c':
		model->view = key == 'c' ? TOP_BY_CPU : TOP_BY_INTERFACE;
		return true;
	case '?':
	case 'h':
		model->has_help = !model->has_help;
		return true;
	default:
		return false;
	}
}

double top_model_past(const struct top_model *model, const double history[TOP_HISTORY], __u64 ago)
{
	if (ago >= model->intervals || ago >= TOP_HISTORY)
		return 0;
	return history[(model->intervals - 1 - ago) % TOP_HISTORY];
}
