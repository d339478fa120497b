// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Histories, promises, and what hosts must have and say. */
#include "simulation/checks.h"

#include <stdlib.h>
#include <string.h>

#include "simulation/faults.h"
#include "simulation/nodes.h"

#define NEAR_US \
	(45 * SECOND) /* clocks differ, and a host looks once a minute: an end that is nearer may have come or not */
#define SHOWN_US (26 * SECOND) /* until `fleet status` must show what has changed */
#define LOOK_US (2 * SECOND)
#define CONNECTS_10S 40 /* of a host that finds no broker */
#define COMMANDS_10S 4000

const char *const list_names[] = { "alpha", "beta", "junk", "alpha.next", "beta.next", "junk.next", NULL };
bool is_spoilt[LISTS_MAX];

int list_of(const char *name)
{
	for (int i = 0; list_names[i]; i++)
		if (!strcmp(list_names[i], name))
			return i;
	return -1;
}

int list_of_key(const char *key)
{
	const char *name = strstr(key, ":L:"), *end = name ? strchr(name + 3, ':') : NULL;
	char text[32];

	if (!end)
		return -1;
	snprintf(text, sizeof(text), "%.*s", (int)(end - name - 3), name + 3);
	return list_of(text);
}

/* ---- names of rules as numbers ---- */

static char **texts;
static size_t texts_count, texts_room;
static __u32 text_places[1 << 16]; /* number + 1, by hash */

static __u32 number_of(const char *text)
{
	__u32 hash = 2166136261;

	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619;
	for (size_t i = hash % (1 << 16);; i = (i + 1) % (1 << 16)) {
		if (text_places[i] && !strcmp(texts[text_places[i] - 1], text))
			return text_places[i] - 1;
		if (text_places[i])
			continue;
		if (texts_count == texts_room) {
			texts_room = texts_room ? 2 * texts_room : 1024;
			texts = enlarged(texts, texts_room * sizeof(*texts));
		}
		texts[texts_count] = strdup(text);
		text_places[i] = ++texts_count;
		return texts_count - 1;
	}
}

/* ---- histories ---- */

struct item {
	__u32 rule;
	__s64 end_ms;
};

struct state {
	struct fleet_position at;
	__s64 time_us;
	const struct server *server;
	size_t count;
	struct item *items; /* sorted by rule */
};

static struct history {
	struct state **states; /* sorted by position */
	size_t count, room;
} histories[LISTS_MAX];

