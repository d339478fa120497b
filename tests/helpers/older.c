// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `older DIR NAME VERSION IFACE...` runs what stands for the filter NAME of an older version (older.bpf.c) on interfaces:
 * its config has the head that all versions have, as if it was filled from the store DIR.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "store/store.h"
#include "table/table.h"

#define OBJECT XDP_CUCKOO_BUILD "/tests/helpers/older.bpf.o"

static int read_store(const char *dir, struct store_info *info)
{
	struct reason reason;
	struct store *store;
	int error = store_open(dir, STORE_READ, &store, &reason);

	if (!error)
		error = store_info(store, info);
	store_close(store);
	return error;
}

static int fill_config(struct bpf_map *map, const char *dir, const char *name, __u32 version)
{
	const __u32 zero = 0, size = bpf_map__value_size(map);
	struct abi_config *config = calloc(1, size);
	struct store_info info;
	int error = config ? read_store(dir, &info) : -ENOMEM;

	if (!error) {
		config->magic = ABI_MAGIC;
		config->version = version;
		config->geometry = table_geometry(1ULL << 15);
		config->run = ABI_RUN_SET_UP;
		config->options = (struct abi_options){ .format = BUCKET_16, .is_exact = true, .has_counts = true };
		memcpy(config->store_id, info.id, sizeof(info.id));
		strncpy(config->name, name, sizeof(config->name) - 1);
		error = bpf_map__update_elem(map, &zero, sizeof(zero), config, size, BPF_ANY);
	}
	free(config);
	return error;
}

static int attach(const struct bpf_object *object, const char *interface)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(object, "older");

	return bpf_xdp_attach(if_nametoindex(interface), bpf_program__fd(program),
			      XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	int error;

	if (argc < 5) {
		fputs("usage: older DIR NAME VERSION IFACE...\n", stderr);
		return 2;
	}
	object = bpf_object__open_file(OBJECT, NULL);
	error = object ? bpf_object__load(object) : -errno;
	if (!error)
		error = fill_config(bpf_object__find_map_by_name(object, ABI_CONFIG_MAP), argv[1], argv[2],
				    strtoul(argv[3], NULL, 10));
	for (int i = 4; i < argc && !error; i++)
		error = attach(object, argv[i]);
	if (error)
		fprintf(stderr, "older: %s\n", strerror(-error));
	bpf_object__close(object);
	return error != 0;
}
