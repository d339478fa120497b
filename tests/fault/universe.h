/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules by number, each with a flow that it alone decides about, and sets of them: what should be stored,
 * what is listed, what the program on an interface does. Knows neither the tool's rules nor its tables.
 */
#ifndef XDP_CUCKOO_TESTS_UNIVERSE_H
#define XDP_CUCKOO_TESTS_UNIVERSE_H

#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "helpers/frame.h"

#define UNIVERSE_RULES 1536
#define UNIVERSE_INNOCENT 1472 /* from here on: never in a rule */
#define UNIVERSE_TEXT_BYTES 160

/* Single numbers that are not like the others. */
enum universe_special {
	UNIVERSE_NEW_KIND = 1400, /* a kind of rule that no other number has */
	UNIVERSE_WIDE,            /* a whole /12, which hints tell of */
	UNIVERSE_PASS,            /* an address within number 4, which drops it */
	UNIVERSE_POLICY,          /* no rule: later fragments are dropped */
};

struct universe_set {
	bool has[UNIVERSE_RULES];
};

struct universe_range {
	unsigned int first, end;
};

static inline void universe_add(struct universe_set *set, struct universe_range range)
{
	memset(set->has + range.first, true, range.end - range.first);
}

static inline void universe_remove(struct universe_set *set, struct universe_range range)
{
	memset(set->has + range.first, false, range.end - range.first);
}

