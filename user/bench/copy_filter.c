// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

#define NAMES_BYTES 128 /* of running filters, in a message */

static const struct kernel_filter *find_named(const struct kernel_filter *filters, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (kernel_is_named(filters[i].config, name))
			return &filters[i];
	return NULL;
}

/* Lists each name once, as far as there is room. */
static const char *list_names(const struct kernel_filter *filters, size_t count, char names[NAMES_BYTES])
{
	size_t used = 0;

	names[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *name = filters[i].config->name;

		if (!filters[i].config->magic || find_named(filters, i, name) || used + strlen(name) + 3 > NAMES_BYTES)
			continue;
		if (used)
			names[used++] = ' ';
		used = stpcpy(names + used, name) - names;
	}
	return used ? names : "none";
}

/* While the store is locked, only the counters of the running filter change. */
static int copy_maps(const struct kernel_filter *from, const struct kernel_filter *to, struct reason *reason)
{
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
		int error;

		if (!from->map[name].memory)
			continue;
		if (from->map[name].bytes != to->map[name].bytes)
			return reason_set(reason, -EPROTO,
					  "the maps of the running filter have other sizes than its table; take it off "
					  "(xdp-cuckoo unload) and load it again");
		error = kernel_map_part(&from->map[name], 0, from->map[name].bytes);
		if (!error)
			error = kernel_map_part(&to->map[name], 0, to->map[name].bytes);
		if (error)
			return reason_set(reason, error, "cannot map the filter's table: %s", strerror(-error));
		memcpy(to->map[name].memory, from->map[name].memory, to->map[name].bytes);
	}
	return 0;
}

/* The store is locked. The running filter must have exactly its rules. */
static int check_original(const struct session *session, const struct kernel_filter *kernel, struct reason *reason)
{
	const struct abi_config *config = kernel->config;
	struct store_info info = {};
	int error = session->store ? store_info(session->store, &info) : 0;

	if (error)
		return store_unread_reason(error, reason);
	if (memcmp(config->store_id, info.id, sizeof(info.id)))
		return reason_set(reason, -EEXIST,
				  "the filter '%s' on %s is filled from another store; give the --state it was loaded "
				  "with",
				  session->name, kernel->attachments[0].interface);
	if (config->generation != info.generation)
		return reason_set(reason, -EPROTO,
				  "the table of '%s' on %s is not equal to the store: an earlier command did not finish; "
				  "xdp-cuckoo check repairs it",
				  session->name, kernel->attachments[0].interface);
	return 0;
}

/* Sets session->filters to one filter: a copy, or the one that a load would make. */
static int make_filter(struct session *session, const struct copy_wanted *wanted, const struct kernel_filter *filters,
		       size_t count, struct copy_original *original, struct reason *reason)
{
	const struct kernel_filter *kernel = find_named(filters, count, session->name);
	struct filter *filter;
	char names[NAMES_BYTES];
	int error;

	session->filters = calloc(1, sizeof(*session->filters));
	if (!session->filters)
		return reason_set(reason, -ENOMEM, "no memory for the list of filters");
	original->is_missing = !kernel && !session->store;
	if (original->is_missing)
		return reason_set(reason, -ENOENT,
				  "no filter '%s' is running here, and no rules are stored under that --name; "
				  "running: %s",
				  session->name, list_names(filters, count, names));
	if (kernel) {
		original->is_running = true;
		original->is_filtering = (kernel->config->run & ~(ABI_RUN_REPLACING | ABI_RUN_FLEET)) == ABI_RUN_SET_UP;
		memcpy(original->interface, kernel->attachments[0].interface, IF_NAMESIZE);
	}
	if (kernel && (!wanted->is_another || !session->store)) {
		original->is_copied = true;
		error = check_original(session, kernel, reason);
		if (!error)
			error = filter_create_like(session->filters, kernel, reason);
		if (!error) {
			session->filters_count++;
			error = copy_maps(kernel, &session->filters->kernel, reason);
		}
		if (!error)
			error = filter_reopen(session->filters, reason);
	} else {
		error = session_load(session, &wanted->options, wanted->capacity, &filter, reason);
	}
	if (error)
		return error;
	session->filters->kernel.config->run = ABI_RUN_SET_UP;
	session->filters->kernel.config->listener = 0;
	return 0;
}

int session_open_copy(struct session *session, const char *state, const char *name, const struct copy_wanted *wanted,
		      struct copy_original *original, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	struct store *store = NULL;
	size_t count = 0;
	int error;

	*session = (struct session){};
	*original = (struct copy_original){};
	strncpy(session->name, name, sizeof(session->name) - 1);
	/* Locks the store against writers. Creates no store: if there is none, session->store stays NULL. */
	error = session_open_store(state, name, STORE_READ, &store, reason);
	store_close(store);
	if (!error)
		error = session_open_store(state, name, STORE_WRITE, &session->store, reason);
	else if (error == -ENOENT)
		error = 0;
	if (!error)
		error = kernel_find_filters((struct kernel_wish){ .must_see = name }, &filters, &count, reason);
	if (!error)
		error = make_filter(session, wanted, filters, count, original, reason);
	kernel_filters_free(filters, count);
	if (error)
		session_close(session);
	return error;
}
