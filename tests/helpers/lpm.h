/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a list of prefixes says of a packet, told twice and without any code of the tool or its program:
 * by sorted intervals, and by the kernel's LPM tries. And packets that try the edges of each prefix.
 * Prints why something failed, since only test programs use it.
 *
 * A list is text, a rule a line: a bare prefix, or src P, dst P, dport N, action drop|pass, in any order; a
 * timeout is read over. Rules with a source and nothing else, and all others, which are tried one after
 * the other.
 */
#ifndef XDP_CUCKOO_TESTS_LPM_H
#define XDP_CUCKOO_TESTS_LPM_H

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "bench/random.h"

typedef unsigned __int128 lpm_address; /* of IPv4 the low 32 bits */

enum lpm_family { LPM_IPV4, LPM_IPV6, LPM_FAMILIES };
enum lpm_action { LPM_DROP, LPM_PASS, LPM_ACTIONS };
enum lpm_verdict { LPM_IS_DROPPED = LPM_DROP, LPM_IS_PASSED = LPM_PASS, LPM_NO_RULE, LPM_VERDICTS };

struct lpm_range {
	lpm_address first, last;
};

struct lpm_prefix {
	struct lpm_range range; /* everything, where the rule names no such prefix */
	uint8_t length;
};

struct lpm_rule {
	enum lpm_family family;
	enum lpm_action action;
	struct lpm_prefix src, dst;
	int dport; /* -1: any */
};

struct lpm_list {
	struct lpm_rule *rule;
	size_t count, room;
	size_t count_of[LPM_FAMILIES];
};

struct lpm_flow {
	enum lpm_family family;
	lpm_address src, dst;
	uint16_t dport;
};

struct lpm_intervals {
	struct lpm_range *range; /* sorted, and neither overlapping nor adjacent */
	size_t count;
};

struct lpm_reference {
	struct lpm_intervals sorted[LPM_FAMILIES][LPM_ACTIONS];
	int trie[LPM_FAMILIES][LPM_ACTIONS]; /* descriptors; 0: not open */
	struct lpm_list other;               /* what names more than a source */
};

/* The key of a trie, of which IPv4 has the first 8 bytes. */
struct lpm_key {
	uint32_t length;
	uint8_t address[16]; /* in wire order */
};

static inline unsigned int lpm_bits(enum lpm_family family)
{
	return family == LPM_IPV4 ? 32 : 128;
}

static inline size_t lpm_key_bytes(enum lpm_family family)
{
	return sizeof(uint32_t) + lpm_bits(family) / 8;
}

/* ---- reading ---- */

static inline struct lpm_prefix lpm_prefix_of(enum lpm_family family, lpm_address address, unsigned int length)
{
	const unsigned int host_bits = lpm_bits(family) - length;
	const lpm_address all = ~(lpm_address)0;
	const lpm_address host = length ? ((lpm_address)1 << host_bits) - 1 : all >> (128 - lpm_bits(family));

	return (struct lpm_prefix){ { address & ~host, address | host }, length };
}

/* Splits `text` in place. */
static inline bool lpm_parse_prefix(char *text, struct lpm_rule *rule, struct lpm_prefix *prefix)
{
	const enum lpm_family family = strchr(text, ':') ? LPM_IPV6 : LPM_IPV4;
	char *slash = strchr(text, '/');
	unsigned long length = lpm_bits(family);
	uint8_t byte[16] = {};
	lpm_address address = 0;
	char *end;

	if (slash) {
		*slash = '\0';
		length = strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end != '\0' || length > lpm_bits(family))
			return false;
	}
	if (inet_pton(family == LPM_IPV4 ? AF_INET : AF_INET6, text, byte) != 1)
		return false;
	for (unsigned int i = 0; i < lpm_bits(family) / 8; i++)
		address = address << 8 | byte[i];
	rule->family = family;
	*prefix = lpm_prefix_of(family, address, length);
	return true;
}

static inline bool lpm_parse_field(const char *name, char *value, struct lpm_rule *rule)
{
	char *end;

	if (!strcmp(name, "src"))
		return lpm_parse_prefix(value, rule, &rule->src);
	if (!strcmp(name, "dst"))
		return lpm_parse_prefix(value, rule, &rule->dst);
	if (!strcmp(name, "action")) {
		rule->action = strcmp(value, "pass") ? LPM_DROP : LPM_PASS;
		return rule->action == LPM_PASS || !strcmp(value, "drop");
	}
	if (!strcmp(name, "dport")) {
		rule->dport = strtoul(value, &end, 10);
		return end != value && !*end && rule->dport <= UINT16_MAX;
	}
	return !strcmp(name, "timeout");
}

