// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an import is checked for: what it changes in the store, rules that are rarely meant, and limits of lists from
 * elsewhere.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lists/internal.h"
#include "io/output.h"
#include "lists/list.h"

/* ---- with --replace ---- */

int import_compare(struct import *import, struct session *session, struct store *store, unsigned int owner,
		   struct reason *reason)
{
	struct store_lists lists = {};
	int error = store ? store_lists(store, &lists) : 0;

	if (error)
		return store_unread_reason(error, reason);
	/* --replace without --list must not delete the rules of lists as a side effect. */
	for (size_t i = 1; i <= STORE_LISTS_MAX && !import->options->list_name && !import->options->is_forced; i++)
		if (lists.list[i].rules)
			return reason_set(reason, -EINVAL,
					  "--replace would also delete the rules of lists, as of '%s'; "
					  "nothing was changed; say --list NAME to replace one list, or --force",
					  lists.list[i].name);
	rule_diff_begin(&import->diff, &import->rules, 1ULL << owner, !import->options->list_name);
	if (session) {
		change_at_once(session);
		return change_compare(session, &import->diff, reason);
	}
	error = store ? store_each(store, rule_diff_visit, &import->diff) : 0;
	rule_diff_end(&import->diff);
	return error ? store_unread_reason(error, reason) : 0;
}

/* ---- without ---- */

bool import_has_twin(const struct import *import, size_t i, struct rule *twin)
{
	const struct rule_set *rules = &import->rules;

	rule_set_get(rules, i, twin);
	if (twin->action == RULE_PASS)
		return false;
	twin->action = twin->action == RULE_DROP ? RULE_MONITOR : RULE_DROP;
	/* Rules that differ only in their action are neighbours. */
	for (size_t j = i > 2 ? i - 2 : 0; j <= i + 2 && j < rules->count; j++)
		if (!rule_set_compare(rules, j, twin))
			return false;
	return true;
}

int import_count_twin(struct import *import, struct store *store, const struct rule *twin, unsigned int owner)
{
	struct rule present = *twin;
	int error = store_get(store, &present);
	bool is_others;

	if (error || !((present.owners.permanent | present.owners.timed) & 1ULL << owner))
		return error == -ENOENT ? 0 : error;
	is_others = rule_owners_now(&present) & ~(1ULL << owner);
	import->diff.removed += present.timeout_ms >= 0 && !is_others;
	import->diff.left += is_others;
	return 0;
}

void import_count_added(struct import *import, enum store_added added)
{
	import->diff.added += added == STORE_ADDED;
	import->diff.updated += added == STORE_NEW_END || added == STORE_NEW_OWNER;
	import->diff.kept += added == STORE_UNCHANGED;
}

/* The owner that the rules would get. A list that does not exist yet gets a free number. */
static int find_owner(const struct import *import, struct store *store, unsigned int *owner, struct reason *reason)
{
	const char *name = import->options->list_name;
	struct store_lists lists = {};
	int error = name && store ? store_lists(store, &lists) : 0;

	if (error)
		return store_unread_reason(error, reason);
	*owner = name ? store_lists_find(&lists, name) : STORE_BY_HAND;
	if (*owner || !name)
		return 0;
	if (!import->paths_count)
		return change_say_no_list(name, reason);
	for (*owner = 1; *owner <= STORE_LISTS_MAX && lists.list[*owner].name[0];)
		++*owner;
	return *owner > STORE_LISTS_MAX ? change_say_too_many_lists(reason) : 0;
}

int import_dry_run(struct import *import, struct store *store, struct reason *reason)
{
	unsigned int owner = STORE_BY_HAND;
	int error = find_owner(import, store, &owner, reason);

	if (error)
		return error;
	if (import->options->is_replace)
		return import_compare(import, NULL, store, owner, reason);
	for (size_t i = 0; i < import->rules.count; i++) {
		struct rule present;

		error = 0;
		if (store && import_has_twin(import, i, &present))
			error = import_count_twin(import, store, &present, owner);
		rule_set_get(&import->rules, i, &present);
		if (!error)
			error = store ? store_get(store, &present) : -ENOENT;
		if (error && error != -ENOENT)
			return store_unread_reason(error, reason);
		import_count_added(import, error                                    ? STORE_ADDED :
					   present.owners.permanent & 1ULL << owner ? STORE_UNCHANGED :
										      STORE_NEW_END);
	}
	return 0;
}

/* ---- warnings of rules that are rarely meant, before they block anything ---- */

#define DESTINATIONS_CHECKED 64

static void count(struct import_warning *warning, const struct rule *rule, const char *what)
{
	if (!warning->count++)
		rule_format(rule, warning->first);
	warning->what = what;
}

void import_warnings_check(struct import_warnings *warnings, const struct guard *guard, const struct rule *rule)
{
	const char *what = guard_special(rule);
	size_t i = 0;

	if (what) {
		while (i < IMPORT_WARNINGS_MAX - 1 && warnings->kinds[i].what && strcmp(warnings->kinds[i].what, what))
			i++;
		count(&warnings->kinds[i], rule, what);
	}
	/* Each check asks the kernel; a list of destinations elsewhere shows it early. */
	if (rule->dst_len && !*warnings->elsewhere && warnings->destinations++ < DESTINATIONS_CHECKED &&
	    guard_is_elsewhere(rule))
		rule_format(rule, warnings->elsewhere);
	if (guard->count && rule->action == RULE_DROP && guard_concerns(guard, rule))
		count(&warnings->blocking, rule, "");
}

