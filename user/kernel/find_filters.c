// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the filters that interfaces run, by programs, links and map ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "kernel/kernel.h"
#include "kernel/internal.h"

#define MAPS_OF_A_PROGRAM_MAX 64
#define LOOKS_MAX 100

/* The kernel keeps 15 characters of a program's name. */
static const char name_of_frags[] = "xdp_cuckoo_frags";

struct search {
	const char *name; /* of the filter that the caller wants; NULL: any */
	struct kernel_filter *filters;
	size_t count;
	struct kernel_filter *earlier; /* found by an earlier search: their memory is taken over */
	size_t earlier_count;
	const struct interface *interface;
	enum interface_mode mode;
	__u32 root_id;
	__u64 missed;              /* sum of the ids of programs and links that could not be opened */
	bool has_unsound;          /* a filter cannot be used; `reason` says why */
	struct reason not_reached; /* the same, if that filter has the wanted name, or may have it; else "" */
	char unseen[IF_NAMESIZE];  /* an interface whose program this process may not look at; "": no such interface */
	struct reason *reason;
};

/* A filter that is not set up can still get any name. */
static bool is_named(const struct kernel_filter *filter, const char *name)
{
	return !filter->config->magic || !strncmp(filter->config->name, name, sizeof(filter->config->name));
}

/* A mapped map keeps its id, so the same id is the same map. */
static void take_memory(const struct search *search, struct kernel_filter *filter)
{
	for (size_t i = 0; i < search->earlier_count; i++) {
		for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
			struct kernel_map *from = &search->earlier[i].map[name], *to = &filter->map[name];

			if (!from->memory || from->id != to->id || to->memory)
				continue;
			to->memory = from->memory;
			to->part = from->part;
			from->memory = NULL;
			from->part = NULL;
		}
	}
}

/* Adds an attachment to a filter that is known, or adds the filter. If it is added, *filter is zeroed. */
static int add_filter(struct search *search, struct kernel_filter *filter, const struct bpf_prog_info *program)
{
	struct kernel_attachment attachment = { .ifindex = search->interface->index,
						.mode = search->mode,
						.is_frags =
							!strncmp(program->name, name_of_frags, BPF_OBJ_NAME_LEN - 1),
						.has_ethernet = search->interface->has_ethernet,
						.is_below = search->interface->is_below,
						.mtu = search->interface->mtu,
						.is_tap = search->interface->is_tap,
						.is_virtio_net = search->interface->is_virtio_net,
						.prog_id = program->id,
						.root_id = search->root_id };
	struct kernel_filter *grown;
	int error;

	memcpy(attachment.interface, search->interface->name, sizeof(attachment.interface));
	for (size_t i = 0; i < search->count; i++)
		if (search->filters[i].map[KERNEL_CONFIG].id == filter->map[KERNEL_CONFIG].id)
			return kernel_add_attachment(&search->filters[i], &attachment);
	take_memory(search, filter);
	error = kernel_open_config(filter, search->interface->name, search->reason);
	if (error)
		return error;
	grown = realloc(search->filters, (search->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	search->filters = grown;
	grown[search->count] = *filter;
	*filter = (struct kernel_filter){};
	return kernel_add_attachment(&grown[search->count++], &attachment);
}

/*
 * Looks at one program. *is_ours: it uses a filter's maps. A filter that cannot be used is noted in `search`, and is
 * no error, because it must not hide the others.
 */
static int inspect_program(struct search *search, __u32 prog_id, bool *is_ours)
{
	__u32 ids[MAPS_OF_A_PROGRAM_MAX];
	struct bpf_prog_info info = { .map_ids = (unsigned long)ids, .nr_map_ids = MAPS_OF_A_PROGRAM_MAX };
	__u32 length = sizeof(info), count;
	struct kernel_filter filter = {};
	int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, prog_id), error;

	*is_ours = false;
	if (fd == -ENOENT) {
		search->missed += prog_id; /* it has just ended, or it is not ours */
		return 0;
	}
	if (fd == -EPERM && !kernel_opens_ids())
		return kernel_pins_refuse(search->reason, fd);
	if (fd < 0)
		return kernel_refuse(search->reason, fd, "cannot look at the XDP program on ", search->interface->name);
	error = bpf_obj_get_info_by_fd(fd, &info, &length);
	count = info.nr_map_ids < MAPS_OF_A_PROGRAM_MAX ? info.nr_map_ids : MAPS_OF_A_PROGRAM_MAX;
	if (!error)
		error = kernel_open_maps(ids, count, &filter);
	/* Only now, because the maps may end with the program. */
	close(fd);
	if (error == -EPROTO) {
		kernel_unknown_version_reason(search->interface->name, search->reason);
	} else if (error) {
		kernel_refuse(search->reason, error, "cannot look at the maps of the XDP program on ",
			      search->interface->name);
	} else if (filter.map[KERNEL_CONFIG].fd || filter.is_other_version) {
		error = add_filter(search, &filter, &info);
		*is_ours = !error;
	}
	if (error == -EPROTO) {
		search->has_unsound = *is_ours = true;
		if (!search->name || !filter.config || is_named(&filter, search->name))
			search->not_reached = *search->reason;
	}
	kernel_close(&filter);
	search->missed += error == -ENOENT ? prog_id : 0;
	return error == -EPROTO || error == -ENOENT ? 0 : error;
}

/*
 * Looks at programs that replace a function of another program: libxdp's dispatcher runs programs in this
 * way. Their links name the program that they extend.
 */
static int inspect_extensions(struct search *search)
{
	__u32 id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {};
		__u32 length = sizeof(info);
		bool is_ours;
		int fd = bpf_link_get_fd_by_id(id), error;

		if (fd < 0) {
			search->missed += id; /* it has just ended */
			continue;
		}
		error = bpf_obj_get_info_by_fd(fd, &info, &length);
		close(fd);
		if (error || info.type != BPF_LINK_TYPE_TRACING || info.tracing.target_obj_id != search->root_id)
			continue;
		error = inspect_program(search, info.prog_id, &is_ours);
		if (error)
			return error;
	}
	return 0;
}

