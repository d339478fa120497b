// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes import: the first byte of the input says the format (a digit: 0, to be told from the content, to 5,
 * csv) and, with 8 more, a default timeout; the rest is the list. What is taken are rules, what is refused is
 * told in one line, and what is written of it, in each format, reads as the same rules.
 */
#include "fuzz.h"

#include <errno.h>

#include "lists/list.h"

#define EXPORTED_MAX 48 /* rules that are written and read again */
#define TAKEN_MAX 4096
#define DEFAULT_TIMEOUT_MS 7000
#define ENOUGH (-E2BIG)

struct taken {
	struct rule_set set;
	size_t refused;
	char first_refused[REASON_BYTES];
};

static int take(struct list_input *list, const struct rule *rule)
{
	struct taken *taken = list->context;

	fuzz_check(rule->timeout_ms >= 0, "%lld", (long long)rule->timeout_ms);
	fuzz_check(taken->set.count <= TAKEN_MAX, "%zu rules", taken->set.count);
	if (taken->set.count == TAKEN_MAX)
		return ENOUGH;
	return rule_set_add(&taken->set, rule);
}

static void refuse(struct list_input *list, const char *text)
{
	struct taken *taken = list->context;

	fuzz_check_reason(text);
	if (!taken->refused++)
		strcpy(taken->first_refused, text);
}

static void note(struct list_input *list, const char *text)
{
	(void)list;
	fuzz_check_reason(text);
}

static int go_on(struct list_input *list)
{
	(void)list;
	return 0;
}

/* Returns the format it was read as. */
static enum list_format read_list(enum list_format format, __s64 timeout_ms, const void *bytes, size_t length,
				  struct taken *taken)
{
	struct list_input list = { .format = format,
				   .timeout_ms = timeout_ms,
				   .take = take,
				   .refuse = refuse,
				   .note = note,
				   .go_on = go_on,
				   .context = taken };
	int error;

	*taken = (struct taken){};
	list.reader.name = "input";
	list.reader.file = length ? fmemopen((void *)bytes, length, "r") : fopen("/dev/null", "r");
	fuzz_check(list.reader.file, "no file");
	error = list_read(&list);
	fuzz_check(!error || error == ENOUGH || error == -EMSGSIZE, "%s", strerror(-error));
	reader_close(&list.reader);
	return list.format;
}

/* ---- what is written ---- */

/* The rules that are expected to come back, as they are told to be lost. */
struct expected {
	const struct rule_set *all;
	struct rule_set left;
	bool has_halves; /* which may be rules of the list as well */
};

static void lose(const struct rule *rule, const char *what, void *context)
{
	struct rule_set *lost = context;

	fuzz_check(!strncmp(what, "is left out", 11) || !strncmp(what, "is written without", 18), "%s", what);
	fuzz_check(!rule_set_add(lost, rule), "memory");
}

static bool is_in(const struct rule_set *set, const struct rule *rule)
{
	for (size_t i = 0; i < set->count; i++)
		if (!rule_set_compare(set, i, rule))
			return true;
	return false;
}

static void add_halves(struct expected *expected, struct rule rule)
{
	expected->has_halves = true;
	rule.src_len = 1;
	rule_set_add(&expected->left, &rule);
	rule.src.byte[0] = 0x80;
	rule_set_add(&expected->left, &rule);
}

/*
 * hash:net has no prefix of length 0, nft's comments end at 128 bytes. Sets of nft have no states, rates, flags, fragments
 * or lengths: rules with these are left out, and told.
 */
