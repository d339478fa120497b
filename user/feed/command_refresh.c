// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* refresh: fetches the lists by URL of a configuration, and imports them. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "config/config.h"
#include "base/clock.h"
#include "base/waiting.h"
#include "feed/feeds.h"
#include "io/output.h"
#include "lists/import.h"
#include "base/memory.h"

#define FETCHES 4      /* that run at a time, at first */
#define STALL_MS 1000  /* if no fetch ends for so long, one more may run */
#define FETCHES_MAX 16 /* but never more than these */
#define TAKE_BACK_TRIES 20
#define TAKE_BACK_MS 100 /* between two */

struct refresh {
	const struct invocation *invocation;
	const struct config_list *list;
	char source[CONFIG_URL_BYTES];
	struct store_list stored; /* of this name; all 0: there is none */
	struct store_feed feed;   /* before the fetch */
	struct store_feed begun;  /* as start() has noted it */
	struct fetch fetch;
	struct change_left_out left_out;
};

static __u32 random_number(void)
{
	__u32 number = 0;

	random_draw(&number, sizeof(number));
	return number;
}

/* ---- the store ---- */

/* Makes the list, so that `lists` shows one that was never fetched. A dry run notes nothing. */
static int note_failed(struct refresh *refresh, const char *why, __s64 retry_after_s, struct reason *reason)
{
	struct store_feed feed = refresh->feed;
	struct store *store;
	int error;

	if (refresh->invocation->is_dry_run)
		return 0;
	error = command_write_store(refresh->invocation, &store, reason);
	if (error)
		return error;
	feed_note_failure(&feed, refresh->list, why, retry_after_s, time(NULL), random_number());
	refresh->begun = feed;
	error = command_expect_list(store, refresh->invocation, refresh->list->name, feed_stale_s(refresh->list), reason);
	if (error == -EUSERS) {
		store_close(store);
		return error;
	}
	if (!error)
		error = store_feed_put(store, refresh->list->name, &feed);
	return command_close_written(store, error, reason);
}

/* Takes back what start() has noted, unless another process has noted the end of a fetch since. */
static void take_back(const struct refresh *refresh)
{
	struct store_feed now;
	struct reason ignored;
	struct store *store;
	int error = refresh->invocation->is_dry_run ? -ECANCELED : -EINTR;

	/* After a signal, nothing waits for the lock; but mostly its holder needs it only for a moment. */
	for (int i = 0; i < TAKE_BACK_TRIES && error == -EINTR; i++) {
		poll(NULL, 0, i ? TAKE_BACK_MS : 0);
		error = command_write_store(refresh->invocation, &store, &ignored);
	}
	if (error)
		return;
	error = store_feed(store, refresh->list->name, &now);
	if (!error && now.next_s == refresh->begun.next_s && !strcmp(now.why, refresh->begun.why))
		error = store_feed_put(store, refresh->list->name, &refresh->feed);
	command_close_written(store, error, &ignored);
}

/*
 * Notes a fetch that succeeded. If the server had nothing newer, the list counts as imported now, unless somebody has
 * changed it in the meantime. Then the next fetch asks for the whole list. A list with a timeout keeps the time of its
 * import: feed_is_level() must see how old its rules are.
 */
static int note_fetched(struct refresh *refresh, const struct feed_message *message, struct reason *reason)
{
	const bool is_unmodified = message->outcome == FEED_UNMODIFIED;
	const char *name = refresh->list->name;
	struct store_feed *feed = &refresh->feed;
	struct store_lists lists;
	struct store *store;
	unsigned int number = 0;
	bool is_level = true;
	int error;

	if (refresh->invocation->is_dry_run)
		return 0;
	error = command_write_store(refresh->invocation, &store, reason);
	if (error)
		return error;
	error = store_lists(store, &lists);
	if (!error && is_unmodified) {
		refresh->stored = lists.list[store_lists_find(&lists, name)];
		is_level = feed_is_level(feed, refresh->list, &refresh->stored, time(NULL));
		if (is_level && !refresh->list->timeout_ms)
			error = store_list_open(store, name, refresh->source, &number);
		if (!error)
			error = store_lists(store, &lists);
	}
	if (error)
		return command_close_written(store, error, reason);
	number = store_lists_find(&lists, name);
	refresh->stored = lists.list[number];
	if (number)
		store_list_expect(store, number, feed_stale_s(refresh->list));
	feed_note_success(feed, refresh->list, time(NULL), random_number());
	feed->imported_s = is_level ? refresh->stored.imported_s : 0;
	feed->rules = refresh->stored.rules;
	if (!is_level)
		feed->next_s = 0;
	if (!is_unmodified)
		feed->left_out = message->bad_lines + refresh->left_out.count;
	if (!is_unmodified || *message->etag)
		memcpy(feed->etag, message->etag, sizeof(feed->etag));
	if (!is_unmodified || *message->modified)
		memcpy(feed->modified, message->modified, sizeof(feed->modified));
	return command_close_written(store, store_feed_put(store, name, feed), reason);
}