static size_t state_place(const struct history *history, struct fleet_position position)
{
	size_t low = 0, high = history->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (fleet_position_compare(history->states[middle]->at, position) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct state *find_state(int list, struct fleet_position position)
{
	const struct history *history = &histories[list];
	const size_t i = state_place(history, position);

	return i < history->count && !fleet_position_compare(history->states[i]->at, position) ? history->states[i] :
												 NULL;
}

static int compare_items(const void *a, const void *b)
{
	const __u32 x = ((const struct item *)a)->rule, y = ((const struct item *)b)->rule;

	return x < y ? -1 : x > y;
}

static const struct item *find_item(const struct state *state, __u32 rule)
{
	const struct item key = { .rule = rule };

	return state->count ? bsearch(&key, state->items, state->count, sizeof(key), compare_items) : NULL;
}

static void read_state(const struct server *server, int list, struct state *state)
{
	char key[128];
	const struct value *meta, *bucket;
	const struct word *buckets;
	size_t count;

	snprintf(key, sizeof(key), "xc:f:L:%s:meta", list_names[list]);
	meta = dataset_find(&server->data, key);
	buckets = hash_find(meta, "buckets");
	count = buckets ? strtoull(buckets->text, NULL, 10) : 1;
	*state = (struct state){ .time_us = now_us, .server = server };
	for (size_t i = 0; i < count && i < 1000; i++) {
		snprintf(key, sizeof(key), "xc:f:L:%s:b:%zu", list_names[list], i);
		bucket = dataset_find(&server->data, key);
		if (!bucket || bucket->kind != REDIS_HASH)
			continue;
		state->items = enlarged(state->items, (state->count + bucket->count) * sizeof(*state->items));
		for (size_t j = 0; j < bucket->count; j++)
			state->items[state->count++] = (struct item){ number_of(bucket->pairs[j].field.text),
								      atoll(bucket->pairs[j].value.text) };
	}
	if (state->count)
		qsort(state->items, state->count, sizeof(*state->items), compare_items);
}

static bool is_ended(const struct item *item, __s64 margin_us)
{
	return item->end_ms && (item->end_ms - WALL_START_MS) * MS <= now_us + margin_us;
}

/* The same position must never stand for two states: a host could not tell which one it has. */
static void compare_states(int list, const struct state *old, const struct state *new)
{
	for (size_t i = 0; i < old->count; i++)
		if (!is_ended(&old->items[i], NEAR_US) && !find_item(new, old->items[i].rule))
			must(false, "list %s: two histories have the position %llu-%llu, one without '%s'",
			     list_names[list], (unsigned long long)old->at.epoch, (unsigned long long)old->at.seq,
			     texts[old->items[i].rule]);
	for (size_t i = 0; i < new->count; i++)
		if (!is_ended(&new->items[i], NEAR_US) && !find_item(old, new->items[i].rule))
			must(false, "list %s: two histories have the position %llu-%llu, one with '%s'",
			     list_names[list], (unsigned long long)old->at.epoch, (unsigned long long)old->at.seq,
			     texts[new->items[i].rule]);
}

static void note_state(int list, struct state state)
{
	struct history *history = &histories[list];
	const size_t i = state_place(history, state.at);

	if (i < history->count && !fleet_position_compare(history->states[i]->at, state.at)) {
		compare_states(list, history->states[i], &state);
		free(state.items);
		return;
	}
	if (history->count == history->room) {
		history->room = history->room ? 2 * history->room : 256;
		history->states = enlarged(history->states, history->room * sizeof(void *));
	}
	memmove(history->states + i + 1, history->states + i, (history->count++ - i) * sizeof(void *));
	history->states[i] = malloc(sizeof(state));
	*history->states[i] = state;
}

static struct fleet_position head_of(const struct server *server, int list)
{
	char key[128];
	const struct value *meta;
	const struct word *epoch, *seq;

	snprintf(key, sizeof(key), "xc:f:L:%s:meta", list_names[list]);
	meta = dataset_find(&server->data, key);
	epoch = hash_find(meta, "epoch");
	seq = hash_find(meta, "seq");
	return (struct fleet_position){ epoch ? strtoull(epoch->text, NULL, 10) : 0,
					seq ? strtoull(seq->text, NULL, 10) : 0 };
}

/* The entry EPOCH-0, if this command has written it: it has the state of its base. */
static void note_epoch(const struct server *server, int list, struct fleet_position head)
{
	const struct fleet_position first = { .epoch = head.epoch };
	struct state state = { .at = first, .time_us = now_us, .server = server };
	const struct state *before;
	struct fleet_position base;
	const struct value *log;
	char key[128];

	snprintf(key, sizeof(key), "xc:f:L:%s:log", list_names[list]);
	log = dataset_find(&server->data, key);
	for (size_t i = log ? log->count : 0; i--;) {
		const struct entry *entry = &log->entries[i];

		if (entry->epoch != head.epoch || entry->seq || entry->count != 2 ||
		    fleet_position_parse(entry->words[1].text, &base))
			continue;
		before = find_state(list, base);
		if (!before && base.epoch)
			return;
		state.count = before ? before->count : 0;
		state.items = malloc((state.count + 1) * sizeof(*state.items));
		if (before)
			memcpy(state.items, before->items, state.count * sizeof(*state.items));
		note_state(list, state);
		return;
	}
}

void history_note(struct server *server, int count, const struct word *words)
{
	const int list = count > 3 && !strcmp(words[0].text, "FCALL") ? list_of_key(words[3].text) : -1;
	struct fleet_position head;
	struct state state;

	if (list < 0 || strcmp(words[1].text, "xc_publish") || is_spoilt[list])
		return;
	head = head_of(server, list);
	if (!find_state(list, (struct fleet_position){ .epoch = head.epoch }))
		note_epoch(server, list, head);
	read_state(server, list, &state);
	state.at = head;
	note_state(list, state);
}

/* ---- promises ---- */

struct promise *promises;
size_t promises_count;
static size_t promises_room;

struct promise *promise_of(int list, const char *rule)
{
	static __u32 places[LISTS_MAX][1 << 14]; /* number + 1, by the number of the rule */
	__u32 *place = &places[list][number_of(rule) % (1 << 14)];

	if (number_of(rule) >= 1 << 14)
		missing("more than %d rules", 1 << 14);
	if (*place)
		return &promises[*place - 1];
	*place = promises_count + 1;
	if (promises_count == promises_room) {
		promises_room = promises_room ? 2 * promises_room : 1024;
		promises = enlarged(promises, promises_room * sizeof(*promises));
	}
	promises[promises_count] = (struct promise){ .list = list };
	snprintf(promises[promises_count].rule, sizeof(promises[0].rule), "%s", rule);
	return &promises[promises_count++];
}

void promise_set(struct promise *promise, enum promise_state state, __s64 end_us)
{
	promise->state = state;
	promise->end_us = end_us;
	promise->since_us = now_us;
	promise->is_excused = promise->excused_us && now_us - promise->excused_us < 3 * SECOND;
	promise->is_lost_at_broker = false;
}

/* Also if the command that makes it is about to end. */
void promise_excuse(struct promise *promise)
{
	promise->is_excused = true;
	promise->excused_us = now_us;
}

bool promise_is_live(const struct promise *promise)
{
	return promise->state == PROMISE_LIVE && (!promise->end_us || promise->end_us > now_us + NEAR_US);
}

/* A host that finds no start of the newer epoch cannot see that history was lost. */
void promises_excuse_lost(void)
{
	for (size_t i = 0; i < promises_count; i++)
		promises[i].is_excused |= promises[i].is_lost_at_broker;
}

static bool has_end(const struct item *item, __s64 end_us)
{
	const __s64 item_us = item->end_ms ? (item->end_ms - WALL_START_MS) * MS : 0;

	return !item_us == !end_us && llabs(item_us - end_us) < NEAR_US;
}

static bool keeps(const struct promise *promise, const struct item *item)
{
	return promise->state == PROMISE_LIVE ? item && has_end(item, promise->end_us) : !item;
}

bool server_keeps(const struct server *server, const struct promise *promise)
{
	struct state state;
	bool is_kept;

	read_state(server, promise->list, &state);
	is_kept = keeps(promise, find_item(&state, number_of(promise->rule)));
	free(state.items);
	return is_kept;
}

bool servers_differ(const struct server *a, const struct server *b, const struct promise *promise)
{
	const __u32 number = number_of(promise->rule);
	const struct item *item_a, *item_b;
	struct state state_a, state_b;
	bool is_other;

	read_state(a, promise->list, &state_a);
	read_state(b, promise->list, &state_b);
	item_a = find_item(&state_a, number);
	item_b = find_item(&state_b, number);
	is_other = item_a && item_b ? item_a->end_ms != item_b->end_ms : item_a != item_b;
	free(state_a.items);
	free(state_b.items);
	return is_other;
}

void promises_excuse(const struct server *truth, bool hosts_too)
{
	struct state states[LISTS_MAX] = {};

	for (int i = 0; list_names[i]; i++)
		read_state(truth, i, &states[i]);
	for (size_t i = 0; i < promises_count; i++) {
		const struct item *item = find_item(&states[promises[i].list], number_of(promises[i].rule));
		/* An earlier version of the rule, with another end, is not what was promised. */
		const bool is_there = item && (promises[i].state != PROMISE_LIVE || has_end(item, promises[i].end_us));

		promises[i].is_excused |= promises[i].state == PROMISE_GONE && is_there;
		if (promises[i].state != PROMISE_LIVE || is_there)
			continue;
		promises[i].is_lost_at_broker = true;
		promises[i].lost_epoch = head_of(truth, promises[i].list).epoch;
		promises[i].is_excused |= hosts_too;
	}
	for (int i = 0; list_names[i]; i++)
		free(states[i].items);
}

/* ---- hosts ---- */

static struct kept {
	struct fleet_position at, looked_at;
	size_t count;
	__u32 *rules; /* of looked_at, sorted */
	bool has_accepted;
} kept[NODES_MAX][LISTS_MAX];

struct fleet_position host_position(const struct node *node, int list)
{
	return kept[node->number][list].at;
}

void host_accepts(const struct node *node)
{
	for (int i = 0; i < LISTS_MAX; i++)
		kept[node->number][i].has_accepted = true;
}

void hosts_accept_no_more(void)
{
	for (unsigned int i = 0; i < NODES_MAX * LISTS_MAX; i++)
		kept[i / LISTS_MAX][i % LISTS_MAX].has_accepted = false;
}

struct found {
	__u64 owner;
	const struct node *node;
	size_t count, room;
	__u32 *rules;
};

static void found_add(struct found *found, __u32 rule)
{
	if (found->count == found->room) {
		found->room = found->room ? 2 * found->room : 256;
		found->rules = enlarged(found->rules, found->room * sizeof(*found->rules));
	}
	found->rules[found->count++] = rule;
}

static int take_rule(const struct rule *rule, void *context)
{
	struct found *found = context;
	struct rule bare = *rule;
	char text[RULE_TEXT_BYTES];

	if (!(rule_owners_now(rule) & found->owner))
		return 0;
	bare.timeout_ms = 0;
	*bare.comment = '\0';
	rule_format(&bare, text);
	found_add(found, number_of(text));
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const __u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return x < y ? -1 : x > y;
}

static bool has_number(const __u32 *rules, size_t count, __u32 number)
{
	return count && bsearch(&number, rules, count, sizeof(number), compare_numbers);
}

/* Rules that a host refuses; work.c publishes them, too. */
static bool is_refused_here(const struct node *node, const char *rule)
{
	char own[32];

	snprintf(own, sizeof(own), "src 10.0.9.%u", node->number);
	return !strcmp(rule, own) || !strcmp(rule, "src 10.0.9.0/24");
}

/*
 * The lists of a host share the end of a rule that both have with a timeout, and it stays the latest: store/store.h. So a
 * rule that was in the list and in its stage may end late.
 */
static bool is_shared(int list, __u32 rule)
{
	const struct history *other = &histories[(list + 3) % 6];

	for (size_t i = 0; i < other->count; i++)
		if (find_item(other->states[i], rule))
			return true;
	return false;
}

/* The broker has forgotten a rule that has just ended; the clock of the host may be a little late. */
static bool has_just_ended(int list, struct fleet_position position, __u32 rule)
{
	const struct history *history = &histories[list];

	for (size_t i = state_place(history, position); i--;) {
		const struct item *item = find_item(history->states[i], rule);

		if (item)
			return is_ended(item, NEAR_US) && (!is_ended(item, -NEAR_US) || is_shared(list, rule));
	}
	return false;
}

static void compare_host(const struct node *node, int list, const struct found *found, const struct state *state)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct item *item = find_item(state, found->rules[i]);

		must(item || has_just_ended(list, state->at, found->rules[i]),
		     "%s has '%s' in the list %s, which at its position %llu-%llu has no such rule", node->name,
		     texts[found->rules[i]], list_names[list], (unsigned long long)state->at.epoch,
		     (unsigned long long)state->at.seq);
		must(!item || !is_ended(item, -NEAR_US) || is_shared(list, found->rules[i]),
		     "%s still has '%s' in the list %s, which has ended", node->name, texts[found->rules[i]],
		     list_names[list]);
	}
	for (size_t i = 0; i < state->count; i++)
		must(is_ended(&state->items[i], NEAR_US) || is_refused_here(node, texts[state->items[i].rule]) ||
			     has_number(found->rules, found->count, state->items[i].rule),
		     "%s lacks '%s' of the list %s, which has it at its position %llu-%llu", node->name,
		     texts[state->items[i].rule], list_names[list], (unsigned long long)state->at.epoch,
		     (unsigned long long)state->at.seq);
}

