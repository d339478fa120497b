// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* list: prints the stored rules, and what the running filters counted for each. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/safe_text.h"
#include "tool/internal.h"
#include "io/output.h"
#include "config/config.h"
#include "counters/counters.h"

/* A rule that --sort keeps until all are seen. */
struct sorted {
	__u64 rank; /* higher is first */
	struct rule rule;
	struct abi_counter count;
};

struct printing {
	const struct rule_counts *counts; /* NULL: without counts */
	bool shows_counts;
	enum list_sort { SORT_NONE, SORT_PACKETS, SORT_BYTES, SORT_END } sort;
	const char *search;
	const char *action;    /* of the rules; NULL: any */
	__u64 limit;           /* of rules; 0: all */
	struct sorted *sorted; /* room for 2 * limit */
	size_t sorted_count;
	struct store_lists lists;
	unsigned int list;          /* number of the list to print; 0: all rules */
	const struct rule *query;   /* print only rules that share packets with it; NULL: all rules */
	bool is_late;               /* command_is_late() */
	struct store *additions;    /* where to look up who added a rule; NULL: do not show it */
	struct store_addition last; /* last_name is the name of its user */
	char last_name[64];
};

static void print_rule(struct printing *printing, const struct rule *rule, const struct abi_counter *count)
{
	const __u64 owners = rule_owners_now(rule);
	char line[RULE_TEXT_BYTES + 192], text[RULE_TEXT_BYTES], rate[RULE_RATE_BYTES];
	const char *adder = printing->last_name; /* of the rule, if `added` */
	struct store_addition addition = {};
	const struct passwd *user;
	struct rule match = *rule;
	json_t *row = NULL, *added = NULL;

	rule_format(rule, line);
	if (printing->additions && owners >> STORE_BY_HAND & 1 && !store_addition(printing->additions, rule, &addition))
		added = output_time(addition.second, -1);
	if (added && (!*printing->last_name || printing->last.user != addition.user)) {
		user = getpwuid(addition.user);
		if (user && text_is_safe(user->pw_name, sizeof(printing->last_name)))
			strcpy(printing->last_name, user->pw_name);
		else
			snprintf(printing->last_name, sizeof(printing->last_name), "uid %u", addition.user);
		printing->last = addition;
	}
	/* For programs: the fields that match, the rate, action, timeout, comment and owners as separate members. */
	if (output_is_json()) {
		match.comment[0] = '\0';
		match.action = RULE_DROP;
		match.timeout_ms = 0;
		match.fields &= ~RULE_RATE;
		row = json_pack("{s:s, s:s*, s:s, s:o, s:o, s:s, s:b, s:o}", "rule", rule_format(&match, text), "rate",
				rule->rate ? rule_rate_format(rule->rate, rate) : NULL, "action",
				rule_action_name(rule->action), "timeout_s",
				rule->timeout_ms ? json_integer((rule->timeout_ms + 999) / 1000) : json_null(), "ends",
				rule->timeout_ms ? output_time(time(NULL) + (rule->timeout_ms + 999) / 1000, -1) :
						   json_null(),
				"comment", rule->comment, "by_hand", (int)(owners >> STORE_BY_HAND & 1), "lists",
				command_list_names(&printing->lists, owners));
		if (printing->is_late)
			json_object_set_new(row, "not_confirmed_in_time", json_true());
		if (added)
			json_object_update_new(row, json_pack("{s:O, s:s}", "added", added, "added_by", adder));
	}
	if (added)
		text_append(line, sizeof(line), " # added %s by %s", json_string_value(added), adder);
	json_decref(added);
	if (printing->shows_counts) {
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " # packets %llu bytes %llu", count->packets,
			 count->bytes);
		if (row)
			json_object_update_new(row, json_pack("{s:I, s:I}", "packets", count->packets, "bytes",
							      count->bytes));
	}
	output_list_row(row, line);
}

static int compare_sorted(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	return (x->rank < y->rank) - (x->rank > y->rank);
}

