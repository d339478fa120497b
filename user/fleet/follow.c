// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The process that `follow` runs: applies what its reader, without privileges, sends of the broker's lists, and reports. */
#include "fleet/commands.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/version.h"
#include "filter/filter.h"
#include "fleet/apply.h"
#include "fleet/follow_internal.h"
#include "io/signals.h"

#define SILENT_MS 120000       /* a reader that sends nothing for so long hangs */
#define MESSAGE_MS 30000       /* so does one that does not send the rest of a message, or does not take the answer */
#define WAIT_MS 1000           /* the longest wait for an event */
#define LOOK_MS 5000           /* between two looks at the filter */
#define RETRY_REFUSED_MS 10000 /* between two calls of apply_retry_refused() and apply_look() */
#define HEARD_MS 60000         /* between two notes in the store that the broker is heard */
#define RESTART_MIN_MS 100     /* before another reader is started; doubles while readers fail */
#define RESTART_MAX_MS 60000
#define ONCE_MS 30000           /* --once gives up after so long without a broker, */
#define ONCE_LOSSES 10          /* and when it has lost one so often */
#define READER_MEMORY (1 << 30) /* a reply has at most 16 MB and 65,536 elements: a bound for what nobody foresaw */

/* What this process knows of its reader. */
enum reader_state {
	READER_PAUSES,   /* none runs; the next starts at start_ms */
	READER_CONNECTS, /* it looks for a broker */
	READER_FOLLOWS,  /* it has one */
	READER_SETTLES,  /* --once: no list is waited for, and its next message says that the report is sent */
	READER_DONE
};

enum event {
	EVENT_NONE, /* or a message that says nothing of the reader */
	EVENT_DUE,  /* it is start_ms */
	EVENT_CONNECTED,
	EVENT_LOST, /* the broker */
	EVENT_SETTLED,
	EVENT_RESTART, /* the reader has failed; or it must begin at other positions, or with other secrets */
	EVENT_END      /* a signal; or the last report is sent */
};

/* The state after an event, by the state before it. */
static const enum reader_state next_state[][READER_DONE] = {
	[EVENT_NONE] = { READER_PAUSES, READER_CONNECTS, READER_FOLLOWS, READER_SETTLES },
	[EVENT_DUE] = { READER_CONNECTS },
	[EVENT_CONNECTED] = { READER_PAUSES, READER_FOLLOWS, READER_FOLLOWS },
	[EVENT_LOST] = { READER_PAUSES, READER_CONNECTS, READER_CONNECTS, READER_CONNECTS },
	[EVENT_SETTLED] = { READER_PAUSES, READER_SETTLES, READER_SETTLES },
	[EVENT_RESTART] = { READER_PAUSES, READER_PAUSES, READER_PAUSES, READER_PAUSES },
	[EVENT_END] = { READER_DONE, READER_DONE, READER_DONE, READER_DONE },
};

struct following {
	const struct follow *follow;
	struct apply apply;
	struct log_reader_start start;
	struct {
		enum follow_state state;
		struct fleet_position last; /* entry of the broker's log */
		struct reason why;          /* "": nothing is wrong */
	} told[FOLLOW_LISTS_MAX];           /* by the reader */
	enum reader_state state;
	struct unprivileged reader;
	char text[FOLLOW_BYTES_MAX + 1];
	char said[REASON_BYTES]; /* the last note, which is not repeated */
	int stop_error;          /* not 0: the broker must not be followed, and --once ends with it */
	struct reason stop_reason;
	struct host_filter filter;  /* at looked_ms */
	__s64 restart_ms, start_ms; /* the last pause after a failure; when the next reader starts */
	__s64 alone_ms;             /* since when there is no broker, if there is none */
	unsigned int losses;        /* of brokers so far */
	__s64 looked_ms, heard_ms, retried_ms, noted_ms;
};

static void say(struct following *following, const char *text)
{
	if (!strcmp(following->said, text))
		return;
	snprintf(following->said, sizeof(following->said), "%.*s", (int)sizeof(following->said) - 1, text);
	following->follow->note(text);
}

