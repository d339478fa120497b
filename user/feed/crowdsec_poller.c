// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The process without privileges: polls the LAPI, and writes the lines from which the keeper makes the list. */
#include "feed/feeds.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/safe_text.h"
#include "base/version.h"
#include "feed/http_get.h"
#include "io/json_walk.h"

#define ANSWER_MS 60000
#define ANSWER_BYTES (256 << 20)
#define WAIT_MAX_MS 60000 /* after an error, unless `every` is longer */
#define WHOLE_MS 3600000  /* between two answers with all decisions */
#define LARGE 1000        /* changes in an answer: the LAPI may lose some when so many come at once */
#define COUNTS_MS 10000   /* until the keeper answers */
#define COUNTS_BYTES 65536
#define ALIVE_POLLS 3 /* a status is sent at least so often while the LAPI answers */
/* A text with NUL, or a number that no integer holds, makes no decision unreadable. */
#define LENIENT (JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL)

struct poller {
	const struct crowdsec_start *start;
	FILE *to;
	/*
	 * For each address or network an array: the end that the keeper has (0: it has no rule), and the decisions by id.
	 * A decision has "end", "scenario" and "from", its origin. Ends are of CLOCK_BOOTTIME, so it does not matter if
	 * the wall clock is set.
	 */
	json_t *values;
	json_t *left_out; /* how many decisions are no rules, by why */
	json_t *beyond;   /* the ids of those that are left out only because of max-rules */
	json_t *seen;     /* what was dropped until the last report: see crowdsec_answer() */
	unsigned long long decisions;
	__s64 now_ms, whole_ms, alive_ms, report_ms;
	bool needs_whole, sends_all, takes_no_report;
	bool is_in_doubt; /* the last answer was LARGE */
	time_t started;
	__s64 wait_ms;         /* after the last answer, which was an error; 0: it was none */
	struct reason failure; /* that was noted last */
};

/* ---- decisions ---- */

/* Reads a duration of Go: "3h59m58.5s", "812.5ms", "-5s". */
static bool read_duration(const char *text, __s64 *ms)
{
	static const char *const units[] = { "h", "m", "s", "ms", "\302\265s", "us", "ns", NULL };
	static const double unit_ms[] = { 3.6e6, 6e4, 1e3, 1, 1e-3, 1e-3, 1e-6 };
	const char *c = text + (*text == '-');
	char number[32], unit[4], *end;
	double sum = 0;
	int used;

	/* Not %lf, which also takes nan, 1e400 and 0x10. */
	while (sscanf(c, "%31[0-9.]%3[^0-9.]%n", number, unit, &used) == 2) {
		size_t i = 0;

		while (units[i] && strcmp(unit, units[i]))
			i++;
		if (!units[i])
			return false;
		sum += strtod(number, &end) * unit_ms[i];
		if (*end)
			return false;
		c += used;
	}
	sum = sum < RULE_TIMEOUT_MAX_S * 1000.0 ? sum : RULE_TIMEOUT_MAX_S * 1000.0;
	*ms = *text == '-' ? -sum : sum;
	return *text && !*c;
}

/*
 * Whether the configuration wants the text. No word behind a '-' may match it. If there are other words, one of them
 * must. A word matches the text, or its part before ':', or with `is_part` any part of it.
 */
static bool is_wanted(const char *words, const char *text, bool is_part)
{
	bool is_named = false, must_be_named = false;
	char word[256];
	int used;

	for (; words && sscanf(words += strspn(words, " ,\t"), "%255[^ ,\t]%n", word, &used) == 1; words += used) {
		const bool is_excluded = *word == '-';
		const size_t length = strlen(word) - is_excluded;
		const bool fits = is_part ? strstr(text, word + is_excluded) != NULL :
					    !strncmp(text, word + is_excluded, length) &&
						    (!text[length] || text[length] == ':');

		if (fits && is_excluded)
			return false;
		must_be_named |= !is_excluded;
		is_named |= fits;
	}
	return is_named || !must_be_named;
}