/* For store_each(): 1 ends it, since the limit is reached. With --sort, memory is bounded by the limit. */
static int visit_rule(const struct rule *rule, void *context)
{
	struct printing *printing = context;
	struct abi_counter count = {};
	struct sorted *sorted;

	if (rule->timeout_ms < 0 || (printing->list && !(rule_owners_now(rule) >> printing->list & 1)))
		return 0;
	if (printing->action && strcasecmp(printing->action, rule_action_name(rule->action)))
		return 0;
	/* `list state new` names no packets. */
	if (printing->query && (!rule_overlaps(rule, printing->query) ||
				(printing->query->fields == RULE_NEW && printing->query->family == FLOW_NO_FAMILY &&
				 !(rule->fields & RULE_NEW))))
		return 0;
	if (printing->search && !strcasestr(rule->comment, printing->search))
		return 0;
	if (printing->counts)
		count = rule_counts_of(printing->counts, rule);
	if (printing->sort == SORT_NONE) {
		print_rule(printing, rule, &count);
		return printing->limit && ++printing->sorted_count == printing->limit;
	}
	sorted = &printing->sorted[printing->sorted_count++];
	sorted->rank = printing->sort == SORT_PACKETS ? count.packets :
		       printing->sort == SORT_BYTES   ? count.bytes :
		       rule->timeout_ms               ? ~(__u64)rule->timeout_ms :
							0;
	sorted->rule = *rule;
	sorted->count = count;
	if (printing->sorted_count == 2 * printing->limit) {
		qsort(printing->sorted, printing->sorted_count, sizeof(*sorted), compare_sorted);
		printing->sorted_count = printing->limit;
	}
	return 0;
}

/* An operand is the name of a list, or a rule. "list set NAME" is what nft writes. */
static enum command_status read_operands(const struct invocation *invocation, struct printing *printing,
					 struct rule *query)
{
	const bool has_set = invocation->count == 2 && !strcmp(invocation->operands[0], "set");
	const char *name = invocation->count == 1 + has_set ? invocation->operands[has_set] : "";
	const unsigned int number = *name ? store_lists_find(&printing->lists, name) : 0;
	const struct command_row *command;
	enum rule_action ignored;

	if (number)
		printing->list = number;
	if (number || !invocation->count)
		return STATUS_DONE;
	if (session_is_name(invocation->operands[0]) && !rule_is_word(invocation->operands[0])) {
		command = invocation->count == 1 ? command_find(name) : NULL;
		if (command)
			return command_fail(STATUS_NO, "no list '%s'; write the command: xdp-cuckoo %s", name,
					    command->name);
		return command_fail(STATUS_NO,
				    "no list '%s'; xdp-cuckoo%s lists shows the lists, and list all rules; xdp-cuckoo "
				    "status shows the interfaces",
				    invocation->operands[has_set], session_name_option(invocation->name));
	}
	if (invocation->count == 2 && !strcasecmp(invocation->operands[0], "action")) {
		printing->action = invocation->operands[1];
		return rule_action_parse(printing->action, &ignored) ?
			       command_fail_choices("action", printing->action, "drop|pass|monitor") :
			       STATUS_DONE;
	}
	printing->query = query;
	return command_read_rule(invocation, query, NULL);
}

static enum list_sort sort_of(const char *word)
{
	return !word                    ? SORT_NONE :
	       !strcmp(word, "packets") ? SORT_PACKETS :
	       !strcmp(word, "bytes")   ? SORT_BYTES :
					  SORT_END;
}

/* Names the network rule that blocks an address without a rule of its own. */
static void note_network(const char *name, struct store *store, const struct rule *query)
{
	char text[RULE_TEXT_BYTES], network[RULE_TEXT_BYTES], advice[2 * RULE_TEXT_BYTES];
	struct rule rule;

	if (store && !query_test(store, query, &rule) && rule_blocks(&rule) && rule_covers(&rule, query) &&
	    !rule_covers(query, &rule))
		output_note("'%s' blocks '%s'%s", rule_format(&rule, network), rule_format(query, text),
			    command_pass_advice(name, query, advice));
}

static enum command_status print_all(const char *name, struct printing *printing, struct store *store)
{
	struct reason reason;
	int error = 0;

