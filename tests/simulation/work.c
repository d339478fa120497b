// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Publishers, an operator, and a publisher who writes garbage. */
#include "simulation/work.h"

#include <stdlib.h>
#include <string.h>

#include "simulation/checks.h"
#include "simulation/faults.h"
#include "simulation/nodes.h"

#define RULES 240 /* of a list that publishers draw from */
#define TOUCHED_MAX 400

enum kind { WORK_ADD, WORK_DEL, WORK_IMPORT, WORK_REPLACE, WORK_STAGE, WORK_RELEASE, WORK_ABORT, WORK_RESEND };

/* What a publisher does now. */
static struct work {
	struct process *process;
	enum kind kind;
	int list;
	__s64 started_us, timeout_us;
	size_t touched_count;
	struct touched {
		size_t promise;
		enum promise_state wanted;
		__s64 end_us;
	} touched[TOUCHED_MAX];
} works[PUBLISHERS];

static bool is_working;
bool wants_panic, is_panic_sure = true;

struct process *work_process(unsigned int publisher)
{
	return works[publisher].process;
}

static struct node *publisher_node(unsigned int publisher)
{
	char name[16];

	snprintf(name, sizeof(name), "publisher%u", publisher);
	return node_named(name);
}

static void draw_rule(int list, char rule[64])
{
	const unsigned int number = chance_below(CHANCE_WORK, RULES);

	/* A few that hosts refuse: their gateways. */
	if (list % 3 < 2 && chance_one_in(CHANCE_WORK, 60))
		snprintf(rule, 64, list % 3 ? "src 10.0.9.0/24" : "src 10.0.9.%u", number % 3);
	else if (chance_one_in(CHANCE_WORK, 12))
		snprintf(rule, 64, "src 10.%d.%u.0/24", 20 + list % 3, number % 50);
	else if (chance_one_in(CHANCE_WORK, 12))
		snprintf(rule, 64, "proto tcp src 10.%d.%u.7 dport 443", 40 + list % 3, number % 50);
	else
		snprintf(rule, 64, "src 10.%d.%u.%u", 10 + list % 3, number / 16, number % 16);
}

/* The promise is open until the command ends. */
static void touch(struct work *work, int list, const char *rule, enum promise_state wanted, __s64 timeout_us)
{
	struct promise *promise = promise_of(list, rule);
	const bool is_same = wanted == PROMISE_LIVE && promise->state == PROMISE_LIVE && !timeout_us &&
			     !promise->end_us;

	if (work->touched_count == TOUCHED_MAX)
		missing("a command that touches more than %d rules", TOUCHED_MAX);
	work->touched[work->touched_count++] =
		(struct touched){ promise - promises, wanted, timeout_us ? now_us + timeout_us : 0 };
	if (!is_same)
		promise_set(promise, PROMISE_MAYBE, 0);
}

static void plan_next(unsigned int publisher, __s64 most_us);

static void work_ended(struct process *process)
{
	struct work *work = works;

	while (work->process != process)
		work++;
	work->process = NULL;
	for (size_t i = 0; i < work->touched_count && !process->is_killed && !process->status; i++) {
		const struct touched *touched = &work->touched[i];
		struct promise *promise = &promises[touched->promise];

		if (touched->wanted != PROMISE_MAYBE &&
		    (promise->state == PROMISE_MAYBE || touched->wanted != promise->state))
			promise_set(promise, touched->wanted, touched->end_us);
	}
	plan_next(work - works, process->status ? 6 * SECOND : 4 * SECOND);
}

