// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* publish: changes a list of a fleet, at its broker. publish_lists.c has import, release, abort and delete-list. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command/batch_words.h"
#include "fleet/commands.h"
#include "fleet/publisher.h"
#include "io/line_pipe.h"
#include "io/output.h"
#include "base/clock.h"

#define IDLE_MS 1000      /* if no line comes for so long, `batch` leaves the outbox to other publishers of this host */
#define GROUP_LINES 16000 /* that `batch` sends in one round */
#define PANIC_MS 10000    /* the wait for hosts; a host that is connected reports panic at once */
#define PANIC_LOOK_MS 250
#define ACCEPT_S 3600 /* for so long `accept` lets hosts delete rules */

/* ---- the publisher ---- */

void publish_answer(struct publishing *publishing, json_t *more)
{
	if (!publishing->answer)
		publishing->answer = json_object();
	json_object_update_missing(publishing->answer, more);
	if (output_is_json() && json_is_true(json_object_get(more, "changed")))
		json_object_set_new(publishing->answer, "changed", json_true());
	json_decref(more);
}

enum command_status publish_open(struct publishing *publishing, const char *list)
{
	struct reason reason;
	int error = fleet_give_up(publishing->config, &reason);

	if (!error)
		error = publisher_open(&publishing->publisher, &publishing->config->fleet, publishing->invocation->name,
				       list, publishing->dir, &reason);
	publishing->publisher.is_awaited = publishing->invocation->wait_percent;
	if (!error && publishing->publisher.resent)
		output_note("sent again %llu entries of an earlier publish",
			    (unsigned long long)publishing->publisher.resent);
	return error ? publish_fail(publishing, error, &reason) : STATUS_DONE;
}

enum command_status publish_fail(const struct publishing *publishing, int error, const struct reason *reason)
{
	const size_t waiting = publishing->publisher.outbox.count;

	if (error == -ESTALE || error == -EINVAL || !waiting)
		return fleet_fail(error, reason);
	return command_fail(STATUS_SYSTEM, "%s; %zu entries wait in the outbox, for the next publish", reason->text,
			    waiting);
}

enum command_status publish_report(struct publishing *publishing)
{
	struct publisher *publisher = &publishing->publisher;
	struct waiting waiting = { .broker = &publisher->broker,
				   .fleet = publisher->fleet,
				   .list = publisher->list,
				   .first = publisher->first,
				   .last = publisher->last,
				   .percent = publishing->invocation->wait_percent };
	char last[FLEET_POSITION_BYTES];
	json_t *answer = json_pack("{s:s, s:I, s:I, s:s, s:I}", "list", publisher->list,
				   output_is_json() ? "changed_rules" : "changed", (json_int_t)publisher->changed,
				   "rules", (json_int_t)publisher->rules, "last",
				   fleet_position_format(publisher->last, last), "replicas",
				   (json_int_t)publisher->replicas);
	const char *option = session_name_option(publisher->fleet);
	enum command_status status = STATUS_DONE;
	struct reason reason;
	int error = 0;

	/* With --wait: until enough of the hosts that follow the list have its last entry. */
	if (waiting.percent)
		error = waiting_for_hosts(&waiting, &reason);
	if (error == -EBADE)
		status = command_fail(STATUS_NO, "%s; see xdp-cuckoo%s fleet status", reason.text, option);
	else if (error)
		status = fleet_fail(error, &reason);
	if (waiting.percent && (!error || error == -EBADE)) {
		json_object_set_new(answer, "hosts", json_integer(waiting.hosts));
		json_object_set_new(answer, "hosts_done", json_integer(waiting.done));
		json_object_set_new(answer, "hosts_refusing", json_integer(waiting.refusing));
	}
	if (output_is_json())
		json_object_set_new(answer, "changed", json_boolean(publisher->changed));
	publish_answer(publishing, answer);
	if (publisher->is_late)
		return command_fail(status == STATUS_DONE ? STATUS_LATE : status,
				    "fewer than %u replicas have the change so far, and a failover may lose it; it stays in the "
				    "outbox: xdp-cuckoo%s publish resend sends it again",
				    publisher->options->replicas, option);
	return status;
}

enum command_status publish_finish(struct publishing *publishing)
{
	struct reason reason;
	int error = publisher_flush(&publishing->publisher, &reason);

