// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the filters that run on the interfaces of this network namespace.
 *
 * The way from an interface to its filter: netlink names the program of the interface by its id, the program names its
 * maps by their ids, and one of these maps is the config of a filter. Several interfaces may run programs with the same
 * config: they run one filter. Where libxdp's dispatcher is the program of the interface, our program is an extension
 * that replaces a function of the dispatcher. Then a BPF link names both.
 *
 * Other processes load, replace and remove programs during a search. An id that was just read may no longer exist then.
 * A search that met such an id is repeated: see search_interfaces().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/internal.h"

#define MAPS_OF_A_PROGRAM_MAX 64
#define SEARCHES_MAX 100

/* The kernel keeps 15 characters of a program's name. */
static const char name_of_frags[] = "xdp_cuckoo_frags";

/* A program that replaces a function of another one. */
struct extension {
	__u32 root_id, prog_id;
};

struct filter_search {
	const char *must_see;          /* see struct kernel_wish */
	struct kernel_filter *filters; /* found so far */
	size_t count;
	struct kernel_filter *known; /* found by an earlier call of kernel_find_filters() */
	size_t known_count;
	/* Where the program in question runs. root_id: the program of the interface, ours or the dispatcher. */
	const struct interface *interface;
	enum interface_mode mode;
	__u32 root_id;
	struct extension *extensions; /* once a program was met that is not ours */
	size_t extensions_count;
	bool has_extensions;
	__u64 missed;      /* sum of the ids of programs and links that could not be opened */
	bool has_unusable; /* a filter is damaged or of an unknown version; `reason` says which */
	/* Why a filter that has, or may have, the name must_see (NULL: any name) is unusable; "": there is none. */
	struct reason not_reached;
	char unseen[IF_NAMESIZE]; /* an interface whose program this process may not look at; "": there is none */
	struct reason *reason;
};

/*
 * If this search has found a filter with the same config map, adds this attachment to that one. Else moves *filter into
 * the array first. Returns enum kernel_found, or -errno.
 */
static int add_filter(struct filter_search *search, struct kernel_filter *filter, const struct bpf_prog_info *program)
{
	struct kernel_attachment attachment = kernel_attachment_of(search->interface);
	int found;

	attachment.mode = search->mode;
	attachment.is_frags = !strncmp(program->name, name_of_frags, BPF_OBJ_NAME_LEN - 1);
	attachment.is_behind = search->interface->is_behind[search->mode];
	attachment.is_below = search->mode < INTERFACE_XDP_MODES && search->interface->is_below;
	attachment.prog_id = program->id;
	attachment.root_id = search->root_id;
	for (size_t i = 0; i < search->count; i++)
		if (search->filters[i].map[KERNEL_CONFIG].id == filter->map[KERNEL_CONFIG].id)
			return kernel_add_attachment(&search->filters[i], &attachment);
	/*
	 * Takes over the mappings of the earlier search: to map a table takes longer than finding it. A map stays while
	 * it is mapped, and so does its id. So equal ids mean the same map.
	 */
	for (size_t i = 0; i < search->known_count; i++)
		for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
			struct kernel_map *from = &search->known[i].map[name], *to = &filter->map[name];

			if (!from->memory || from->id != to->id || to->memory)
				continue;
			to->memory = from->memory;
			to->part = from->part;
			from->memory = NULL;
			from->part = NULL;
		}
	found = kernel_open_config(filter, search->interface->name, search->reason);
	if (found)
		return found;
	if (array_grow(&search->filters, search->count, sizeof(*search->filters)))
		return -ENOMEM;
	search->filters[search->count] = *filter;
	*filter = (struct kernel_filter){};
	return kernel_add_attachment(&search->filters[search->count++], &attachment);
}

/* Closes the program, which stays open until its maps are open: they may end with it. As kernel_open_maps(). */
static int open_filter(int fd, struct bpf_prog_info *info, struct kernel_filter *filter)
{
	__u32 ids[MAPS_OF_A_PROGRAM_MAX], length = sizeof(*info);
	int found;

	*info = (struct bpf_prog_info){ .map_ids = (unsigned long)ids, .nr_map_ids = MAPS_OF_A_PROGRAM_MAX };
	found = bpf_obj_get_info_by_fd(fd, info, &length);
	if (!found)
		found = kernel_open_maps(ids, MIN(info->nr_map_ids, MAPS_OF_A_PROGRAM_MAX), filter);
	close(fd);
	return found;
}