static bool is_head(int list, struct fleet_position position)
{
	return !fleet_position_compare(head_of(present_master(), list), position);
}

/* On the way to the end of the log a rule may come and go: what a host had before counts until it is there. */
static void keep_before(const struct kept *before, struct found *found)
{
	const size_t count = found->count;

	for (size_t i = 0; i < before->count; i++)
		if (!has_number(found->rules, count, before->rules[i]))
			found_add(found, before->rules[i]);
	if (found->count > count)
		qsort(found->rules, found->count, sizeof(*found->rules), compare_numbers);
}

/* No host gives up what was promised, unless somebody accepts it there. */
static void compare_before(const struct node *node, int list, const struct kept *before, const struct found *found)
{
	const struct state *state = find_state(list, before->looked_at);

	for (size_t i = 0; i < before->count; i++) {
		const struct promise *promise;
		const struct item *item;

		if (has_number(found->rules, found->count, before->rules[i]))
			continue;
		item = state ? find_item(state, before->rules[i]) : NULL;
		if (item && is_ended(item, NEAR_US))
			continue;
		promise = promise_of(list, texts[before->rules[i]]);
		/* Within one epoch a loss looks like that of a failover: hosts follow it. */
		if (promise->is_lost_at_broker && before->looked_at.epoch <= promise->lost_epoch)
			continue;
		must(!promise_is_live(promise) || promise->is_excused,
		     "%s has dropped '%s' of the list %s, which was published and not deleted%s", node->name,
		     promise->rule, list_names[list], promise->is_lost_at_broker ? "; the broker has lost it" : "");
	}
}