static void expect(struct expected *expected, enum list_format format, const struct rule_set *lost)
{
	for (size_t i = 0; i < expected->all->count; i++) {
		struct rule rule;

		rule_set_get(expected->all, i, &rule);
		if (format == LIST_NFT && rule.fields & (RULE_NEW | RULE_RATE | RULE_DETAILS)) {
			fuzz_check(is_in(lost, &rule), "left out without a word");
			continue;
		}
		if (format == LIST_NFT && is_in(lost, &rule))
			rule.comment[0] = '\0';
		else if (is_in(lost, &rule))
			continue;
		if (format == LIST_IPSET && !rule.src_len && !rule.dst_len)
			add_halves(expected, rule);
		else
			rule_set_add(&expected->left, &rule);
	}
	expected->left.is_unsorted = true;
	rule_set_sort(&expected->left);
}

static void write_all(FILE *to, enum list_format format, const struct rule_set *set, struct rule_set *lost)
{
	const struct list_losses losses = { lose, lost };
	struct rule rule;

	if (format == LIST_IPSET)
		fuzz_check(!list_write_ipset(to, set, &losses), "memory");
	if (format == LIST_NFT)
		fuzz_check(!list_write_nft(to, set, &losses), "memory");
	if (format == LIST_CSV)
		list_write_csv_heading(to);
	for (size_t i = 0; i < set->count; i++) {
		rule_set_get(set, i, &rule);
		if (format == LIST_TEXT)
			list_write_text(to, &rule);
		if (format == LIST_CSV)
			list_write_csv(to, &rule);
	}
}

static void check_equal(const struct expected *expected, struct taken *taken, const char *text)
{
	const struct rule_set *left = &expected->left;

	fuzz_check(!taken->refused, "refused: %s\n%s", taken->first_refused, text);
	taken->set.is_unsorted = true;
	rule_set_sort(&taken->set);
	fuzz_check(taken->set.count == left->count, "%zu rules, expected %zu:\n%s", taken->set.count, left->count,
		   text);
	for (size_t i = 0; i < left->count; i++) {
		struct rule rule, other;

		rule_set_get(left, i, &rule);
		rule_set_get(&taken->set, i, &other);
		fuzz_check(fuzz_same_flows(&rule, &other), "rule %zu differs:\n%s", i, text);
		if (expected->has_halves)
			continue;
		fuzz_check(rule.timeout_ms == other.timeout_ms && !strcmp(rule.comment, other.comment),
			   "timeout or comment of rule %zu differs:\n%s", i, text);
	}
}

/* Written, and read again: by its name, and told from its content. */
static void check_format(enum list_format format, const struct rule_set *set)
{
	struct expected expected = { .all = set };
	struct rule_set lost = {};
	struct taken taken;
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	write_all(to, format, set, &lost);
	fclose(to);
	expect(&expected, format, &lost);
	read_list(format, 0, text, length, &taken);
	check_equal(&expected, &taken, text);
	rule_set_close(&taken.set);
	if (expected.left.count) {
		fuzz_check(read_list(LIST_UNKNOWN, 0, text, length, &taken) == format, "not told:\n%s", text);
		check_equal(&expected, &taken, text);
		rule_set_close(&taken.set);
	}
	rule_set_close(&expected.left);
	rule_set_close(&lost);
	free(text);
}

static void check_exports(struct rule_set *set)
{
	static const enum list_format written[] = { LIST_TEXT, LIST_IPSET, LIST_NFT, LIST_CSV };
	struct rule_set some = {};
	struct rule rule;

	set->is_unsorted = true;
	rule_set_sort(set);
	for (size_t i = 0; i < set->count && i < EXPORTED_MAX; i++) {
		rule_set_get(set, i, &rule);
		fuzz_check_rule(&rule);
		rule_set_add(&some, &rule);
	}
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		check_format(written[i], &some);
	rule_set_close(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *how = fuzz_take(&data, &size, 1);
	struct taken taken;

	if (!how)
		return 0;
	read_list((*how & 7) % LIST_FORMATS, *how & 8 ? DEFAULT_TIMEOUT_MS : 0, data, size, &taken);
	if (taken.set.count)
		check_exports(&taken.set);
	rule_set_close(&taken.set);
	return 0;
}
