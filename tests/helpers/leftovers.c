// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How many tables, and programs over them, the kernel holds of one store, whatever holds them: leftovers DIR. By the
 * store's id in their configuration, so that other filters on the machine do not count.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "abi.h"
#include "store/store.h"

#define CONFIGS_MAX 4096
#define MAPS_MAX 64

static __u32 config_id[CONFIGS_MAX]; /* of the store's tables */
static size_t configs;

static bool is_of(int map, const struct bpf_map_info *info, const struct store_info *store)
{
	struct abi_config config;
	const __u32 zero = 0;

	return !strcmp(info->name, ABI_CONFIG_MAP) && info->value_size == sizeof(config) &&
	       !bpf_map_lookup_elem(map, &zero, &config) &&
	       !memcmp(config.store_id, store->id, sizeof(config.store_id));
}

static void find_configs(const struct store_info *store)
{
	__u32 id = 0;

	while (configs < CONFIGS_MAX && !bpf_map_get_next_id(id, &id)) {
		struct bpf_map_info info = {};
		__u32 length = sizeof(info);
		const int map = bpf_map_get_fd_by_id(id);

		if (map < 0)
			continue; /* it went meanwhile */
		if (!bpf_obj_get_info_by_fd(map, &info, &length) && is_of(map, &info, store))
			config_id[configs++] = id;
		close(map);
	}
}

static bool uses_config(int program)
{
	__u32 maps[MAPS_MAX] = { 0 }, length;
	struct bpf_prog_info info = { .nr_map_ids = MAPS_MAX, .map_ids = (__u64)(unsigned long)maps };

	length = sizeof(info);
	if (bpf_obj_get_info_by_fd(program, &info, &length))
		return false;
	for (__u32 i = 0; i < info.nr_map_ids && i < MAPS_MAX; i++)
		for (size_t j = 0; j < configs; j++)
			if (maps[i] == config_id[j])
				return true;
	return false;
}

static size_t count_programs(void)
{
	size_t count = 0;
	__u32 id = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
		const int program = bpf_prog_get_fd_by_id(id);

		if (program < 0)
			continue;
		count += uses_config(program);
		close(program);
	}
	return count;
}

int main(int argc, char **argv)
{
	struct store_info info;
	struct reason reason;
	struct store *store;

	if (argc != 2)
		return fputs("usage: leftovers DIR\n", stderr), 2;
	if (store_open(argv[1], STORE_READ, &store, &reason) || store_info(store, &info))
		return fputs("leftovers: no store\n", stderr), 2;
	store_close(store);
	find_configs(&info);
	printf("tables %zu programs %zu\n", configs, count_programs());
	return 0;
}