/* Every rule of a host, now and then. */
static bool is_time_to_look(const struct node *node)
{
	static __s64 looked_us[NODES_MAX];
	static unsigned int commits;

	if (commits++ % 4 && now_us - looked_us[node->number] < LOOK_US)
		return false;
	looked_us[node->number] = now_us;
	return true;
}

static void check_list(struct apply *apply, const struct store_lists *lists, int list, bool looks)
{
	const struct node *node = current->node;
	struct kept *before = &kept[node->number][list];
	const unsigned int number = store_lists_find(lists, list_names[list]);
	struct found found = { .owner = 1ULL << number, .node = node };
	const struct store_source source = store_source_parse(lists->list[number].source);
	struct fleet_position at_now = {};
	const struct state *state;

	if (!number)
		return;
	fleet_position_parse(source.position, &at_now);
	/* What another command has changed on the host is not this list's: it is read again soon. */
	if (lists->list[number].is_edited)
		return;
	before->at = at_now;
	if (!looks || store_each(apply->session.store, take_rule, &found))
		return;
	if (found.count)
		qsort(found.rules, found.count, sizeof(*found.rules), compare_numbers);
	state = find_state(list, at_now);
	if (!is_spoilt[list]) {
		must(state || !at_now.epoch, "%s is at %s of the list %s, a position that no history has", node->name,
		     source.position, list_names[list]);
		if (state)
			compare_host(node, list, &found, state);
	}
	for (size_t i = 0; i < found.count; i++)
		must(!is_refused_here(node, texts[found.rules[i]]), "%s blocks its gateway: '%s'", node->name,
		     texts[found.rules[i]]);
	if (!is_spoilt[list] && !before->has_accepted && is_head(list, at_now))
		compare_before(node, list, before, &found);
	else if (!before->has_accepted)
		keep_before(before, &found);
	free(before->rules);
	*before = (struct kept){ .at = at_now,
				 .looked_at = at_now,
				 .count = found.count,
				 .rules = found.rules,
				 .has_accepted = before->has_accepted };
}

