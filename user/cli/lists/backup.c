// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A backup is a text file:
 *
 *   xdp-cuckoo backup 1 of 2026-11-24T12:00:00Z
 *   setting no-rule pass
 *   list bad {"imported": "2026-11-24T11:00:00Z", "source": "bad.txt", "feed": {...}}
 *   # stale bad 86400
 *   rule src 203.0.113.1
 *   rule src 203.0.113.7 comment "scanner" list bad until 2026-11-24T13:00:00Z
 *   end rules 2 lists 1
 *
 * A rule has a line for each of its owners; without a list, that is the operator. The last line shows that nothing is
 * missing. Empty lines, and other lines that start with #, mean nothing. A rule ends at a moment of the wall clock, on
 * every host. stale_s of a list is written as a comment: older versions refuse a member that they do not know.
 */
#include "lists/backup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "counters/counters.h"
#include "io/line_file.h"
#include "lists/import.h"

#define VERSION_1 BACKUP_HEAD "1 of "
#define MOMENT "%Y-%m-%dT%H:%M:%SZ"
#define MOMENT_BYTES 32
#define MOMENTS 6 /* of a list and its feed */
#define LIST " list "
#define UNTIL " until "
#define STALE "# stale "
#define LAST_LINE "rules %llu lists %u"
#define fail(reason, ...) reason_set(reason, -EINVAL, __VA_ARGS__)

/* 0 is "". */
static const char *write_moment(time_t second, char text[MOMENT_BYTES])
{
	struct tm utc;

	if (!second || !gmtime_r(&second, &utc) || !strftime(text, MOMENT_BYTES, MOMENT, &utc))
		*text = '\0';
	return text;
}

static int read_moment(const char *text, __s64 *second)
{
	*second = 0;
	return *text ? rule_moment_parse(text, second) : 0;
}

/* Setting number `i` of struct store_settings, as a line shows it. */
static const char *setting(size_t i, bool is_on, char text[RULE_TEXT_BYTES])
{
	const bool is_policy = i < OUTCOME_POLICIES;

	sprintf(text, "%s %s", is_policy ? outcome_words[i].name : "monitor-only",
		is_policy ? verdict_words[is_on ? VERDICT_DROP : VERDICT_PASS].name :
		is_on     ? "on" :
			    "off");
	return text;
}

/* ---- writing ---- */

#define FEED_FORMAT "{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:s}"

static void write_list(FILE *to, struct store *store, const struct store_list *list)
{
	struct store_feed feed;
	const bool has_feed = !store_feed(store, list->name, &feed);
	const __s64 second[MOMENTS] = { list->imported_s, feed.tried_s,      feed.fetched_s,
					feed.next_s,      feed.wait_until_s, feed.imported_s };
	char moment[MOMENTS][MOMENT_BYTES];
	json_t *row = json_object();

	for (size_t i = 0; i < MOMENTS; i++)
		write_moment(second[i], moment[i]);
	json_object_update_new(row, json_pack("{s:s, s:s}", "imported", moment[0], "source", list->source));
	/* Without this, its next fetch, or the fleet, would take it for what was imported. */
	if (list->is_edited)
		json_object_set_new(row, "edited", json_true());
	if (has_feed)
		json_object_set_new(row, "feed",
				    json_pack(FEED_FORMAT, "tried", moment[1], "fetched", moment[2], "next", moment[3],
					      "wait_until", moment[4], "imported", moment[5], "rules",
					      (json_int_t)feed.rules, "config", (json_int_t)feed.config, "failures",
					      (json_int_t)feed.failures, "left_out", (json_int_t)feed.left_out, "etag",
					      feed.etag, "modified", feed.modified, "why", feed.why));
	fprintf(to, "list %s ", list->name);
	json_dumpf(row, to, 0);
	fputc('\n', to);
	if (list->stale_s)
		fprintf(to, STALE "%s %u\n", list->name, list->stale_s);
	json_decref(row);
}

