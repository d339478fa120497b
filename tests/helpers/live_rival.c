// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Puts one of the programs that the filter is compared with on an interface, in the place of what is there,
 * with live_sender's listed sources in its hash map. It stays there as long as the interface.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <linux/if_link.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "flow.h"
#include "helpers/live_end.h"
#include "helpers/live_sender.h"

#define OBJECT XDP_CUCKOO_BUILD "/tests/helpers/live_rival.bpf.o"
#define BATCH 65536

struct rival {
	const char *name, *program, *map; /* those without a list have no map */
	__u32 key_bytes;
};

static const struct rival rivals[] = {
	{ .name = "drop", .program = "live_drop" },
	{ .name = "pass", .program = "live_pass" },
	{ .name = "mark", .program = "live_mark" },
	{ .name = "hash-flow",
	  .program = "live_hash_flow",
	  .map = "live_flows",
	  .key_bytes = FLOW_KEY_WORDS_IPV4 * sizeof(__u64) },
	{ .name = "hash-source", .program = "live_hash_source", .map = "live_sources", .key_bytes = sizeof(__be32) },
};

static const struct rival *find_rival(const char *name)
{
	for (size_t i = 0; i < sizeof(rivals) / sizeof(rivals[0]); i++)
		if (!strcmp(rivals[i].name, name))
			return &rivals[i];
	live_die(name, EINVAL);
	return NULL;
}

static struct bpf_object *load(const struct rival *rival, __u32 count)
{
	struct bpf_object *object = bpf_object__open_file(OBJECT, NULL);
	struct bpf_program *program;

	if (!object)
		live_die(OBJECT, errno);
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), rival->program));
	if (rival->map && bpf_map__set_max_entries(bpf_object__find_map_by_name(object, rival->map), count))
		live_die(rival->map, errno);
	if (bpf_object__load(object))
		live_die(rival->program, errno);
	return object;
}

/* A key begins with the source; the rest of it is 0. */
static void fill(int map, __u32 key_bytes, __u32 first, __u32 count)
{
	char *keys = calloc(BATCH, key_bytes);
	__u64 *values = calloc(BATCH, sizeof(*values));

	if (!keys || !values)
		live_die("keys", ENOMEM);
	for (__u32 done = 0; done < count;) {
		__u32 some = count - done < BATCH ? count - done : BATCH;

		for (__u32 i = 0; i < some; i++) {
			const __be32 source = htonl(live_address(first, done + i));

			memcpy(keys + (size_t)i * key_bytes, &source, sizeof(source));
		}
		done += some;
		if (bpf_map_update_batch(map, keys, values, &some, NULL))
			live_die("bpf_map_update_batch", errno);
	}
	free(keys);
	free(values);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ .name = "on", .has_arg = required_argument, .val = 'o' },
		{ .name = "program", .has_arg = required_argument, .val = 'p' },
		{ .name = "skb", .val = 'k' },
		{ .name = "first", .has_arg = required_argument, .val = 'a' },
		{ .name = "count", .has_arg = required_argument, .val = 'n' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = { ['a'] = "16.0.0.0", ['n'] = "1" };
	const struct rival *rival;
	struct bpf_object *object;
	struct in_addr first;
	__u32 count;
	int option, error;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1 && option != '?')
		value[option] = optarg ? optarg : "";
	if (option == '?' || optind != argc || !value['o'] || !value['p'] ||
	    inet_pton(AF_INET, value['a'], &first) != 1) {
		fputs("usage: live_rival --on NETNS:IFACE --program drop|pass|mark|hash-flow|hash-source "
		      "[--skb] [--first SOURCE] [--count N]\n",
		      stderr);
		return 2;
	}
	rival = find_rival(value['p']);
	count = strtoul(value['n'], NULL, 10);
	object = load(rival, count);
	if (rival->map)
		fill(bpf_map__fd(bpf_object__find_map_by_name(object, rival->map)), rival->key_bytes,
		     ntohl(first.s_addr), count);
	error = bpf_xdp_attach(live_enter(value['o']),
			       bpf_program__fd(bpf_object__find_program_by_name(object, rival->program)),
			       value['k'] ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE, NULL);
	if (error)
		live_die(value['o'], error);
	bpf_object__close(object);
	return 0;
}