void check_host(struct apply *apply)
{
	const __s64 steps = current->steps_left;
	const bool looks = is_time_to_look(current->node);
	struct store_lists lists;
	struct reason ignored;
	char dir[4096];

	current->node->committed_us = now_us;
	current->steps_left = -1; /* the check is no part of the process */
	session_state_dir(apply->state, apply->name, dir, sizeof(dir));
	if (!store_resume(dir, STORE_READ, &apply->session.store, &ignored)) {
		if (!store_lists(apply->session.store, &lists))
			for (int i = 0; list_names[i]; i++)
				check_list(apply, &lists, i, looks);
		store_pause(&apply->session.store);
	}
	current->steps_left = steps;
}

bool hosts_are_level(const struct server *master, char why[512])
{
	for (unsigned int i = 0; i < nodes_count; i++) {
		for (int list = 0; list_names[list] && nodes[i].is_follower; list++) {
			const struct fleet_position head = head_of(master, list), at_now = kept[i][list].at;

			if (is_spoilt[list] || !head.epoch || !node_follows(&nodes[i], list) ||
			    !fleet_position_compare(head, at_now))
				continue;
			snprintf(why, 512,
				 "%.15s is at %llu-%llu of the list %.15s, %.20s at %llu-%llu; it says: %.160s",
				 nodes[i].name, (unsigned long long)at_now.epoch, (unsigned long long)at_now.seq,
				 list_names[list], master->where, (unsigned long long)head.epoch,
				 (unsigned long long)head.seq, node_said(&nodes[i]));
			return false;
		}
	}
	return true;
}