/*
 * Looks at one program. Returns 1 if it uses the maps of a filter, 0 if not, or -errno. An unusable filter is no error:
 * it must not hide the others.
 */
static int inspect_program(struct filter_search *search, __u32 prog_id)
{
	const char *interface = search->interface->name;
	struct bpf_prog_info info;
	struct kernel_filter filter = {};
	int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, prog_id), found;
	bool is_filter;

	if (fd == -ENOENT) {
		search->missed += prog_id; /* it has just ended, or it is not pinned here */
		return 0;
	}
	if (fd == -EPERM && !kernel_opens_ids())
		return kernel_pins_refuse(search->reason, fd);
	if (fd < 0)
		return kernel_refuse(search->reason, fd, "cannot look at the XDP program on ", interface);
	found = open_filter(fd, &info, &filter);
	is_filter = filter.map[KERNEL_CONFIG].fd || filter.is_other_version;
	if (found < 0)
		found = kernel_refuse(search->reason, found, "cannot look at the maps of the XDP program on ",
				      interface);
	else if (found == KERNEL_UNUSABLE)
		kernel_unknown_version_reason(interface, search->reason);
	else if (is_filter)
		found = add_filter(search, &filter, &info);
	if (found == KERNEL_UNUSABLE) {
		search->has_unusable = true;
		if (!search->must_see || !filter.config || kernel_may_be_named(filter.config, search->must_see))
			search->not_reached = *search->reason;
	}
	kernel_close(&filter);
	if (found < 0)
		return found;
	search->missed += found == KERNEL_GONE ? prog_id : 0;
	return is_filter && found != KERNEL_GONE;
}

/*
 * Lists them once for all interfaces. Interfaces were listed before: libxdp puts a dispatcher on
 * its interface after what it calls.
 */
static int list_extensions(struct filter_search *search)
{
	__u32 id = 0;

	search->has_extensions = true;
	while (!bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {};
		__u32 length = sizeof(info);
		FD_CLOSED const int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0) {
			search->missed += id; /* it has just ended */
			continue;
		}
		if (bpf_obj_get_info_by_fd(fd, &info, &length) || info.type != BPF_LINK_TYPE_TRACING)
			continue;
		if (array_grow(&search->extensions, search->extensions_count, sizeof(*search->extensions)))
			return -ENOMEM;
		search->extensions[search->extensions_count++] =
			(struct extension){ info.tracing.target_obj_id, info.prog_id };
	}
	return 0;
}

static int inspect_interface(struct filter_search *search, const struct interface *interface)
{
	search->interface = interface;
	for (int mode = 0; mode < INTERFACE_MODES; mode++) {
		int result;

		search->mode = mode;
		search->root_id = interface->prog_id[mode];
		if (!search->root_id)
			continue;
		result = inspect_program(search, search->root_id);
		if (!result && !kernel_opens_ids()) {
			/* The program has no pin here: somebody else may have loaded it, or it has just ended. */
			memcpy(search->unseen, interface->name, sizeof(search->unseen));
			search->missed += search->root_id;
		}
		if (!result && kernel_opens_ids() && !search->has_extensions)
			result = list_extensions(search);
		/* Looks at the programs that extend the program of the interface. */
		for (size_t i = 0; i < search->extensions_count && !result; i++) {
			const struct extension *extension = &search->extensions[i];
			int error = 0;

			if (extension->root_id == search->root_id)
				error = inspect_program(search, extension->prog_id);
			if (error < 0)
				return error;
		}
		if (result < 0)
			return result;
	}
	return 0;
}

/*
 * Searches again if an id was missed: the search may not have seen the program that replaced it. If two searches in a
 * row miss the same ids (the same sum), it ends: this process is not allowed to open them. After SEARCHES_MAX searches
 * the last one counts. No writer replaces tables that fast. If that limit is reached, some tool makes and removes links
 * all the time; `panic` must not wait for it.
 */
static int search_interfaces(struct filter_search *search)
{
	struct interface *interfaces;
	int error, searches = 0;
	__u64 missed_before;
	size_t count;

	kernel_catch_messages();
	do {
		missed_before = search->missed;
		kernel_filters_free(search->filters, search->count);
		free(search->extensions);
		*search = (struct filter_search){ .must_see = search->must_see,
						  .reason = search->reason,
						  .known = search->known,
						  .known_count = search->known_count };
		error = interfaces_list(&interfaces, &count);
		if (error)
			error = kernel_refuse(search->reason, error, "cannot list the network interfaces", "");
		interfaces_keep_running(interfaces, &count);
		for (size_t i = 0; i < count && !error; i++)
			error = inspect_interface(search, &interfaces[i]);
		free(interfaces);
	} while (!error && search->missed && search->missed != missed_before && ++searches < SEARCHES_MAX);
	free(search->extensions);
	return error == -ENOMEM ? reason_set(search->reason, error, "no memory to list the filters") : error;
}