/* Splits `text` in place. */
static inline bool lpm_parse(char *text, struct lpm_rule *rule)
{
	const struct lpm_prefix all = { { 0, ~(lpm_address)0 }, 0 };
	char *rest = text, *name;

	*rule = (struct lpm_rule){ .src = all, .dst = all, .dport = -1, .action = LPM_DROP };
	while ((name = strtok_r(NULL, " \t\r\n", &rest))) {
		char *value;

		if (strpbrk(name, ".:")) {
			if (!lpm_parse_prefix(name, rule, &rule->src))
				return false;
			continue;
		}
		value = strtok_r(NULL, " \t\r\n", &rest);
		if (!value || !lpm_parse_field(name, value, rule))
			return false;
	}
	return rule->src.length || rule->dst.length;
}

static inline void lpm_append(struct lpm_list *list, const struct lpm_rule *rule)
{
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 1024;
		list->rule = reallocarray(list->rule, list->room, sizeof(*list->rule));
		if (!list->rule)
			abort();
	}
	list->rule[list->count++] = *rule;
	list->count_of[rule->family]++;
}

/* # and ; start a comment. 0; -errno, having said why. */
static inline int lpm_read(const char *path, struct lpm_list *list)
{
	FILE *file = fopen(path, "re");
	unsigned int line = 0;
	char text[512], copy[512];
	int error = 0;

	*list = (struct lpm_list){ 0 };
	if (!file) {
		error = -errno;
		fprintf(stderr, "%s: %s\n", path, strerror(-error));
		return error;
	}
	while (!error && fgets(text, sizeof(text), file)) {
		struct lpm_rule rule;

		line++;
		text[strcspn(text, "#;\r\n")] = '\0';
		strcpy(copy, text);
		if (!text[strspn(text, " \t")])
			continue;
		if (lpm_parse(copy, &rule)) {
			lpm_append(list, &rule);
			continue;
		}
		fprintf(stderr, "%s:%u: not a rule about prefixes: %s\n", path, line, text);
		error = -EINVAL;
	}
	fclose(file);
	return error;
}

/* ---- what the list says ---- */

static inline bool lpm_has(const struct lpm_range *range, lpm_address address)
{
	return range->first <= address && address <= range->last;
}

static inline bool lpm_is_source_only(const struct lpm_rule *rule)
{
	return rule->src.length && !rule->dst.length && rule->dport < 0;
}

static inline int lpm_compare(const void *left, const void *right)
{
	const struct lpm_range *a = left, *b = right;

	return (a->first > b->first) - (a->first < b->first);
}

/* The sources of all rules of one kind that name nothing else, joined. */
static inline struct lpm_intervals lpm_sort(const struct lpm_list *list, enum lpm_family family, enum lpm_action action)
{
	struct lpm_range *range = calloc(list->count + 1, sizeof(*range));
	size_t count = 0, joined = 0;

	if (!range)
		abort();
	for (size_t i = 0; i < list->count; i++)
		if (list->rule[i].family == family && list->rule[i].action == action &&
		    lpm_is_source_only(&list->rule[i]))
			range[count++] = list->rule[i].src.range;
	qsort(range, count, sizeof(*range), lpm_compare);
	for (size_t i = 0; i < count; i++) {
		struct lpm_range *last = &range[joined ? joined - 1 : 0];

		if (!joined || (range[i].first > last->last && range[i].first - last->last > 1))
			range[joined++] = range[i];
		else if (range[i].last > last->last)
			last->last = range[i].last;
	}
	return (struct lpm_intervals){ range, joined };
}

static inline bool lpm_search(const struct lpm_intervals *sorted, lpm_address address)
{
	size_t low = 0, high = sorted->count;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (sorted->range[middle].first <= address)
			low = middle;
		else
			high = middle;
	}
	return high && lpm_has(&sorted->range[low], address);
}

static inline struct lpm_key lpm_key_of(enum lpm_family family, lpm_address address, unsigned int length)
{
	struct lpm_key key = { .length = length };

	for (unsigned int i = lpm_bits(family) / 8; i--; address >>= 8)
		key.address[i] = address;
	return key;
}

/* Puts the sources of all rules of one kind that name nothing else into a trie. 0; -errno. */
static inline int lpm_fill(int trie, const struct lpm_list *list, enum lpm_family family, enum lpm_action action)
{
	const uint64_t value = 1;

	for (size_t i = 0; i < list->count; i++) {
		const struct lpm_rule *rule = &list->rule[i];
		struct lpm_key key;

		if (rule->family != family || rule->action != action || !lpm_is_source_only(rule))
			continue;
		key = lpm_key_of(family, rule->src.range.first, rule->src.length);
		if (bpf_map_update_elem(trie, &key, &value, BPF_ANY))
			return -errno;
	}
	return 0;
}