/* ---- the reader ---- */

static void run_reader(const void *start, int fd)
{
	log_reader_run(start, fd);
}

static int start_reader(struct following *following, struct reason *reason)
{
	following->start.count = following->apply.count;
	for (size_t i = 0; i < following->apply.count; i++) {
		struct log_reader_list *start = &following->start.lists[i];
		struct apply_list *list = &following->apply.lists[i];

		apply_forget(list);
		list->is_moved = false;
		strcpy(start->name, list->name);
		start->at = list->at;
		start->is_incomplete = list->refused_count > list->refused_kept;
	}
	following->heard_ms = fleet_now_ms();
	apply_let_go(&following->apply); /* the reader must not have it */
	return unprivileged_start(&following->reader, run_reader, &following->start, READER_MEMORY, reason);
}

/* ---- the state of this host ---- */

/* What the list is in, by what the reader has told and by what became of it here: the first that holds. */
static enum follow_state state_of(const struct following *following, size_t i)
{
	const struct apply_list *list = &following->apply.lists[i];
	const enum follow_state told = following->told[i].state;
	const struct fleet_position last = following->told[i].last;

	if (list->is_taken)
		return FOLLOW_TAKEN;
	if (list->is_held)
		return FOLLOW_HELD;
	if (told != FOLLOW_LEVEL && told != FOLLOW_BEHIND)
		return told;
	if (!last.epoch && !list->at.epoch && !fleet_is_staged(list->name))
		return FOLLOW_MISSING;
	return fleet_position_compare(list->at, last) < 0 ? FOLLOW_BEHIND : FOLLOW_LEVEL;
}

/* Why it is in that state; "": nothing is wrong. */
static const struct reason *why_of(const struct following *following, size_t i)
{
	const struct apply_list *list = &following->apply.lists[i];

	return list->is_held || list->is_taken ? &list->why : &following->told[i].why;
}

/* The position of each list, and that of its refused rules; then the names of the lists. Returns the bytes used. */
static size_t write_lists(const struct following *following, char text[REPORT_BYTES])
{
	const struct apply *apply = &following->apply;
	char position[FLEET_POSITION_BYTES];
	size_t used = 0;

	for (size_t i = 0; i < apply->count; i++) {
		const struct apply_list *list = &apply->lists[i];
		const struct fleet_position refused_at = list->refused_count ? list->refused_at :
									       (struct fleet_position){};

		used += snprintf(text + used, REPORT_BYTES - used, "at:%s %s\n", list->name,
				 fleet_position_format(list->at, position));
		if (list->refused_at.epoch)
			used += snprintf(text + used, REPORT_BYTES - used, "no:%s %s\n", list->name,
					 fleet_position_format(refused_at, position));
	}
	used += snprintf(text + used, REPORT_BYTES - used, "lists");
	for (size_t i = 0; i < apply->count; i++)
		used += snprintf(text + used, REPORT_BYTES - used, " %s", apply->lists[i].name);
	return used;
}

/*
 * The lines of the host's status, for the broker: see report.h. The worst state of a list is the host's. What changes
 * all the time comes last.
 */
static void write_status(const struct following *following, char text[REPORT_BYTES])
{
	const struct apply *apply = &following->apply;
	const size_t used = write_lists(following, text);
	enum follow_state worst = FOLLOW_LEVEL;
	const char *why = "";
	__u64 rules = 0, refused = 0;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < apply->count; i++) {
		const struct apply_list *list = &apply->lists[i];

		if (follow_states[state_of(following, i)].rank > follow_states[worst].rank) {
			worst = state_of(following, i);
			why = why_of(following, i)->text;
		}
		rules += list->rules;
		refused += list->refused_count;
		if (list->refused_count && !*why)
			why = list->why.text;
	}
	for (size_t i = 0; i < apply->count && !*why; i++)
		if (state_of(following, i) == FOLLOW_MISSING)
			why = following->told[i].why.text;
	if (following->filter.passes_all)
		why = following->filter.passes_all;
	if (following->stop_error)
		why = following->stop_reason.text;
	snprintf(text + used, REPORT_BYTES - used,
		 "\nversion %s\nstate %s\nrules %llu\nrefused %llu\npanic %d\nwhy %.300s \nseen %lld\nskew %lld\ndropped %llu\n",
		 VERSION,
		 following->stop_error        ? "stopped" :
		 following->filter.passes_all ? "unfiltered" :
						follow_states[worst].name,
		 (unsigned long long)rules, (unsigned long long)refused, following->filter.is_panic, why,
		 (long long)(fleet_now_ms() + apply->offset_ms),
		 (long long)(now.tv_sec * 1000LL + now.tv_nsec / 1000000 - fleet_now_ms() - apply->offset_ms),
		 (unsigned long long)following->filter.drops);
}