/* Writes what the keeper must change for an address or a network. The latest end of its decisions counts. */
static void send_value(const struct poller *poller, const char *prefix, json_t *value)
{
	const char *action = rule_action_name(poller->start->options->action), *id;
	const __s64 sent_ms = json_integer_value(json_array_get(value, 0));
	char comment[RULE_COMMENT_BYTES];
	json_t *decision;
	__s64 end_ms = 0;

	json_object_foreach(json_array_get(value, 1), id, decision)
	{
		const __s64 ms = json_integer_value(json_object_get(decision, "end"));

		if (ms <= poller->now_ms || ms <= end_ms)
			continue;
		end_ms = ms;
		snprintf(comment, sizeof(comment), "crowdsec %s %s",
			 json_string_value(json_object_get(decision, "from")),
			 json_string_value(json_object_get(decision, "scenario")));
	}
	if (!poller->sends_all && end_ms == sent_ms)
		return;
	/* A rule keeps the latest end that it was given, so `del` comes first. A rule that has ended needs no line. */
	if (!poller->sends_all && end_ms < sent_ms && sent_ms > poller->now_ms)
		fprintf(poller->to, "del src %s action %s\n", prefix, action);
	json_array_set_new(value, 0, json_integer(end_ms));
	if (!end_ms)
		return;
	text_clean(comment);
	text_make_utf8(comment);
	for (char *c = comment; (c = strchr(c, '"'));)
		*c = '\'';
	fprintf(poller->to, "add src %s action %s timeout %llds comment \"%s\"\n", prefix, action,
		(long long)(end_ms - poller->now_ms + 999) / 1000, comment);
}

/* A decision, as far as it becomes a rule. */
struct decision {
	char prefix[RULE_PREFIX_BYTES], from[CROWDSEC_ORIGIN_BYTES], id[32];
	char what[CROWDSEC_ORIGIN_BYTES]; /* its scope or type, if rules cannot say it */
	const char *scenario;
	__s64 left_ms;
};

/* Reads a decision. NULL, or why it becomes no rule: a constant, or decision->what. */
static const char *read_decision(const struct crowdsec_options *options, json_t *json, struct decision *decision)
{
	const char *type = "", *scope, *words[] = { "src", "" }, *origin = "", *duration;
	struct reason ignored;
	struct rules rules;
	bool is_ban, is_short;
	double number;

	if (json_unpack(json, "{s:s, s:s, s:s, s:s, s:s, s:s, s:F}", "type", &type, "scope", &scope, "value", &words[1],
			"origin", &origin, "scenario", &decision->scenario, "duration", &duration, "id", &number) ||
	    !*origin || !read_duration(duration, &decision->left_ms))
		return "unreadable";
	is_ban = !strcasecmp(type, "ban");
	snprintf(decision->id, sizeof(decision->id), "%.0f", number);
	/* A decision of a blocklist has its name in `scenario`. */
	snprintf(decision->from, sizeof(decision->from), "%s%s",
		 strcmp(origin, "lists") ? origin : "lists:", strcmp(origin, "lists") ? "" : decision->scenario);
	snprintf(decision->what, sizeof(decision->what), "%s %.40s", is_ban ? "scope" : "type", is_ban ? scope : type);
	text_clean(decision->from);
	text_make_utf8(decision->from);
	text_clean(decision->what);
	text_make_utf8(decision->what);
	for (char *c = decision->from; (c = strpbrk(c, " \""));)
		*c = '_';
	if (!is_wanted(options->origins, decision->from, false) ||
	    !is_wanted(options->scenarios, decision->scenario, true))
		return "excluded";
	if (!is_ban || (strcasecmp(scope, "ip") && strcasecmp(scope, "range")))
		return decision->what;
	if (strpbrk(words[1], "-, \t\"") || rules_parse(&rules, words, 2, false, &ignored))
		return "unreadable";
	rule_prefix_format(rules.rule->family, &rules.rule->src, rules.rule->src_len, decision->prefix);
	is_short = !rules.rule->src_len || rules.rule->src_len < options->prefix_min[rules.rule->family == FLOW_IPV6];
	rules_free(&rules);
	return is_short ? "shorter than min-prefix" : NULL;
}

/*
 * Takes a new decision, or the end of one. The first decision beyond max-rules and all later ones are only noted by id, so
 * that their ends are not taken for ends of rules. json_object_del() returns 0 if the id was there.
 */
