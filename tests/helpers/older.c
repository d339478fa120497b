// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `older DIR NAME VERSION IFACE...` runs what stands for the filter NAME of an older version (older.bpf.c) on interfaces:
 * its config has the head that all versions have, as if it was filled from the store DIR. `--map ID` in the place of
 * interfaces: it runs already, and this is the id of its config.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
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

static int fill_config(int map, const char *dir, const char *name, __u32 version)
{
	const __u32 zero = 0, size = sizeof(struct abi_config) + 64; /* as older.bpf.c has it */
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
		error = bpf_map_update_elem(map, &zero, config, BPF_ANY) ? -errno : 0;
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
	int error, map;
	bool is_map;

	if (argc < 5 || (!strcmp(argv[4], "--map") && argc != 6)) {
		fputs("usage: older DIR NAME VERSION IFACE...|--map ID\n", stderr);
		return 2;
	}
	is_map = !strcmp(argv[4], "--map");
	if (is_map) {
		object = NULL;
		map = bpf_map_get_fd_by_id(strtoul(argv[5], NULL, 10));
		error = map < 0 ? map : 0;
	} else {
		object = bpf_object__open_file(OBJECT, NULL);
		error = object ? bpf_object__load(object) : -errno;
		map = bpf_object__find_map_fd_by_name(object, ABI_CONFIG_MAP);
	}
	if (!error)
		error = fill_config(map, argv[1], argv[2], strtoul(argv[3], NULL, 10));
	for (int i = 4; i < argc && !error && !is_map; i++)
		error = attach(object, argv[i]);
	if (error)
		fprintf(stderr, "older: %s\n", strerror(-error));
	bpf_object__close(object);
	return error != 0;
}
