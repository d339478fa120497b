// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* top: shows what filters do at this moment, on the terminal, or line by line without one. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>

#include "change/change.h"
#include "command/command.h"
#include "io/output.h"
#include "counters/counters.h"
#include "watch/top.h"
#include "base/clock.h"

#define INTERVAL_MS_DEFAULT 1000
#define FIRST_MS_MAX 1000 /* the first figures come after this time at most, whatever the interval */
#define WAIT_MS_MAX 200
#define WAIT_MS_SEARCHING 10 /* between two steps through the counters; a step takes less */

struct top {
	const struct invocation *invocation;
	char dir[PATH_MAX]; /* of the store */
	bool is_screen;
	struct kernel_filter *filters;
	size_t filters_count;
	struct tally now, difference; /* the last reading, and its growth; no growth yet: no filters in it */
	/* The filter whose rules are ranked: the first one that counts by rule. NULL: there is none, or no memory. */
	const struct kernel_filter *ranked;
	struct filter_tables tables;
	__u64 ranked_id; /* identifies the table that `hits` counts: its map, and how often tables were exchanged */
	struct hits hits;
	bool is_ranking; /* a pass through the counters is under way */
	struct top_names names;
	struct top_model model;
};

/* The signal that ends top; 0: no signal came. */
static volatile sig_atomic_t stop_signal;

static void stop(int signal_number)
{
	stop_signal = signal_number;
}

/* ---- reading ---- */

static void note_ranking(struct top *top)
{
	top_model_rank(&top->model, &top->hits, &top->names);
	if (!top->ranked)
		snprintf(top->model.rules_note, sizeof(top->model.rules_note), "%s",
			 top->ranked_id ? "too many rules to rank" : "this table does not count by rule");
}

/*
 * Replaces the last reading by a new one, and chooses the filter to rank. While paused, the figures stay. 1: no filter of the
 * name runs; 0; -errno.
 */
static int read_again(struct top *top, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	struct tally now = {};
	__u64 table_id = 0;
	size_t count = 0;
	int error = kernel_find_filters((struct kernel_wish){ .must_see = top->invocation->name }, &filters, &count,
					reason);

	for (size_t f = 0; f < count && !error; f++)
		if (kernel_may_be_named(filters[f].config, top->invocation->name))
			error = tally_add(&now, &filters[f], reason);
	if (!error && !now.filters)
		error = 1;
	if (!error && !top->model.is_paused) {
		tally_close(&top->difference);
		if (top->now.filters && tally_since(&top->now, &now, &top->difference))
			error = reason_set(reason, -ENOMEM, "not enough memory");
	}
	if (error) {
		tally_close(&now);
		kernel_filters_free(filters, count);
		return error;
	}
	tally_close(&top->now);
	kernel_filters_free(top->filters, top->filters_count);
	top->now = now;
	top->filters = filters;
	top->filters_count = count;
	/* Opens the table again, since each reading maps the filters at other addresses. */
	filter_tables_close(&top->tables);
	top->ranked = NULL;
	for (size_t f = 0; f < count && !top->ranked; f++)
		if (filters[f].config->magic && filters[f].options.has_counts &&
		    kernel_may_be_named(filters[f].config, top->invocation->name) &&
		    !filter_open_tables(&filters[f], &top->tables))
			top->ranked = &filters[f];
	if (top->ranked)
		table_id = (__u64)top->ranked->map[KERNEL_RECORDS].id << 32 | (__u32)top->ranked->config->active;
	if (table_id != top->ranked_id) {
		hits_close(&top->hits);
		top_names_close(&top->names);
		top->ranked_id = table_id;
		if (top->ranked)
			hits_open(&top->hits, filter_tables_slots(&top->tables));
	}
	if (!top->hits.slots)
		top->ranked = NULL;
	return 0;
}

static int next_interval(struct top *top, struct reason *reason)
{
	struct top_state *state = &top->model.state;
	char text[COMMAND_EFFECT_BYTES];
	int error = read_again(top, reason);

	if (error)
		return error;
	top->is_ranking = top->ranked != NULL;
	if (top->model.is_paused)
		return 0;
	*state = (struct top_state){ .name = top->invocation->name, .age_s = -1 };
	for (size_t f = 0; f < top->filters_count; f++) {
		const struct kernel_filter *filter = &top->filters[f];
		const double age_s = kernel_age(filter);

		if (!kernel_may_be_named(filter->config, top->invocation->name))
			continue;
		if (!state->filters++)
			snprintf(state->effect, sizeof(state->effect), "%s", command_effect(filter, text));
		state->slots += filter_slots(filter);
		state->used += filter->config->used;
		if (age_s > state->age_s)
			state->age_s = age_s;
	}
	if (top->difference.filters)
		top_model_add(&top->model, &top->difference, &top->now);
	if (!top->ranked)
		note_ranking(top);
	return 0;
}

