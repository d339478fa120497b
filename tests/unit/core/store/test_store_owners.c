// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Random changes of the owners of rules, compared with a model. */
#include "unit/lists_fixture.h"
#include "change/change.h"

#define MODEL_RULES 40
#define MODEL_OWNERS 4 /* the operator and three lists */
#define MODEL_STEPS 300
#define MODEL_CHANGES 10 /* in each step */

struct model {
	__s64 now;
	struct model_rule {
		bool is_there;
		bool permanent[MODEL_OWNERS], timed[MODEL_OWNERS];
		__s64 ends; /* for those in `timed` */
	} rules[MODEL_RULES];
};

static bool any(const bool owners[MODEL_OWNERS])
{
	return owners[0] || owners[1] || owners[2] || owners[3];
}

static void model_forget_ended(const struct model *model, struct model_rule *rule)
{
	if (rule->ends <= model->now)
		memset(rule->timed, 0, sizeof(rule->timed));
}

static int model_put(const struct model *model, struct model_rule *rule, unsigned int owner, __s64 timeout_ms)
{
	const bool was_there = rule->is_there, was_for_good = any(rule->permanent);

	if (rule->permanent[owner])
		return STORE_UNCHANGED;
	model_forget_ended(model, rule);
	rule->timed[owner] = false;
	if (!timeout_ms) {
		rule->permanent[owner] = true;
	} else {
		if (!any(rule->timed) || rule->ends < model->now + timeout_ms)
			rule->ends = model->now + timeout_ms;
		rule->timed[owner] = true;
	}
	rule->is_there = true;
	return !was_there ? STORE_ADDED : was_for_good ? STORE_NEW_OWNER : STORE_NEW_END;
}

static int model_give_up(const struct model *model, struct model_rule *rule, unsigned int owner)
{
	if (!rule->permanent[owner] && !rule->timed[owner])
		return STORE_NO_SUCH_RULE;
	rule->permanent[owner] = rule->timed[owner] = false;
	model_forget_ended(model, rule);
	if (any(rule->permanent) || any(rule->timed))
		return STORE_STILL_WANTED;
	rule->is_there = false;
	return STORE_DELETED;
}

static int model_del(struct model_rule *rule)
{
	const bool was_there = rule->is_there;

	*rule = (struct model_rule){};
	return was_there ? STORE_DELETED : STORE_NO_SUCH_RULE;
}

static struct rule numbered(unsigned int number)
{
	struct rule rule = rule_of("10.0.0.0");

	rule.src.byte[3] = number;
	return rule;
}

struct change {
	enum { CHANGE_DEL, CHANGE_GIVE_UP, CHANGE_REPLACE, CHANGE_CLEAR, CHANGE_PUT } kind;
	unsigned int number, owner;
	__s64 timeout_ms;
	__u64 wanted; /* CHANGE_REPLACE: a bit for each rule that `owner` has then */
};

static struct change random_change(void)
{
	static const int kinds[] = { CHANGE_DEL, CHANGE_GIVE_UP, CHANGE_GIVE_UP, CHANGE_GIVE_UP };
	const unsigned int kind = below(8);

	return (struct change){ .kind = kind < 4 ? kinds[kind] : CHANGE_PUT,
				.number = below(MODEL_RULES),
				.owner = below(MODEL_OWNERS),
				.timeout_ms = below(2) * (1 + below(100)) * CLOCK_SECOND,
				.wanted = (__u64)below(1 << 20) << 20 | below(1 << 20) };
}

static int model_change(struct model *model, const struct change *change)
{
	struct model_rule *rule = &model->rules[change->number];

	switch (change->kind) {
	case CHANGE_DEL:
		return model_del(rule);
	case CHANGE_GIVE_UP:
		return model_give_up(model, rule, change->owner);
	case CHANGE_REPLACE:
		for (unsigned int i = 0; i < MODEL_RULES; i++) {
			const bool is_wanted = change->wanted >> i & 1;

			rule = &model->rules[i];
			if (is_wanted && rule->permanent[change->owner] && !change->timeout_ms)
				continue;
			model_give_up(model, rule, change->owner);
			if (is_wanted)
				model_put(model, rule, change->owner, change->timeout_ms);
		}
		return 0;
	case CHANGE_CLEAR:
		memset(model->rules, 0, sizeof(model->rules));
		return 0;
	default:
		return model_put(model, rule, change->owner, change->timeout_ms);
	}
}

