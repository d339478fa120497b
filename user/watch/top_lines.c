// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes a top_model as text and as JSON. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/safe_text.h"
#include "counters/counters.h"
#include "io/output.h"
#include "rule/rule.h"
#include "watch/top.h"

const char *top_number(double number, char text[TOP_NUMBER_BYTES])
{
	static const char units[] = " kMGTPE";
	int unit = 0;

	/* A number that rounds up to 1000 gets the next unit. */
	while (number >= (unit ? 999.5 : 999.95) && units[unit + 1]) {
		number /= 1000;
		unit++;
	}
	if (!unit)
		snprintf(text, TOP_NUMBER_BYTES, "%.*f", number < 9.95 && number != (int)number, number);
	else
		snprintf(text, TOP_NUMBER_BYTES, "%.*f%c", number < 9.995 ? 2 : number < 99.95, number, units[unit]);
	return text;
}

static double load_percent(const struct top_state *state)
{
	return state->slots ? 100. * state->used / state->slots : 0;
}

static void put_rates(const struct top_model *model, const char *separator, enum abi_verdict verdict,
		      char text[TOP_TEXT_BYTES])
{
	char packets[TOP_NUMBER_BYTES], bits[TOP_NUMBER_BYTES];

	if (verdict != VERDICT_WOULD_DROP || model->has_would_drop)
		text_append(text, TOP_TEXT_BYTES, "%s%-7s %5s packets/s %5s bits/s", separator,
			    verdict == VERDICT_WOULD_DROP ? "would drop" : verdict_words[verdict].done,
			    model->has_rates ? top_number(model->total.pps[verdict], packets) : "-",
			    model->has_rates ? top_number(model->total.bps[verdict], bits) : "-");
}

static void put_lost(const struct top_model *model, char text[TOP_TEXT_BYTES])
{
	char lost[TOP_NUMBER_BYTES];

	if (model->lost > 0)
		text_append(text, TOP_TEXT_BYTES, "; LOST by the card %s packets/s", top_number(model->lost, lost));
}

const char *top_model_heading(const struct top_model *model, int i, char text[TOP_TEXT_BYTES])
{
	const struct top_state *state = &model->state;
	char age[RULE_TIME_BYTES] = "?", number[TOP_NUMBER_BYTES], other[TOP_NUMBER_BYTES];
	const double *pps = model->total.pps;
	const double all = pps[VERDICT_PASS] + pps[VERDICT_DROP] + pps[VERDICT_WOULD_DROP];

	text[0] = '\0';
	switch (i) {
	case 0:
		if (state->age_s >= 0)
			rule_time_format((__s64)state->age_s * 1000, age);
		text_append(text, TOP_TEXT_BYTES, "%s: %s; loaded %s ago%s", state->name, state->effect,
			    *age ? age : "0s", model->is_paused ? "; PAUSED" : "");
		break;
	case 1:
		put_rates(model, "", VERDICT_PASS, text);
		put_rates(model, "; ", VERDICT_WOULD_DROP, text);
		put_lost(model, text);
		break;
	case 2:
		put_rates(model, "", VERDICT_DROP, text);
		if (model->has_rates && all > 0)
			text_append(text, TOP_TEXT_BYTES, ", %.1f %% of all", 100 * pps[VERDICT_DROP] / all);
		/* Smaller values are rounding errors. */
		if (model->by_policy > 1e-3)
			text_append(text, TOP_TEXT_BYTES, "; %s/s by policy", top_number(model->by_policy, number));
		break;
	default:
		text_append(text, TOP_TEXT_BYTES, "table   %4.1f %% of %s slots, %s filled", load_percent(state),
			    top_number(state->slots, number), top_number(state->used, other));
		if (model->stopped > 0 || model->retries > 0)
			text_append(text, TOP_TEXT_BYTES, "; stopped %s/s, retries %s/s",
				    top_number(model->stopped, number), top_number(model->retries, other));
	}
	return text;
}

const char *top_model_ago(const struct top_model *model, int intervals, char text[TOP_TEXT_BYTES])
{
	char time[RULE_TIME_BYTES];

	rule_time_format((__s64)counter_rounded(1000 * model->interval_s * intervals), time);
	snprintf(text, TOP_TEXT_BYTES, "%s ago", time);
	return text;
}

const char *top_model_plain(const struct top_model *model, char text[TOP_TEXT_BYTES])
{
	const time_t now = time(NULL);
	struct tm at;

	text[0] = '\0';
	if (localtime_r(&now, &at))
		strftime(text, TOP_TEXT_BYTES, "%H:%M:%S", &at);
	put_rates(model, " ", VERDICT_PASS, text);
	put_rates(model, "; ", VERDICT_WOULD_DROP, text);
	put_rates(model, "; ", VERDICT_DROP, text);
	text_append(text, TOP_TEXT_BYTES, "; load %.1f %%", load_percent(&model->state));
	put_lost(model, text);
	return text;
}

static void add_rates(json_t *object, const struct top_rates *rates)
{
	char name[64];

	for (enum abi_verdict verdict = 0; verdict < VERDICTS; verdict++) {
		snprintf(name, sizeof(name), "%s_pps", verdict_words[verdict].done);
		json_object_set_new(object, name, json_integer(counter_rounded(rates->pps[verdict])));
		snprintf(name, sizeof(name), "%s_bps", verdict_words[verdict].done);
		json_object_set_new(object, name, json_integer(counter_rounded(rates->bps[verdict])));
	}
}

json_t *top_model_json(const struct top_model *model)
{
	const struct top_state *state = &model->state;
	const char *what = model->view == TOP_BY_CPU ? "cpu" : "interface";
	json_t *lines = json_array(), *rules = json_array();
	json_t *all = json_pack("{s:s, s:s, s:o, s:f, s:f, s:I, s:I, s:I, s:I, s:I}", "name", state->name, "effect",
				state->effect, "time", output_time(time(NULL), -1), "interval_s", model->seconds,
				"loaded_s", state->age_s, "slots", (json_int_t)state->slots, "used_slots",
				(json_int_t)state->used, "stopped_ps", counter_rounded(model->stopped),
				"look_up_retries_ps", counter_rounded(model->retries), "lost_by_card_ps",
				counter_rounded(model->lost));

	add_rates(all, &model->total);
	for (size_t i = 0; i < model->lines; i++) {
		json_t *line = json_pack("{s:s}", what, model->line[i].name);

		add_rates(line, &model->line[i].rates);
		json_array_append_new(lines, line);
	}
	for (size_t i = 0; i < model->rules; i++)
		json_array_append_new(rules, json_pack("{s:I, s:s?}", "pps", counter_rounded(model->rule[i].pps),
						       "rule", model->rule[i].name ? model->rule[i].name->rule : NULL));
	json_object_set_new(all, model->view == TOP_BY_CPU ? "cpus" : "interfaces", lines);
	json_object_set_new(all, "rules", rules);
	return all;
}