/* ---- one list ---- */

/* Imports what the process without privileges sent, as `import --list NAME --replace` does. */
static int import_text(struct refresh *refresh, int text, json_t **answer, struct reason *reason)
{
	const struct invocation *invocation = refresh->invocation;
	const struct config_list *list = refresh->list;
	const bool is_forced = invocation->is_forced;
	struct list_limits limits = list->limits;
	const struct import_options options = { .name = invocation->name,
						.state = invocation->state,
						.list_name = list->name,
						.list_format = "text",
						.is_strict = true,
						.is_forced = list->is_forced,
						.is_dry_run = invocation->is_dry_run,
						.insist = LIST_INSIST,
						.is_replace = true,
						.source = refresh->source,
						.rules_max = list->rules_max,
						.least_percent = is_forced ? 0 : 100 - list->shrink_max,
						.grow_max = is_forced ? ~0U : list->grow_max,
						.limits = &limits,
						.leaves_out = true };
	char path[32], *paths[] = { path };
	struct command_imported result;
	int error;

	limits.space_max = is_forced ? 100 : limits.space_max;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", text);
	error = command_import_list(&options, paths, 1, &result, reason);
	*answer = result.answer;
	refresh->left_out = result.left_out;
	return error;
}

/* Reports a failure in one line, and stores it. */
static enum command_status fail(struct refresh *refresh, enum command_status status, const char *why,
				__s64 retry_after_s)
{
	char old[64];
	struct reason reason;

	if (note_failed(refresh, why, retry_after_s, &reason))
		command_fail(STATUS_SYSTEM, "list '%s': %s", refresh->list->name, reason.text);
	snprintf(old, sizeof(old), "it keeps its %llu rules", (unsigned long long)refresh->stored.rules);
	return command_fail(status, "list '%s', %s: %s; %s", refresh->list->name, refresh->source, why,
			    refresh->stored.imported_s ? old : "it was never fetched");
}

static void print_row(const struct refresh *refresh, const struct feed_message *message, json_t *answer)
{
	const struct change_left_out *left_out = &refresh->left_out;
	const bool is_dry_run = refresh->invocation->is_dry_run;
	const char *name = refresh->list->name, *dry = is_dry_run ? "dry run: " : "", *now = is_dry_run ? " now" : "";
	json_t *row = json_pack("{s:s, s:s, s:I}", "list", name, "result",
				message->outcome == FEED_FETCHED ? "fetched" : "not modified", "rules",
				(json_int_t)refresh->stored.rules);
	char line[512], commands[GUARD_ADVICE_BYTES];

	json_object_set_new(row, "changed", json_boolean(json_is_true(json_object_get(answer, "changed"))));
	if (message->outcome == FEED_UNMODIFIED) {
		snprintf(line, sizeof(line), "%s%s: not modified; %llu rules", dry, name,
			 (unsigned long long)refresh->stored.rules);
	} else {
		snprintf(line, sizeof(line), "%s%s: added %lld, removed %lld; %llu rules%s", dry, name,
			 json_integer_value(json_object_get(answer, "added")),
			 json_integer_value(json_object_get(answer, "removed")),
			 (unsigned long long)refresh->stored.rules, now);
		json_object_set(row, "added", json_object_get(answer, "added"));
		json_object_set(row, "removed", json_object_get(answer, "removed"));
		json_object_set_new(row, "bad_lines", json_integer(message->bad_lines));
		json_object_set_new(row, "left_out", json_integer(left_out->count));
	}
	output_list_row(command_note_dry_run(refresh->invocation, row), line);
	if (message->bad_lines)
		output_warning("list '%s': %u bad line%s left out; the first: %s", name, message->bad_lines,
			       message->bad_lines == 1 ? "" : "s", message->first_bad);
	if (left_out->count)
		output_warning("list '%s': left out %llu rule%s: %s; to have it, first: %s", name,
			       (unsigned long long)left_out->count,
			       left_out->count == 1 ? "" : "s that would lock this host out; the first",
			       left_out->why.text,
			       guard_advice_text(&left_out->advice, session_name_option(refresh->invocation->name),
						 commands));
}

