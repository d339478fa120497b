// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The value of a rule in the database: its rate, its owners, its deadline and its comment. The value of a permanent
 * rule without a rate that only the operator wants is the comment alone. Other values start with a byte that no comment
 * starts with. Its bits say which numbers follow: VALUE_RATED: the rate; VALUE_TIMED: the deadline; VALUE_OWNED: the
 * permanent owners, and with VALUE_TIMED also the owners with the deadline. Without VALUE_OWNED the operator is the only
 * owner.
 */
#include <errno.h>
#include <string.h>

#include "base/safe_text.h"
#include "store/internal.h"

#define VALUE_TIMED 0x01
#define VALUE_OWNED 0x02
#define VALUE_RATED 0x04
#define VALUE_BITS (VALUE_TIMED | VALUE_OWNED | VALUE_RATED)

#define BY_HAND (1ULL << STORE_BY_HAND)

/* ---- bytes ---- */

static bool is_by_hand(const struct store_owners *owners)
{
	return (owners->permanent == BY_HAND && !owners->timed) || (!owners->permanent && owners->timed == BY_HAND);
}

MDB_val store_value_write(const struct store_value *value, __u8 bytes[STORE_VALUE_BYTES])
{
	const struct store_owners *owners = &value->owners;
	const __u8 head = (owners->timed ? VALUE_TIMED : 0) | (is_by_hand(owners) ? 0 : VALUE_OWNED) |
			  (value->rate ? VALUE_RATED : 0);
	__u8 *to = bytes;

	if (head)
		*to++ = head;
	if (value->rate)
		to = mempcpy(to, &value->rate, sizeof(value->rate));
	if (head & VALUE_TIMED)
		to = mempcpy(to, &owners->deadline_ms, sizeof(owners->deadline_ms));
	if (head & VALUE_OWNED)
		to = mempcpy(to, &owners->permanent, sizeof(owners->permanent));
	if (head & VALUE_TIMED && head & VALUE_OWNED)
		to = mempcpy(to, &owners->timed, sizeof(owners->timed));
	to = mempcpy(to, value->comment, strlen(value->comment));
	return (MDB_val){ to - bytes, bytes };
}

static const __u8 *take_number(const __u8 *from, void *number)
{
	memcpy(number, from, sizeof(__u64));
	return from + sizeof(__u64);
}

int store_value_read(const struct store *store, const MDB_val *bytes, struct store_value *value)
{
	const __u8 *from = bytes->mv_data;
	const __u8 head = bytes->mv_size && from[0] <= VALUE_BITS ? from[0] : 0;
	const bool is_timed = head & VALUE_TIMED, is_owned = head & VALUE_OWNED, is_rated = head & VALUE_RATED;
	const size_t numbers = is_rated + is_timed + is_owned + (is_timed && is_owned);
	const size_t head_bytes = !!head + numbers * sizeof(__u64);
	const size_t length = bytes->mv_size - head_bytes;
	struct store_owners *owners = &value->owners;

	if (bytes->mv_size < head_bytes || length >= RULE_COMMENT_BYTES)
		return -EBADMSG;
	*owners = (struct store_owners){ .permanent = is_timed || is_owned ? 0 : BY_HAND };
	value->rate = 0;
	*(char *)mempcpy(value->comment, from + head_bytes, length) = '\0';
	if (length &&
	    (strlen(value->comment) != length || !rule_is_plain(value->comment) || !rule_is_utf8(value->comment)))
		return -EBADMSG;
	if (!head)
		return 0;
	from++;
	if (is_rated)
		from = take_number(from, &value->rate);
	if (is_timed)
		from = take_number(from, &owners->deadline_ms);
	if (is_owned)
		from = take_number(from, &owners->permanent);
	if (is_timed && is_owned)
		take_number(from, &owners->timed);
	if (is_timed && !is_owned)
		owners->timed = BY_HAND;
	/* Whether store_value_write() could have written this. */
	if (is_rated && !value->rate)
		return -EBADMSG;
	if (is_timed && (owners->deadline_ms <= 0 || owners->deadline_ms > STORE_TIME_MAX_MS))
		return -EBADMSG;
	if (owners->permanent & owners->timed || !owners->timed == is_timed || is_by_hand(owners) == is_owned ||
	    !store_owners_all(owners))
		return -EBADMSG;
	return store->write && store_owners_all(owners) & ~(store->lists.known | BY_HAND) ? -EBADMSG : 0;
}

/* ---- rules ---- */

/*
 * The time until a deadline, for struct rule. There, 0 means never. So a rule that ends this millisecond counts as
 * ended a millisecond ago. No rule lasts longer than the longest timeout.
 */
static __s64 left_ms(const struct store *store, __s64 deadline_ms)
{
	const __s64 left = deadline_ms - store->clock.now_ms;

	if (!deadline_ms)
		return 0;
	return left > RULE_TIMEOUT_MAX_S * 1000LL ? RULE_TIMEOUT_MAX_S * 1000LL : left ? left : -1;
}

struct store_value store_value_from_rule(const struct store *store, const struct rule *rule)
{
	const struct rule_owners *from = &rule->owners;
	const __s64 deadline_ms = from->timed ? store->clock.now_ms + from->timed_ms : 0;
	struct store_value value = { { from->permanent, from->timed, deadline_ms }, rule->rate, "" };

