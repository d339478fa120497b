// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule/rule_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * An entry has the first word of the encoded rule. The rest is a record in `bytes`: one byte with the length of the
 * tail and the bits below, the tail without its final zeros, then rate, timeout and comment, if any. A record of a
 * single 0 byte, the usual case, is left out: so reading sorted rules does not jump around in memory.
 */
#define FIRST_BYTES 8
#define TAIL_BYTES (RULE_ENCODED_BYTES - FIRST_BYTES)
#define RECORD_TAIL 0x3f
#define RECORD_TIMED 0x40
#define RECORD_COMMENTED 0x80
#define RECORD_BYTES (1 + TAIL_BYTES + 2 * sizeof(__s64) + 1 + RULE_COMMENT_BYTES)

#define ROOM_FIRST 4096
#define INSERTION_MAX 24 /* entries; more are sorted by radix */

_Static_assert(TAIL_BYTES <= RECORD_TAIL, "a tail's length fits");

/* ---- adding ---- */

/* Doubling is cheap: untouched memory costs nothing, and realloc() moves a large block without a copy. */
static int make_room(void **memory, size_t *room, size_t wanted_min, size_t each)
{
	size_t wanted = *room ? *room : ROOM_FIRST;
	void *grown;

	while (wanted < wanted_min)
		wanted *= 2;
	if (wanted == *room)
		return 0;
	grown = realloc(*memory, wanted * each);
	if (!grown)
		return -ENOMEM;
	*memory = grown;
	*room = wanted;
	return 0;
}

static __u64 first_word_of(const __u8 bytes[RULE_ENCODED_BYTES])
{
	__u64 first_word;

	memcpy(&first_word, bytes, sizeof(first_word));
	return __builtin_bswap64(first_word);
}

static size_t write_record(__u8 *to, const __u8 bytes[RULE_ENCODED_BYTES], const struct rule *rule)
{
	const size_t comment = strlen(rule->comment);
	size_t tail = rule_encoded_bytes(bytes) - FIRST_BYTES;
	__u8 *const start = to;

	while (tail && !bytes[FIRST_BYTES + tail - 1])
		tail--;
	*to++ = tail | (rule->timeout_ms ? RECORD_TIMED : 0) | (comment ? RECORD_COMMENTED : 0);
	to = mempcpy(to, bytes + FIRST_BYTES, tail);
	if (rule->fields & RULE_RATE)
		to = mempcpy(to, &rule->rate, sizeof(rule->rate));
	if (rule->timeout_ms)
		to = mempcpy(to, &rule->timeout_ms, sizeof(rule->timeout_ms));
	if (comment) {
		*to++ = comment;
		to = mempcpy(to, rule->comment, comment);
	}
	return to - start;
}

static int compare_tails(const __u8 *a, const __u8 *b)
{
	const size_t a_tail = *a & RECORD_TAIL, b_tail = *b & RECORD_TAIL;
	int order = memcmp(a + 1, b + 1, a_tail < b_tail ? a_tail : b_tail);

	/* The bytes left out are 0, and the last byte of a tail is not 0: so the longer tail is greater. */
	return order ? order : (a_tail > b_tail) - (a_tail < b_tail);
}

static const __u8 *record_of(const struct rule_set *set, const struct rule_set_entry *entry)
{
	static const __u8 nothing;

	return entry->at & 1 ? set->bytes + (entry->at >> 1) : &nothing;
}

static int compare_rules(const struct rule_set *set, const struct rule_set_entry *a, const struct rule_set_entry *b)
{
	if (a->first_word != b->first_word)
		return a->first_word < b->first_word ? -1 : 1;
	return compare_tails(record_of(set, a), record_of(set, b));
}

int rule_set_add(struct rule_set *set, const struct rule *rule)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	struct rule_set_entry *entry;
	size_t length;

	if (make_room((void **)&set->entries, &set->room, set->count + 1, sizeof(*set->entries)) ||
	    make_room((void **)&set->bytes, &set->bytes_room, set->bytes_used + RECORD_BYTES, 1))
		return -ENOMEM;
	rule_encode(rule, bytes);
	entry = &set->entries[set->count];
	*entry = (struct rule_set_entry){ first_word_of(bytes), set->bytes_used << 1 };
	length = write_record(set->bytes + set->bytes_used, bytes, rule);
	if (set->bytes[set->bytes_used] || rule->fields & RULE_RATE) {
		entry->at |= 1;
		set->bytes_used += length;
	}
	if (set->count && !set->is_unsorted)
		set->is_unsorted = compare_rules(set, entry - 1, entry) >= 0;
	set->count++;
	return 0;
}

void rule_set_fit(struct rule_set *set)
{
	void *entries = set->count ? realloc(set->entries, set->count * sizeof(*set->entries)) : NULL;
	void *bytes = set->bytes_used ? realloc(set->bytes, set->bytes_used) : NULL;

	set->entries = entries ? entries : set->entries;
	set->room = entries ? set->count : set->room;
	set->bytes = bytes ? bytes : set->bytes;
	set->bytes_room = bytes ? set->bytes_used : set->bytes_room;
}