/* -EINTR: the import was interrupted. */
static int end(struct refresh *refresh, enum command_status *status)
{
	struct feed_message message;
	struct reason reason;
	json_t *answer = NULL;
	char dir[PATH_MAX];
	int text, error = 0;

	fetch_end(&refresh->fetch, &message, &text);
	if (message.outcome == FEED_FAILED) {
		*status = fail(refresh, STATUS_SYSTEM, message.why, message.retry_after_s);
		return 0;
	}
	/* By this the guard knows them, also for the rules that they have just sent. */
	if (!refresh->invocation->is_dry_run && session_state_dir(refresh->invocation->state, refresh->invocation->name,
								   dir, sizeof(dir)) == 0)
		error = list_keeper_note_servers(dir, refresh->list->name, message.servers);
	if (error)
		output_warning("list '%s': cannot note its servers: %s", refresh->list->name, strerror(-error));
	error = 0;
	if (message.outcome == FEED_FETCHED)
		error = import_text(refresh, text, &answer, &reason);
	if (text >= 0)
		close(text);
	/* The next fetch brings the whole list again: by then the rules that were left out may do no harm. */
	if (refresh->left_out.count) {
		memset(message.etag, 0, sizeof(message.etag));
		memset(message.modified, 0, sizeof(message.modified));
	}
	if (error && error != -EINTR)
		*status = fail(refresh, STATUS_SYSTEM, reason.text, 0);
	else if (!error && note_fetched(refresh, &message, &reason))
		*status = command_fail(STATUS_SYSTEM, "list '%s': %s", refresh->list->name, reason.text);
	else if (!error)
		print_row(refresh, &message, answer);
	json_decref(answer);
	return error == -EINTR ? error : 0;
}

/*
 * Starts a fetch if the list is due; `is_asked`: the user has named the list. Before the fetch it stores a failure. If
 * this process is killed, that stays, and the next process does not try again at once.
 */
static enum command_status start(struct refresh *refresh, bool is_asked)
{
	const struct config_list *list = refresh->list;
	struct store_lists lists = {};
	struct store *store;
	const __s64 now_s = time(NULL);
	struct fetch_request request = { .list = list, .etag = "", .modified = "" };
	char least[RULE_TIME_BYTES];
	struct reason reason;
	__s64 forbidden_s;
	int error = command_open_store(refresh->invocation, &store, &reason);

	if (!error && store) {
		error = store_lists(store, &lists);
		if (!error)
			error = store_feed(store, list->name, &refresh->feed);
		/* A damaged entry counts as a missing one. */
		if (error == -ENOENT || error == -EBADMSG)
			error = 0;
		refresh->stored = lists.list[store_lists_find(&lists, list->name)];
		store_unread_reason(error, &reason);
	}
	store_close(store);
	feed_source(list, refresh->source);
	if (error)
		return command_fail_because(error, &reason);
	forbidden_s = refresh->invocation->is_forced ? 0 : feed_forbidden_s(&refresh->feed, list, now_s);
	if (is_asked && forbidden_s)
		return command_fail(STATUS_NO,
				    "list '%s': its provider allows the next fetch in %s; --force fetches it now",
				    list->name, rule_time_format(1000 * forbidden_s, least));
	if (!is_asked && (forbidden_s || !feed_is_due(&refresh->feed, list, now_s)))
		return STATUS_DONE;
	error = note_failed(refresh, "a fetch has begun, and has not ended", 0, &reason);
	if (error)
		return command_fail(STATUS_SYSTEM, "list '%s': %s", list->name, reason.text);
	if (feed_is_level(&refresh->feed, list, &refresh->stored, now_s)) {
		request.etag = refresh->feed.etag;
		request.modified = refresh->feed.modified;
	}
	return fetch_start(&refresh->fetch, &request, &reason) ? fail(refresh, STATUS_SYSTEM, reason.text, 0) :
								 STATUS_DONE;
}

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
	(void)signal_number;
	is_interrupted = 1;
	waiting_is_over = 1;
}

/*
 * Fetches several lists side by side, and imports one after the other. Slow servers do not hold up the others: see
 * STALL_MS.
 */