static int inspect_interface(struct search *search, const struct interface *interface)
{
	int error = 0;

	search->interface = interface;
	for (int mode = 0; mode < INTERFACE_MODES && !error; mode++) {
		bool is_ours;

		search->mode = mode;
		search->root_id = interface->prog_id[mode];
		if (!search->root_id)
			continue;
		error = inspect_program(search, search->root_id, &is_ours);
		if (error || is_ours)
			continue;
		if (kernel_opens_ids()) {
			error = inspect_extensions(search);
			continue;
		}
		/* The program has no pin here: somebody else may have loaded it, or it has just ended. */
		memcpy(search->unseen, interface->name, sizeof(search->unseen));
		search->missed += search->root_id;
	}
	return error;
}

/*
 * Repeats the search while programs or links disappear, because other programs may have replaced them. Ends when a
 * search misses nothing, or only what the search before missed: this process may not open that. Reaching LOOKS_MAX
 * is no error: no writer replaces tables that fast, and links of others must not block `panic`.
 */
static int search_interfaces(struct search *search)
{
	struct interface *interfaces;
	int error, looks = 0;
	__u64 missed;
	size_t count;

	kernel_catch_messages();
	do {
		missed = search->missed;
		kernel_filters_free(search->filters, search->count);
		*search = (struct search){ .name = search->name,
					   .reason = search->reason,
					   .earlier = search->earlier,
					   .earlier_count = search->earlier_count };
		error = interfaces_list(&interfaces, &count);
		if (error)
			error = kernel_refuse(search->reason, error, "cannot list the network interfaces", "");
		interfaces_keep_running(interfaces, &count);
		for (size_t i = 0; i < count && !error; i++)
			error = inspect_interface(search, &interfaces[i]);
		free(interfaces);
	} while (!error && search->missed && search->missed != missed && ++looks < LOOKS_MAX);
	return error == -ENOMEM ? reason_set(search->reason, error, "no memory to list the filters") : error;
}

/* *filters, *count: filters of an earlier search, which this closes, and then those found. */
static int find(const char *name, bool with_others, struct kernel_filter **filters, size_t *count,
		struct reason *reason)
{
	struct search search = { .name = name, .reason = reason, .earlier = *filters, .earlier_count = *count };
	bool is_found = false;
	int error = search_interfaces(&search);
	size_t kept = 0;

	kernel_filters_free(search.earlier, search.earlier_count);
	if (error) {
		kernel_filters_free(search.filters, search.count);
		search = (struct search){};
	}
	for (size_t i = 0; i < search.count; i++) {
		struct kernel_filter *filter = &search.filters[i];
		const bool is_wanted = !name || is_named(filter, name);

		is_found |= name && is_wanted;
		if (with_others || !filter->is_other_version) {
			search.filters[kept++] = *filter;
			continue;
		}
		if (is_wanted)
			error = kernel_other_version_reason(filter, reason);
		kernel_close(filter);
	}
	if (search.has_unsound && !is_found)
		error = -EPROTO;
	if (*search.unseen && !is_found)
		error = kernel_unseen_reason(search.unseen, reason);
	if (!error)
		*reason = search.not_reached;
	*filters = search.filters;
	*count = kept;
	return error;
}

int kernel_other_version_reason(const struct kernel_filter *filter, struct reason *reason)
{
	const char *name = filter->config->name, *interface = filter->attachments[0].interface;
	const __u32 version = filter->config->version;

	if (version > ABI_VERSION)
		return reason_set(
			reason, -EPROTO,
			"the filter '%s' on '%s' is of a newer version of xdp-cuckoo (its table is of version %u, "
			"this tool's of %u); use that version, or go back: xdp-cuckoo unload %s, then load it here",
			name, interface, version, ABI_VERSION, interface);
	return reason_set(reason, -EPROTO,
			  "the filter '%s' on '%s' is of another version of xdp-cuckoo (its table is of version %u, "
			  "this tool's of %u); xdp-cuckoo --name %s load %s replaces it without a gap",
			  name, interface, version, ABI_VERSION, name, interface);
}

int kernel_look_again(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	return find(name, false, filters, count, reason);
}

int kernel_look(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	*filters = NULL;
	*count = 0;
	return find(name, false, filters, count, reason);
}

int kernel_find(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	kernel_unpin_unused();
	return kernel_look(name, filters, count, reason);
}

int kernel_find_all_again(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	kernel_unpin_unused();
	return find(name, true, filters, count, reason);
}

int kernel_find_all(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	*filters = NULL;
	*count = 0;
	return kernel_find_all_again(name, filters, count, reason);
}

double kernel_age(const struct kernel_filter *filter)
{
	struct timespec now;
	double oldest = -1;

	clock_gettime(CLOCK_BOOTTIME, &now);
	for (size_t i = 0; i < filter->attachments_count; i++) {
		const int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, filter->attachments[i].prog_id);
		struct bpf_prog_info info;

		if (!kernel_program_info(fd, &info)) {
			const double age = now.tv_sec + 1e-9 * now.tv_nsec - 1e-9 * info.load_time;

			oldest = age > oldest ? age : oldest;
		}
		if (fd >= 0)
			close(fd);
	}
	return oldest;
}