static void take_decision(struct poller *poller, json_t *json, bool is_new)
{
	struct decision decision = {};
	const char *why = read_decision(poller->start->options, json, &decision);
	json_t *value = why ? NULL : json_object_get(poller->values, decision.prefix), *known;

	if (!why && !value && is_new && json_object_size(poller->values) >= poller->start->options->rules_max) {
		json_object_set_new(poller->beyond, decision.id, json_null());
		why = "beyond max-rules";
	} else if (!why && !is_new && !json_object_del(poller->beyond, decision.id)) {
		why = "beyond max-rules";
	}
	if (why && (is_new || json_integer_value(json_object_get(poller->left_out, why)) > 0))
		crowdsec_sum(poller->left_out, why, is_new ? 1 : -1);
	if (why || (!value && !is_new))
		return;
	if (!value) {
		value = json_pack("[i, {}]", 0);
		json_object_set_new(poller->values, decision.prefix, value);
	}
	known = json_array_get(value, 1);
	poller->decisions -= json_object_get(known, decision.id) != NULL;
	poller->decisions += is_new;
	if (is_new)
		json_object_set_new(known, decision.id,
				    json_pack("{s:I, s:s, s:s}", "end", (json_int_t)(poller->now_ms + decision.left_ms),
					      "from", decision.from, "scenario", decision.scenario));
	else
		json_object_del(known, decision.id);
	if (!poller->sends_all)
		send_value(poller, decision.prefix, value);
	if (!json_object_size(known))
		json_object_del(poller->values, decision.prefix);
}

/* ---- answers ---- */

static void send_status(struct poller *poller)
{
	unsigned long long unreadable = json_integer_value(json_object_get(poller->left_out, "unreadable")),
			   left_out = 0;
	const char *why;
	json_t *count;

	json_object_foreach(poller->left_out, why, count) left_out += json_integer_value(count);
	if (*http_servers())
		fprintf(poller->to, KEEPER_SERVERS "%s\n", http_servers());
	fprintf(poller->to, CROWDSEC_STATUS "\n", poller->decisions, left_out - unreadable, unreadable);
	poller->alive_ms = poller->now_ms;
}

/* Compares what is known with what was known before a whole answer. Tells of a difference. */
static void note_differences(struct poller *poller, json_t *before)
{
	size_t missed = 0, gone = 0;
	struct reason text;
	const char *key;
	json_t *value;

	json_object_foreach(poller->values, key, value) missed += !json_object_get(before, key);
	json_object_foreach(before, key, value) gone += !json_object_get(poller->values, key) &&
							json_integer_value(json_array_get(value, 0)) > poller->now_ms;
	poller->is_in_doubt = missed + gone >= LARGE;
	if (!poller->whole_ms || poller->wait_ms || !(missed + gone))
		return;
	reason_set(&text, 0, "the LAPI has told of %zu addresses, and of the end of %zu, only in its whole list", missed, gone);
	poller->start->note(text.text);
}

/*
 * Takes each decision of an array, or without `poller` only counts them. Go writes an empty array as
 * null. -EBADMSG: it is no array. What is wrong within a decision costs only that one.
 */
static int each_decision(struct poller *poller, const struct json_span *array, bool is_new,
			 size_t *count)
{
	struct json_walk walk = { .rest = *array, .open = '[' };
	int got;

	*count = 0;
	if (array->end - array->at == 4 && !memcmp(array->at, "null", 4))
		return 0;
	while ((got = json_walk_next(&walk)) > 0) {
		const size_t length = walk.value.end - walk.value.at;
		json_t *decision = poller ? json_loadb(walk.value.at, length, LENIENT, NULL) : NULL;

		if (poller)
			take_decision(poller, decision, is_new);
		json_decref(decision);
		++*count;
	}
	return got;
}

/* Replaces what is known by the answer, and has the keeper do the same with the list. */
static void take_whole(struct poller *poller, const struct json_span *added)
{
	json_t *before = poller->values, *value;
	struct reason text;
	const char *key;
	size_t ignored;

	poller->values = json_object();
	json_object_clear(poller->left_out);
	json_object_clear(poller->beyond);
	poller->decisions = 0;
	poller->sends_all = true;
	each_decision(poller, added, true, &ignored);
	note_differences(poller, before);
	json_decref(before);
	send_status(poller);
	fputs("# all\n", poller->to);
	json_object_foreach(poller->values, key, value) send_value(poller, key, value);
	fputs("# end\n", poller->to);
	poller->sends_all = false;
	json_object_foreach(poller->left_out, key, value)
	{
		reason_set(&text, 0, "%lld decisions are no rules: %s", json_integer_value(value),
			   key);
		poller->start->note(text.text);
	}
}

