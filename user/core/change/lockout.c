// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The guard: a change must not lock this host out. host/ says which flows must stay (struct guard), and query_blocks() what
 * blocks a flow, and when. The guard refuses a change if it blocks such a flow, or blocks it sooner than before: see
 * newly_blocks() for what it compares, and say_refused() for the message. Of a list it may leave out the rules at fault
 * instead: change_leave_out_blockers().
 *
 * It looks at each flow in up to four views, which it numbers by these bits:
 *
 *    0              what blocks the flow; packets to this host may be blocked if somebody keeps a way in (a door)
 *    VIEW_LISTS     what only lists block of packets to this host, door or not: a list must not close the host
 *    VIEW_UNDONE    the same two, as if the change that waits for `confirm` were undone
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/memory.h"
#include "change/internal.h"
#include "host/host.h"

#define VIEW_LISTS 1
#define VIEW_UNDONE 2

/* ---- doors: rules that let somebody in for good, so that the operator may block the rest ---- */

/* Which addresses of this host have a door. The store is read once, however many addresses are blocked. */
struct doors {
	struct store *store;
	bool is_undone;                      /* doors that the undo takes away do not count */
	bool is_read, is_any[FLOW_FAMILIES]; /* to some address of this host */
	const struct rule **own;             /* packets to this host, by family and address */
	int *more; /* doors of own[i], less those of own[i - 1]; when all are read: doors of own[i] */
	size_t count;
};

static void doors_close(struct doors (*doors)[2])
{
	for (size_t i = 0; i < 2; i++) {
		free((*doors)[i].own);
		free((*doors)[i].more);
		(*doors)[i] = (struct doors){};
	}
}