struct writing {
	FILE *to;
	struct store_lists lists;
	unsigned int owners[1 + STORE_LISTS_MAX],
		count; /* the operator, then the lists by name: equal stores, equal files */
	__s64 wall_ms;
	unsigned long long lines;
};

static int write_rule(const struct rule *rule, void *context)
{
	struct writing *writing = context;
	char text[RULE_TEXT_BYTES], until[MOMENT_BYTES];
	struct rule bare = *rule;

	bare.timeout_ms = 0;
	rule_format(&bare, text);
	/* To the nearest second, so that a backup of what was restored has the same ends. */
	write_moment((writing->wall_ms + rule->owners.timed_ms + 500) / 1000, until);
	for (size_t i = 0; i < writing->count; i++) {
		const unsigned int number = writing->owners[i];
		const bool is_timed = rule->owners.timed >> number & 1;

		if (!(rule_owners_now(rule) >> number & 1))
			continue;
		writing->lines++;
		fprintf(writing->to, "rule %s%s%s%s%s\n", text, number == STORE_BY_HAND ? "" : LIST,
			writing->lists.list[number].name, is_timed ? UNTIL : "", is_timed ? until : "");
	}
	return 0;
}

int backup_write(FILE *to, struct store *store)
{
	struct writing writing = { .to = to, .count = 1 };
	struct store_settings settings = store_settings_default;
	char text[RULE_TEXT_BYTES];
	int error = store ? store_read_begin(store) : 0;

	if (error)
		return error;
	if (store)
		error = store_lists(store, &writing.lists);
	if (store && !error)
		error = store_settings(store, &settings);
	fprintf(to, VERSION_1 "%s\n", write_moment(time(NULL), text));
	for (size_t i = 0; i < sizeof(settings); i++)
		fprintf(to, "setting %s\n", setting(i, ((__u8 *)&settings)[i], text));
	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++) {
		const struct store_list *list = writing.lists.list;
		unsigned int at = writing.count;

		if (!list[i].name[0])
			continue;
		for (; at > 1 && strcmp(list[writing.owners[at - 1]].name, list[i].name) > 0; at--)
			writing.owners[at] = writing.owners[at - 1];
		writing.owners[at] = i;
		writing.count++;
	}
	for (size_t i = 1; i < writing.count; i++)
		write_list(to, store, &writing.lists.list[writing.owners[i]]);
	if (store && !error) {
		writing.wall_ms = store_wall_ms(store);
		error = store_each(store, write_rule, &writing);
	}
	/* Without the last line, nobody takes what was read of a damaged store for all of it. */
	if (!error)
		fprintf(to, "end " LAST_LINE "\n", writing.lines, writing.count - 1);
	if (store)
		store_read_end(store);
	return error;
}

/* ---- reading ---- */

/* false: the text is too long. */
static bool take_text(char *to, size_t room, const char *text)
{
	return snprintf(to, room, "%s", text) < (int)room;
}