static inline bool universe_equal(const struct universe_set *a, const struct universe_set *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- rules and flows ---- */

static inline const char *universe_special_rule(unsigned int n)
{
	switch (n) {
	case UNIVERSE_NEW_KIND:
		return "proto udp dst 198.51.100.9 dport 99";
	case UNIVERSE_WIDE:
		return "src 172.16.0.0/12";
	case UNIVERSE_PASS:
		return "src 12.0.4.3 action pass";
	default:
		return "";
	}
}

/* As the tool writes it. */
static inline const char *universe_rule(unsigned int n, char text[UNIVERSE_TEXT_BYTES])
{
	const unsigned int high = n >> 8, low = n & 255;

	if (n >= UNIVERSE_NEW_KIND && n <= UNIVERSE_POLICY)
		return universe_special_rule(n);
	switch (n % 8) {
	case 4:
		snprintf(text, UNIVERSE_TEXT_BYTES, "src 12.%u.%u.0/28", high, low);
		break;
	case 5:
		snprintf(text, UNIVERSE_TEXT_BYTES, "proto udp src 10.%u.%u.7 dport 53", high, low);
		break;
	case 6:
		snprintf(text, UNIVERSE_TEXT_BYTES, "src 2001:db8:%x::1", n);
		break;
	case 7:
		snprintf(text, UNIVERSE_TEXT_BYTES, "proto tcp src 10.%u.%u.7 sport 4444 dst 198.18.0.1 dport 443",
			 high, low);
		break;
	default:
		snprintf(text, UNIVERSE_TEXT_BYTES, "src 10.%u.%u.7", high, low);
	}
	return text;
}

static inline const char *universe_special_flow(unsigned int n)
{
	switch (n) {
	case UNIVERSE_NEW_KIND:
		return "proto udp src 13.0.0.1 dst 198.51.100.9 sport 1 dport 99";
	case UNIVERSE_WIDE:
		return "proto udp src 172.20.1.1 dst 198.18.0.1 sport 1 dport 2";
	case UNIVERSE_PASS:
		return "proto udp src 12.0.4.3 dst 198.18.0.1 sport 1 dport 2";
	default:
		return "proto udp src 13.0.0.2 dst 198.18.0.1 fragment later";
	}
}

static inline void universe_flow(unsigned int n, char text[UNIVERSE_TEXT_BYTES])
{
	const unsigned int high = n >> 8, low = n & 255;

	if (n >= UNIVERSE_NEW_KIND && n <= UNIVERSE_POLICY)
		snprintf(text, UNIVERSE_TEXT_BYTES, "%s", universe_special_flow(n));
	else if (n % 8 == 4)
		snprintf(text, UNIVERSE_TEXT_BYTES, "proto udp src 12.%u.%u.9 dst 198.18.0.1 sport 1 dport 2", high,
			 low);
	else if (n % 8 == 6)
		snprintf(text, UNIVERSE_TEXT_BYTES, "proto udp src 2001:db8:%x::1 dst 2001:db8::1 sport 1 dport 2", n);
	else if (n % 8 == 7)
		snprintf(text, UNIVERSE_TEXT_BYTES, "proto tcp src 10.%u.%u.7 sport 4444 dst 198.18.0.1 dport 443",
			 high, low);
	else
		snprintf(text, UNIVERSE_TEXT_BYTES, "proto udp src 10.%u.%u.7 dst 198.18.0.1 sport 1 dport 53", high,
			 low);
}

/* Whether flow number n is dropped where exactly the rules of the set hold. */
static inline bool universe_drops(const struct universe_set *set, unsigned int n)
{
	return n == UNIVERSE_PASS ? set->has[4] && !set->has[n] : set->has[n];
}

/* All texts, and the numbers in their order. */
struct universe_index {
	char text[UNIVERSE_RULES][UNIVERSE_TEXT_BYTES];
	const char *sorted[UNIVERSE_RULES];
};

static int universe_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void universe_index(struct universe_index *index)
{
	char room[UNIVERSE_TEXT_BYTES];

	for (unsigned int n = 0; n < UNIVERSE_RULES; n++) {
		snprintf(index->text[n], UNIVERSE_TEXT_BYTES, "%s", universe_rule(n, room));
		index->sorted[n] = index->text[n];
	}
	qsort(index->sorted, UNIVERSE_RULES, sizeof(index->sorted[0]), universe_compare);
}

/* The number of a rule; UNIVERSE_RULES: of none. */
static inline unsigned int universe_number(const struct universe_index *index, const char *text)
{
	const char **found = bsearch(&text, index->sorted, UNIVERSE_RULES, sizeof(index->sorted[0]), universe_compare);

	return found ? (*found - index->text[0]) / UNIVERSE_TEXT_BYTES : UNIVERSE_RULES;
}

/* ---- what the kernel makes of them ---- */

struct universe_frames {
	uint8_t frame[UNIVERSE_RULES][FRAME_BYTES_MAX];
	size_t bytes[UNIVERSE_RULES];
};

static inline int universe_build(struct universe_frames *frames)
{
	static const uint8_t mac[2][ETH_ALEN];
	const struct frame_trailer trailer = {};

	for (unsigned int n = 0; n < UNIVERSE_RULES; n++) {
		char text[UNIVERSE_TEXT_BYTES];
		struct frame_flow flow;

		universe_flow(n, text);
		if (frame_parse(text, &flow))
			return -EINVAL;
		frames->bytes[n] = frame_build(&flow, mac, &trailer, frames->frame[n]);
	}
	return 0;
}

/* The id of the program on an interface; 0: there is none. */
static inline __u32 universe_program(const char *interface)
{
	__u32 id = 0;

	return bpf_xdp_query_id(if_nametoindex(interface), 0, &id) ? 0 : id;
}

/* Which flows of those that are asked for the program drops. 0; -errno. */
static inline int universe_ask(const struct universe_frames *frames, __u32 program, const struct universe_set *asked,
			       struct universe_set *drops)
{
	int fd = bpf_prog_get_fd_by_id(program), error = 0;

	if (fd < 0)
		return fd;
	for (unsigned int n = 0; n < UNIVERSE_RULES && !error; n++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frames->frame[n], .data_size_in = frames->bytes[n],
			    .repeat = 1);

		if (asked->has[n])
			error = bpf_prog_test_run_opts(fd, &opts);
		drops->has[n] = asked->has[n] && opts.retval == XDP_DROP;
	}
	close(fd);
	return error;
}

#endif