/* How many of `own` sort before the prefix, or with `includes` also those in it. */
static size_t own_before(const struct doors *doors, enum flow_family family, const union flow_addr *prefix,
			 unsigned int length, bool includes)
{
	size_t from = 0, to = doors->count;

	while (from < to) {
		const size_t middle = (from + to) / 2;
		const struct rule *own = doors->own[middle];
		const union flow_addr network = rule_network(&own->dst, length);
		const int order = own->family != family ? (int)own->family - (int)family :
							  memcmp(&network, prefix, sizeof(network));

		if (order < includes)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static int note_door(const struct rule *rule, void *context)
{
	struct doors *doors = context;
	struct rule undone = *rule;
	int error = 0;

	if (rule->action != RULE_PASS || rule->timeout_ms || !guard_lets_in(rule))
		return 0;
	if (doors->is_undone)
		error = store_get_undone(doors->store, &undone);
	if (error || undone.timeout_ms)
		return error == -ENOENT ? 0 : error;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const size_t from = own_before(doors, family, &rule->dst, rule->dst_len, false);
		const size_t to = own_before(doors, family, &rule->dst, rule->dst_len, true);

		if (rule->family != FLOW_NO_FAMILY && rule->family != family)
			continue;
		doors->is_any[family] |= from < to;
		doors->more[from]++;
		doors->more[to]--;
	}
	return 0;
}

static int compare_own(const void *left, const void *right)
{
	const struct rule *a = *(const struct rule *const *)left, *b = *(const struct rule *const *)right;

	return a->family != b->family ? (int)a->family - (int)b->family : memcmp(&a->dst, &b->dst, sizeof(a->dst));
}

/* 0; -ENOMEM; other -errno: the store cannot be read. */
static int doors_read(struct doors *doors, const struct session *session, bool is_undone)
{
	const struct guard *guard = session->guard;
	struct shape_list shapes;
	bool may_be = false;
	int error = store_shapes(session->store, &shapes);

	doors->is_read = true;
	doors->store = session->store;
	doors->is_undone = is_undone;
	doors->own = calloc(guard->count, sizeof(*doors->own));
	doors->more = calloc(guard->count + 1, sizeof(*doors->more));
	if (!doors->own || !doors->more)
		return -ENOMEM;
	for (size_t i = 0; i < guard->count; i++)
		if (!guard->flows[i].flow.src_len)
			doors->own[doors->count++] = &guard->flows[i].flow;
	qsort(doors->own, doors->count, sizeof(*doors->own), compare_own);
	for (size_t i = 0; !error && i < shapes.count; i++)
		may_be |= shapes.entry[i].shape.action == RULE_PASS && shapes.entry[i].shape.fields & RULE_DPORT;
	if (may_be)
		error = store_each(session->store, note_door, doors);
	for (size_t i = 1; i < doors->count; i++)
		doors->more[i] += doors->more[i - 1];
	return error;
}

/* Whether the operator, who blocks packets to this host, keeps a way in: to the address, if the rule names it. */
static bool has_door(const struct doors *doors, const struct rule *flow, const struct query_block *block)
{
	if (block->by != QUERY_RULE || !block->rule.dst_len)
		return doors->is_any[flow->family];
	return doors->more[own_before(doors, flow->family, &flow->dst, flow->dst_len, false)];
}

/* Without an earlier pending change, an undo brings back what was before this one: it blocks nothing anew. */
static unsigned int views_of(const struct session *session)
{
	return session->open_change && !store_has_earlier_pending(session->store) ? GUARD_VIEWS / 2 : GUARD_VIEWS;
}

/* What blocks a flow of the guard in a view. 0; -errno. */
static int flow_blocks(struct session *session, struct doors doors[2], const struct rule *flow, unsigned int view,
		       struct query_block *block)
{
	const struct query_block nothing = { .by = QUERY_NOTHING, .in_ms = QUERY_NEVER_MS };
	/* At a load the doors of now count. */
	const bool is_undone = view & VIEW_UNDONE && session->open_change;
	bool counts = true;
	int error;

	*block = nothing;
	if (flow->src_len && view & VIEW_LISTS)
		return 0;
	error = query_blocks(session->store, flow, view & VIEW_UNDONE, block);
	if (error || block->by == QUERY_NOTHING || flow->src_len)
		return error;
	if (view & VIEW_LISTS) {
		counts = block->by == QUERY_RULE && !(rule_owners_now(&block->rule) & 1ULL << STORE_BY_HAND);
	} else {
		doors += is_undone;
		error = doors->is_read ? 0 : doors_read(doors, session, is_undone);
		counts = error || !has_door(doors, flow, block);
	}
	if (!counts)
		*block = nothing;
	return error;
}

/* ---- what is blocked ---- */

int change_record_blocked(struct session *session)
{
	const struct guard *guard = session->guard;
	CLOSED_BY(doors_close) struct doors doors[2] = {};
	const unsigned int views = views_of(session);
	struct flow_was_blocked *was;
	struct query_block block;
	struct rule rule;
	int error = 0;

	if (!guard)
		return 0;
	was = calloc(guard->count + 1, sizeof(*was));
	session->open_change->was_blocked = was;
	if (!was)
		return -ENOMEM;
	session->open_change->was_void = !change_find_void(session->store, guard, &rule);
	for (size_t i = 0; i < guard->count * views && !error; i++) {
		error = flow_blocks(session, doors, &guard->flows[i / views].flow, i % views, &block);
		was[i / views].in_ms[i % views] = block.in_ms;
		if (!(i % views))
			was[i / views].rate = block.rate;
	}
	return error;
}

int change_find_void(struct store *store, const struct guard *guard, struct rule *rule)
{
	static const __u8 protocols[] = { 0, IPPROTO_TCP, IPPROTO_UDP };
	struct shape_list shapes;
	bool may_be = false;
	int error = store_shapes(store, &shapes);

	for (size_t i = 0; !error && i < shapes.count; i++) {
		const struct rule_shape *shape = &shapes.entry[i].shape;

		may_be |= shape->action == RULE_PASS && shape->src_len <= 1 &&
			  !(shape->fields & ~(RULE_PROTO | RULE_NEW));
	}
	for (size_t i = 0; may_be && i < 6 * guard->count && !error; i++) {
		struct rule packets = guard->flows[i / 6].flow;

		if (packets.src_len)
			continue;
		packets.src_len = 1;
		packets.src.byte[0] = i & 1 ? 0x80 : 0;
		packets.proto = protocols[i / 2 % 3];
		packets.fields |= packets.proto ? RULE_PROTO : 0;
		error = query_test(store, &packets, rule);
		if (!error && rule->action == RULE_PASS)
			return 0;
		error = error == -ENOENT ? 0 : error;
	}
	return error ? error : -ENOENT;
}

#define BLOCKER_BYTES (RULE_TEXT_BYTES + 2)

static const char *blocker_text(struct query_block *block, char who[BLOCKER_BYTES])
{
	char text[RULE_TEXT_BYTES];

	if (block->by != QUERY_RULE)
		return "the policy 'no-rule drop'";
	block->rule.comment[0] = '\0';
	snprintf(who, BLOCKER_BYTES, "'%s'", rule_format(&block->rule, text));
	return who;
}

/* A flow of the guard that is blocked. */
struct refusal {
	const struct guard_flow *flow;
	struct query_block block;
	bool is_undone;             /* only if the pending change is undone */
	struct guard_advice advice; /* what keeps the flow, and perhaps others */
};

struct ended {
	const struct guard *guard;
	const struct rule *keeper; /* the advised pass rule */
	char text[RULE_TEXT_BYTES];
};

/* Stops at a rule that the pass rule would end. What blocks a flow of the guard is meant to end. */
static int note_ended(const struct rule *rule, void *context)
{
	struct ended *ended = context;

	if (rule->action != RULE_DROP || rule->timeout_ms < 0 || !rule_covers(ended->keeper, rule) ||
	    (rule_blocks(rule) && guard_concerns(ended->guard, rule)))
		return 0;
	rule_format(rule, ended->text);
	return 1;
}

static int say_refused(const struct session *session, struct refusal *refusal, const char *outcome,
		       struct reason *reason)
{
	struct query_block *block = &refusal->block;
	const char *what = refusal->flow->what;
	const char *option = session_name_option(session->name);
	char blocker[BLOCKER_BYTES], commands[GUARD_ADVICE_BYTES];
	const char *who = blocker_text(block, blocker);
	struct ended ended = { .guard = session->guard };
	char pass[RULE_TEXT_BYTES];
	char time[RULE_TIME_BYTES], when[RULE_TIME_BYTES + 64] = "";

	if (block->in_ms)
		snprintf(when, sizeof(when), " when the pass rule for it ends, in %s",
			 rule_time_format(block->in_ms, time));
	if (refusal->is_undone)
		return reason_set(reason, -ECANCELED,
				  "%s would block %s once the pending change is undone%s; %s; first: xdp-cuckoo%s confirm",
				  who, what, block->in_ms ? " and a pass rule has ended" : "", outcome, option);
	for (size_t i = 0; i < refusal->advice.count; i++) {
		const struct rule *keeper = &refusal->advice.keeper[i];
		const struct rule first = { .family = keeper->family, .src = keeper->src };
		const unsigned int bits = rule_address_bits(keeper->family);

		/* Only for one host: a network may have any number of rules. */
		ended.keeper = keeper;
		if (keeper->src_len == bits &&
		    store_each_under(session->store, &first, 8 + bits, note_ended, &ended) > 0)
			return reason_set(reason, -ECANCELED,
					  "%s would block %s%s; %s; a pass rule for '%s' would end '%s'", who, what,
					  when, outcome, rule_format(keeper, pass), ended.text);
	}
	return reason_set(reason, -ECANCELED, "%s would block %s%s; %s; first: %s", who, what, when, outcome,
			  guard_advice_text(&refusal->advice, option, commands));
}

/*
 * Finds what blocks flow number `flow` of the guard sooner than before the change, in any view; leaves the advice.
 * 0; -errno: the store cannot be read. A new rate blocks nothing, but session->limited reports it.
 */
static int newly_blocks(struct session *session, struct doors doors[2], size_t flow, struct refusal *refusal)
{
	/* At a load all counts that a door does not open, even if a list blocks it. */
	static const struct flow_was_blocked was_open = { { QUERY_NEVER_MS, 0, QUERY_NEVER_MS, 0 }, 0 };
	const struct open_change *change = session->open_change;
	const struct flow_was_blocked *was = change ? &change->was_blocked[flow] : &was_open;
	struct query_block *block = &refusal->block;
	char text[RULE_RATE_BYTES];

	refusal->flow = &session->guard->flows[flow];
	for (unsigned int view = 0; view < views_of(session); view++) {
		int error = flow_blocks(session, doors, &refusal->flow->flow, view, block);

		if (!error && !view && block->rate && block->rate != was->rate)
			reason_set(&session->limited, 0, "a rate of %s now limits %s",
				   rule_rate_format(block->rate, text), refusal->flow->what);
		refusal->is_undone = view & VIEW_UNDONE;
		if (error || block->in_ms < was->in_ms[view])
			return error;
	}
	block->by = QUERY_NOTHING;
	return 0;
}

/* The message names the first flow, and what keeps all. */
int change_check_guard(struct session *session, struct reason *reason)
{
	const struct open_change *change = session->open_change;
	const struct guard *guard = session->guard;
	CLOSED_BY(doors_close) struct doors doors[2] = {};
	struct refusal first = {}, next;
	struct rule rule;
	char text[RULE_TEXT_BYTES];

	for (size_t i = 0; guard && i < guard->count; i++) {
		const int error = newly_blocks(session, doors, i, &next);

		if (error)
			return store_unread_reason(error, reason);
		if (next.block.by == QUERY_NOTHING)
			continue;
		guard_advise(&first.advice, next.flow);
		/* Only a confirm helps against an undo, so that comes last. */
		if (first.flow && (!first.is_undone || next.is_undone))
			continue;
		next.advice = first.advice;
		first = next;
	}
	if (first.flow)
		return say_refused(session, &first, "nothing was changed", reason);
	if (guard && change && !change->was_void && !change_find_void(session->store, guard, &rule))
		reason_set(&session->voided, 0, CHANGE_VOID, rule_format(&rule, text));
	return 0;
}

/* ---- what a list leaves out ---- */

void change_leave_out(struct change_equal *equal, struct rule rule, __u64 *count, const struct reason *why)
{
	const size_t at = rule_set_find(equal->wanted, &rule);

	rule.timeout_ms = -1;
	if (at < equal->wanted->count)
		rule_set_get(equal->wanted, at, &rule);
	if (count)
		*count -= MIN(*count, 1);
	equal->left_out.count++;
	if (equal->leave)
		equal->leave(equal->context, &rule, why);
}

static void leave_out(struct session *session, struct change_equal *equal, struct refusal *refusal,
		      const struct rule *rule, __u64 *count, const char *outcome)
{
	struct change_left_out *left_out = &equal->left_out;
	char who[BLOCKER_BYTES];
	struct reason why;

	if (!*left_out->why.text)
		reason_set(&left_out->why, 0, "%s would block %s", blocker_text(&refusal->block, who),
			   refusal->flow->what);
	guard_advise(&left_out->advice, refusal->flow);
	say_refused(session, refusal, outcome, &why);
	change_leave_out(equal, *rule, count, &why);
}

/* Who wants the rule now; 0: it is not there, or has ended. */
static __u64 owners_of(struct session *session, const struct rule *rule)
{
	struct rule there = *rule;

	return store_get(session->store, &there) ? 0 : rule_owners_now(&there);
}

/* Puts back the pass rules of the flow that the list had, and has no more or not as long. How many there are; -errno. */
static int put_back_passes(struct session *session, struct change_equal *equal, struct refusal *refusal,
			   struct reason *reason)
{
	const struct rule *flow = &refusal->flow->flow;
	struct rule_set *passes = &equal->diff.passes;
	struct rule_diff *diff = &equal->diff;
	const size_t count = passes->count;
	int error = 0;

	passes->count = 0;
	for (size_t i = 0; i < count && !error; i++) {
		struct rule rule;

		rule_set_get(passes, i, &rule);
		if (!rule_covers(&rule, flow) && (flow->src_len || !guard_lets_in(&rule))) {
			passes->entries[passes->count++] = passes->entries[i];
			continue;
		}
		leave_out(session, equal, refusal, &rule,
			  rule_set_find(equal->wanted, &rule) < equal->wanted->count ? &diff->updated :
			  owners_of(session, &rule)                                  ? &diff->left :
										       &diff->removed,
			  "the pass rule stays");
		error = change_restore(session, &rule, reason);
	}
	return error ? error : (int)(count - passes->count);
}

/* Whether the blocker, or what is new of it, came with this change. */
static bool is_new(const struct change_equal *equal, const struct rule *blocker)
{
	const size_t at = rule_set_find(equal->wanted, blocker);

	return at < equal->wanted->count && !equal->is_back[at];
}

/* The new blocker becomes what it was, for all its owners. 1; -errno. */
static int take_back(struct session *session, struct change_equal *equal, struct refusal *refusal, bool is_trial,
		     struct reason *reason)
{
	const struct rule *blocker = &refusal->block.rule;
	const int error = change_restore(session, blocker, reason);
	const __u64 owners = owners_of(session, blocker);

	equal->is_back[rule_set_find(equal->wanted, blocker)] = true;
	if (!error && !is_trial)
		leave_out(session, equal, refusal, blocker, owners ? &equal->diff.updated : &equal->diff.added,
			  owners >> session->owner & 1 ? "it stays as it was" : "it is left out");
	return error ? error : 1;
}

/* The list gives up a blocker that it had before. 1; 0: it does not have it; -errno. */
static int give_up(struct session *session, struct change_equal *equal, struct refusal *refusal, struct reason *reason)
{
	const struct rule *blocker = &refusal->block.rule;
	struct rule_diff *diff = &equal->diff;
	enum store_deleted deleted;
	const int error = change_give_up(session, blocker, &deleted, reason);

	if (error || deleted == STORE_NO_SUCH_RULE)
		return error;
	++*(deleted == STORE_DELETED ? &diff->removed : &diff->left);
	leave_out(session, equal, refusal, blocker, equal->is_entries ? NULL : &diff->kept, "it is left out");
	return 1;
}

static int leave_out_for(struct session *session, struct doors (*doors)[2], size_t flow, struct change_equal *equal,
			 bool is_trial, struct reason *reason)
{
	struct refusal refusal = {};
	const struct rule *blocker = &refusal.block.rule;
	bool is_first = true;
	int next = 1; /* more than 0: something has changed */

	guard_advise(&refusal.advice, &session->guard->flows[flow]);
	while (next > 0) {
		bool may_go;

		next = store_unread_reason(newly_blocks(session, *doors, flow, &refusal), reason);
		if (next || refusal.block.by == QUERY_NOTHING)
			break;
		/* A rule wider than any network of such hosts is a mistake, and the list may have more mistakes. */
		may_go = refusal.block.by == QUERY_RULE && MAX(blocker->src_len, blocker->dst_len) >= equal->prefix_min;
		if (may_go && is_new(equal, blocker)) {
			next = take_back(session, equal, &refusal, is_trial, reason);
			continue;
		}
		next = is_first ? put_back_passes(session, equal, &refusal, reason) : 0;
		is_first = false;
		if (next > 0)
			doors_close(doors); /* one of these may be a door */
		else if (!next && may_go && !is_trial)
			next = give_up(session, equal, &refusal, reason);
	}
	return next;
}

int change_leave_out_blockers(struct session *session, struct change_equal *equal, bool is_trial, struct reason *reason)
{
	CLOSED_BY(doors_close) struct doors doors[2] = {};
	int error = 0;

	for (size_t i = 0; session->guard && i < session->guard->count && !error; i++)
		error = leave_out_for(session, &doors, i, equal, is_trial, reason);
	return error;
}