/*
 * With --once it ends when each list is level, gone or cannot be read, or if one is held or cannot be applied: then true.
 * `error`, `why`: of the last apply_commit().
 */
static bool judge_once(struct following *following, int error, const struct reason *why)
{
	const struct reason *held = NULL, *lost = NULL;
	bool is_settled = true, is_any_taken = false;

	for (size_t i = 0; i < following->apply.count; i++) {
		is_any_taken |= following->apply.lists[i].is_taken;
		switch (follow_states[state_of(following, i)].once) {
		case ONCE_WAITS:
			is_settled = false;
			break;
		case ONCE_ENDS:
			break;
		case ONCE_FAILS:
			lost = why_of(following, i);
			break;
		case ONCE_STOPS:
			held = why_of(following, i);
		}
	}
	if (following->stop_error)
		return true;
	/* A list that another command has changed is read again. One that is not from the fleet does not stop others. */
	error = error == -ESTALE || error == -EEXIST ? 0 : error;
	if (held || error || (is_settled && lost)) {
		following->stop_reason = held ? *held : error ? *why : *lost;
		following->stop_error = held ? -EBADE : error ? error : is_any_taken ? -EEXIST : -EBADE;
	}
	return is_settled || following->stop_error;
}

/* ---- messages ---- */

/* A change without rules, which notes in the store the fleet, and that the broker was heard. */
static void renew(struct apply_list *list)
{
	if (!list->has_changes)
		list->changes_at = list->at;
	list->has_changes = true;
}

/* Stops if the fleet is not that of the first contact, or if this version does not know its format. */
static void meet(struct following *following, const struct follow_message *message)
{
	struct apply *apply = &following->apply;
	struct reason *reason = &following->stop_reason;

	following->stop_error = -EBADE;
	if (!*following->text)
		reason_set(reason, -EBADE,
			   "the broker has no fleet '%s' (any more); the lists stay as they are; make it: xdp-cuckoo%s fleet init",
			   apply->fleet, session_name_option(apply->fleet));
	else if (message->number != FLEET_FORMAT)
		reason_set(reason, -EBADE,
			   "the broker's fleet has format %lld, this version knows %d; the lists stay as they are",
			   (long long)message->number, FLEET_FORMAT);
	else if (*apply->id && strcmp(apply->id, following->text) && !apply->is_accepted)
		reason_set(reason, -EBADE,
			   "the broker's fleet '%s' is another one than before; the lists stay as they are; if that is meant: "
			   "xdp-cuckoo%s follow --once --accept",
			   apply->fleet, session_name_option(apply->fleet));
	else
		following->stop_error = 0;
	if (following->stop_error) {
		say(following, reason->text);
		return;
	}
	/* All lists get the id of the accepted fleet now: one that cannot be read must not stop the others for its old id. */
	for (size_t i = 0; i < apply->count && *apply->id && strcmp(apply->id, following->text); i++)
		if (apply->lists[i].is_stored)
			renew(&apply->lists[i]);
	snprintf(apply->id, sizeof(apply->id), "%.*s", FLEET_ID_BYTES - 1, following->text);
}

