/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The known word that is nearest to one that is not known, for messages. Words are compared by their optimal
 * string alignment distance (Damerau-Levenshtein, with each letter moved once), upper and lower case alike.
 */
#ifndef XDP_CUCKOO_SUGGEST_H
#define XDP_CUCKOO_SUGGEST_H

#include <stddef.h>

#define SUGGEST_WORD_BYTES 32 /* longer words are near to none */
#define SUGGEST_TEXT_BYTES 160

struct suggest {
	const char *word; /* `length` bytes of it */
	size_t length;
	char nearest[SUGGEST_WORD_BYTES]; /* "" where none was near */
	unsigned int distance;
};

struct suggest suggest_for(const char *word);
struct suggest suggest_for_part(const char *word, size_t length);

/* Offers one known word; of equally near ones the first is kept. */
void suggest_offer(struct suggest *suggest, const char *known);

/* Offers each of the words that '|' joins. */
void suggest_offer_choices(struct suggest *suggest, const char *choices);

/*
 * The end of a message: "; did you mean 'status'? See xdp-cuckoo help", for `see` "xdp-cuckoo help". Without either
 * part where there is none: `see` may be NULL.
 */
const char *suggest_text(const struct suggest *suggest, const char *see, char text[SUGGEST_TEXT_BYTES]);

#endif
