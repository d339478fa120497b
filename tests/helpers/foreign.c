// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What only looks like a filter: `foreign IFACE MAP WHAT N` runs the object on an interface, with the type,
 * value or entries of one of its maps set to N; `foreign config WHAT` writes nonsense into the config of the
 * filter that runs in this network namespace.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "kernel/kernel.h"
#include "unit/raw_filter.h"

static int change(struct bpf_map *map, const char *what, __u32 number)
{
	if (!strcmp(what, "type"))
		return bpf_map__set_type(map, number);
	if (!strcmp(what, "value"))
		return bpf_map__set_value_size(map, number);
	if (!strcmp(what, "flags"))
		return bpf_map__set_map_flags(map, number);
	return strcmp(what, "entries") ? -EINVAL : bpf_map__set_max_entries(map, number);
}

/* 0 or -errno. */
static int run_with(const char *interface, const char *name, const char *what, __u32 number)
{
	struct bpf_object *object = bpf_object__open_file(XDP_CUCKOO_OBJECT, NULL);
	struct bpf_map *map = object ? bpf_object__find_map_by_name(object, name) : NULL;
	struct bpf_program *program;
	int error = map ? change(map, what, number) : -ENOENT;

	if (!error)
		error = bpf_object__load(object);
	program = error ? NULL : bpf_object__find_program_by_name(object, "xdp_cuckoo");
	if (program)
		error = bpf_xdp_attach(if_nametoindex(interface), bpf_program__fd(program),
				       XDP_FLAGS_UPDATE_IF_NOEXIST | XDP_FLAGS_SKB_MODE, NULL);
	bpf_object__close(object);
	return error;
}

static int damage(struct abi_config *config, const char *what)
{
	if (!strcmp(what, "name"))
		memset(config->name, 'x', sizeof(config->name));
	else if (!strcmp(what, "format"))
		config->options.format = BUCKET_FORMATS;
	else if (!strcmp(what, "other-format"))
		config->options.format = BUCKET_32;
	else if (!strcmp(what, "records"))
		config->options.has_counts = !config->options.has_counts;
	else if (!strcmp(what, "shapes"))
		config->table[0].shapes[FLOW_IPV4][0].count = ~0U;
	else if (!strcmp(what, "geometry"))
		config->table[config->active % ABI_TABLES].geometry.buckets *= 2;
	else
		return -EINVAL;
	return 0;
}

static int damage_config(const char *what)
{
	struct kernel_filter *filters = NULL;
	struct reason reason;
	size_t count = 0;
	int error = kernel_find_filters((struct kernel_wish){ 0 }, &filters, &count, &reason);

	if (!error)
		error = count == 1 ? damage(filters[0].config, what) : -ENOENT;
	kernel_filters_free(filters, count);
	return error;
}

int main(int argc, char **argv)
{
	int error = -EINVAL;

	if (argc == 3 && !strcmp(argv[1], "config"))
		error = damage_config(argv[2]);
	else if (argc == 5)
		error = run_with(argv[1], argv[2], argv[3], strtoul(argv[4], NULL, 10));
	if (error)
		fprintf(stderr, "foreign: %s\n", strerror(-error));
	return error != 0;
}