/* Writes a file of rules, and begins the import. `keeps`: the live rules of the list, most of them, come first. */
static void import(struct work *work, struct node *node, unsigned int publisher, unsigned int count, bool keeps)
{
	char path[160], rule[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/rules", node->dir);
	file = fopen(path, "w");
	for (size_t i = 0; i < promises_count && keeps; i++) {
		const bool is_live = promises[i].state == PROMISE_LIVE && !promises[i].end_us;

		if (promises[i].list != work->list || promises[i].state == PROMISE_GONE ||
		    promises[i].state == PROMISE_NONE)
			continue;
		if (is_live && !chance_one_in(CHANCE_WORK, 10)) {
			fprintf(file, "%s\n", promises[i].rule);
			touch(work, work->list, promises[i].rule, PROMISE_LIVE, 0);
		} else {
			touch(work, work->list, promises[i].rule, PROMISE_GONE, 0);
		}
	}
	for (unsigned int i = 0; i < count; i++) {
		draw_rule(work->list, rule);
		fprintf(file, "%s\n", rule);
		for (size_t k = 0; k < work->touched_count; k++)
			if (!strcmp(promises[work->touched[k].promise].rule, rule) &&
			    promises[work->touched[k].promise].list == work->list) {
				work->touched[k].wanted = PROMISE_LIVE;
				*rule = '\0';
				break;
			}
		if (*rule)
			touch(work, work->list, rule, PROMISE_LIVE, 0);
	}
	fclose(file);
	work->process = node_run(node, "publish", work_ended, "publish import %s --list %s%s", path,
				 list_names[publisher], keeps ? " --replace --force" : "");
}

static void begin_work(void *context)
{
	const unsigned int publisher = *(const unsigned int *)context;
	struct node *node = publisher_node(publisher);
	struct work *work = &works[publisher];
	static const unsigned int timeouts_s[] = { 0, 0, 0, 45, 120, 3600 };
	const unsigned int timeout_s = timeouts_s[chance_below(CHANCE_WORK, 6)];
	const __u64 draw = chance_below(CHANCE_WORK, 100);
	char rule[64], timeout[32] = "";

	if (!is_working || work->process || is_spoilt[publisher])
		return;
	*work = (struct work){ .list = publisher, .started_us = now_us };
	work->kind = draw < 45 ? WORK_ADD :
		     draw < 70 ? WORK_DEL :
		     draw < 80 ? WORK_IMPORT :
		     draw < 86 ? (publisher == 1 ? WORK_REPLACE : WORK_ADD) :
		     draw < 96 ? (publisher == 0 ? WORK_STAGE : WORK_ADD) :
		     draw < 98 ? (publisher == 0 ? WORK_RELEASE : WORK_DEL) :
		     draw < 99 ? (publisher == 0 ? WORK_ABORT : WORK_DEL) :
				 WORK_RESEND;
	draw_rule(publisher, rule);
	if (timeout_s)
		snprintf(timeout, sizeof(timeout), " timeout %us", timeout_s);
	switch (work->kind) {
	case WORK_ADD:
	case WORK_STAGE:
		if (work->kind == WORK_STAGE)
			work->list += 3;
		touch(work, work->list, rule, PROMISE_LIVE, timeout_s * SECOND);
		work->process = node_run(node, "publish", work_ended, "publish add %s%s --list %s%s", rule, timeout,
					 list_names[publisher], work->kind == WORK_STAGE ? " --stage" : "");
		break;
	case WORK_DEL:
		touch(work, work->list, rule, PROMISE_GONE, 0);
		work->process =
			node_run(node, "publish", work_ended, "publish del %s --list %s", rule, list_names[publisher]);
		break;
	case WORK_IMPORT:
		import(work, node, publisher, 1 + chance_below(CHANCE_WORK, 60), false);
		break;
	case WORK_REPLACE:
		import(work, node, publisher, 1 + chance_below(CHANCE_WORK, 20), true);
		break;
	case WORK_RELEASE:
	case WORK_ABORT:
		for (size_t i = 0, count = promises_count; i < count; i++) {
			const bool was_live = promises[i].state == PROMISE_LIVE && !promises[i].is_excused &&
					      !promises[i].is_lost_at_broker;
			const __s64 left_us = promises[i].end_us ? promises[i].end_us - now_us : 0;

			if (promises[i].list != (int)publisher + 3 || promises[i].state == PROMISE_NONE ||
			    (promises[i].state == PROMISE_GONE && !promises[i].is_excused))
				continue;
			snprintf(rule, sizeof(rule), "%s", promises[i].rule);
			if (work->kind == WORK_RELEASE)
				touch(work, publisher, rule, was_live && left_us >= 0 ? PROMISE_LIVE : PROMISE_MAYBE,
				      left_us);
			touch(work, publisher + 3, rule, was_live ? PROMISE_GONE : PROMISE_MAYBE, 0);
		}
		work->process = node_run(node, "publish", work_ended, "publish %s %s",
					 work->kind == WORK_RELEASE ? "release" : "abort", list_names[publisher]);
		break;
	case WORK_RESEND:
		work->process =
			node_run(node, "publish", work_ended, "publish resend --list %s", list_names[publisher]);
		break;
	}
}

static void plan_next(unsigned int publisher, __s64 most_us)
{
	static unsigned int numbers[PUBLISHERS];

	numbers[publisher] = publisher;
	in(50 * MS + chance_below(CHANCE_WORK, most_us), begin_work, &numbers[publisher]);
}

void work_start(void)
{
	is_working = true;
	for (unsigned int i = 0; i < PUBLISHERS; i++)
		plan_next(i, 2 * SECOND);
}

void work_stop(void)
{
	is_working = false;
}

/* ---- the operator ---- */

static struct node *operator_node(void)
{
	return publisher_node(PUBLISHERS);
}

static void init_ended(struct process *process)
{
	if (process->status || process->is_killed)
		in(2 * SECOND, (void (*)(void *))operator_init, NULL);
}

void operator_init(void)
{
	node_run(operator_node(), "init", init_ended, "fleet init");
}

static void look_ended(struct process *process)
{
	const json_t *status = process->printed;

	if (status && !process->is_killed && is_quiet)
		check_status(status, present_master(), process->status);
}

void operator_look(void)
{
	node_run(operator_node(), "status", look_ended, "fleet status");
}

static void panic_ended(struct process *process)
{
	if (process->status || process->is_killed)
		return;
	wants_panic = strstr(process->what, " on");
	is_panic_sure = true;
}

void operator_panic(bool is_on)
{
	is_panic_sure = false;
	node_run(operator_node(), is_on ? "panic on" : "panic off", panic_ended, "publish panic %s",
		 is_on ? "on" : "off");
}

void operator_republish(void)
{
	for (unsigned int publisher = 0; publisher < PUBLISHERS; publisher++) {
		struct work *work = &works[publisher];
		struct node *node = publisher_node(publisher);
		char path[160];
		FILE *file;

		if (work->process || is_spoilt[publisher])
			continue;
		*work = (struct work){ .list = publisher, .started_us = now_us, .kind = WORK_REPLACE };
		snprintf(path, sizeof(path), "%s/rules", node->dir);
		file = fopen(path, "w");
		for (size_t i = 0; i < promises_count; i++) {
			struct promise *promise = &promises[i];
			const bool is_live = promise->state == PROMISE_LIVE && !promise->is_excused &&
					     (!promise->end_us || promise->end_us > now_us);

			if (promise->list != (int)publisher || promise->state == PROMISE_NONE)
				continue;
			if (is_live && promise->end_us)
				fprintf(file, "%s timeout %llds\n", promise->rule,
					(long long)((promise->end_us - now_us) / SECOND + 1));
			else if (is_live)
				fprintf(file, "%s\n", promise->rule);
			touch(work, publisher, promise->rule, is_live ? PROMISE_LIVE : PROMISE_GONE,
			      is_live && promise->end_us ? promise->end_us - now_us : 0);
		}
		fclose(file);
		work->process = node_run(node, "republish", work_ended, "publish import %s --list %s --replace --force",
					 path, list_names[publisher]);
	}
}

static void accepted(struct process *process)
{
	node_follow(process->node, true);
}

static void accept_on(void *context)
{
	struct node *node = context;

	host_accepts(node);
	node_run(node, "accept", accepted, "follow --once --accept");
}

void operator_accept(void)
{
	for (unsigned int i = 0; i < nodes_count; i++)
		if (nodes[i].is_follower) {
			node_follow(&nodes[i], false);
			nodes[i].undisturbed_us = now_us + 60 * SECOND;
			in(2 * SECOND, accept_on, &nodes[i]);
		}
}

/* ---- garbage ---- */

void write_garbage(unsigned int kind)
{
	struct server *master = present_master();
	static char line[700];
	struct word words[8] = { { (char *)"FCALL", 5 },
				 { (char *)"xc_publish", 10 },
				 { (char *)"2", 1 },
				 { (char *)"xc:f:L:junk:meta", 16 },
				 { (char *)"xc:f:L:junk:log", 15 },
				 { (char *)"evil", 4 },
				 { (char *)"1", 1 },
				 { (char *)"", 0 } };
	struct word call[9];

	if (!master)
		return;
	is_spoilt[2] = is_spoilt[5] = true;
	trace("garbage %u in the list junk", kind);
	switch (kind) {
	case 0: /* a base that is none */
		server_command(master, "XADD xc:f:L:junk:log %lld-0 base junk",
			       (long long)server_wall_ms(master) + 5000);
		break;
	case 1: /* a line that no host takes */
		memset(line, 'x', sizeof(line) - 1);
		for (const char *from = "+ 0 src 10.12.1.1 comment \"", *c = from; *c; c++)
			line[c - from] = *c;
		line[sizeof(line) - 2] = '"';
		memcpy(call, words, sizeof(words));
		call[8] = (struct word){ line, sizeof(line) - 1 };
		server_command_words(master, 9, call);
		break;
	case 2:
		server_command(master, "HSET xc:f:L:junk:meta buckets 1000000000000000000");
		break;
	case 3: /* wrong types */
		server_command(master, "DEL xc:f:L:junk:log");
		server_command(master, "HSET xc:f:L:junk:log a b");
		break;
	case 4:
		server_command(master, "DEL xc:f:L:junk:meta");
		server_command(master, "XADD xc:f:L:junk:meta 1-1 a b");
		break;
	case 5:
		server_command(master, "DEL xc:f:L:junk:b:0");
		server_command(master, "ZADD xc:f:L:junk:b:0 1 a");
		break;
	case 6: /* an id beyond all, and no fields that a fleet has */
		server_command(master, "XADD xc:f:L:junk:log 18446744073709551615-1 nonsense x");
		break;
	default:
		server_command(master, "HSET xc:f:L:junk:b:0 %s nonsense", "garbage");
		server_command(master, "HSET xc:f:L:junk:meta epoch -5 seq junk");
	}
}
