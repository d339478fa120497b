/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the known word that is nearest to a mistyped word, by the optimal string alignment distance
 * (Damerau-Levenshtein that moves each letter at most once). Case does not matter.
 */
#ifndef XDP_CUCKOO_SUGGEST_H
#define XDP_CUCKOO_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#define SUGGEST_WORD_BYTES 32 /* longer words are never near */
#define SUGGEST_TEXT_BYTES 160

struct suggest {
	const char *word; /* of `length` bytes */
	size_t length;
	char nearest[SUGGEST_WORD_BYTES]; /* "" if no word was near */
	unsigned int distance;
};

struct suggest suggest_for(const char *word);
struct suggest suggest_for_part(const char *word, size_t length);

/* Offers a known word. Of equally near words, the first one stays. */
void suggest_offer(struct suggest *suggest, const char *known);

/* Whether one of `choices`, words joined by '|', is the word of `length` bytes. */
bool suggest_has(const char *choices, const char *word, size_t length, bool has_case);

/* What to do about words of other tools, joined by '|'. The text is NULL if no row has the word. */
struct advice {
	const char *words, *text;
};
const char *advice_find(const struct advice *advices, size_t count, const char *word, size_t length, bool has_case);

/* Offers each word of a text like "on|off". */
void suggest_offer_choices(struct suggest *suggest, const char *choices);

/*
 * The end of a message, for example "; did you mean 'status'? See xdp-cuckoo help". `see` is "xdp-cuckoo help" here,
 * or NULL. Leaves out a part that does not apply.
 */
const char *suggest_text(const struct suggest *suggest, const char *see, char text[SUGGEST_TEXT_BYTES]);

#endif
