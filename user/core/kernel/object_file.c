// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes the built-in object, with other constants and other sizes of maps, as a file for other loaders. libbpf can
 * change an object in memory, but not write it. A loader reads the sizes in section .BTF and the constants in .rodata,
 * so the file is the built-in object with these two replaced.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "kernel/internal.h"

#define SECTION_ALIGN 8

static Elf64_Shdr *find_section(char *file, const char *name)
{
	const Elf64_Ehdr *head = (const void *)file;
	Elf64_Shdr *sections = (void *)(file + head->e_shoff);
	const char *names = file + sections[head->e_shstrndx].sh_offset;

	for (int i = 1; i < head->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	return NULL;
}

/*
 * A number of a map is the length of an array: __uint(max_entries, N) is the member int (*max_entries)[N]. Other members
 * of the same length have the same type, so a changed one gets a type of its own. A map without the member stays. 0 or
 * -errno.
 */
static int set_number(struct btf *btf, const char *map, const char *member, __u32 number)
{
	const int variable = btf__find_by_name_kind(btf, map, BTF_KIND_VAR);
	const struct btf_type *type = variable < 0 ? NULL : btf__type_by_id(btf, variable);
	const __u32 id = type ? type->type : 0;

	type = id ? btf__type_by_id(btf, id) : NULL;
	if (!type || !btf_is_struct(type))
		return -ENOENT;
	for (int i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *found = &btf_members(type)[i];
		const struct btf_type *pointer = btf__type_by_id(btf, found->type);
		struct btf_array array;
		int added;

		if (strcmp(btf__name_by_offset(btf, found->name_off), member))
			continue;
		array = *btf_array(btf__type_by_id(btf, pointer->type));
		if (array.nelems == number)
			return 0;
		added = btf__add_array(btf, array.index_type, array.type, number);
		if (added > 0)
			added = btf__add_ptr(btf, added);
		if (added < 0)
			return added;
		/* Adding may have moved all types. */
		btf_members(btf__type_by_id(btf, id))[i].type = added;
		return 0;
	}
	return 0;
}

/* Copies the file, overwrites its constants, appends the new .BTF, and points the section header there. */
static int write_file(const char *built_in, size_t size, const struct btf *btf, const void *constants,
		      size_t constants_bytes, char **file, size_t *bytes)
{
	const size_t end = (size + SECTION_ALIGN - 1) & -(size_t)SECTION_ALIGN;
	Elf64_Shdr *types, *read_only;
	const void *raw;
	__u32 raw_bytes;

	raw = btf__raw_data(btf, &raw_bytes);
	*bytes = end + raw_bytes;
	*file = raw ? calloc(1, *bytes) : NULL;
	if (!*file)
		return -ENOMEM;
	memcpy(*file, built_in, size);
	memcpy(*file + end, raw, raw_bytes);
	types = find_section(*file, BTF_ELF_SEC);
	read_only = find_section(*file, ".rodata");
	if (!types || !read_only || read_only->sh_size != constants_bytes)
		return -EPROTO;
	types->sh_offset = end;
	types->sh_size = raw_bytes;
	memcpy(*file + read_only->sh_offset, constants, constants_bytes);
	return 0;
}

int kernel_write_object_file(const struct bpf_object *object, const struct bpf_map *constants, const char *built_in,
			     size_t size, char **file, size_t *bytes)
{
	size_t constants_bytes;
	const void *values = bpf_map__initial_value((struct bpf_map *)constants, &constants_bytes);
	const Elf64_Shdr *types = find_section((char *)built_in, BTF_ELF_SEC);
	struct btf *btf = types && values ? btf__new(built_in + types->sh_offset, types->sh_size) : NULL;
	const struct bpf_map *map;
	int error = 0;

	*file = NULL;
	if (!btf)
		return -EPROTO;
	bpf_object__for_each_map(map, object)
	{
		if (error || bpf_map__is_internal(map))
			continue;
		error = set_number(btf, bpf_map__name(map), "max_entries", bpf_map__max_entries(map));
		if (!error)
			error = set_number(btf, bpf_map__name(map), "value_size", bpf_map__value_size(map));
	}
	if (!error)
		error = write_file(built_in, size, btf, values, constants_bytes, file, bytes);
	btf__free(btf);
	if (!error)
		return 0;
	free(*file);
	*file = NULL;
	return error;
}