static int read_list(struct backup *backup, char *text, struct reason *reason)
{
	struct store_list *list = &backup->lists.list[backup->lists_count + 1];
	struct store_feed *feed = &backup->feed[backup->lists_count + 1];
	const char *moment[MOMENTS] = { "", "", "", "", "", "" }, *source = "", *etag = "", *modified = "", *why = "";
	__s64 *const second[MOMENTS] = { &list->imported_s, &feed->tried_s,      &feed->fetched_s,
					 &feed->next_s,     &feed->wait_until_s, &feed->imported_s };
	const char *name = strsep(&text, " ");
	json_int_t failures = 0, left_out = 0, rules = 0, config = 0, stale_s = 0;
	json_error_t wrong = {};
	bool is_sound = true;
	int is_edited = 0;
	json_t *row;

	if (backup->lists_count == STORE_LISTS_MAX || !session_is_name(name) || store_lists_find(&backup->lists, name))
		return fail(reason, "'list %.40s': no name of a list, or named twice, or too many lists", name);
	strcpy(list->name, name);
	backup->lists_count++;
	row = json_loads(text ? text : "", JSON_REJECT_DUPLICATES, &wrong);
	if (!row ||
	    json_unpack_ex(row, &wrong, JSON_STRICT, "{s:s, s:s, s?b, s?I, s?:" FEED_FORMAT "}", "imported",
			   &moment[0], "source", &source, "edited", &is_edited, "stale_s", &stale_s, "feed", "tried",
			   &moment[1], "fetched", &moment[2], "next", &moment[3], "wait_until",
			   &moment[4], "imported", &moment[5],
			   "rules", &rules, "config", &config, "failures", &failures, "left_out", &left_out, "etag",
			   &etag, "modified", &modified, "why", &why)) {
		json_decref(row);
		return fail(reason, "'list %s': %s", name, wrong.text);
	}
	for (size_t i = 0; i < MOMENTS; i++)
		is_sound &= !read_moment(moment[i], second[i]);
	is_sound &= take_text(list->source, sizeof(list->source), source) && rule_is_plain(source) &&
		    take_text(feed->etag, sizeof(feed->etag), etag) &&
		    take_text(feed->modified, sizeof(feed->modified), modified) &&
		    take_text(feed->why, sizeof(feed->why), why) && store_feed_is_sound(feed);
	list->is_edited = is_edited;
	is_sound &= stale_s >= 0 && stale_s <= UINT32_MAX;
	list->stale_s = stale_s;
	feed->rules = rules;
	feed->config = config;
	feed->failures = failures;
	feed->left_out = left_out;
	json_decref(row);
	if (!is_sound)
		return fail(reason, "'list %s': a time is not like 2026-11-24T12:00:00Z, or a text is too long", name);
	return 0;
}

/* What is not like this is any comment. */
static void read_stale(struct backup *backup, char *text)
{
	const unsigned int number = store_lists_find(&backup->lists, strsep(&text, " "));
	char *end = NULL;
	const unsigned long long stale_s = text ? strtoull(text, &end, 10) : 0;

	if (number && stale_s && !*end && stale_s <= UINT32_MAX)
		backup->lists.list[number].stale_s = stale_s;
}

static int read_rule(struct backup *backup, char *text, struct reason *reason)
{
	char *quote = strrchr(text, '"'), *tail = quote ? quote : text; /* a comment ends with the last quote */
	char *list = strstr(tail, LIST), *until = strstr(tail, UNTIL);
	unsigned int number = STORE_BY_HAND;
	struct rule rule;
	__s64 end = 0;
	int error;

	backup->lines++;
	if (list)
		*list = '\0';
	if (until)
		*until = '\0';
	error = rule_parse(text, &rule, reason);
	if (error)
		return error;
	if (list && !(number = store_lists_find(&backup->lists, list + strlen(LIST))))
		return fail(reason, "'list %.40s': no line before names such a list", list + strlen(LIST));
	if (rule.timeout_ms || (until && (read_moment(until + strlen(UNTIL), &end) || !end)))
		return fail(reason, "a rule ends at a moment, written last: until 2026-11-24T12:00:00Z");
	rule.timeout_ms = 1000 * end;
	return rule_set_add(&backup->rules[number], &rule);
}