/* A filter keeps the panic until the fleet ends it, or an operator does. A filter that is loaded later gets it, too. */
static void set_panic(struct following *following, bool is_on)
{
	struct session *session = &following->apply.session;
	const char *name = following->follow->name;
	struct reason reason;
	bool ignored;
	size_t meant;

	if (!host_panic_is_due(name, &session->paused, &session->paused_count, is_on))
		return;
	if (filter_panic(name, PANIC_BY_FLEET, is_on, &meant, &ignored, &reason))
		say(following, reason.text);
	else
		say(following, is_on ? "panic of the fleet: everything passes" : "the panic of the fleet is over");
	following->looked_ms = 0; /* the report must say it */
}

static void note_state(struct following *following, const struct follow_message *message)
{
	const size_t i = message->list;
	struct apply_list *list = &following->apply.lists[i];
	const enum follow_state before = following->told[i].state, told = message->number;
	struct reason *why = &following->told[i].why;
	char text[REASON_BYTES];

	if (message->number < 0 || message->number >= FOLLOW_OF_READER)
		return;
	following->told[i].state = told;
	following->told[i].last = message->at;
	if (told == FOLLOW_LEVEL)
		list->is_held = false; /* nothing is left of what was refused */
	if (told == FOLLOW_LEVEL || told == FOLLOW_BEHIND) {
		why->text[0] = '\0';
		if (state_of(following, i) != FOLLOW_MISSING)
			return;
		reason_set(why, 0, "the broker has no list '%s'", list->name);
		snprintf(text, sizeof(text), "%.100s yet", why->text);
		if (before == FOLLOW_UNHEARD)
			following->follow->note(text);
		return;
	}
	if (told == before && !*following->text)
		return;
	if (*following->text)
		reason_set(why, 0, "list '%s': %s", list->name, following->text);
	else
		reason_set(why, 0, "list '%s': %s: %s", list->name, follow_states[told].name,
			   follow_states[told].about);
	if (!list->is_held) /* it said why, and tries again */
		say(following, why->text);
}

/*
 * Applies what has come, and answers with the state of this host. A store that cannot be written now is tried again with
 * the next entries. Returns as take().
 */
static int flush(struct following *following)
{
	struct apply *apply = &following->apply;
	char status[REPORT_BYTES];
	struct follow_message answer;
	struct reason reason, why;
	bool is_settled, is_moved = false;
	__u64 failed = 0;
	int error = 0;

	if (fleet_now_ms() - following->noted_ms >= HEARD_MS) {
		following->noted_ms = fleet_now_ms();
		for (size_t i = 0; i < apply->count; i++)
			if (!follow_states[state_of(following, i)].rank)
				renew(&apply->lists[i]);
	}
	for (size_t i = 0; i < apply->count && following->stop_error; i++)
		apply_forget(&apply->lists[i]);
	if (!following->stop_error)
		error = apply_commit(apply, &failed, &why);
	if (error)
		say(following, why.text);
	if (fleet_now_ms() - following->retried_ms >= RETRY_REFUSED_MS) {
		following->retried_ms = fleet_now_ms();
		if (apply_retry_refused(apply, &reason) || apply_look(apply, &reason))
			say(following, reason.text);
	}
	if (*apply->undone.text)
		say(following, apply->undone.text);
	apply->undone.text[0] = '\0';
	for (size_t i = 0; i < apply->count; i++)
		is_moved |= apply->lists[i].is_moved;
	is_settled = following->follow->is_once && judge_once(following, error, &why);
	if (!following->looked_ms || fleet_now_ms() - following->looked_ms >= LOOK_MS) {
		host_filter_look(following->follow->name, &apply->session.paused, &apply->session.paused_count,
				 &following->filter);
		following->looked_ms = fleet_now_ms();
	}
	write_status(following, status);
	answer = (struct follow_message){ .kind = following->stop_error ? FOLLOW_STOP : FOLLOW_DONE,
					  .number = failed,
					  .bytes = strlen(status) };
	error = unprivileged_send(following->reader.fd, &answer, sizeof(answer), status, answer.bytes,
				  clock_ms(CLOCK_MONOTONIC) + MESSAGE_MS);
	return error ? error : is_moved ? EVENT_RESTART : is_settled ? EVENT_SETTLED : EVENT_NONE;
}