static int take_answer(struct poller *poller, const struct http_page *page, bool is_whole,
		       struct reason *reason)
{
	const char *const text = page->bytes ? page->bytes : "";
	struct json_walk walk = { .rest = { text, text + page->count, 1 }, .open = '{' };
	struct json_span added = {}, ended = {};
	size_t news, ends;
	int got;

	while ((got = json_walk_next(&walk)) > 0)
		if (!strcmp(walk.key, "new"))
			added = walk.value;
		else if (!strcmp(walk.key, "deleted"))
			ended = walk.value;
	if (got || walk.rest.at < walk.rest.end || !added.at || !ended.at ||
	    each_decision(NULL, &added, true, &news) || each_decision(NULL, &ended, false, &ends))
		return reason_set(reason, -EBADMSG, "its answer has no decisions: %s",
				  "the members new and deleted must be arrays");
	if (is_whole) {
		take_whole(poller, &added);
		return 0;
	}
	poller->is_in_doubt = news + ends >= LARGE;
	each_decision(poller, &added, true, &news);
	each_decision(poller, &ended, false, &ends);
	if (news || ends ||
	    poller->now_ms - poller->alive_ms >= ALIVE_POLLS * poller->start->options->every_ms)
		send_status(poller);
	return 0;
}

static int ask(const struct poller *poller, const char *path, const char *body, struct http_page *page,
	       struct reason *reason)
{
	const struct crowdsec_start *start = poller->start;
	const char *home = start->options->url;
	char url[2 * CONFIG_URL_BYTES];
	const struct http_get get = { .url = url,
				      .home = home,
				      .headers = start->headers,
				      .etag = "",
				      .modified = "",
				      .ca = start->ca,
				      .cert = start->cert,
				      .cert_key = start->cert_key,
				      .socket = start->options->socket,
				      .post = body,
				      .bytes_max = ANSWER_BYTES,
				      .time_ms = ANSWER_MS };

	snprintf(url, sizeof(url), "%.*s%s", (int)strlen(home) - (home[strlen(home) - 1] == '/'), home, path);
	return http_get(&get, page, reason);
}

/* ---- usage metrics ---- */

/* What the rules of each origin do, from the keeper: see crowdsec_answer(). NULL: no answer. */
static json_t *ask_keeper(struct poller *poller)
{
	struct pollfd keeper = { .fd = fileno(poller->to), .events = POLLIN };
	char text[COUNTS_BYTES], *start = text;
	size_t used = 0;
	ssize_t got;

	fputs("# counts\n", poller->to);
	if (fflush(poller->to))
		return NULL;
	do {
		got = poll(&keeper, 1, COUNTS_MS) > 0 ? read(keeper.fd, text + used, sizeof(text) - used) : 0;
		used += got > 0 ? got : 0;
	} while (got > 0 && text[used - 1] != '\n');
	for (; start < text + used && *start == KEEPER_WANTS_ALL; start++)
		poller->needs_whole = true;
	return json_loadb(start, text + used - start, 0, NULL);
}

/* Reports to the LAPI what the decisions do. Versions before 1.6.3 answer 404, and are not asked again. */
static void report(struct poller *poller)
{
	json_t *counts = ask_keeper(poller), *items = json_array(), *value, *body;
	char origin[CROWDSEC_ORIGIN_BYTES], type[8], unit[8], *json;
	struct http_page page = {};
	struct reason why, text;
	struct utsname os;
	const char *key;
	int error;

	json_object_foreach(counts, key, value)
	{
		json_int_t now = json_integer_value(value);

		if (sscanf(key, "%63s %7s %7s", origin, type, unit) != 3)
			continue;
		/* The LAPI adds up what was dropped. The count of a rule is gone with the rule, so the sum may fall. */
		if (strcmp(unit, "ip"))
			now -= json_integer_value(json_object_get(poller->seen, key));
		json_array_append_new(items, json_pack("{s:s, s:s, s:I, s:{s:s, s:s}}", "name",
						       strcmp(unit, "ip") ? "dropped" : "active_decisions", "unit",
						       unit, "value", now > 0 ? now : 0, "labels", "origin", origin,
						       "ip_type", type));
	}
	uname(&os);
	body = json_pack("{s:[{s:s, s:s, s:I, s:[], s:{s:s, s:s}, s:[{s:{s:I, s:I}, s:o}]}]}", "remediation_components",
			 "type", "xdp-cuckoo", "version", VERSION, "utc_startup_timestamp", (json_int_t)poller->started,
			 "feature_flags", "os", "name", os.sysname, "version", os.release, "metrics", "meta",
			 "window_size_seconds", (json_int_t)((poller->now_ms - poller->report_ms) / 1000),
			 "utc_now_timestamp", (json_int_t)time(NULL), "items", items);
	poller->report_ms = poller->now_ms;
	json = json_dumps(body, JSON_COMPACT);
	error = json && counts ? ask(poller, "/v1/usage-metrics", json, &page, &why) :
				 reason_set(&why, -EIO, "no counts from the keeper of the list");
	poller->takes_no_report = error == -ENOENT;
	if (!error) {
		json_decref(poller->seen);
		poller->seen = json_incref(counts);
	} else if (!poller->takes_no_report) {
		reason_set(&text, 0, "cannot report usage metrics: %s", why.text);
		poller->start->note(text.text);
	}
	http_free(&page);
	free(json);
	json_decref(body);
	json_decref(counts);
}