void rule_set_close(struct rule_set *set)
{
	free(set->entries);
	free(set->bytes);
	*set = (struct rule_set){};
}

/*
 * ---- sorting: by the bytes of the first word in place (American flag sort), the rest by comparison ----
 */

/* Equal rules keep the order of adding. */
static int compare_entries(const void *left, const void *right, void *set)
{
	const struct rule_set_entry *a = left, *b = right;
	int order = compare_rules(set, a, b);

	return order ? order : (a->at > b->at) - (a->at < b->at);
}

static unsigned int digit(const struct rule_set_entry *entry, unsigned int shift)
{
	return entry->first_word >> shift & 0xff;
}

/*
 * Groups the entries by digit, in place. ends[d] is the end of the group of digit d, and next[d] its first place that may
 * hold a stranger: each turn moves one entry to its group.
 */
static void distribute(struct rule_set_entry *entries, size_t count, unsigned int shift, size_t ends[256])
{
	size_t next[256];

	memset(ends, 0, 256 * sizeof(*ends));
	for (size_t i = 0; i < count; i++)
		ends[digit(&entries[i], shift)]++;
	for (size_t d = 0, sum = 0; d < 256; d++) {
		next[d] = sum;
		ends[d] = sum += ends[d];
	}
	for (unsigned int d = 0; d < 256; d++) {
		while (next[d] < ends[d]) {
			struct rule_set_entry *here = &entries[next[d]];
			const unsigned int home = digit(here, shift);
			const struct rule_set_entry other = entries[next[home]];

			entries[next[home]++] = *here;
			if (home != d)
				*here = other;
		}
	}
}

static void sort_from(const struct rule_set *set, struct rule_set_entry *entries, size_t count, int shift)
{
	size_t ends[256];

	if (count <= INSERTION_MAX) {
		for (size_t i = 1; i < count; i++) {
			const struct rule_set_entry entry = entries[i];
			size_t k = i;

			for (; k && compare_entries(&entries[k - 1], &entry, (void *)set) > 0; k--)
				entries[k] = entries[k - 1];
			entries[k] = entry;
		}
		return;
	}
	if (shift < 0) {
		qsort_r(entries, count, sizeof(*entries), compare_entries, (void *)set);
		return;
	}
	distribute(entries, count, shift, ends);
	for (size_t d = 0, start = 0; d < 256; start = ends[d++])
		sort_from(set, entries + start, ends[d] - start, shift - 8);
}

void rule_set_sort(struct rule_set *set)
{
	size_t kept = 0;

	if (!set->is_unsorted)
		return;
	sort_from(set, set->entries, set->count, 56);
	for (size_t i = 0; i < set->count; i++) {
		if (kept && !compare_rules(set, &set->entries[kept - 1], &set->entries[i]))
			kept--;
		set->entries[kept++] = set->entries[i];
	}
	set->count = kept;
	set->is_unsorted = false;
}

/* ---- reading ---- */

void rule_set_get(const struct rule_set *set, size_t i, struct rule *rule)
{
	const __u64 first_word = __builtin_bswap64(set->entries[i].first_word);
	const __u8 *record = record_of(set, &set->entries[i]), *from = record + 1;
	const size_t tail = *record & RECORD_TAIL;
	__u8 bytes[RULE_ENCODED_BYTES] = {};

	memcpy(bytes, &first_word, sizeof(first_word));
	memcpy(bytes + FIRST_BYTES, from, tail);
	rule_decode(bytes, rule_encoded_bytes(bytes), rule);
	from += tail;
	if (rule->fields & RULE_RATE) {
		memcpy(&rule->rate, from, sizeof(rule->rate));
		from += sizeof(rule->rate);
	}
	if (*record & RECORD_TIMED) {
		memcpy(&rule->timeout_ms, from, sizeof(rule->timeout_ms));
		from += sizeof(rule->timeout_ms);
	}
	if (*record & RECORD_COMMENTED)
		*(char *)mempcpy(rule->comment, from + 1, *from) = '\0';
}

int rule_set_compare(const struct rule_set *set, size_t i, const struct rule *rule)
{
	const struct rule_set_entry *entry = &set->entries[i];
	__u8 bytes[RULE_ENCODED_BYTES], record[RECORD_BYTES];
	__u64 first_word;

	rule_encode(rule, bytes);
	first_word = first_word_of(bytes);
	if (entry->first_word != first_word)
		return entry->first_word < first_word ? -1 : 1;
	write_record(record, bytes, rule);
	return compare_tails(record_of(set, entry), record);
}

size_t rule_set_find(const struct rule_set *set, const struct rule *rule)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		const int order = rule_set_compare(set, middle, rule);

		if (!order)
			return middle;
		*(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
	}
	return set->count;
}