void check_promises(const struct server *master)
{
	struct state states[LISTS_MAX] = {};

	for (int i = 0; list_names[i]; i++)
		read_state(master, i, &states[i]);
	for (size_t i = 0; i < promises_count; i++) {
		const struct promise *promise = &promises[i];
		const __u32 number = number_of(promise->rule);

		if (is_spoilt[promise->list])
			continue;
		if (promise_is_live(promise) && !promise->is_excused && !promise->is_lost_at_broker)
			must(find_item(&states[promise->list], number),
			     "'%s' was published to the list %s at %.3f s, and the broker does not have it",
			     promise->rule, list_names[promise->list], promise->since_us / 1e6);
		if (promise->state == PROMISE_GONE && !promise->is_excused)
			must(!find_item(&states[promise->list], number),
			     "'%s' was deleted from the list %s at %.3f s, and the broker has it", promise->rule,
			     list_names[promise->list], promise->since_us / 1e6);
	}
	for (int i = 0; list_names[i]; i++)
		free(states[i].items);
}

/* ---- what is said ---- */

/* Since when the head of the list is another than what the host has. Negative: it is not. */
static __s64 behind_since_us(const struct server *master, const struct node *node, int list)
{
	const struct fleet_position head = head_of(master, list), at_now = kept[node->number][list].at;
	const struct history *history = &histories[list];
	__s64 since_us = -1;

	if (!fleet_position_compare(head, at_now))
		return -1;
	for (size_t i = state_place(history, at_now); i < history->count; i++)
		if (fleet_position_compare(history->states[i]->at, at_now) > 0 &&
		    (since_us < 0 || history->states[i]->time_us < since_us))
			since_us = history->states[i]->time_us;
	/* The broker is behind the host: since the last of its lives. */
	return since_us > master_since_us || since_us < 0 ? since_us < 0 ? master_since_us : since_us : master_since_us;
}

void check_status(const json_t *status, const struct server *master, int exit_status)
{
	const json_t *rows = json_object_get(status, "hosts"), *row;
	bool is_shown[NODES_MAX] = {}, all_level = true;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "host"));
		const char *state = json_string_value(json_object_get(row, "state"));
		const struct node *node = node_named(name);

		all_level &= !strcmp(state, "level");
		if (!node)
			continue;
		is_shown[node->number] = true;
		for (int list = 0; list_names[list] && !strcmp(state, "level"); list++) {
			const __s64 since_us =
				is_spoilt[list] || !node_follows(node, list) ? -1 : behind_since_us(master, node, list);

			must(since_us < 0 || now_us - since_us < SHOWN_US,
			     "fleet status says that %s is level, but it lacks the list %s as the broker has it since %.3f s",
			     name, list_names[list], since_us / 1e6);
		}
	}
	/* A replica takes no reports: see the manual. */
	for (i = 0; i < nodes_count && servers_count == 1; i++)
		must(is_shown[i] || !nodes[i].is_follower || now_us - nodes[i].undisturbed_us < 60 * SECOND,
		     "fleet status does not show %s, which says: %.200s", nodes[i].name, node_said(&nodes[i]));
	must(all_level || exit_status, "fleet status ends with 0, though not all hosts are level");
}

void check_rates(__s64 us)
{
	for (unsigned int i = 0; i < nodes_count; i++) {
		__u64 commands = 0;

		for (unsigned int k = 0; k < servers_count; k++) {
			commands += servers[k].commands[i];
			servers[k].commands[i] = 0;
		}
		must(!nodes[i].is_follower || connects[i] * 10 * SECOND <= CONNECTS_10S * us,
		     "%s has made %u connections in %lld s: it does not wait longer and longer", nodes[i].name,
		     connects[i], (long long)(us / SECOND));
		must(!nodes[i].is_follower || commands * 10 * SECOND <= COMMANDS_10S * (__u64)us,
		     "%s has sent %llu commands in %lld s", nodes[i].name, (unsigned long long)commands,
		     (long long)(us / SECOND));
		connects[i] = 0;
	}
}