	return error ? publish_fail(publishing, error, &reason) : publish_report(publishing);
}

/* ---- add, del ---- */

static enum command_status publish_rules(struct publishing *publishing)
{
	const bool is_added = !strcmp(publishing->invocation->operands[0], "add");
	struct invocation words = *publishing->invocation;
	struct rule_set wanted = {};
	enum command_status status;
	struct reason reason;
	struct rules rules;
	int error = 0;

	words.operands++;
	words.count--;
	if (!words.count)
		return command_fail(STATUS_USAGE, "publish %s: which rule?", publishing->invocation->operands[0]);
	status = command_read_rules(&words, &rules, NULL);
	if (status != STATUS_DONE)
		return status;
	for (size_t i = 0; i < rules.count; i++)
		if (is_added && !rules.rule[i].timeout_ms)
			rules.rule[i].timeout_ms = words.timeout_ms;
	if (words.is_dry_run) {
		for (size_t i = 0; i < rules.count && !error; i++)
			error = rule_set_add(&wanted, &rules.rule[i]);
		rule_set_sort(&wanted);
		status = error ? command_fail(STATUS_FULL, "not enough memory") :
				 publish_dry_run(publishing, &wanted, is_added);
		rule_set_close(&wanted);
	} else {
		status = publish_open(publishing, publishing->list);
		for (size_t i = 0; i < rules.count && status == STATUS_DONE && !error; i++)
			error = publisher_put(&publishing->publisher, &rules.rule[i], is_added, &reason);
		if (status == STATUS_DONE)
			status = error ? publish_fail(publishing, error, &reason) : publish_finish(publishing);
		if (status == STATUS_DONE && !is_added && !publishing->publisher.changed)
			status = STATUS_NO;
	}
	rules_free(&rules);
	return status;
}

/* ---- batch ---- */

/* Queues at most GROUP_LINES of the lines at hand. *has_more: there may be more. */
static int take_lines(struct publishing *publishing, struct line_pipe *pipe, bool *has_more, struct reason *reason)
{
	struct batch_request request;
	int got = 1, lines, error = 0;
	size_t text;

	for (lines = 0; lines < GROUP_LINES && !error && (got = line_pipe_next(pipe, &text)); lines++) {
		char *line = batch_line_trim(pipe->bytes + text);
		struct reason bad;

		if (got > 0 && (!*line || *line == '#'))
			continue;
		if (got < 0)
			reason_set(&bad, got, "the line is too long, or has a NUL byte");
		else
			got = batch_line_parse(line, NULL, false, &request, &bad);
		if (!got && (request.verb == BATCH_TEST || *request.list)) {
			rules_free(&request.rules);
			got = reason_set(&bad, -EINVAL,
					 "only `add RULE` and `del RULE` can be published, to the list of --list");
		}
		if (got < 0) {
			publishing->status = command_fail(STATUS_USAGE, "%s:%llu: %s", pipe->name,
							  (unsigned long long)pipe->number, bad.text);
			continue;
		}
		if (request.rules.masked.count && !publishing->has_noted_masked) {
			output_note("%s:%llu: '%s' has host bits set; its network is taken, here and in later lines",
				    pipe->name, (unsigned long long)pipe->number, request.rules.masked.first);
			publishing->has_noted_masked = true;
		}
		for (size_t i = 0; i < request.rules.count && !error; i++) {
			struct rule *rule = &request.rules.rule[i];

			if (request.verb == BATCH_ADD && !rule->timeout_ms)
				rule->timeout_ms = publishing->invocation->timeout_ms;
			error = publisher_put(&publishing->publisher, rule, request.verb == BATCH_ADD, reason);
		}
		rules_free(&request.rules);
	}
	*has_more = lines == GROUP_LINES;
	line_pipe_forget(pipe);
	return error;
}

static enum command_status publish_batch(struct publishing *publishing)
{
	const struct invocation *invocation = publishing->invocation;
	enum command_status status;
	struct reason reason;
	struct line_pipe pipe;
	bool has_more = false;
	int error;

