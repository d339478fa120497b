/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was done, and when, in one file: so that a wrong verdict stands beside what the filter was just doing. */
#ifndef XDP_CUCKOO_SOAK_JOURNAL_H
#define XDP_CUCKOO_SOAK_JOURNAL_H

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define JOURNAL_LAST 24 /* lines that are shown with the first wrong verdicts */
#define JOURNAL_LINE_BYTES 256
#define JOURNAL_WRONG_SHOWN 5
#define JOURNAL_WRONG_KEPT 1000

struct journal {
	pthread_mutex_t lock;
	FILE *file;
	uint64_t start_ns, lines, wrong;
	char last[JOURNAL_LAST][JOURNAL_LINE_BYTES];
};

static inline void journal_open(struct journal *journal, const char *path)
{
	*journal = (struct journal){ .lock = PTHREAD_MUTEX_INITIALIZER, .start_ns = model_now_ns() };
	journal->file = fopen(path, "we");
	if (!journal->file) {
		perror(path);
		exit(2);
	}
}

static inline void journal_write(struct journal *journal, const char *text)
{
	char *line = journal->last[journal->lines++ % JOURNAL_LAST];

	snprintf(line, JOURNAL_LINE_BYTES, "%.6f %.235s", (double)(model_now_ns() - journal->start_ns) / MODEL_NS_PER_S,
		 text);
	fprintf(journal->file, "%s\n", line);
}

__attribute__((format(printf, 2, 3))) static inline void journal_note(struct journal *journal, const char *format, ...)
{
	char text[JOURNAL_LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	pthread_mutex_lock(&journal->lock);
	journal_write(journal, text);
	pthread_mutex_unlock(&journal->lock);
}

static inline void journal_show_last(const struct journal *journal)
{
	const uint64_t first = journal->lines > JOURNAL_LAST ? journal->lines - JOURNAL_LAST : 0;

	for (uint64_t i = first; i < journal->lines; i++)
		fprintf(stderr, "  %s\n", journal->last[i % JOURNAL_LAST]);
}

/* Counts what must not be. The first are shown, with what was done before; many are written down. */
__attribute__((format(printf, 2, 3))) static inline void journal_wrong(struct journal *journal, const char *format, ...)
{
	char text[JOURNAL_LINE_BYTES] = "WRONG: ";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + strlen(text), sizeof(text) - strlen(text), format, arguments);
	va_end(arguments);
	pthread_mutex_lock(&journal->lock);
	if (journal->wrong++ < JOURNAL_WRONG_KEPT)
		journal_write(journal, text);
	if (journal->wrong <= JOURNAL_WRONG_SHOWN)
		journal_show_last(journal);
	fflush(journal->file);
	pthread_mutex_unlock(&journal->lock);
}

#endif