	if (printing->query)
		note_network(name, store, printing->query);
	output_list_begin();
	if (printing->sort != SORT_NONE) {
		printing->sorted = calloc(2 * printing->limit, sizeof(*printing->sorted));
		error = printing->sorted ? 0 : -ENOMEM;
	}
	if (!error && store)
		error = store_each(store, visit_rule, printing);
	error = error == 1 ? 0 : error;
	if (!error && printing->sort != SORT_NONE) {
		qsort(printing->sorted, printing->sorted_count, sizeof(*printing->sorted), compare_sorted);
		for (size_t i = 0; i < printing->sorted_count && i < printing->limit; i++)
			print_rule(printing, &printing->sorted[i].rule, &printing->sorted[i].count);
	}
	free(printing->sorted);
	output_list_end();
	return store_unread_reason(error, &reason) ? command_fail_because(error, &reason) : STATUS_DONE;
}

static enum command_status run_list(const struct invocation *invocation)
{
	struct printing printing = { .shows_counts = invocation->wants_counters,
				     .sort = sort_of(invocation->sort),
				     .search = invocation->search,
				     .action = invocation->has_action ? rule_action_name(invocation->action) : NULL,
				     .limit = invocation->limit };
	const bool wants_counters = invocation->wants_counters || printing.sort == SORT_PACKETS ||
				    printing.sort == SORT_BYTES;
	struct rule_counts counts = {};
	enum command_status status;
	struct store *store;
	struct rule query;

	if (printing.sort == SORT_END && strcmp(invocation->sort, "end"))
		return command_fail_choices("--sort", invocation->sort, "packets|bytes|end");
	if (invocation->state && !strcmp(invocation->state, "new") && access("new", F_OK))
		return command_fail(STATUS_USAGE, "--state is where rules are kept; rules of what begins something: "
						  "xdp-cuckoo list state new");
	if (printing.sort != SORT_NONE && !invocation->limit)
		return command_fail(STATUS_USAGE, "--sort needs --limit N: how many rules?");
	status = command_read_store(invocation, false, &store);
	if (status != STATUS_DONE)
		return status;
	printing.is_late = command_is_late(store);
	printing.additions = invocation->is_long || output_is_json() ? store : NULL;
	if (wants_counters) {
		printing.counts = &counts;
		status = command_open_counts(invocation, store, &counts);
	}
	if (status == STATUS_DONE)
		status = command_find_list(invocation, store, &printing.lists, &printing.list);
	if (status == STATUS_DONE)
		status = read_operands(invocation, &printing, &query);
	if (status == STATUS_DONE)
		status = print_all(invocation->name, &printing, store);
	rule_counts_close(&counts);
	store_close(store);
	return status;
}

const struct command command_list = {
	.name = "list",
	.usage =
		"[RULE|LIST] [--list NAME] [--action drop|pass|monitor] [--counters] [--sort packets|bytes|end] [--limit N] [--search TEXT] "
		"[--long] [--numeric]",
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_list,
};

/* ---- lists ---- */

extern const struct command command_del;

const char *command_not_fed(const struct store_list *list, const struct store_feed *feed,
			    char text[COMMAND_NOT_FED_BYTES])
{
	const __s64 silent_s = store_list_silent_s(list, feed);
	char time[RULE_TIME_BYTES];

	if (!silent_s)
		return NULL;
	snprintf(text, COMMAND_NOT_FED_BYTES, "for %s", rule_time_format(1000 * silent_s, time));
	return list->imported_s || feed->fetched_s ? text : strcpy(text, "never");
}

json_t *command_not_fed_values(const struct store_list *list, const struct store_feed *feed)
{
	const __s64 silent_s = store_list_silent_s(list, feed);
	const bool was_fed = list->imported_s || feed->fetched_s;

	return json_pack("{s:s, s:b, s:o}", "list", list->name, "not_fed", silent_s != 0, "not_fed_s",
			 silent_s && was_fed ? json_integer(silent_s) : json_null());
}

/* What `lists` shows. */
struct lists_view {
	char dir[PATH_MAX]; /* of the store */
	struct store_lists lists;
	struct store_feeds feeds;
	struct list_counts sums;
	bool is_late;    /* see command_is_late() */
	bool has_hits;   /* a filter counts by rule */
	bool has_silent; /* a list is not fed */
};

