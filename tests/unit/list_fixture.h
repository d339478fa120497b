/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads a list from a text and returns its rules and its refused lines as text. Makes random rules. */
#ifndef XDP_CUCKOO_TEST_LIST_FIXTURE_H
#define XDP_CUCKOO_TEST_LIST_FIXTURE_H

#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lists/list.h"
#include "bench/random.h"
#include "unit/test.h"

struct read_list {
	FILE *text; /* of what follows */
	char *rules, *refused, *notes;
	struct rule_set set;
};

static inline int read_list_take(struct list_input *list, const struct rule *rule)
{
	struct read_list *read = list->context;

	return rule_set_add(&read->set, rule);
}

static inline void append(char **text, const char *format, ...)
{
	char *longer = NULL, *more = NULL;
	va_list arguments;

	va_start(arguments, format);
	assert_true(vasprintf(&more, format, arguments) >= 0);
	va_end(arguments);
	assert_true(asprintf(&longer, "%s%s", *text, more) >= 0);
	free(*text);
	free(more);
	*text = longer;
}

static inline void read_list_refuse(struct list_input *list, const char *text)
{
	struct read_list *read = list->context;

	append(&read->refused, "%llu: %s\n", (unsigned long long)list->reader.number, text);
}

static inline void read_list_note(struct list_input *list, const char *text)
{
	struct read_list *read = list->context;

	append(&read->notes, "%s\n", text);
}

static inline int read_list_go_on(struct list_input *list)
{
	(void)list;
	return 0;
}

/* Writes the bytes to a file without a name: *path stays valid until close(). */
static inline int file_of(const void *bytes, size_t length, char path[32])
{
	int fd = memfd_create("list", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

/* Rules come in the order of the list, not sorted. `json`: where they are, or NULL. */
static inline struct read_list read_json(const char *json, enum list_format format, __s64 timeout_ms, const void *bytes,
					 size_t length)
{
	struct read_list read = { .rules = strdup(""), .refused = strdup(""), .notes = strdup("") };
	struct list_input list = { .format = format,
				   .json = json,
				   .timeout_ms = timeout_ms,
				   .take = read_list_take,
				   .refuse = read_list_refuse,
				   .note = read_list_note,
				   .go_on = read_list_go_on,
				   .context = &read };
	char path[32], text[RULE_TEXT_BYTES];
	int fd = file_of(bytes, length, path);
	struct rule rule;

	assert_int_equal(reader_open(&list.reader, path), 0);
	assert_int_equal(list_read(&list), 0);
	reader_close(&list.reader);
	close(fd);
	for (size_t i = 0; i < read.set.count && read.set.count < 4096; i++) {
		rule_set_get(&read.set, i, &rule);
		append(&read.rules, "%s\n", rule_format(&rule, text));
	}
	return read;
}

static inline struct read_list read_bytes(enum list_format format, __s64 timeout_ms, const void *bytes, size_t length)
{
	return read_json(NULL, format, timeout_ms, bytes, length);
}

static inline void free_list(struct read_list *read)
{
	free(read->rules);
	free(read->refused);
	free(read->notes);
	rule_set_close(&read->set);
}

/* ---- random rules ---- */

static inline union flow_addr random_prefix(uint64_t *seed, enum flow_family family, unsigned int length)
{
	union flow_addr address = { .word = { random_next(seed), random_next(seed) } };

	/* Close together, so that prefixes lie in others. */
	if (random_below(seed, 2))
		memcpy(address.byte, "\x0a\x00\x00\x01", 4);
	if (family == FLOW_IPV4)
		memset(address.byte + 4, 0, 12);
	return rule_network(&address, length);
}

static inline unsigned int random_length(uint64_t *seed, enum flow_family family)
{
	const unsigned int bits = family == FLOW_IPV4 ? 32 : 128;

	return random_below(seed, 2) ? bits : random_below(seed, bits + 1);
}

static inline void random_ports(uint64_t *seed, struct rule *rule)
{
	static const __u8 protocols[] = { 6, 17, 136, 132, 33, 1, 58, 47, 50, 0, 200, 254 };

	if (random_below(seed, 3)) {
		rule->fields |= RULE_PROTO;
		rule->proto = protocols[random_below(seed, COUNT(protocols))];
	}
	if (rule->fields && (rule->proto == 1 || rule->proto == 58)) {
		rule->family = rule->proto == 1 ? FLOW_IPV4 : FLOW_IPV6;
		rule->fields |= random_below(seed, 4) * RULE_SPORT;
		rule->sport = rule->fields & RULE_SPORT ? htons(random_below(seed, 256)) : 0;
		rule->dport = rule->fields & RULE_DPORT ? htons(random_below(seed, 256)) : 0;
		rule->port_kind = rule->fields & ~RULE_PROTO ? FLOW_ICMP : FLOW_NO_PORTS;
	} else if (!rule->fields || rule_has_ports(rule->proto)) {
		rule->fields |= random_below(seed, 4) * RULE_SPORT;
		rule->sport = rule->fields & RULE_SPORT ? htons(random_below(seed, 65536)) : 0;
		rule->dport = rule->fields & RULE_DPORT ? htons(random_below(seed, 65536)) : 0;
		rule->port_kind = rule->fields & ~RULE_PROTO ? FLOW_PORTS : FLOW_NO_PORTS;
	}
}

static inline void random_comment(uint64_t *seed, struct rule *rule)
{
	static const char characters[] = "abc XYZ,;#'\\/{}[]:-.=\xc3\xa9";
	const size_t length = random_below(seed, random_below(seed, 8) ? 20 : RULE_COMMENT_BYTES);

	for (size_t i = 0; i < length; i++)
		rule->comment[i] = characters[random_below(seed, sizeof(characters) - 3)];
	if (length > 2)
		memcpy(rule->comment + length - 2, characters + sizeof(characters) - 3, 2);
}

/* Any rule that can be written as text, in canonical form. */
static inline struct rule random_rule(uint64_t *seed)
{
	struct rule rule;

	memset(&rule, 0, sizeof(rule));
	rule.family = random_below(seed, 8) ? random_below(seed, FLOW_FAMILIES) : FLOW_NO_FAMILY;
	rule.action = random_below(seed, 4) ? RULE_DROP : RULE_PASS;
	if (random_below(seed, 2))
		random_ports(seed, &rule);
	if (rule.family != FLOW_NO_FAMILY && random_below(seed, 4)) {
		rule.src_len = random_length(seed, rule.family);
		rule.src = random_prefix(seed, rule.family, rule.src_len);
	}
	if (rule.family != FLOW_NO_FAMILY && !random_below(seed, 3)) {
		rule.dst_len = random_length(seed, rule.family);
		rule.dst = random_prefix(seed, rule.family, rule.dst_len);
	}
	if (rule.family == FLOW_NO_FAMILY && !rule.fields)
		rule.family = FLOW_IPV6;
	if (rule.action != RULE_PASS && !random_below(seed, 8)) {
		rule.fields |= RULE_RATE;
		rule.rate = (1 + random_below(seed, RULE_RATE_MAX)) | (random_below(seed, 2) ? RULE_RATE_BITS : 0);
	}
	if (!random_below(seed, 3))
		rule.timeout_ms = 1000 * (1 + random_below(seed, random_below(seed, 2) ? 100 : RULE_TIMEOUT_MAX_S));
	if (!random_below(seed, 3))
		random_comment(seed, &rule);
	return rule;
}

#endif