void import_warnings_print(const struct import_warnings *warnings)
{
	const struct import_warning *blocking = &warnings->blocking;

	for (size_t i = 0; i < IMPORT_WARNINGS_MAX && warnings->kinds[i].count; i++) {
		const struct import_warning *kind = &warnings->kinds[i];

		output_note("rarely meant to be dropped: %s; %llu rule%s, the first is '%s'", kind->what,
			    (unsigned long long)kind->count, kind->count == 1 ? "" : "s", kind->first);
	}
	if (*warnings->elsewhere)
		output_note(GUARD_ELSEWHERE, warnings->elsewhere);
	if (blocking->count)
		output_note("%llu rule%s would block packets to or from this host, the first is '%s'; without "
			    "--force or pass rules the import is refused",
			    (unsigned long long)blocking->count, blocking->count == 1 ? "" : "s", blocking->first);
}

/* ---- how much of the Internet a list from elsewhere may hold ---- */

/*
 * Addresses that are not public: private, shared, loopback, link-local, for benchmarks, multicast and reserved ones. Public
 * IPv6 is 2000::/3. A place is an IPv4 address, or the first half of an IPv6 address.
 */
static const struct range {
	__u64 first, last;
} not_public[FLOW_FAMILIES][9] = {
	[FLOW_IPV4] = { { 0x00000000, 0x00ffffff },
			{ 0x0a000000, 0x0affffff },
			{ 0x64400000, 0x647fffff },
			{ 0x7f000000, 0x7fffffff },
			{ 0xa9fe0000, 0xa9feffff },
			{ 0xac100000, 0xac1fffff },
			{ 0xc0a80000, 0xc0a8ffff },
			{ 0xc6120000, 0xc613ffff },
			{ 0xe0000000, 0xffffffff } },
	[FLOW_IPV6] = { { 0, (1ULL << 61) - 1 }, { 1ULL << 62, ~0ULL } },
};

#define RANGES (sizeof(not_public[0]) / sizeof(not_public[0][0]))

static double count_public(enum flow_family family, __u64 first, __u64 last)
{
	double count = last - first + 1.;

	for (size_t i = 0; i < RANGES && not_public[family][i].last; i++) {
		const struct range *other = &not_public[family][i];
		const __u64 from = first > other->first ? first : other->first;
		const __u64 to = last < other->last ? last : other->last;

		count -= from <= to ? to - from + 1. : 0;
	}
	return count;
}

/*
 * One pass. In a sorted set, the rules of a family without a source come first, sorted by destination. The others are
 * sorted by source. A prefix is either within the one counted before, or behind it.
 */
int list_check_space(const struct rule_set *set, unsigned int space_max, struct reason *reason)
{
	static const char *const names[] = { [FLOW_IPV4] = "IPv4", [FLOW_IPV6] = "IPv6" };
	double covered[2 * FLOW_FAMILIES] = {};
	unsigned int before = 0;
	__u64 next = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct rule rule;
		unsigned int width, length, kind;
		__u64 first, last;

		rule_set_get(set, i, &rule);
		if (!rule.src_len && !rule.dst_len)
			continue; /* list_unfit() */
		kind = 2 * rule.family + (rule.src_len != 0);
		width = rule.family == FLOW_IPV4 ? 32 : 64;
		length = rule.src_len ? rule.src_len : rule.dst_len;
		first = be64toh(rule.src_len ? rule.src.word[0] : rule.dst.word[0]) >> (64 - width);
		last = first | (length < width ? ~0ULL >> (64 - width + length) : 0);
		if (kind == before && first < next)
			continue;
		covered[kind] += count_public(rule.family, first, last);
		before = kind;
		next = last + 1;
	}
	for (unsigned int kind = 0; kind < 2 * FLOW_FAMILIES; kind++) {
		const double share =
			100 * covered[kind] / count_public(kind / 2, 0, kind / 2 == FLOW_IPV4 ? ~0U : ~0ULL);

		if (share > space_max)
			return reason_set(reason, -EINVAL,
					  "it covers %.3g%% of the public %s addresses, more than max-space = %u%%",
					  share, names[kind / 2], space_max);
	}
	return 0;
}

const char *list_unfit(const struct list_limits *limits, const struct rule *rule)
{
	const unsigned int least = limits->prefix_min[rule->family == FLOW_IPV6];

	if (rule->action == RULE_PASS && !limits->may_pass)
		return "a pass rule, which would open the filter; to allow it: action = pass";
	if (!rule->src_len && !rule->dst_len && limits->space_max < 100)
		return "it names no address, so it holds for all; to allow it: max-space = 100%";
	if ((rule->src_len && rule->src_len < least) || (rule->dst_len && rule->dst_len < least))
		return "its prefix is shorter than min-prefix";
	return NULL;
}