	strcpy(value.comment, rule->comment);
	return value;
}

int store_value_to_rule(const struct store *store, const MDB_val *bytes, struct rule *rule)
{
	struct store_value value;
	int error = store_value_read(store, bytes, &value);

	if (error)
		return error;
	rule->owners = (struct rule_owners){ value.owners.permanent, value.owners.timed,
					     left_ms(store, value.owners.deadline_ms) };
	rule->rate = value.rate;
	rule->timeout_ms = left_ms(store, store_owners_end(&value.owners));
	if (!rule_has_sound_rate(rule))
		return -EBADMSG;
	strcpy(rule->comment, value.comment);
	/* Older versions stored what rule_parse() replaces now. */
	text_clean(rule->comment);
	return 0;
}

int store_rule_read(const struct store *store, const MDB_val *key, const MDB_val *value, struct rule *rule)
{
	int error = rule_decode(key->mv_data, key->mv_size, rule);

	if (!error && !rule_is_canonical(rule))
		error = -EBADMSG;
	return error ? error : store_value_to_rule(store, value, rule);
}

/* ---- the owners of a rule: who wants it, permanently or until a deadline ---- */

__u64 store_owners_all(const struct store_owners *owners)
{
	return owners->permanent | owners->timed;
}

__s64 store_owners_end(const struct store_owners *owners)
{
	return owners->permanent ? 0 : owners->deadline_ms;
}

/* Removes the owners whose deadline has passed. */
static void drop_ended(struct store_owners *owners, __s64 now_ms)
{
	if (owners->timed && owners->deadline_ms > now_ms)
		return;
	owners->timed = 0;
	owners->deadline_ms = 0;
}

__u64 store_owners_now(const struct store_owners *owners, __s64 now_ms)
{
	return owners->permanent | (owners->deadline_ms > now_ms ? owners->timed : 0);
}

/*
 * Whether a rule gets the comment of `owner`, who adds it. The first comment stays. But if no other owner is left, a
 * ban with a timeout may bring a new one; and a rule of others that has ended begins anew, even without a comment.
 */
static bool takes_comment(const struct store_owners *owners, __u64 owner, const char *comment, __s64 now_ms)
{
	const __u64 present = store_owners_now(owners, now_ms);

	if (!present && !(store_owners_all(owners) & owner))
		return true;
	return *comment && (!present || (!owners->permanent && !(present & ~owner)));
}

/* If others want the rule, too, the lower rate stays; or the present one, if one is in packets and the other in bits. */
static __u64 rate_with(const struct store_value *value, __u64 owner, __u64 wanted, __s64 now_ms)
{
	if (!(store_owners_now(&value->owners, now_ms) & ~owner))
		return wanted;
	return !((value->rate ^ wanted) & RULE_RATE_BITS) && wanted < value->rate ? wanted : value->rate;
}

static void add_owner(struct store_owners *owners, __u64 owner, __s64 deadline_ms, __s64 now_ms)
{
	drop_ended(owners, now_ms);
	if (owners->permanent & owner)
		return;
	owners->timed &= ~owner;
	if (!owners->timed)
		owners->deadline_ms = 0;
	if (!deadline_ms) {
		owners->permanent |= owner;
		return;
	}
	owners->timed |= owner;
	if (owners->deadline_ms < deadline_ms)
		owners->deadline_ms = deadline_ms;
}

/* ---- the changes of a value ---- */

static bool give_up(struct store_value *value, __u64 owners, __s64 now_ms)
{
	if (owners && !(store_owners_all(&value->owners) & owners))
		return false;
	value->owners.permanent &= ~owners;
	value->owners.timed &= ~owners;
	drop_ended(&value->owners, now_ms);
	if (!store_owners_all(&value->owners))
		*value = (struct store_value){};
	return true;
}

static bool put(struct store_value *value, __u64 owner, const struct rule *rule, __s64 now_ms)
{
	const __u64 rate = rate_with(value, owner, rule->rate, now_ms);

	if (value->owners.permanent & owner && rate == value->rate)
		return false;
	if (takes_comment(&value->owners, owner, rule->comment, now_ms))
		strcpy(value->comment, rule->comment);
	value->rate = rate;
	add_owner(&value->owners, owner, rule->timeout_ms ? now_ms + rule->timeout_ms : 0, now_ms);
	return true;
}

bool store_value_change(const struct store *store, const struct store_edit *edit, struct store_value *value)
{
	const __s64 now_ms = store->clock.now_ms;
	struct store_value before = *value;

	if (!edit->put)
		return give_up(value, edit->gives_up, now_ms);
	if (!edit->gives_up)
		return put(value, edit->owner, edit->put, now_ms);
	/* Who has ended beside the owner makes no difference. */
	drop_ended(&before.owners, now_ms);
	give_up(value, edit->gives_up, now_ms);
	if (edit->owner)
		put(value, edit->owner, edit->put, now_ms);
	else
		*value = store_value_from_rule(store, edit->put);
	return memcmp(&before.owners, &value->owners, sizeof(before.owners)) || before.rate != value->rate ||
	       strcmp(before.comment, value->comment);
}