/* Reads any line but the first. */
static int read_line(struct backup *backup, char *text, struct reason *reason)
{
	char line[RULE_TEXT_BYTES];

	if (!strncmp(text, STALE, strlen(STALE)))
		read_stale(backup, text + strlen(STALE));
	if (!*text || *text == '#')
		return 0;
	if (backup->has_end)
		return fail(reason, "'%.40s': behind the line end", text);
	if (!strncmp(text, "rule ", 5))
		return read_rule(backup, text + 5, reason);
	if (!strncmp(text, "list ", 5))
		return read_list(backup, text + 5, reason);
	if (!strncmp(text, "setting ", 8)) {
		for (size_t i = 0; i < 2 * sizeof(backup->settings); i++)
			if (!strcmp(text + 8, setting(i / 2, i & 1, line))) {
				((__u8 *)&backup->settings)[i / 2] = i & 1;
				return 0;
			}
		return fail(reason, "'setting %.80s': no such setting, or no such value", text + 8);
	}
	if (strncmp(text, "end ", 4))
		return fail(reason, "'%.40s': a line starts with setting, list, rule or end", text);
	backup->has_end = true;
	sprintf(line, LAST_LINE, (unsigned long long)backup->lines, backup->lists_count);
	return strcmp(text + 4, line) ?
		       fail(reason, "'end %.40s', but %s are there: a line is missing, or was added", text + 4, line) :
		       0;
}

bool backup_is(const char *path)
{
	struct reader reader;
	const bool is_backup = !reader_open(&reader, path) && reader_begins(&reader, BACKUP_HEAD);

	reader_close(&reader);
	return is_backup;
}

int backup_read(struct backup *backup, const char *path, void (*refuse)(const char *text), struct reason *reason)
{
	struct reader reader;
	int got = reader_open(&reader, path), error = 0;

	*backup = (struct backup){ .settings = store_settings_default };
	got = got ? got : reader_line(&reader);
	if (got > 0 && strncmp(reader.line, VERSION_1, strlen(VERSION_1)))
		error = fail(reason,
			     "%s is of another version ('%.40s'): restore it with the tool that wrote it, or a later one",
			     reader.name, reader.line);
	while (!error && got > 0 && (got = reader_line(&reader)) > 0) {
		struct reason why, line;

		error = read_line(backup, reader.line, &why);
		if (error != -EINVAL)
			continue;
		reason_set(&line, 0, "%s:%llu: %s", reader.name, (unsigned long long)reader.number, why.text);
		if (++backup->bad <= IMPORT_BAD_LINES_SHOWN)
			refuse(line.text);
		error = 0;
	}
	if (error == -ENOMEM || (!error && got < 0))
		error = reason_set(reason, error ? error : got, "cannot read '%s', line %llu: %s", path,
				   (unsigned long long)reader.number, strerror(error ? -error : -got));
	else if (!error && !backup->has_end)
		error = fail(reason, "%s ends too early: the last line, 'end ...', is missing; nothing was changed",
			     reader.name);
	else if (!error && backup->bad)
		error = fail(reason, "%s: %llu bad line%s; nothing was changed", reader.name,
			     (unsigned long long)backup->bad, backup->bad == 1 ? "" : "s");
	reader_close(&reader);
	return error;
}

void backup_free(struct backup *backup)
{
	for (size_t i = 0; i <= STORE_LISTS_MAX; i++)
		rule_set_close(&backup->rules[i]);
}

/* ---- restoring ---- */

static int restore_rules(struct backup *backup, struct session *session, struct rule_set *rules, struct reason *reason)
{
	const __s64 now_ms = store_wall_ms(session->store);
	int error = 0;

	rule_set_sort(rules);
	for (size_t i = 0; i < rules->count && !error; i++) {
		enum store_added ignored;
		struct rule rule;

		rule_set_get(rules, i, &rule);
		if (rule.timeout_ms && rule.timeout_ms <= now_ms) {
			backup->ended++;
			continue;
		}
		rule.timeout_ms -= rule.timeout_ms ? now_ms : 0;
		if (rule.timeout_ms > RULE_TIMEOUT_MAX_S * 1000LL)
			rule.timeout_ms = RULE_TIMEOUT_MAX_S * 1000LL;
		error = change_add(session, &rule, &ignored, reason);
	}
	rule_set_close(rules); /* the commit may need the memory for new tables */
	return error;
}

struct digest {
	__u64 hash; /* FNV-1a of all lines but the first, which has the time */
	bool has_begun;
};