/* Columns that would be empty in every row are left out. */
static json_t *list_row(const struct lists_view *view, size_t i)
{
	const struct store_list *list = &view->lists.list[i];
	const struct store_feed *feed = &view->feeds.feed[i];
	char text[COMMAND_NOT_FED_BYTES];
	json_int_t only = 0, hit = 0;
	struct flow_report report;
	json_t *row;

	for (enum rule_action action = 0; action < RULE_ACTIONS; action++) {
		only += view->sums.of[i][action].only;
		hit += view->sums.of[i][action].hit;
	}
	if (output_is_narrow()) {
		const char *fed = command_not_fed(list, feed, text);

		return json_pack("{s:s, s:I, s:I, s:o, s:o}", "list", list->name, "rules", list->rules, "only_here",
				 only, "hit", view->has_hits ? json_integer(hit) : json_string("unknown"), "source",
				 json_sprintf("%s%s%s%s",
					      !fed        ? "" :
					      *fed == 'n' ? "never fed; " :
							    "not fed ",
					      fed && *fed != 'n' ? fed : "", fed && *fed != 'n' ? "; " : "",
					      *feed->why ? feed->why : list->source));
	}
	row = json_pack("{s:s, s:I, s:o, s:I, s:o, s:s}", "list", list->name, "rules", list->rules, "imported",
			list->imported_s ? output_time(list->imported_s, -1) : json_null(), "only_here", only, "hit",
			view->has_hits   ? json_integer(hit) :
			output_is_json() ? json_null() :
					   json_string("unknown"),
			"source", list->source);
	if (output_is_json())
		json_object_update_new(row, command_not_fed_values(list, feed));
	else if (view->has_silent)
		json_object_set_new(row, "not_fed",
				    command_not_fed(list, feed, text) ? json_string(text) : json_null());
	if (view->feeds.is_any)
		json_object_update_new(row,
				       json_pack("{s:o, s:o}", "fetched",
						 feed->fetched_s ? output_time(feed->fetched_s, -1) : json_null(),
						 "failed_fetch", *feed->why ? output_string(feed->why) : json_null()));
	if (view->feeds.is_any && output_is_json())
		json_object_update_new(row, json_pack("{s:o, s:I}", "next_fetch",
						      feed->next_s ? output_time(feed->next_s, -1) : json_null(),
						      "failed_fetches", (json_int_t)feed->failures));
	if (output_is_json())
		json_object_set_new(row, "left_out", json_integer(store_list_left_out(list, feed)));
	if (view->is_late && output_is_json())
		json_object_set_new(row, "not_confirmed_in_time", json_true());
	if (output_is_json() && !flow_report_read(view->dir, list, feed, &report, NULL) && report.second)
		json_object_set_new(row, "flows", command_flows(&report));
	return row;
}

static enum command_status show_lists(const struct invocation *invocation)
{
	struct rule_counts counts = {};
	struct lists_view view = {};
	json_t *rows = json_array();
	struct reason reason, ignored;
	struct store_info info;
	struct store *store;
	int error = command_open_store(invocation, &store, &reason);

	if (!error && store) {
		session_state_dir(invocation->state, invocation->name, view.dir, sizeof(view.dir));
		view.is_late = command_is_late(store);
		error = store_in_force(store, &info, &view.lists);
		if (!error)
			error = store_feeds(store, &view.lists, &view.feeds);
		if (!error) {
			view.has_hits = !rule_counts_open(&counts, invocation->name, &ignored);
			error = list_counts_read(store, view.has_hits ? &counts : NULL, &view.sums);
			rule_counts_close(&counts);
		}
		store_close(store);
		store_unread_reason(error, &reason);
	}
	config_expect(invocation->name, &view.lists);
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		view.has_silent |= store_list_silent_s(&view.lists.list[i], &view.feeds.feed[i]) != 0;
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (view.lists.list[i].name[0])
			json_array_append_new(rows, list_row(&view, i));
	if (!error && !json_array_size(rows) && !output_is_json())
		output_note("there are no lists; import --list NAME or add --list NAME makes one");
	if (error) {
		json_decref(rows);
		return command_fail_because(error, &reason);
	}
	output_print_lines(rows);
	return STATUS_DONE;
}

/* The lists that preset = NAME in the configuration can name. */
static enum command_status show_presets(void)
{
	const bool is_narrow = output_is_narrow();
	const struct list_preset *preset;
	char every[RULE_TIME_BYTES];
	json_t *rows = json_array();