	if (invocation->count != 2)
		return command_fail(STATUS_USAGE, "publish batch: which file? - is standard input");
	error = line_pipe_open(&pipe, invocation->operands[1]);
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot read '%s': %s", invocation->operands[1], strerror(-error));
	status = publish_open(publishing, publishing->list);
	while (status == STATUS_DONE && !error && (!pipe.is_ended || line_pipe_has_rest(&pipe))) {
		error = line_pipe_wait(&pipe, has_more ? 0 : IDLE_MS);
		if (!error && !has_more) {
			publisher_pause(&publishing->publisher);
			error = line_pipe_wait(&pipe, -1);
		}
		if (error > 0)
			error = line_pipe_read(&pipe);
		if (error)
			break;
		error = publisher_resume(&publishing->publisher, &reason);
		if (!error)
			error = take_lines(publishing, &pipe, &has_more, &reason);
		if (!error)
			error = publisher_flush(&publishing->publisher, &reason);
		if (error)
			status = publish_fail(publishing, error, &reason);
	}
	if (status == STATUS_DONE && error == -EINTR && line_pipe_has_rest(&pipe))
		status = command_fail(STATUS_SYSTEM, "interrupted: the lines after %llu were not published",
				      (unsigned long long)pipe.number);
	line_pipe_close(&pipe);
	if (status == STATUS_DONE && error && error != -EINTR)
		return command_fail(STATUS_SYSTEM, "cannot read '%s': %s", invocation->operands[1], strerror(-error));
	if (status == STATUS_DONE)
		status = publish_report(publishing);
	return status == STATUS_DONE ? publishing->status : status;
}

/* ---- panic ---- */

static bool is_panic(const redisReply *meta)
{
	const char *panic = codec_text_of(meta, 0);

	return panic && !strcmp(panic, "on");
}

/* Then waits until all hosts report that panic is on, or off. Names one that does not. */
static enum command_status publish_panic(struct publishing *publishing)
{
	const struct invocation *invocation = publishing->invocation;
	const char *word = invocation->count == 2 ? invocation->operands[1] : "", *fleet = invocation->name;
	const bool is_on = !strcmp(word, "on");
	char late[FLEET_HOST_BYTES] = "";
	CODEC_FREED redisReply *before = NULL;
	struct broker broker;
	struct reason reason;
	size_t hosts, done;
	__s64 start_ms;
	int error;

	if (!is_on && strcmp(word, "off"))
		return command_fail_choices("publish panic", word, "on|off");
	error = fleet_connect(publishing->config, true, &broker, &reason);
	if (!error)
		connection_ask(&broker.connection, &before, &reason, "HMGET xc:%s:meta panic",
			       fleet);
	if (!error)
		error = connection_ask(&broker.connection, NULL, &reason,
				       "FCALL xc_panic 2 xc:%s:meta xc:%s:ctl %s", fleet, fleet,
				       is_on ? "on" : "off");
	if (error) {
		broker_close(&broker);
		return fleet_fail(error, &reason);
	}
	/* The hosts have it only now: the brokers before this one in the configuration may not have answered for long. */
	start_ms = fleet_now_ms();
	do {
		struct fleet_view view;

		if (*late)
			clock_pause(PANIC_LOOK_MS);
		*late = '\0';
		error = fleet_view_open(&view, &broker, fleet, &reason);
		hosts = error ? 0 : view.hosts_count;
		done = 0;
		for (size_t i = 0; i < hosts; i++)
			if (!strcmp(fleet_host_field(&view.hosts[i], "panic"), is_on ? "1" : "0") ||
			    (is_on && !strcmp(fleet_host_field(&view.hosts[i], "state"), "unfiltered")))
				done++;
			else
				strcpy(late, view.hosts[i].name);
		fleet_view_close(&view);
	} while (!error && *late && fleet_now_ms() - start_ms < PANIC_MS);
	broker_close(&broker);
	output_print(json_pack("{s:s, s:b, s:I, s:I, s:b}", "fleet", fleet, "panic", is_on, "hosts",
			       (json_int_t)hosts, "hosts_done", (json_int_t)done, "changed",
			       !before || is_panic(before) != is_on));
	if (error)
		return command_fail(STATUS_NO, "the broker has it; nobody knows which hosts do: %s", reason.text);
	if (!hosts)
		return command_fail(STATUS_NO, "the broker has it, but nobody follows the fleet '%s'", fleet);
	return *late ? command_fail(STATUS_NO,
				    "%zu of %zu hosts report it; '%s' does not; see xdp-cuckoo%s fleet status", done,
				    hosts, late, session_name_option(fleet)) :
		       STATUS_DONE;
}

