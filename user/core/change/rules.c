// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Adds and deletes the rules of a change in the store. For the tables it only notes keys: see entries.c. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/advice.h"
#include "change/internal.h"

/* ---- lists ---- */

int change_say_no_list(const char *filter, const char *list, struct reason *reason)
{
	return reason_set(reason, -ESRCH, "no list '%s'; see xdp-cuckoo%s lists", list, session_name_option(filter));
}

int change_say_too_many_lists(struct session *session, struct reason *reason)
{
	struct store_lists lists = {};
	int deleted = STORE_LISTS_MAX, error = store_lists(session->store, &lists);

	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		deleted -= lists.list[i].name[0] != '\0';
	if (deleted)
		return reason_set(reason, -EUSERS,
				  "there are %d lists, with %d that the undo of an unconfirmed change would bring back; do this "
				  "without --confirm, or after xdp-cuckoo%s confirm",
				  STORE_LISTS_MAX, deleted, session_name_option(session->name));
	return reason_set(reason, -EUSERS,
			  "there are %d lists already; delete one that nothing feeds: " ADVICE_DELETE_LIST,
			  STORE_LISTS_MAX, session_name_option(session->name), "NAME");
}

int change_open_list(struct session *session, const char *name, const char *source, struct reason *reason)
{
	int error;

	session->owner = STORE_BY_HAND;
	if (!name)
		return 0;
	error = store_list_open(session->store, name, source, &session->owner);
	if (error == -EUSERS)
		return change_say_too_many_lists(session, reason);
	return error ? change_unwritten_reason(error, reason) : 0;
}

int change_find_list(struct session *session, const char *name, struct reason *reason)
{
	struct store_lists lists;
	int error;

	session->owner = STORE_BY_HAND;
	if (!name)
		return 0;
	error = store_lists(session->store, &lists);
	if (error)
		return store_unread_reason(error, reason);
	session->owner = store_lists_find(&lists, name);
	return session->owner ? 0 : change_say_no_list(session->name, name, reason);
}

/* ---- adding ---- */

struct keying {
	struct session *session;
	const struct rule *rule;
	bool gains; /* the keys gain a rule or another end; else they lose a rule */
	struct reason *reason;
};

/* A key is new unless another rule has it, or this change has touched it. */
static int add_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct keying *keying = context;
	struct session *session = keying->session;
	struct key_rules state;
	int error;

	if (pending_keys_touched(&session->open_change->keys, key))
		return entries_touch(session, key, true, keying->reason);
	if (!is_shared)
		return entries_hold(session, key, keying->rule->timeout_ms, keying->reason);
	error = key_rules(session->store, store_shape_list(session->store), key, &state);
	if (error)
		return store_unread_reason(error, keying->reason);
	if (state.rules == 1)
		return entries_hold(session, key, keying->rule->timeout_ms, keying->reason);
	return entries_touch(session, key, true, keying->reason);
}

static int touch_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct keying *keying = context;

	/* Another rule of the key may end earlier: then the key belongs to the other part of a table. */
	return entries_touch(keying->session, key, keying->gains || (is_shared && filter_is_address(&key->shape)),
			     keying->reason);
}

static int say_too_many_kinds(const struct rule *rule, struct reason *reason)
{
	char text[RULE_TEXT_BYTES];

	return reason_set(reason, -E2BIG,
			  "'%s': %d kinds of rule (fields and prefix lengths) are in use for its family, and there is room "
			  "for no more; use a prefix length that other rules use",
			  rule_format(rule, text), ABI_SHAPES_MAX);
}

/* -E2BIG: the rules have more new rates than there is room for. */
static int check_rates(struct session *session, const struct rule *rules, size_t count, struct reason *reason)
{
	const size_t most = session->rates_max ? session->rates_max : ABI_RATES_MAX;
	char text[RULE_TEXT_BYTES];
	size_t rates, more = 0;
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		struct rule there;

		if (!(rules[i].fields & RULE_RATE))
			continue;
		there = rules[i];
		error = store_get(session->store, &there);
		if (error == -ENOENT)
			error = store_get_undone(session->store, &there);
		if (error != -ENOENT)
			continue;
		error = store_rates(session->store, most - ++more, &rates);
		if (!error && rates + more > most && session->rates_max)
			return reason_set(reason, -E2BIG,
					  "'%s': %zu rules have a rate, and the fleet leaves room for others",
					  rule_format(&rules[i], text), rates);
		if (!error && rates + more > most)
			return reason_set(reason, -E2BIG,
					  "'%s': there are %d rules with a rate%s, and there is room for no more; delete some of "
					  "them first, or leave the rate out",
					  rule_format(&rules[i], text), ABI_RATES_MAX,
					  store_has_earlier_pending(session->store) ?
						  ", with those that the undo of the pending change would bring back" :
						  "");
	}
	return store_unread_reason(error, reason);
}