static inline int lpm_open_trie(const struct lpm_list *list, enum lpm_family family, enum lpm_action action)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	const int trie = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "lpm_reference", lpm_key_bytes(family), sizeof(uint64_t),
					list->count + 1, &options);
	const int error = trie < 0 ? trie : lpm_fill(trie, list, family, action);

	return error ? error : trie;
}

static inline bool lpm_look_up(int trie, enum lpm_family family, lpm_address address)
{
	const struct lpm_key key = lpm_key_of(family, address, lpm_bits(family));
	uint64_t value;

	return !bpf_map_lookup_elem(trie, &key, &value);
}

/* 0; -errno, having said why. */
static inline int lpm_open(const struct lpm_list *list, struct lpm_reference *reference)
{
	*reference = (struct lpm_reference){ 0 };
	for (size_t i = 0; i < list->count; i++)
		if (!lpm_is_source_only(&list->rule[i]))
			lpm_append(&reference->other, &list->rule[i]);
	for (enum lpm_family family = 0; family < LPM_FAMILIES; family++) {
		for (enum lpm_action action = 0; action < LPM_ACTIONS; action++) {
			const int trie = lpm_open_trie(list, family, action);

			if (trie < 0) {
				fprintf(stderr, "LPM trie: %s\n", strerror(-trie));
				return trie;
			}
			reference->trie[family][action] = trie;
			reference->sorted[family][action] = lpm_sort(list, family, action);
		}
	}
	return 0;
}

static inline bool lpm_matches(const struct lpm_rule *rule, const struct lpm_flow *flow)
{
	return rule->family == flow->family && lpm_has(&rule->src.range, flow->src) &&
	       lpm_has(&rule->dst.range, flow->dst) && (rule->dport < 0 || rule->dport == flow->dport);
}

/* By the tries, or by the intervals. A pass rule of any length goes before every drop rule. */
static inline enum lpm_verdict lpm_verdict(const struct lpm_reference *reference, const struct lpm_flow *flow,
					   bool by_trie)
{
	bool is_in[LPM_ACTIONS];

	for (enum lpm_action action = 0; action < LPM_ACTIONS; action++)
		is_in[action] = by_trie ? lpm_look_up(reference->trie[flow->family][action], flow->family, flow->src) :
					  lpm_search(&reference->sorted[flow->family][action], flow->src);
	for (size_t i = 0; i < reference->other.count; i++)
		if (lpm_matches(&reference->other.rule[i], flow))
			is_in[reference->other.rule[i].action] = true;
	if (is_in[LPM_PASS])
		return LPM_IS_PASSED;
	return is_in[LPM_DROP] ? LPM_IS_DROPPED : LPM_NO_RULE;
}

/* ---- packets ---- */

static inline lpm_address lpm_random(uint64_t *random)
{
	const lpm_address high = random_next(random);

	return high << 64 | random_next(random);
}

static inline lpm_address lpm_random_in(const struct lpm_range *range, uint64_t *random)
{
	const lpm_address size = range->last - range->first + 1;
	const lpm_address any = lpm_random(random);

	return range->first + (size ? any % size : any);
}

/* Inside the prefix, its first or last address, the one before or the one behind, which may wrap. */
static inline lpm_address lpm_random_near(enum lpm_family family, const struct lpm_prefix *prefix, uint64_t *random)
{
	const struct lpm_range all = lpm_prefix_of(family, 0, 0).range;
	const struct lpm_range *range = prefix->length ? &prefix->range : &all;

	switch (random_below(random, 5)) {
	case 0:
		return range->first;
	case 1:
		return range->last;
	case 2:
		return (range->first - 1) & all.last;
	case 3:
		return (range->last + 1) & all.last;
	default:
		return lpm_random_in(range, random);
	}
}

/* Any packet of a family that the list has. */
static inline struct lpm_flow lpm_flow_anywhere(const struct lpm_list *list, uint64_t *random)
{
	const uint64_t number = random_below(random, list->count ? list->count : 1);
	const enum lpm_family family = number >= list->count_of[LPM_IPV4] ? LPM_IPV6 : LPM_IPV4;
	const lpm_address all = lpm_prefix_of(family, 0, 0).range.last;

	return (struct lpm_flow){ family, lpm_random(random) & all, lpm_random(random) & all, random_next(random) };
}

/* A packet at some rule's prefixes. */
static inline struct lpm_flow lpm_flow_near(const struct lpm_list *list, uint64_t *random)
{
	const struct lpm_rule *rule = &list->rule[random_below(random, list->count)];
	const uint16_t any = random_next(random);

	return (struct lpm_flow){
		.family = rule->family,
		.src = lpm_random_near(rule->family, &rule->src, random),
		.dst = lpm_random_near(rule->family, &rule->dst, random),
		.dport = rule->dport < 0 || any % 8 == 0 ? any : rule->dport,
	};
}

#endif