/* ---- accept, resend ---- */

/* Lets hosts delete what they otherwise keep: a host that refuses to delete so many rules looks for this. */
static enum command_status publish_accept(struct publishing *publishing)
{
	const char *fleet = publishing->invocation->name, *list = publishing->list;
	struct list_head head = {};
	struct reason reason;
	struct broker broker;
	int error = fleet_connect(publishing->config, true, &broker, &reason);

	if (!error)
		error = list_head_read(&broker, fleet, list, &head, &reason);
	if (!error)
		error = connection_ask(&broker.connection, NULL, &reason, "HSET xc:%s:accept %s %lld", fleet, list,
				       (long long)(broker_now_ms(&broker) + ACCEPT_S * 1000LL));
	/* Hosts hear of it at once. Without the right to write ctl, those that refuse the list look within 5 s. */
	if (!error) {
		error = connection_ask(&broker.connection, NULL, &reason, "XADD xc:%s:ctl MAXLEN 100 * accept %s",
				       fleet, list);
		error = error == -EREMOTEIO ? 0 : error;
	}
	broker_close(&broker);
	if (error)
		return fleet_fail(error, &reason);
	output_print(json_pack("{s:s, s:I, s:i, s:b}", "list", list, "rules", (json_int_t)head.rules, "accepted_for_s",
			       ACCEPT_S, "changed", true));
	if (!head.last.epoch)
		output_note("the broker has no list '%s': hosts delete all rules of theirs", list);
	return STATUS_DONE;
}

static enum command_status resend_one(struct publishing *publishing)
{
	enum command_status status = publish_open(publishing, publishing->list);

	if (status == STATUS_DONE)
		status = publish_finish(publishing);
	publisher_close(&publishing->publisher);
	return status;
}

/* Sends what waits in the outbox of a list, or without --list in any outbox. If nothing waits, asks no broker. */
static enum command_status publish_resend(struct publishing *publishing)
{
	enum command_status worst = STATUS_DONE;
	json_t *answers;
	struct dirent *entry;
	DIR *dir;

	if (*publishing->list)
		return resend_one(publishing);
	dir = opendir(publishing->dir);
	if (!dir && errno != ENOENT)
		return command_fail(STATUS_SYSTEM, "cannot read '%s': %s", publishing->dir, strerror(errno));
	answers = json_array();
	while (dir && (entry = readdir(dir))) {
		enum command_status status = STATUS_DONE;
		struct outbox outbox;
		struct reason reason;
		size_t waiting;

		if (!session_is_name(entry->d_name))
			continue;
		snprintf(publishing->list, sizeof(publishing->list), "%.*s", ABI_NAME_BYTES - 1, entry->d_name);
		if (outbox_open(&outbox, publishing->dir, publishing->list, &reason)) {
			worst = command_fail(STATUS_SYSTEM, "%s", reason.text);
			continue;
		}
		waiting = outbox.count;
		outbox_close(&outbox);
		if (waiting)
			status = resend_one(publishing);
		if (publishing->answer)
			json_array_append_new(answers, publishing->answer);
		publishing->answer = NULL;
		worst = status == STATUS_DONE ? worst : status;
	}
	if (dir)
		closedir(dir);
	output_print(answers);
	return worst;
}

/* ---- the command ---- */

static const struct verb {
	const char *name;
	enum { LIST_OPTION, LIST_OPERAND, NO_LIST } list; /* where it is named */
	enum command_status (*run)(struct publishing *publishing);
} verbs[] = {
	{ "add", LIST_OPTION, publish_rules },          { "del", LIST_OPTION, publish_rules },
	{ "batch", LIST_OPTION, publish_batch },        { "import", LIST_OPTION, publish_import },
	{ "release", LIST_OPERAND, publish_stage_end }, { "abort", LIST_OPERAND, publish_stage_end },
	{ "resend", LIST_OPTION, publish_resend },      { "panic", NO_LIST, publish_panic },
	{ "accept", LIST_OPERAND, publish_accept },     { "delete-list", LIST_OPERAND, publish_delete },
};

/* Fills in list and directory. */
static enum command_status prepare(struct publishing *publishing, const struct verb *verb)
{
	const struct invocation *invocation = publishing->invocation;
	const char *list = verb->list != LIST_OPERAND ? invocation->list_name :
			   invocation->count == 2     ? invocation->operands[1] :
							NULL;
	char store[4000];