static bool is_of_kind(const struct rule *rule, const struct rule *other)
{
	return rule->family == other->family && rule->action == other->action && rule->fields == other->fields &&
	       rule->src_len == other->src_len && rule->dst_len == other->dst_len &&
	       !memcmp(&rule->details, &other->details, sizeof(rule->details));
}

/* The shapes that the rules so far need, now and when the pending change is undone. */
struct kinds {
	struct shape_list now, undone;
};

static int add_kind(struct session *session, struct kinds *kinds, const struct rule *rule,
		    const struct rule_shape *shape, struct reason *reason)
{
	char text[RULE_TEXT_BYTES];

	if (shape_list_add(&kinds->now, shape, 1) ||
	    (kinds->now.must_plan && any_table_takes_keys(session) && !session->open_change->is_cleared &&
	     !change_can_replace_all(session)))
		return say_too_many_kinds(rule, reason);
	if (store_has_earlier_pending(session->store) && shape_list_add(&kinds->undone, shape, 1))
		return reason_set(reason, -E2BIG,
				  "'%s' needs the room of a kind of rule that the undo of the pending change would "
				  "bring back; confirm that change first: xdp-cuckoo%s confirm",
				  rule_format(rule, text), session_name_option(session->name));
	return 0;
}

int change_check_kinds(struct session *session, const struct rule *rules, size_t count, struct reason *reason)
{
	const struct shape_list *list = store_shape_list(session->store);
	struct rule_key keys[RULE_KEYS_MAX];
	struct kinds kinds;
	bool is_new = false; /* a rule is of a kind that is not in use; then `kinds` is set */
	int error = check_rates(session, rules, count, reason);

	for (size_t i = 0; i < count && !error; i++) {
		/* The rules of a list are mostly of one kind, and to make keys of them takes longer. */
		if (i && !is_new && is_of_kind(&rules[i], &rules[i - 1]))
			continue;
		for (size_t k = rule_keys(&rules[i], keys); k-- > 0 && !error;) {
			if (!is_new && shape_list_find(list, &keys[k].shape))
				continue;
			if (!is_new) {
				kinds.now = *list;
				error = store_unread_reason(store_undone_shapes(session->store, &kinds.undone), reason);
				is_new = true;
			}
			if (!error)
				error = add_kind(session, &kinds, &rules[i], &keys[k].shape, reason);
		}
	}
	return error;
}

/* What `owners` wanted before counts for nothing. `put_back`: instead, the rule comes back as its owners had it. */
static int add(struct session *session, const struct rule *rule, __u64 owners,
	       int (*put_back)(struct store *store, const struct rule *rule, enum store_added *added),
	       enum store_added *added, struct reason *reason)
{
	struct keying keying = { session, rule, true, reason };
	int error = change_extend_deadline_by_rule(session, reason);

	if (!error && !put_back)
		error = change_check_kinds(session, rule, 1, reason);
	if (error)
		return error;
	error = put_back ? put_back(session->store, rule, added) :
			   store_put(session->store, rule, session->owner, owners, added);
	if (!error && !put_back && session->notes_adder && session->owner == STORE_BY_HAND &&
	    *added != STORE_UNCHANGED) {
		const struct store_addition addition = { .second = time(NULL), .user = session->adder };

		error = store_addition_put(session->store, rule, &addition);
	}
	if (error)
		return error == -E2BIG ? say_too_many_kinds(rule, reason) : change_unwritten_reason(error, reason);
	if (store_shape_list(session->store)->must_plan && any_table_takes_keys(session))
		change_replace_all(session);
	if (!any_table_takes_keys(session))
		return 0;
	if (*added == STORE_ADDED)
		error = keys_each(store_shape_list(session->store), rule, add_key, &keying);
	else if (*added == STORE_NEW_END)
		error = keys_each(store_shape_list(session->store), rule, touch_key, &keying);
	return error;
}