bool kernel_runs_elsewhere(const __u64 store_id[2], const struct kernel_filter *filters, size_t count)
{
	bool is_elsewhere = false;
	__u32 id = 0;

	kernel_catch_messages();
	while (!is_elsewhere && !bpf_prog_get_next_id(id, &id)) {
		const int fd = bpf_prog_get_fd_by_id(id);
		struct kernel_filter filter = {};
		struct bpf_prog_info info;
		struct reason ignored;

		if (fd >= 0 && !open_filter(fd, &info, &filter) && filter.map[KERNEL_CONFIG].fd &&
		    kernel_open_config(&filter, "", &ignored) >= 0 && filter.config)
			is_elsewhere = filter.config->magic && !memcmp(filter.config->store_id, store_id, 2 * sizeof(*store_id));
		for (size_t i = 0; i < count; i++)
			is_elsewhere &= filters[i].map[KERNEL_CONFIG].id != filter.map[KERNEL_CONFIG].id;
		kernel_close(&filter);
	}
	return is_elsewhere;
}

int kernel_seen_error(enum kernel_seen seen)
{
	static const int errors[] = {
		[KERNEL_SEEN] = 0, [KERNEL_SEEN_UNUSABLE] = -EPROTO, [KERNEL_NOT_ALLOWED] = -EPERM
	};

	return errors[seen];
}

int kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	struct filter_search search = {
		.must_see = wish.must_see, .reason = reason, .known = *filters, .known_count = *count
	};
	enum kernel_seen seen = KERNEL_SEEN;
	bool has_wanted = false;
	size_t kept = 0;
	int error;

	if (!wish.keeps_pins)
		kernel_unpin_unused();
	error = search_interfaces(&search);
	kernel_filters_free(search.known, search.known_count);
	if (error) {
		kernel_filters_free(search.filters, search.count);
		search = (struct filter_search){};
	}
	for (size_t i = 0; i < search.count; i++) {
		struct kernel_filter *filter = &search.filters[i];
		const bool is_wanted = !wish.must_see || kernel_may_be_named(filter->config, wish.must_see);

		has_wanted |= wish.must_see && is_wanted;
		if (wish.takes_other_versions || !filter->is_other_version) {
			search.filters[kept++] = *filter;
			continue;
		}
		if (is_wanted) {
			kernel_other_version_reason(filter, reason);
			seen = KERNEL_SEEN_UNUSABLE;
		}
		kernel_close(filter);
	}
	/* A filter that cannot be used or seen may be the wanted one, unless the wanted one was found. */
	if (search.has_unusable && !has_wanted)
		seen = KERNEL_SEEN_UNUSABLE;
	if (*search.unseen && !has_wanted) {
		kernel_unseen_reason(search.unseen, reason);
		seen = KERNEL_NOT_ALLOWED;
	} else if (!(wish.must_see ? has_wanted : kept) && !error && !kernel_sees_tc() && kernel_has_pins()) {
		kernel_unseen_reason(NULL, reason);
		seen = KERNEL_NOT_ALLOWED;
	}
	/*
	 * All that matters was seen. If another filter that may have the name is unusable, the reason says why.
	 */
	if (!error && seen == KERNEL_SEEN)
		*reason = search.not_reached;
	*filters = search.filters;
	*count = kept;
	if (wish.seen)
		*wish.seen = seen;
	return error || wish.seen ? error : kernel_seen_error(seen);
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

double kernel_age(const struct kernel_filter *filter)
{
	const __s64 now_ns = clock_ns(CLOCK_BOOTTIME);
	double oldest = -1;

	for (size_t i = 0; i < filter->attachments_count; i++) {
		FD_CLOSED const int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, filter->attachments[i].prog_id);
		struct bpf_prog_info info;

		if (!kernel_program_info(fd, &info)) {
			const double age = 1e-9 * (now_ns - (__s64)info.load_time);

			oldest = age > oldest ? age : oldest;
		}
	}
	return oldest;
}