static ssize_t digest_text(void *cookie, const char *text, size_t length)
{
	struct digest *digest = cookie;

	for (size_t i = 0; i < length; i++) {
		if (digest->has_begun)
			digest->hash = (digest->hash ^ (__u8)text[i]) * 0x100000001b3;
		digest->has_begun |= text[i] == '\n';
	}
	return length;
}

/* A hash of what a backup of the store would be: equal stores, equal files. 0; -errno. */
static int digest(struct store *store, __u64 *hash)
{
	struct digest digest = { .hash = 0xcbf29ce484222325 };
	FILE *to = fopencookie(&digest, "w", (cookie_io_functions_t){ .write = digest_text });
	int error = to ? backup_write(to, store) : -ENOMEM;

	if (to)
		fclose(to);
	*hash = digest.hash;
	return error;
}

static int make_equal(struct backup *backup, struct session *session, __s64 confirm_ms, struct reason *reason)
{
	/* Of the lists in the store, by those in the backup. */
	unsigned int numbers[1 + STORE_LISTS_MAX] = { [STORE_BY_HAND] = STORE_BY_HAND };
	struct store *store = session->store;
	struct store_settings before;
	struct store_pending pending;
	struct store_lists lists;
	int error = store_pending(store, &pending);

	if (!error)
		error = store_settings(store, &before);
	if (error)
		return store_unread_reason(error, reason);
	if (pending.id)
		return reason_set(
			reason, -EBUSY,
			"another change waits for xdp-cuckoo%s confirm; confirm it, or wait until it has been undone",
			session_name_option(session->name));
	/* The flows of the guard are IP. */
	if (session->guard && backup->settings.policy[OUTCOME_NOT_IP] > before.policy[OUTCOME_NOT_IP])
		return reason_set(reason, -ECANCELED,
				  "the backup sets the policy 'not-ip drop', which drops ARP; nothing was changed; say --force "
				  "if you mean it");
	if (confirm_ms)
		error = change_set_pending(session, confirm_ms, reason);
	if (!error)
		error = change_clear(session, reason);
	if (error)
		return error;
	/* The other lists are deleted first: they make room. */
	error = store_lists(store, &lists);
	for (unsigned int i = 1; i <= STORE_LISTS_MAX && !error; i++)
		if (lists.list[i].name[0] && !store_lists_find(&backup->lists, lists.list[i].name))
			error = store_list_delete(store, i);
	for (unsigned int i = 1; i <= backup->lists_count && !error; i++) {
		const char *name = backup->lists.list[i].name;

		error = store_list_put(store, &backup->lists.list[i], &numbers[i]);
		if (!error)
			store_list_expect(store, numbers[i], backup->lists.list[i].stale_s);
		if (!error)
			error = backup->feed[i].tried_s ? store_feed_put(store, name, &backup->feed[i]) :
							  store_feed_forget(store, name);
	}
	if (!error)
		error = store_set_settings(store, &backup->settings);
	if (error == -EUSERS)
		return change_say_too_many_lists(session, reason);
	if (error)
		return reason_set(reason, error, "cannot write to the store: %s", reason_of_write(error));
	for (unsigned int i = 0; i <= backup->lists_count && !error; i++) {
		session->owner = numbers[i];
		error = restore_rules(backup, session, &backup->rules[i], reason);
	}
	return error;
}

int backup_restore(struct backup *backup, struct session *session, __s64 confirm_ms, struct reason *reason)
{
	__u64 before = 0, after = 0;
	int error = change_begin(session, reason);

	if (error)
		return error;
	change_at_once(session);
	if (backup->is_compared)
		error = store_unread_reason(digest(session->store, &before), reason);
	if (!error)
		error = make_equal(backup, session, confirm_ms, reason);
	if (!error && backup->is_compared)
		error = store_unread_reason(digest(session->store, &after), reason);
	backup->is_changed = before != after;
	return change_end(session, error, reason);
}