int change_add(struct session *session, const struct rule *rule, enum store_added *added, struct reason *reason)
{
	return add(session, rule, 0, NULL, added, reason);
}

int change_set(struct session *session, const struct rule *rule, bool is_alone, struct reason *reason)
{
	enum store_added ignored;

	return add(session, rule, is_alone ? STORE_ALL_OWNERS : 1ULL << session->owner, NULL, &ignored, reason);
}

int change_put_back(struct session *session, const struct rule *rule, struct reason *reason)
{
	enum store_added ignored;

	return add(session, rule, 0, store_put_back, &ignored, reason);
}

/* ---- deleting ---- */

static int del(struct session *session, const struct rule *rule, __u64 owners, enum store_deleted *deleted,
	       struct reason *reason)
{
	struct keying keying = { session, rule, false, reason };
	struct rule found = *rule;
	int error = change_extend_deadline_by_rule(session, reason);

	if (error)
		return error;
	error = store_get(session->store, &found);
	/* First: the keys depend on the shapes, which may disappear with the rule. */
	if (!error && any_table_takes_keys(session))
		error = keys_each(store_shape_list(session->store), rule, touch_key, &keying);
	/* Even if the rule does not exist: else the undo of a pending change could bring it back. */
	if (!error || error == -ENOENT)
		error = store_give_up(session->store, rule, owners, deleted);
	/* What the others want may end at another time. */
	keying.gains = true;
	if (!error && owners && *deleted == STORE_STILL_WANTED && any_table_takes_keys(session))
		error = keys_each(store_shape_list(session->store), rule, touch_key, &keying);
	return error ? reason_set(reason, error, "cannot delete: %s", reason_of_write(error)) : 0;
}

int change_give_up(struct session *session, const struct rule *rule, enum store_deleted *deleted, struct reason *reason)
{
	const int error = del(session, rule, 1ULL << session->owner, deleted, reason);

	/* Nobody knows what rates the others gave: of all, the store keeps the lowest. */
	if (!error && *deleted == STORE_STILL_WANTED && rule->fields & RULE_RATE)
		session->kept_rates++;
	return error;
}

int change_del(struct session *session, const struct rule *rule, enum store_deleted *deleted, struct reason *reason)
{
	return del(session, rule, STORE_ALL_OWNERS, deleted, reason);
}

int change_restore(struct session *session, const struct rule *rule, struct reason *reason)
{
	enum store_deleted deleted;
	enum store_added added;
	int error = del(session, rule, 1ULL << session->owner, &deleted, reason);

	return error ? error : add(session, rule, 0, store_restore, &added, reason);
}

static int touch_rule(const struct rule *rule, void *context)
{
	struct keying *keying = context;

	keying->rule = rule;
	return keys_each(store_shape_list(keying->session->store), rule, touch_key, keying);
}

/* To refill a table is faster. But in place it takes the keys of pass rules and of drop rules away in no order. */
int change_clear(struct session *session, struct reason *reason)
{
	struct keying keying = { .session = session, .reason = reason };
	const bool is_refilled = change_can_replace_all(session);
	int error = is_refilled ? 0 : store_each(session->store, touch_rule, &keying);

	if (!error)
		error = store_clear(session->store);
	session->open_change->is_cleared = !error && !is_refilled;
	for (size_t i = 0; i < session->filters_count && is_refilled; i++)
		filter_change_refill(&session->filters[i]);
	return error ? reason_set(reason, error, "cannot delete: %s", reason_of_write(error)) : 0;
}

/* ---- the end of rules ---- */

struct expiring {
	struct session *session;
	__u64 *count;
	struct reason *reason;
};

static int expire_rule(const struct rule *rule, void *context)
{
	const struct expiring *expiring = context;
	enum store_deleted ignored;

	*expiring->count += rule->timeout_ms != 0;
	return del(expiring->session, rule, 0, &ignored, expiring->reason);
}

int change_expire(struct session *session, __u64 *count, struct reason *reason)
{
	struct expiring expiring = { session, count, reason };
	int error;

	*count = 0;
	reason->text[0] = '\0';
	error = store_each_expired(session->store, expire_rule, &expiring);
	return error && !reason->text[0] ? store_unread_reason(error, reason) : error;
}