/* A message about one list. */
static int take_of_list(struct following *following, const struct follow_message *message)
{
	struct apply *apply = &following->apply;
	struct apply_list *list = message->list < apply->count ? &apply->lists[message->list] : NULL;

	if (!list)
		return -EPROTO;
	switch ((enum follow_kind)message->kind) {
	case FOLLOW_ENTRY:
		list->changes_at = message->at;
		return apply_lines(apply, list, following->text, message->bytes);
	case FOLLOW_SNAPSHOT:
		apply_begin(list);
		list->is_older = message->number;
		return 0;
	case FOLLOW_LINES:
		return list->is_whole ? apply_lines(apply, list, following->text, message->bytes) : -EPROTO;
	case FOLLOW_END:
		/* Also if the reader had another reason to read the list. */
		list->is_older |= message->at.epoch < list->at.epoch;
		list->changes_at = message->at;
		list->is_complete = true;
		/* A publisher may wait for a change that has one of the rules refused. */
		if (list->refused_count)
			list->refused_at = message->at;
		following->told[message->list].state = FOLLOW_LEVEL; /* unless it is held */
		return 0;
	case FOLLOW_ACCEPT:
		list->accepted_ms = message->number;
		return 0;
	case FOLLOW_STATE:
		note_state(following, message);
		return 0;
	default:
		return -EPROTO;
	}
}

/* Any message of the reader, which is not trusted. An event; -EPROTO: an honest reader does not send it; other -errno. */
static int take(struct following *following, const struct follow_message *message)
{
	char text[REASON_BYTES];
	struct reason ignored;

	switch ((enum follow_kind)message->kind) {
	case FOLLOW_HELLO:
		meet(following, message);
		return 0;
	case FOLLOW_CLOCK:
		following->apply.offset_ms = message->number;
		return 0;
	case FOLLOW_PANIC:
		set_panic(following, message->number);
		return 0;
	case FOLLOW_CONNECTED:
		/* Drops what is not applied yet: this broker sends it again, or has another history. */
		for (size_t i = 0; i < following->apply.count; i++)
			apply_forget(&following->apply.lists[i]);
		snprintf(text, sizeof(text), "follows the fleet '%s' by the broker at %.300s", following->apply.fleet,
			 following->text);
		say(following, text);
		service_notify("READY=1\nSTATUS=%s", text);
		return EVENT_CONNECTED;
	case FOLLOW_LOST:
		apply_let_go(&following->apply);
		say(following, following->text);
		service_notify("STATUS=%s", following->text);
		/* The files of secrets may have changed. The reader itself cannot read files of root. */
		return broker_secrets_keep(following->follow->options, &ignored) > 0 ?
			       EVENT_RESTART :
			       EVENT_LOST;
	case FOLLOW_NOTE:
		say(following, following->text);
		return 0;
	case FOLLOW_FLUSH:
		following->restart_ms = 0;
		return flush(following);
	default:
		return take_of_list(following, message);
	}
}

/* ---- the whole ---- */

/* The reader has sent something. An event; -errno. */
static int hear(struct following *following)
{
	struct follow_message message;
	const __s64 deadline_ms = clock_ms(CLOCK_MONOTONIC) + MESSAGE_MS;
	int event = follow_receive(following->reader.fd, &message, following->text, deadline_ms);

	/* A broker that was lost has not got the report. */
	if (!event && following->state == READER_SETTLES && message.kind != FOLLOW_LOST)
		return EVENT_END;
	if (!event)
		event = take(following, &message);
	following->heard_ms = fleet_now_ms(); /* applying took its time */
	return event;
}

/* Waits for a second at most. An event; -errno: the reader is of no use. */
static int next_event(struct following *following, const struct signals *signals)
{
	struct pollfd files[] = { { .fd = signals->fd, .events = POLLIN },
				  { .fd = following->reader.fd, .events = POLLIN } };
	const bool is_paused = following->state == READER_PAUSES;
	const __s64 left_ms = is_paused ? following->start_ms - fleet_now_ms() : WAIT_MS;

	poll(files, 2, left_ms < 0 ? 0 : left_ms < WAIT_MS ? left_ms : WAIT_MS);
	service_notify("WATCHDOG=1");
	if (files[0].revents)
		return EVENT_END;
	if (files[1].revents)
		return hear(following);
	if (is_paused)
		return fleet_now_ms() >= following->start_ms ? EVENT_DUE : EVENT_NONE;
	return fleet_now_ms() - following->heard_ms >= SILENT_MS ? -ETIMEDOUT : EVENT_NONE;
}