	if (session_state_dir(invocation->state, invocation->name, store, sizeof(store)))
		return command_fail(STATUS_USAGE, "--state '%s': the path is too long", invocation->state);
	snprintf(publishing->dir, sizeof(publishing->dir), "%s/outbox", store);
	if (!list && verb->run == publish_resend)
		return STATUS_DONE;
	if (!list)
		return command_fail(STATUS_USAGE,
				    verb->list == LIST_OPERAND ? "publish %s: which list?" :
								 "publish %s: of which list? Say --list NAME",
				    verb->name);
	if (!session_is_name(list) || strlen(list) + strlen(FLEET_STAGED) >= ABI_NAME_BYTES)
		return command_fail(STATUS_USAGE,
				    "list '%s': a list of a fleet has 1 to %d letters, digits, '.', '_' or '-', and does not "
				    "start with '.' or '-'",
				    list, ABI_NAME_BYTES - 1 - (int)strlen(FLEET_STAGED));
	/* release and abort take the name of the list itself, with --stage or without. */
	snprintf(publishing->list, sizeof(publishing->list), "%s%s", list,
		 invocation->is_staged && verb->list == LIST_OPTION ? FLEET_STAGED : "");
	return STATUS_DONE;
}

static enum command_status run_publish(const struct invocation *invocation)
{
	const struct {
		bool is_given;
		const char *name, *verbs;
	} options[] = {
		{ invocation->list_name, "list", "add del batch import resend" },
		{ invocation->is_replace, "replace", "import" },
		{ invocation->is_forced, "force", "import" },
		{ invocation->is_strict, "strict", "import" },
		{ invocation->is_dry_run, "dry-run", "add del import" },
		{ invocation->list_format, "format", "import" },
		{ invocation->timeout_ms, "timeout", "add batch import" },
		{ invocation->action, "action", "import" },
		{ invocation->is_new_only, "new-only", "import" },
		{ invocation->is_staged, "stage", "add del batch import release abort resend" },
		{ invocation->wait_percent, "wait", "add del batch import release abort resend" },
	};
	struct publishing publishing = { .invocation = invocation };
	const struct verb *verb = verbs, *end = verbs + sizeof(verbs) / sizeof(verbs[0]);
	enum command_status status;

	publishing.publisher.broker.connection.fd = publishing.publisher.outbox.fd = -1;
	while (verb < end && strcmp(verb->name, invocation->operands[0]))
		verb++;
	if (verb == end && !strcmp(invocation->operands[0], "rename"))
		return command_fail(STATUS_USAGE, "publish has no rename: import the rules into the new list, write it "
						  "into `lists` of all hosts, wait until fleet status shows as many hosts for "
						  "it as for the old one, then publish delete-list");
	if (verb == end)
		return command_fail_choices("publish", invocation->operands[0],
					    "add|del|batch|import|release|abort|resend|panic|accept|delete-list");
	/* An option that a verb would ignore is more likely a misunderstanding than meant. */
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].is_given && !strstr(options[i].verbs, verb->name))
			return command_fail(STATUS_USAGE, "publish %s takes no --%s; it is for: %s", verb->name,
					    options[i].name, options[i].verbs);
	status = fleet_config_open(invocation, &publishing.config);
	if (status != STATUS_DONE)
		return status;
	if (verb->list != NO_LIST)
		status = prepare(&publishing, verb);
	if (status == STATUS_DONE)
		status = verb->run(&publishing);
	if (publishing.answer)
		output_print(publishing.answer);
	publisher_close(&publishing.publisher);
	config_close(publishing.config);
	return status;
}

const struct command command_publish = {
	.name = "publish",
	.usage =
		"add|del|batch|import|release|abort|resend|panic|accept|delete-list [RULE|FILE|LIST|on|off] "
		"--list NAME [--replace] [--stage] [--timeout TIME] [--wait PERCENT] [--format text|ipset|nft|spamhaus|csv|iptables|p2p|dshield] "
		"[--action drop|pass|monitor] [--new-only] [--strict] [--dry-run] [--force] [--config FILE]",
	.min = 1,
	.max = -1,
	.needs = PRIVILEGE_READ,
	.run = run_publish,
};
