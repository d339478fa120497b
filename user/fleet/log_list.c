// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the reader does with one list. Knows no connection. Words:
 *
 *   plan     why the whole list is to be read instead of its log; FOLLOW_LEVEL: no plan
 *   finding  how the broker's log ends, compared with what the host has: log_head() in fleet.h
 *   pause    after a failure the list is not read for a while; each further failure doubles the pause
 *   skip     an entry of the log that does not continue the list. The log is read after it, once the whole list was read
 */
#include "base/clock.h"
#include "fleet/log_reader_internal.h"

#define PAUSE_MS 5000
#define PAUSE_ONCE_MS 100
#define PAUSE_GROWTH 64 /* the longest pause is so many times that long */
#define OUTBOX_MS 5000  /* a publisher has this time to send again what a failover has lost */
#define LAG_MS 60000    /* a replica that lags longer loses its master (repl-timeout) */

/* Doubles the pause, and returns when it ends. */
static __s64 next_pause_end(const struct log_reader *reader, struct list *list)
{
	const __s64 shortest_ms = reader->start->is_once ? PAUSE_ONCE_MS : PAUSE_MS;

	list->pause_ms = pause_longer(list->pause_ms, shortest_ms, PAUSE_GROWTH * shortest_ms);
	return fleet_now_ms() + pause_spread(list->pause_ms, fleet_random_below(~0ULL));
}

static __s64 jitter_ms(const struct log_reader *reader)
{
	return fleet_random_below(reader->start->options->jitter_ms + 1);
}

void log_list_plan(struct log_reader *reader, struct list *list, enum follow_state why)
{
	const bool is_new = why == FOLLOW_NEW && !list->at.epoch;
	const bool was_paused = list->pause_ms;
	__s64 pause_end_ms;

	if (!list->is_broken)
		list->state = why;
	if (list->plan)
		return;
	list->plan = why;
	list->due_ms = 0;
	if (is_new || reader->start->is_once)
		return;
	list->due_ms = fleet_now_ms() + jitter_ms(reader) +
		       /* A replica that lacks the newest epoch looks like an older state. */
		       (why == FOLLOW_RESTORED && !reader->broker.is_master                     ? LAG_MS :
			why == FOLLOW_DIVERGED || why == FOLLOW_OLDER || why == FOLLOW_RESTORED ? OUTBOX_MS :
												  0);
	/* A publisher that writes strange entries must not make hosts read the list all the time. */
	pause_end_ms = next_pause_end(reader, list);
	if (was_paused && list->due_ms < pause_end_ms)
		list->due_ms = pause_end_ms;
}

void log_list_pause(struct log_reader *reader, struct list *list)
{
	list->due_ms = next_pause_end(reader, list);
	list->behind_at = (struct fleet_position){};
}

bool log_list_is_readable(const struct log_reader *reader, const struct list *list)
{
	return !reader->stopped_ms && list->due_ms <= fleet_now_ms();
}

bool log_list_may_be_wiped(const struct log_reader *reader, const struct list *list)
{
	return reader->start->is_accepted || list->is_accepted;
}

void log_list_judge(struct log_reader *reader, struct list *list, const struct list_head *head)
{
	const enum log_head found = log_head(list->at, head->last, reader->broker.is_master);
	/* Refused rules can wait: first the log must say from where the newer epoch goes on. */
	const bool is_log_first = list->plan == FOLLOW_NEW && list->at.epoch && head->last.epoch > list->at.epoch;
	/* The log was read since it was last found to have more, and said nothing. */
	const bool is_silent = found == LOG_BEHIND && list->behind_at.epoch &&
			       !fleet_position_compare(list->behind_at, list->at);

	/* Ends the pause early if over 1 % of the refused list has changed: one change costs a host at most 100 rules. */
	if (list->refused.last.epoch) {
		const struct list_head before = list->refused;
		const __s64 due_ms = fleet_now_ms() + jitter_ms(reader);
		const __u64 changed =
			head->last.seq - before.last.seq +
			(head->rules > before.rules ? head->rules - before.rules : before.rules - head->rules);

		if (head->last.epoch != before.last.epoch || head->last.seq < before.last.seq ||
		    changed * 100 > head->rules) {
			list->refused = *head;
			list->due_ms = list->due_ms > due_ms ? due_ms : list->due_ms;
		}
	}
	/* The log has gone on before the entry that was skipped, so it is a new one. */
	if (fleet_position_compare(head->last, list->skip) < 0 && fleet_position_compare(head->last, list->at) &&
	    fleet_position_compare(head->last, list->head.last))
		list->skip = (struct fleet_position){};
	list->head = *head;
	if (found == LOG_WIPED && log_list_may_be_wiped(reader, list)) {
		log_list_plan(reader, list, FOLLOW_LEAVING);
	} else if (found == LOG_WIPED) {
		list->plan = FOLLOW_LEVEL;
		list->state = FOLLOW_WIPED;
	} else if (list->plan && !is_log_first && (list->plan != FOLLOW_RESTORED || found == LOG_RESTORED)) {
		/* With the plan FOLLOW_RESTORED a publisher may send again what was lost, or a replica catch up. */
		return;
	} else if (found == LOG_RESTORED) {
		log_list_plan(reader, list, FOLLOW_RESTORED);
	} else {
		if (list->plan)
			list->due_ms = 0;
		list->plan = FOLLOW_LEVEL;
		if (!list->is_broken)
			list->state = (enum follow_state)found;
		if ((found == LOG_BEHIND && !list->at.epoch) ||
		    (found == LOG_LEVEL && list->is_incomplete && !is_silent))
			log_list_plan(reader, list, FOLLOW_NEW);
		else if (is_silent)
			log_list_plan(reader, list, FOLLOW_GAP);
	}
	/* During a pause nobody reads the log. */
	list->behind_at = found == LOG_BEHIND && log_list_is_readable(reader, list) ? list->at :
										      (struct fleet_position){};
}

void log_list_applied(struct list *list)
{
	const bool has_sent = list->sent || fleet_position_compare(list->at, list->committed);

	list->is_incomplete &= !list->sent;
	list->committed = list->at;
	list->sent = FOLLOW_LEVEL;
	/* A whole list that was read because of a strange entry is no progress: there may be more of them. */
	if (!has_sent || fleet_position_compare(list->at, list->skip) < 0)
		return;
	list->is_refused = list->is_accepted = false;
	list->refused = (struct list_head){};
	list->pause_ms = 0;
}

void log_list_refused(struct log_reader *reader, struct list *list)
{
	list->is_refused = true;
	list->refused = (struct list_head){ .last = list->at, .rules = list->head.rules };
	list->at = list->committed;
	if (list->sent && !list->plan)
		list->state = list->plan = list->sent;
	list->sent = FOLLOW_LEVEL;
	log_list_pause(reader, list);
}