/* As change_make_equal() does it: of both values of a rule, the one in force is compared. */
static int replace(struct fixture *f, const struct change *change)
{
	const __u64 bit = 1ULL << change->owner;
	struct rule_set wanted = {};
	enum store_added added;

	for (unsigned int i = 0; i < MODEL_RULES; i++) {
		struct rule rule = numbered(i);

		rule.timeout_ms = change->timeout_ms;
		if (change->wanted >> i & 1)
			assert_int_equal(rule_set_add(&wanted, &rule), 0);
	}
	assert_int_equal(store_replace_undone(f->store, change->owner, false, &wanted), 0);
	for (unsigned int i = 0; i < MODEL_RULES; i++) {
		struct rule rule = numbered(i), present = rule;
		const bool is_there = !store_get(f->store, &present);

		rule.timeout_ms = change->timeout_ms;
		if (!(change->wanted >> i & 1) && is_there)
			give_up_rule(f->store, &rule, change->owner);
		else if (change->wanted >> i & 1 &&
			 !(is_there && present.owners.permanent & bit && !change->timeout_ms))
			assert_int_equal(store_put(f->store, &rule, change->owner, bit, &added), 0);
	}
	rule_set_close(&wanted);
	return 0;
}

static int store_change(struct fixture *f, const struct change *change)
{
	struct rule rule = numbered(change->number);

	rule.timeout_ms = change->timeout_ms;
	switch (change->kind) {
	case CHANGE_DEL:
		return del_rule(f->store, &rule);
	case CHANGE_GIVE_UP:
		return give_up_rule(f->store, &rule, change->owner);
	case CHANGE_REPLACE:
		return replace(f, change);
	case CHANGE_CLEAR:
		return store_clear(f->store);
	default:
		return put_rule_for(f->store, &rule, change->owner);
	}
}

static void change_at_random(struct fixture *f, struct model *model)
{
	const struct change change = random_change();

	assert_int_equal(store_change(f, &change), model_change(model, &change));
}

static void is_as_model(struct fixture *f, const struct model *model)
{
	const struct store_lists lists = lists_of(f);
	__u64 counts[MODEL_OWNERS] = {}, timed = 0, there = 0;

	for (unsigned int i = 0; i < MODEL_RULES; i++) {
		const struct model_rule *expected = &model->rules[i];
		const __s64 left = expected->ends - model->now;
		struct rule rule = numbered(i);
		int error = store_get(f->store, &rule);

		assert_int_equal(error, expected->is_there ? 0 : -ENOENT);
		there += !error;
		for (unsigned int k = 0; k < MODEL_OWNERS && !error; k++) {
			const bool has_it = expected->permanent[k] || (expected->timed[k] && left > 0);

			assert_int_equal(rule_owners_now(&rule) >> k & 1, has_it);
			counts[k] += expected->permanent[k] || expected->timed[k];
		}
		/* A rule that was put back after its end may have ended a millisecond earlier. */
		if (!error && (any(expected->permanent) || left > 0))
			assert_int_equal(rule.timeout_ms, any(expected->permanent) ? 0 : left);
		else if (!error)
			assert_true(rule.timeout_ms < 0);
		timed += !error && rule.timeout_ms;
	}
	for (unsigned int k = 1; k < MODEL_OWNERS; k++)
		assert_int_equal(lists.list[k].rules, counts[k]);
	assert_int_equal(info_of(f).rules, there);
	assert_int_equal(info_of(f).keys, there);
	assert_int_equal(info_of(f).timed, timed);
}

static void restore(struct fixture *f, unsigned int number)
{
	const struct rule rule = numbered(number);
	enum store_added added;

	for (unsigned int k = 0; k < MODEL_OWNERS; k++)
		give_up_rule(f->store, &rule, k);
	assert_int_equal(store_restore(f->store, &rule, &added), 0);
}

/*
 * Others change the rules, and also the rules that an undo of the pending change brings back. Some are taken back, but
 * deletions have no value as undone.
 */