/* Makes one step of the pass under way. At its end, asks for the texts of the rules in the new ranking. */
static void rank_further(struct top *top)
{
	const double second = clock_seconds();

	if (!top->is_ranking || !hits_step(&top->hits, &top->tables, second))
		return;
	top->is_ranking = false;
	top_names_ask(&top->names, top->dir, top->ranked, top->hits.ranked, top->hits.ranked_count, second);
}

/* ---- on the terminal ---- */

static bool is_over(const struct top *top)
{
	return stop_signal || (top->invocation->end_count && top->model.intervals >= top->invocation->end_count);
}

static int watch_screen(struct top *top, __s64 interval_ms, struct reason *reason)
{
	const double interval_s = interval_ms / 1000.;
	double next = clock_seconds() + (interval_ms < FIRST_MS_MAX ? interval_ms : FIRST_MS_MAX) / 1000.;
	double left_ms;
	int key = TOP_SCREEN_RESIZED;

	while (!is_over(top) && key != 'q' && key != TOP_SCREEN_GONE) {
		int error = 0;

		if (top_model_key(&top->model, key) && top->difference.filters)
			top_model_list(&top->model, &top->difference, &top->now);
		if (clock_seconds() >= next) {
			error = next_interval(top, reason);
			next = clock_seconds() + interval_s;
		}
		if (error)
			return error;
		rank_further(top);
		if (!top->model.is_paused) {
			top_names_collect(&top->names, clock_seconds());
			note_ranking(top);
		}
		top_screen_draw(&top->model);
		left_ms = 1000 * (next - clock_seconds());
		key = top_screen_key(top->is_ranking       ? WAIT_MS_SEARCHING :
				     left_ms < 0           ? 0 :
				     left_ms > WAIT_MS_MAX ? WAIT_MS_MAX :
							     (int)left_ms + 1);
	}
	return 0;
}

/* ---- line by line ---- */

static int watch_plain(struct top *top, __s64 interval_ms, struct reason *reason)
{
	char text[TOP_TEXT_BYTES];
	int error = 0;

	while (!is_over(top) && !error) {
		/* The first line counts from this pass on. */
		while (output_is_json() && top->is_ranking)
			rank_further(top);
		if (clock_pause(interval_ms))
			continue;
		error = next_interval(top, reason);
		if (error)
			return error;
		while (output_is_json() && top->is_ranking)
			rank_further(top);
		top_names_collect(&top->names, clock_seconds());
		note_ranking(top);
		output_answer(output_is_json() ? top_model_json(&top->model) : NULL,
			      top_model_plain(&top->model, text));
		error = output_flush();
	}
	return error;
}

static int watch(struct top *top, struct reason *reason)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = stop };
	const __s64 ms = top->invocation->interval_ms ? top->invocation->interval_ms : INTERVAL_MS_DEFAULT;
	int error = top_model_open(&top->model, TOP_BY_INTERFACE);

	if (error)
		return reason_set(reason, error, "not enough memory");
	top->model.interval_s = ms / 1000.;
	error = next_interval(top, reason);
	if (error)
		return error;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	top->is_screen = !output_is_json() && top_screen_open();
	/* The screen shows this state itself. */
	for (size_t f = 0; f < top->filters_count && !top->is_screen; f++)
		if (kernel_may_be_named(top->filters[f].config, top->invocation->name))
			command_report_run(&top->filters[f]);
	error = top->is_screen ? watch_screen(top, ms, reason) : watch_plain(top, ms, reason);
	top_screen_close();
	return error;
}

static enum command_status run_top(const struct invocation *invocation)
{
	struct top top = { .invocation = invocation };
	struct reason reason = { "" };
	int error = session_state_dir(invocation->state, invocation->name, top.dir, sizeof(top.dir));

	if (error)
		return command_fail(command_status_of(error), "the state directory's name is too long");
	error = watch(&top, &reason);
	top_names_close(&top.names);
	hits_close(&top.hits);
	filter_tables_close(&top.tables);
	tally_close(&top.difference);
	tally_close(&top.now);
	kernel_filters_free(top.filters, top.filters_count);
	top_model_close(&top.model);
	if (stop_signal) {
		signal(stop_signal, SIG_DFL);
		raise(stop_signal);
	}
	if (error > 0)
		return command_fail_not_running(invocation->name);
	/* main() reports a failure of standard output. */
	if (error && ferror(stdout))
		return STATUS_SYSTEM;
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

const struct command command_top = {
	.name = "top",
	.usage = "[--interval TIME] [--count N]",
	.instead = "top shows all interfaces; " INSTEAD_INTERFACES,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_top,
};