static enum command_status refresh_lists(const struct invocation *invocation, const struct config_list *const *lists,
					 size_t lists_count, bool is_asked)
{
	struct refresh running[FETCHES_MAX];
	enum command_status status = STATUS_DONE, one;
	size_t begun = 0, count = 0, most = FETCHES, ready;
	struct pollfd files[FETCHES_MAX];
	int error = 0;

	/* A signal never kills this process: it must first take back the failures that start() has stored. */
	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	while (!error) {
		while (begun < lists_count && count < most) {
			running[count] = (struct refresh){ .invocation = invocation, .list = lists[begun++] };
			one = start(&running[count], is_asked);
			count += running[count].fetch.process.pid != 0;
			status = status == STATUS_DONE ? one : status;
		}
		if (!count)
			return status;
		for (size_t i = 0; i < count; i++)
			files[i] = (struct pollfd){ .fd = running[i].fetch.process.fd, .events = POLLIN };
		poll(files, count, STALL_MS);
		/* A fetch that has ended, or hangs. */
		for (ready = 0; ready < count; ready++)
			if (files[ready].revents || running[ready].fetch.deadline_ms <= clock_ms(CLOCK_MONOTONIC))
				break;
		error = is_interrupted ? -EINTR : 0;
		if (!error && ready == count)
			most += most < FETCHES_MAX;
		if (error || ready == count)
			continue;
		one = STATUS_DONE;
		error = end(&running[ready], &one);
		status = status == STATUS_DONE ? one : status;
		if (!error)
			running[ready] = running[--count];
	}
	/* These fetches were not ended by their providers, so they are no failures. */
	while (count--) {
		unprivileged_stop(&running[count].fetch.process);
		take_back(&running[count]);
		status = command_fail(STATUS_SYSTEM, "list '%s': interrupted: nothing was changed",
				      running[count].list->name);
	}
	return status;
}

/* ---- all lists ---- */

static const struct config_list *find_list(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->lists_count; i++)
		if (config->list[i].url && !strcmp(config->list[i].name, name))
			return &config->list[i];
	return NULL;
}

/* *others: the lists, by number as bits, of which something is noted, and which the configuration does not fetch. */
static int find_others(struct store *store, const struct config *config, struct store_lists *lists, __u64 *others,
		       struct reason *reason)
{
	struct store_feeds feeds;
	int error = store_lists(store, lists);

	if (!error)
		error = store_feeds(store, lists, &feeds);
	*others = 0;
	for (size_t i = 1; i <= STORE_LISTS_MAX && !error; i++)
		if (feeds.feed[i].config && !find_list(config, lists->list[i].name))
			*others |= 1ULL << i;
	return store_unread_reason(error, reason);
}

/* Deletes what is noted about lists that the configuration does not fetch any more. */
static int forget_others(const struct invocation *invocation, const struct config *config, struct reason *reason)
{
	struct store_lists lists;
	struct store *store;
	__u64 others;
	int error = command_open_store(invocation, &store, reason);

	if (error || !store)
		return error;
	error = find_others(store, config, &lists, &others, reason);
	store_close(store);
	if (!error && others)
		error = command_write_store(invocation, &store, reason);
	if (error || !others)
		return error;
	/* Meanwhile another list may have got a number. */
	error = find_others(store, config, &lists, &others, reason);
	if (error) {
		store_close(store);
		return error;
	}
	for (size_t i = 1; i <= STORE_LISTS_MAX && !error; i++)
		if (others >> i & 1) {
			store_list_expect(store, i, 0);
			error = store_feed_forget(store, lists.list[i].name);
		}
	return command_close_written(store, error, reason);
}

static enum command_status run_refresh(const struct invocation *invocation)
{
	const struct config_list *lists[STORE_LISTS_MAX];
	enum command_status status = STATUS_DONE;
	const bool is_asked = invocation->count;
	struct config *config;
	struct reason reason;
	size_t count = 0;
	int error = config_open(invocation->config_path, invocation->name, command_report_bad_line, &config, &reason);

	if (error)
		return command_fail_because(error, &reason);
	for (int i = 0; i < invocation->count && status == STATUS_DONE; i++)
		if (!find_list(config, invocation->operands[i]))
			status = command_fail(STATUS_USAGE,
					      "the configuration has no [list %s] with a url or a preset: see "
					      "xdp-cuckoo.conf(5)",
					      invocation->operands[i]);
	for (size_t i = 0; i < config->lists_count; i++) {
		bool is_named = !is_asked;

		for (int k = 0; k < invocation->count; k++)
			is_named |= !strcmp(invocation->operands[k], config->list[i].name);
		if (is_named && config->list[i].url)
			lists[count++] = &config->list[i];
	}
	if (status == STATUS_DONE) {
		output_list_begin();
		status = refresh_lists(invocation, lists, count, is_asked);
		/* Another file than the filter's own says nothing about the lists that it does not name. */
		if (!is_asked && !is_interrupted && !invocation->is_dry_run && !invocation->config_path &&
		    forget_others(invocation, config, &reason))
			status = command_fail(STATUS_SYSTEM, "%s", reason.text);
		output_list_end();
	}
	config_close(config);
	return status;
}

const struct command command_refresh = {
	.name = "refresh",
	.usage = "[NAME...] [--config FILE] [--dry-run] [--force]",
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH | PRIVILEGE_CHILD,
	.run = run_refresh,
};