static void change_meanwhile(struct fixture *f, struct model *now, struct model *undone)
{
	const struct model was_now = *now, was_undone = *undone;
	__u64 deleted = 0;

	begin(f);
	for (int i = below(MODEL_CHANGES); i > 0; i--) {
		struct change change = random_change();

		if (!below(20))
			change.kind = below(2) ? CHANGE_CLEAR : CHANGE_REPLACE;
		assert_int_equal(store_change(f, &change), model_change(now, &change));
		model_change(undone, &change);
		deleted |= change.kind == CHANGE_CLEAR ? ~0ULL : change.kind == CHANGE_DEL ? 1ULL << change.number : 0;
	}
	for (unsigned int i = below(MODEL_RULES); i < MODEL_RULES; i++) {
		if (deleted >> i & 1)
			continue;
		restore(f, i);
		now->rules[i] = was_now.rules[i];
		undone->rules[i] = was_undone.rules[i];
	}
	end(f);
	is_as_model(f, now);
}

/* Sometimes a change is pending, and is undone. */
static void undo_at_random(struct fixture *f, struct model *model)
{
	struct model *after = malloc(sizeof(*after));

	assert_non_null(after);
	*after = *model;
	begin_pending(f, CLOCK_HOUR);
	for (int i = below(100); i > 0; i--)
		change_at_random(f, after);
	end(f);
	is_as_model(f, after);
	for (int i = below(3); i > 0; i--)
		change_meanwhile(f, after, model);
	free(after);
	undo(f);
}

/* Older versions stored characters that change the direction of text. Such a rule is read, without them. */
TIME_TEST(test_a_comment_of_older_versions)
{
	struct rule rule = rule_of("192.0.2.1");

	memcpy(rule.comment, (const __u8[]){ 'a', 0xe2, 0x80, 0xae, 'b', 0 }, 6);
	begin(f);
	assert_int_equal(put_rule_for(f->store, &rule, STORE_BY_HAND), 0);
	is_as(f, "192.0.2.1", 0, "a???b");
	store_abort(f->store);
}

/* The comment of the first owner, as long as the rule has an owner. */
TIME_TEST(test_the_comment_of_the_first_owner_counts)
{
	struct rule rule = rule_of("192.0.2.1 timeout 1h comment first");
	unsigned int list;

	begin(f);
	assert_int_equal(store_list_open(f->store, "a", "-", &list), 0);
	assert_int_equal(put_rule_for(f->store, &rule, STORE_BY_HAND), 0);
	rule = rule_of("192.0.2.1 timeout 2h comment second");
	assert_int_equal(put_rule_for(f->store, &rule, list), STORE_NEW_END);
	is_as(f, "192.0.2.1", 2 * CLOCK_HOUR, "first");
	assert_int_equal(give_up_rule(f->store, &rule, STORE_BY_HAND), STORE_STILL_WANTED);
	assert_int_equal(put_rule_for(f->store, &rule, list), STORE_NEW_END);
	is_as(f, "192.0.2.1", 2 * CLOCK_HOUR, "second");
	store_abort(f->store);
}

/* While a change is pending, too: what is left after its undo has the comment of the first owner. */
TIME_TEST(test_the_undo_keeps_the_comment_of_the_first_owner)
{
	const struct rule first = rule_of("192.0.2.1 timeout 1h comment first"),
			  later = rule_of("192.0.2.1 timeout 2h comment second");
	unsigned int list, other;

	begin(f);
	list = open_list(f, "a");
	other = open_list(f, "b");
	assert_int_equal(put_rule_for(f->store, &first, STORE_BY_HAND), 0);
	assert_int_equal(put_rule_for(f->store, &first, list), STORE_NEW_END);
	end(f);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(put_rule_for(f->store, &first, other), STORE_NEW_END);
	end(f);
	begin(f);
	assert_int_equal(put_rule_for(f->store, &later, list), STORE_NEW_END);
	end(f);
	undo(f);
	is_as(f, "192.0.2.1", 2 * CLOCK_HOUR, "first");
}

TIME_TEST(test_random_changes_match_the_model)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	begin(f);
	for (unsigned int k = 1; k < MODEL_OWNERS; k++)
		assert_int_equal(open_list(f, (char[]){ 'a' + k, 0 }), k);
	end(f);
	for (int step = 0; step < MODEL_STEPS; step++) {
		if (step % 2) {
			const __s64 passed = below(30) * CLOCK_SECOND;

			clock_advance(passed);
			model->now += passed;
			begin(f);
			end(f);
		}
		begin(f);
		for (int i = 0; i < MODEL_CHANGES; i++)
			change_at_random(f, model);
		is_as_model(f, model);
		end(f);
		is_as_model(f, model);
		if (step % 10 == 9) {
			undo_at_random(f, model);
			is_as_model(f, model);
		}
	}
	free(model);
}

TEST_MAIN(seed, NULL)