/* ---- the process without privileges ---- */

/* Asks once. Returns how long to wait until the next time. */
static __s64 step(struct poller *poller)
{
	const struct crowdsec_options *options = poller->start->options;
	const __s64 every_ms = options->every_ms;
	const bool is_whole = poller->needs_whole || poller->now_ms - poller->whole_ms >= WHOLE_MS;
	struct http_page page = {};
	struct reason reason, text;
	char path[128];
	int error;

	/* Without dedup=false a longer decision hides a shorter one, which is then missing once the longer one is deleted. */
	snprintf(path, sizeof(path), "/v1/decisions/stream?startup=%s&dedup=false&scopes=ip,range,country,as",
		 is_whole ? "true" : "false");
	error = ask(poller, path, NULL, &page, &reason);
	/* The durations in the answer count from now. */
	poller->now_ms = clock_ms(CLOCK_BOOTTIME);
	if (!error)
		error = take_answer(poller, &page, is_whole, &reason);
	http_free(&page);
	/* Decisions that were left out become rules once there is room for all of them. */
	poller->needs_whole =
		error || poller->is_in_doubt ||
		(json_object_size(poller->beyond) &&
			 json_object_size(poller->values) + json_object_size(poller->beyond) <= options->rules_max);
	if (!error) {
		poller->whole_ms = is_whole ? poller->now_ms : poller->whole_ms;
		if (poller->wait_ms)
			poller->start->note("the LAPI answers again");
		poller->wait_ms = 0;
		poller->failure.text[0] = '\0';
		return every_ms;
	}
	if (strcmp(poller->failure.text, reason.text)) {
		poller->failure = reason;
		reason_set(&text, 0, "cannot read decisions of the LAPI: %s%s%s", reason.text,
			   options->socket ? "; the user xdp-cuckoo, or else nobody, must be able to write to " : "",
			   options->socket ? options->socket : "");
		poller->start->note(text.text);
	}
	poller->wait_ms = pause_longer(poller->wait_ms, every_ms, MAX(every_ms, WAIT_MAX_MS));
	return poller->wait_ms;
}

void crowdsec_run(const void *context, int out)
{
	const struct crowdsec_start *start = context;
	struct poller poller = { .start = start,
				 .to = fdopen(dup(out), "w"),
				 .values = json_object(),
				 .left_out = json_object(),
				 .beyond = json_object(),
				 .needs_whole = true,
				 .now_ms = clock_ms(CLOCK_BOOTTIME),
				 .started = time(NULL) };
	__s64 wait_ms;
	char asked;

	poller.report_ms = poller.now_ms;
	while (poller.to) {
		wait_ms = step(&poller);
		if (!poller.wait_ms && !poller.takes_no_report &&
		    poller.now_ms - poller.report_ms >= start->options->metrics_ms)
			report(&poller);
		if (fflush(poller.to))
			return;
		poll(NULL, 0, MIN(wait_ms, INT_MAX));
		poller.now_ms = clock_ms(CLOCK_BOOTTIME);
		while (recv(out, &asked, 1, MSG_DONTWAIT) == 1)
			poller.needs_whole |= asked == KEEPER_WANTS_ALL;
	}
}
