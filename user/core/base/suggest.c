// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#define PART_LENGTH_MIN 3 /* a shorter word does not match longer words that start with it */
#define FAR 4

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The distance of two words. Both are shorter than SUGGEST_WORD_BYTES. */
static unsigned int distance_of(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned int rows[3][SUGGEST_WORD_BYTES] = {};

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		const unsigned int *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
		unsigned int *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = MIN(MIN(last[j], row[j - 1]) + 1, last[j - 1] + !is_same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

struct suggest suggest_for_part(const char *word, size_t length)
{
	return (struct suggest){ .word = word, .length = length, .distance = FAR };
}

struct suggest suggest_for(const char *word)
{
	return suggest_for_part(word, strlen(word));
}

static void offer(struct suggest *suggest, const char *known, size_t length)
{
	const size_t longer = length > suggest->length ? length : suggest->length;
	const size_t shorter = length + suggest->length - longer;
	const unsigned int bound = MIN(longer / 3, FAR - 1); /* one mistake in three letters */
	unsigned int distance = FAR;

	if (longer >= SUGGEST_WORD_BYTES)
		return;
	if (longer - shorter <= bound)
		distance = distance_of(suggest->word, suggest->length, known, length);
	if (distance > bound) {
		const bool is_part = shorter >= PART_LENGTH_MIN && !strncasecmp(suggest->word, known, shorter);

		distance = is_part ? FAR - 1 : FAR;
	}
	if (distance >= suggest->distance)
		return;
	suggest->distance = distance;
	memcpy(suggest->nearest, known, length);
	suggest->nearest[length] = '\0';
}

void suggest_offer(struct suggest *suggest, const char *known)
{
	offer(suggest, known, strlen(known));
}

void suggest_offer_choices(struct suggest *suggest, const char *choices)
{
	while (*choices) {
		const size_t length = strcspn(choices, "|");

		offer(suggest, choices, length);
		choices += length + (choices[length] == '|');
	}
}

bool suggest_has(const char *choices, const char *word, size_t length, bool has_case)
{
	for (; *choices; choices += strcspn(choices, "|"), choices += *choices == '|')
		if (strcspn(choices, "|") == length &&
		    !(has_case ? strncmp(choices, word, length) : strncasecmp(choices, word, length)))
			return true;
	return false;
}

const char *advice_find(const struct advice *advices, size_t count, const char *word, size_t length, bool has_case)
{
	for (size_t i = 0; i < count; i++)
		if (suggest_has(advices[i].words, word, length, has_case))
			return advices[i].text;
	return NULL;
}

const char *suggest_text(const struct suggest *suggest, const char *see, char text[SUGGEST_TEXT_BYTES])
{
	const bool is_near = *suggest->nearest;

	snprintf(text, SUGGEST_TEXT_BYTES, "%s%s%s%s%s", is_near ? "; did you mean '" : "", suggest->nearest,
		 is_near ? "'?" : "",
		 see && is_near ? " See " :
		 see            ? "; see " :
				  "",
		 see ? see : "");
	return text;
}
