/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What fuzz targets share. A target is one fuzz_*.c with LLVMFuzzerTestOneInput(), which takes bytes from
 * anywhere: the same file is run by libFuzzer, by AFL++ and, over seeds and what was found, by replay.c.
 * What must hold of every input is a fuzz_check().
 */
#ifndef XDP_CUCKOO_TESTS_FUZZ_H
#define XDP_CUCKOO_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_reason.h"
#include "rule/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_check(holds, ...) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #holds); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			abort(); \
		} \
	} while (0)

/* Takes `bytes` bytes off the front of what is left; NULL where it is less. */
static inline const uint8_t *fuzz_take(const uint8_t **data, size_t *size, size_t bytes)
{
	const uint8_t *taken = *data;

	if (*size < bytes)
		return NULL;
	*data += bytes;
	*size -= bytes;
	return taken;
}

/* All but timeout and comment. */
static inline bool fuzz_same_flows(const struct rule *a, const struct rule *b)
{
	return !memcmp(a, b, offsetof(struct rule, timeout_ms));
}

/* What is told of bad input is one line of text. */
static inline void fuzz_check_reason(const char *text)
{
	const size_t length = strlen(text);

	fuzz_check(length > 0 && length < REASON_BYTES, "%zu bytes", length);
	for (const char *c = text; *c; c++)
		fuzz_check((unsigned char)*c >= ' ' && *c != 0x7f, "character %d of '%s'", (int)(c - text), text);
}

/* A rule that can be said: its text is the same rule again, and so are its bytes. */
static inline void fuzz_check_rule(const struct rule *rule)
{
	char text[RULE_TEXT_BYTES], again_text[RULE_TEXT_BYTES];
	__u8 bytes[RULE_ENCODED_BYTES];
	struct rule lasting = *rule, again;
	struct reason reason;

	/* What has ended no text says. */
	lasting.timeout_ms = rule->timeout_ms > 0 ? rule->timeout_ms : 0;
	rule_format(&lasting, text);
	fuzz_check(strlen(text) < RULE_TEXT_BYTES - 1, "cut: %s", text);
	fuzz_check(!rule_parse(text, &again, &reason), "%s: %s", text, reason.text);
	fuzz_check(fuzz_same_flows(rule, &again), "another rule: %s: %s", text, rule_format(&again, again_text));
	fuzz_check(!strcmp(rule->comment, again.comment), "another comment: %s", text);
	fuzz_check(again.timeout_ms == (lasting.timeout_ms + 999) / 1000 * 1000, "another timeout: %s", text);
	fuzz_check(!rule_decode(bytes, rule_encode(rule, bytes), &again), "not decoded: %s", text);
	again.rate = rule->rate; /* not in the bytes: a store has it beside the timeout */
	fuzz_check(fuzz_same_flows(rule, &again), "decoded as another rule: %s", text);
}

#endif