/* Goes from state to state by the next event. */
static int step(struct following *following, const struct signals *signals, struct reason *reason)
{
	const enum reader_state before = following->state;
	const int event = next_event(following, signals);
	const __s64 now_ms = fleet_now_ms();
	char text[REASON_BYTES];

	if (event == -ENOMEM)
		return reason_set(reason, event, "not enough memory");
	if (event == EVENT_END && following->follow->is_once && before != READER_SETTLES)
		return reason_set(reason, -EINTR, "interrupted before all lists were level");
	following->state = next_state[event < 0 ? EVENT_RESTART : event][before];
	if (before >= READER_FOLLOWS && following->state < READER_FOLLOWS) {
		following->alone_ms = now_ms;
		following->losses += event < 0 || event == EVENT_LOST;
	}
	if (before == READER_PAUSES && following->state == READER_CONNECTS)
		return start_reader(following, reason);
	if (before != READER_PAUSES && following->state == READER_PAUSES) {
		unprivileged_stop(&following->reader);
		following->start_ms = now_ms + RESTART_MIN_MS;
	}
	if (event < 0) {
		snprintf(text, sizeof(text), "the reader %s; starts another one", unprivileged_failure(event));
		say(following, text);
		following->restart_ms = pause_longer(following->restart_ms, RESTART_MIN_MS, RESTART_MAX_MS);
		following->start_ms = now_ms + following->restart_ms;
	}
	if (following->follow->is_once && following->state < READER_FOLLOWS &&
	    (now_ms - following->alone_ms >= ONCE_MS || following->losses >= ONCE_LOSSES))
		return reason_set(reason, -ETIMEDOUT, "%s", *following->said ? following->said : "no broker answers");
	return 0;
}

int follow_run(const struct follow *follow, struct reason *reason)
{
	const struct fleet_options *options = follow->options;
	struct following *following = malloc(sizeof(*following));
	struct signals signals = {};
	struct apply *apply;
	int error = 0;

	if (!following)
		return reason_set(reason, -ENOMEM, "not enough memory");
	*following = (struct following){ .follow = follow, .reader = { .fd = -1 }, .alone_ms = fleet_now_ms() };
	apply = &following->apply;
	apply->options = following->start.options = options;
	apply->fleet = apply->name = following->start.fleet = follow->name;
	apply->state = follow->state;
	apply->stale_s = follow->is_once ? 0 : FLEET_STALE_S;
	apply->is_accepted = following->start.is_accepted = follow->is_accepted;
	following->start.is_once = follow->is_once;
	if (!options->lists_count)
		error = reason_set(reason, -EINVAL, "[fleet] names no lists; write lists = NAME...");
	/* config_open() has checked the names. */
	for (size_t i = 0; i < options->lists_count; i++)
		for (int staged = 0; staged <= options->is_staged; staged++) {
			snprintf(apply->lists[apply->count].name, ABI_NAME_BYTES, "%.26s%s", options->lists[i],
				 staged ? FLEET_STAGED : "");
			following->told[apply->count++].state = FOLLOW_UNHEARD;
		}
	if (!error)
		error = broker_secrets_keep(options, reason);
	if (error >= 0)
		error = apply_open(apply, reason);
	if (!error && signals_take(&signals))
		error = reason_set(reason, -EAGAIN, "cannot take signals");
	while (!error && following->state != READER_DONE)
		error = step(following, &signals, reason);
	unprivileged_stop(&following->reader);
	if (!error && follow->is_once && following->stop_error) {
		*reason = following->stop_reason;
		error = following->stop_error;
	}
	service_notify("STOPPING=1");
	signals_give_back(&signals);
	apply_close(apply);
	free(following);
	return error;
}
