// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From a list of IPv4 addresses and prefixes (FireHOL, Spamhaus) to flows for `traffic`: some inside
 * each entry, which a filter with that list must drop, and some outside all of them, which it must
 * pass. Knows the list by its own reading of it, not by the tool's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct range {
	uint32_t first, last;
};

struct list_input {
	struct range *range;
	size_t count, room;
};

/* The addresses in no range: `before` is how many stand in the gaps before this one. */
struct gap {
	uint32_t first;
	uint64_t before;
};

/* splitmix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint64_t random_below(uint64_t *state, uint64_t bound)
{
	return (uint64_t)((unsigned __int128)random_next(state) * bound >> 64);
}

static bool range_parse(char *text, struct range *range)
{
	char *slash = strchr(text, '/');
	unsigned long length = 32;
	struct in_addr address;
	uint32_t host_bits;
	char *end;

	if (slash) {
		*slash = '\0';
		length = strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end != '\0' || length > 32)
			return false;
	}
	if (inet_pton(AF_INET, text, &address) != 1)
		return false;
	host_bits = length == 32 ? 0 : UINT32_MAX >> length;
	range->first = ntohl(address.s_addr) & ~host_bits;
	range->last = range->first | host_bits;
	return true;
}

static void list_append(struct list_input *list, struct range range)
{
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 1024;
		list->range = reallocarray(list->range, list->room, sizeof(*list->range));
		if (!list->range)
			abort();
	}
	list->range[list->count++] = range;
}

/* Reads the first word of each line; # and ; start a comment. 0; -errno, having said why. */
static int list_read(const char *path, struct list_input *list)
{
	FILE *file = fopen(path, "re");
	unsigned int line = 0;
	char text[512];
	int error = 0;

	if (!file) {
		error = -errno;
		fprintf(stderr, "list_flows: %s: %s\n", path, strerror(-error));
		return error;
	}
	while (!error && fgets(text, sizeof(text), file)) {
		struct range range;
		char *rest = NULL;
		char *word;

		line++;
		text[strcspn(text, "#;")] = '\0';
		word = strtok_r(text, " \t\r\n", &rest);
		if (!word)
			continue;
		if (range_parse(word, &range)) {
			list_append(list, range);
			continue;
		}
		fprintf(stderr, "list_flows: %s:%u: not an IPv4 prefix: %s\n", path, line, word);
		error = -EINVAL;
	}
	fclose(file);
	return error;
}

static int range_compare(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return (a->first > b->first) - (a->first < b->first);
}

/* Fills `gaps`, with room for count + 1. Returns how many; *addresses is how many they hold. */
static size_t list_gaps(const struct list_input *list, struct gap *gaps, uint64_t *addresses)
{
	const uint64_t end = 1ULL << 32;
	uint64_t next = 0; /* no address below is in a later range or a gap */
	size_t count = 0;

	*addresses = 0;
	for (size_t i = 0; i <= list->count; i++) {
		const uint64_t first = i < list->count ? list->range[i].first : end;

		if (first > next) {
			gaps[count++] = (struct gap){ (uint32_t)next, *addresses };
			*addresses += first - next;
		}
		if (i < list->count && list->range[i].last >= next)
			next = (uint64_t)list->range[i].last + 1;
	}
	return count;
}

/* The address number `number` of all those in gaps. */
static uint32_t gap_address(const struct gap *gaps, size_t count, uint64_t number)
{
	size_t low = 0, high = count;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (gaps[middle].before <= number)
			low = middle;
		else
			high = middle;
	}
	return gaps[low].first + (uint32_t)(number - gaps[low].before);
}

static void flow_print(const char *expect, const char *group, uint32_t address, uint64_t *random)
{
	static unsigned int turn;
	const struct in_addr source = { .s_addr = htonl(address) };
	const uint64_t bits = random_next(random);
	const unsigned int sport = bits & 0xffff, dport = bits >> 16 & 0xffff;
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &source, text, sizeof(text));
	switch (turn++ % 3) {
	case 0:
		printf("%s %s-udp proto udp src %s dst 198.18.0.1 sport %u dport %u\n", expect, group, text, sport,
		       dport);
		return;
	case 1:
		printf("%s %s-tcp proto tcp src %s dst 198.18.0.1 sport %u dport %u\n", expect, group, text, sport,
		       dport);
		return;
	default:
		printf("%s %s-icmp proto icmp src %s dst 198.18.0.1 type 8 code 0\n", expect, group, text);
	}
}

static void print_inside(const struct list_input *list, uint64_t hosts, uint64_t *random)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct range *range = &list->range[i];
		const uint64_t inner = (uint64_t)range->last - range->first;

		flow_print("drop", "listed", range->first, random);
		if (inner)
			flow_print("drop", "listed", range->last, random);
		for (uint64_t host = 0; inner > 1 && host < hosts && host < inner - 1; host++) {
			const uint64_t offset = 1 + random_below(random, inner - 1);

			flow_print("drop", "listed", range->first + (uint32_t)offset, random);
		}
	}
}

static int print_outside(const struct list_input *list, uint64_t wanted, uint64_t *random)
{
	struct gap *gaps = calloc(list->count + 1, sizeof(*gaps));
	uint64_t addresses = 0;
	size_t count;

	if (!gaps)
		return -ENOMEM;
	count = list_gaps(list, gaps, &addresses);
	for (uint64_t i = 0; addresses && i < wanted; i++)
		flow_print("pass", "outside", gap_address(gaps, count, random_below(random, addresses)), random);
	free(gaps);
	return addresses || !wanted ? 0 : -ERANGE;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ .name = "hosts", .has_arg = required_argument, .val = 'h' },
		{ .name = "outside", .has_arg = required_argument, .val = 'o' },
		{ .name = "seed", .has_arg = required_argument, .val = 's' },
		{ 0 },
	};
	uint64_t value[UINT8_MAX + 1] = { ['s'] = 1 };
	struct list_input list = { 0 };
	int option, error;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && option != '?')
		value[option] = strtoull(optarg, NULL, 0);
	if (option == '?' || optind + 1 != argc) {
		fputs("usage: list_flows [--hosts N] [--outside N] [--seed S] FILE\n", stderr);
		return 2;
	}
	if (list_read(argv[optind], &list))
		return 2;
	if (list.count)
		qsort(list.range, list.count, sizeof(*list.range), range_compare);
	printf("# seed %" PRIu64 "\n", value['s']);
	print_inside(&list, value['h'], &value['s']);
	error = print_outside(&list, value['o'], &value['s']);
	if (error)
		fprintf(stderr, "list_flows: no address is outside: %s\n", strerror(-error));
	free(list.range);
	return error ? 2 : 0;
}