	for (size_t i = 0; (preset = list_preset(i)); i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s*, s:s, s:s*, s:s*}", "preset", preset->name, "every",
						      rule_time_format(preset->every_ms, every), "format",
						      is_narrow ? NULL : preset->format, "about", preset->about, "terms",
						      is_narrow ? NULL : preset->terms, "url",
						      is_narrow ? NULL : preset->url));
	output_print_lines(rows);
	return STATUS_DONE;
}

/* What is deleted may come again: by its file at the next `up`, or from its source. */
static void note_configured(const struct invocation *invocation)
{
	const char *name = invocation->operands[1];
	struct config *config;
	struct reason ignored;
	bool is_there;

	if (config_open(NULL, invocation->name, NULL, &config, &ignored))
		return;
	is_there = config_has_source(config, name);
	for (size_t i = 0; i < config->lists_count; i++)
		is_there |= !strcmp(config->list[i].name, name);
	if (is_there)
		output_warning("the configuration still has the list '%s', and brings it back: take it out there, too",
			       name);
	config_close(config);
}

static enum command_status delete_list(const struct invocation *invocation)
{
	static const char *const useless[] = { "added", "updated", "kept", "bad_lines", "rules_per_second" };
	struct import_options deletion = command_import_options(invocation);
	struct command_imported result;
	struct reason reason;
	int error;

	deletion.list_name = invocation->operands[1];
	deletion.is_replace = true;
	error = command_import_list(&deletion, NULL, 0, &result, &reason);
	for (size_t i = 0; result.answer && i < sizeof(useless) / sizeof(useless[0]); i++)
		json_object_del(result.answer, useless[i]);
	if (error == -ESRCH && invocation->may_exist) {
		output_print(json_pack("{s:i, s:i, s:b}", "removed", 0, "left_to_others", 0, "changed", false));
		note_configured(invocation);
		return STATUS_DONE;
	}
	if (!error)
		json_object_set_new(result.answer, "changed", json_true()); /* the list itself, if it has no rules */
	output_print(result.answer);
	if (error)
		return command_fail_list(error, &reason);
	if (!invocation->is_dry_run)
		note_configured(invocation);
	if (result.deadline_ms)
		command_report_confirm(invocation, result.deadline_ms);
	return STATUS_DONE;
}

static enum command_status run_lists(const struct invocation *invocation)
{
	const char *verb = invocation->count ? invocation->operands[0] : "";
	const struct command_row *meant = command_find(verb);
	const bool is_add = !strcmp(verb, "add");

	if ((!*verb || is_add) &&
	    (invocation->may_exist || invocation->is_dry_run || invocation->is_forced || invocation->confirm_ms))
		return command_fail(STATUS_USAGE,
				    "--exist, --dry-run, --confirm and --force go with lists delete NAME");
	if (!is_add && (invocation->preset || invocation->config_path))
		return command_fail(STATUS_USAGE, "--preset and --config go with lists add NAME");
	if (is_add)
		return command_list_add(invocation);
	if (invocation->count > 2)
		return command_fail(STATUS_USAGE, "lists %s: too many words: '%s'", verb, invocation->operands[2]);
	if (!invocation->count)
		return show_lists(invocation);
	if (!strcmp(verb, "presets"))
		return invocation->count > 1 ? command_fail(STATUS_USAGE, "lists presets: no word follows") :
					       show_presets();
	if (!strcmp(verb, "flows"))
		return command_list_flows(invocation,
					  invocation->count > 1 ? invocation->operands[1] : FLOWSPEC_LIST_DEFAULT);
	/* `lists rm NAME` is the same as `lists delete NAME`. */
	if (!meant || strcmp(meant->name, "del"))
		return command_fail(STATUS_USAGE,
				    "lists '%s': only the words add, delete, flows and presets may follow; to see rules: "
				    "xdp-cuckoo%s list NAME",
				    verb, session_name_option(invocation->name));
	if (invocation->count < 2)
		return command_fail(STATUS_USAGE, "lists %s: which list? See xdp-cuckoo lists", verb);
	return delete_list(invocation);
}

const struct command command_lists = {
	.name = "lists",
	.usage = "[add NAME URL|KEY=VALUE... [--preset PRESET] [--config FILE] | "
		 "delete NAME [--exist] [--dry-run] [--confirm TIME] [--force] | flows [NAME] | presets]",
	.max = -1,
	.starts = "add",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_lists,
};
