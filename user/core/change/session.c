// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens store and running filters together; loads, resizes and checks filters. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/privileges.h"
#include "base/waiting.h"
#include "change/internal.h"

#define SLOTS_LEAST (1ULL << 14) /* of an exact table, where no capacity is given */
#define ROOM_MOST (1ULL << 20)   /* for keys to come */

/* ---- the filters of a store ---- */

/* A compact table stores no ends: rules that have ended would match again. */
static int forget_ended(struct session *session, struct reason *reason)
{
	__u64 ignored;
	int error = change_begin(session, reason);

	return error ? error : change_end(session, change_expire(session, &ignored, reason), reason);
}

/* A filter that is not set up can still get any name. */
static bool belongs(const struct session *session, const struct kernel_filter *kernel)
{
	return kernel_may_be_named(kernel->config, session->name);
}

/* ---- filters that another loader has loaded ---- */

static void say_who_adopts(int fd, struct reason *text)
{
	(void)fd;
	reason_set(text, 0, "waiting for another xdp-cuckoo, which sets up a filter that another tool has loaded");
}

/*
 * A session of any name may adopt a foreign filter, and each name has a lock of its own. So one lock for all names of the state
 * directory is held while filters are adopted, and the filters are looked at again under this lock.
 */
static int lock_adoption(struct session *session, enum store_mode mode, const char *state, struct kernel_wish wish,
			 struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	const char *dir = state ? state : SESSION_STATE_DEFAULT;
	bool is_any_foreign = false;
	int error;

	for (size_t i = 0; i < *count; i++) {
		const struct kernel_filter *kernel = &(*filters)[i];

		is_any_foreign |= !kernel->is_other_version && belongs(session, kernel) &&
				  (!kernel->config->magic || !(kernel->config->run & ABI_RUN_SET_UP));
	}
	if (!is_any_foreign)
		return 0;
	session->adoption_lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = session->adoption_lock < 0 ? -errno :
					     waiting_lock(session->adoption_lock,
							  LOCK_EX | (mode == STORE_TRY ? LOCK_NB : 0), say_who_adopts);
	error = error == -EWOULDBLOCK ? -EBUSY : error;
	if (error)
		return reason_set(reason, error, "cannot lock %s: %s", dir, strerror(-error));
	return kernel_find_filters(wish, filters, count, reason);
}

static void unlock_adoption(struct session *session)
{
	waiting_unlock(session->adoption_lock > 0 ? session->adoption_lock : -1);
	session->adoption_lock = 0;
}

/* Whether the first interface of `old` also runs a filter of this version that has, or gets, the same rules. */
static bool has_newer_beside(const struct session *session, const struct kernel_filter *kernels, size_t count,
			     const struct kernel_filter *old)
{
	if (session_attachment_on(session, old->attachments->interface, false))
		return true;
	for (size_t i = 0; i < count; i++) {
		const struct kernel_filter *kernel = &kernels[i];

		/* No config: filter_open() has moved it into the session. */
		if (!kernel->config || kernel->is_other_version || !belongs(session, kernel))
			continue;
		for (size_t k = 0; k < kernel->attachments_count; k++)
			if (kernel->attachments[k].ifindex == old->attachments->ifindex)
				return true;
	}
	return false;
}

/* For a session that will load a filter: see session_open_to_load(). */
struct to_load {
	bool is_on_trial;
	struct reason *unseen;
};

/* Refuses filters of versions that cannot be replaced here. Nothing has changed yet. */
static int check_versions(const struct session *session, const struct kernel_filter *kernels, size_t count,
			  const struct to_load *to_load, struct reason *reason)
{
	for (size_t i = 0; i < count; i++) {
		if (!kernels[i].is_other_version || !belongs(session, &kernels[i]))
			continue;
		if (kernels[i].config->version > ABI_VERSION)
			return kernel_other_version_reason(&kernels[i], reason);
		if (to_load && to_load->is_on_trial)
			return reason_set(reason, -EINVAL,
					  "the filter on '%s' is of an older version of xdp-cuckoo, and nothing can undo "
					  "its replacement: first replace it without --confirm",
					  kernels[i].attachments->interface);
	}
	return 0;
}

/* Opens one filter and makes it equal to the store. It becomes the last of the session. */
static int open_filter(struct session *session, struct kernel_filter *kernel, struct reason *reason)
{
	struct filter *filter = &session->filters[session->filters_count];
	int error = kernel->is_other_version ? filter_take_over(filter, kernel, session->store, reason) :
					       filter_open(filter, kernel, reason);

	if (error)
		return error;
	session->filters_count++;
	/* A load on trial may have died before it started the filter. */
	if (filter->state != FILTER_TAKEN_OVER && !filter->kernel.config->magic)
		filter_confirm(filter);
	if (filter->state != FILTER_TAKEN_OVER)
		error = filter_update(filter, session->store, session->name, reason);
	session->is_unwatched |= filter->state == FILTER_TAKEN_OVER || filter->state == FILTER_SET_UP;
	return error;
}

/* Opens the filters that have, or get, the rules of this store, and makes them equal to it. */
static int open_filters(struct session *session, struct kernel_filter *kernels, size_t count,
			const struct to_load *to_load, struct reason *reason)
{
	bool is_new_compact = false;
	int error = check_versions(session, kernels, count, to_load, reason);

	for (size_t i = 0; i < count; i++)
		is_new_compact |= !kernels[i].is_other_version && !kernels[i].config->magic &&
				  !kernels[i].options.is_exact;
	/* Compact filters that another tool loaded get the rules for the first time, without ends. What has ended must not enter. */
	if (!error && is_new_compact)
		error = forget_ended(session, reason);
	if (error)
		return error;
	/* One more than there are, for session_load(). */
	session->filters = calloc(count + 1, sizeof(*session->filters));
	if (!session->filters)
		return reason_set(reason, -ENOMEM, "no memory for the list of filters");
	for (size_t i = 0; i < count && !error; i++) {
		/* Filters behind libxdp's dispatcher are exchanged by hand: the operator will unload the old one. */
		const bool is_left_out = kernels[i].is_other_version && kernel_held_attachment(&kernels[i]) &&
					 has_newer_beside(session, kernels, count, &kernels[i]);

		if (belongs(session, &kernels[i]) && !is_left_out)
			error = open_filter(session, &kernels[i], reason);
	}
	if (!error && !to_load)
		session_start(session);
	return error;
}

void session_start(struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		filter_start(&session->filters[i]);
	unlock_adoption(session);
}

void session_unlock(struct session *session)
{
	store_close(session->store);
	session->store = NULL;
}

void session_close(struct session *session)
{
	char name[ABI_NAME_BYTES];
	struct watchdog watchdog = { .state = session->state, .name = name };

	memcpy(name, session->name, sizeof(name));
	/* The caller starts a process for a change of its own. */
	if (session->is_unwatched && session->store && !session->confirm_ms && watchdog_wanted)
		watchdog_take_pending(&watchdog, session->store);
	change_forget(session);
	for (size_t i = 0; i < session->filters_count; i++)
		filter_close(&session->filters[i]);
	free(session->filters);
	kernel_filters_free(session->paused, session->paused_count);
	unlock_adoption(session);
	store_close(session->store);
	*session = (struct session){};
	if (watchdog.pending_id)
		watchdog_wanted(&watchdog);
}

void session_pause(struct session *session)
{
	struct session paused = {};

	if (session->is_unwatched) {
		session_close(session);
		return;
	}
	change_forget(session);
	paused.paused = calloc(session->filters_count, sizeof(*paused.paused));
	for (size_t i = 0; paused.paused && i < session->filters_count; i++)
		filter_give_back(&session->filters[i], &paused.paused[paused.paused_count++]);
	if (paused.paused)
		session->filters_count = 0;
	store_pause(&session->store);
	paused.store = session->store;
	session->store = NULL;
	session_close(session);
	*session = paused;
}

struct kernel_filter *session_filter_on(const struct session *session, const char *interface, bool is_outgoing,
					struct kernel_attachment **attachment)
{
	for (size_t i = 0; i < session->filters_count; i++) {
		struct kernel_filter *kernel = &session->filters[i].kernel;

		for (size_t k = 0; k < kernel->attachments_count; k++) {
			*attachment = &kernel->attachments[k];
			if (kernel_is_outgoing(*attachment) == is_outgoing &&
			    interfaces_are_one((*attachment)->interface, interface))
				return kernel;
		}
	}
	*attachment = NULL;
	return NULL;
}

const struct kernel_attachment *session_attachment_on(const struct session *session, const char *interface,
						      bool is_outgoing)
{
	struct kernel_attachment *attachment;

	session_filter_on(session, interface, is_outgoing, &attachment);
	return attachment;
}

int session_attach(struct session *session, const char *interface, enum kernel_mode mode, bool is_outgoing,
		   struct reason *reason)
{
	struct kernel_attachment *ignored;
	struct kernel_filter *filter = session_filter_on(session, interface, false, &ignored);
	const bool is_new = !filter;
	struct reason why;
	int error = 0;

	reason->text[0] = '\0';
	/* That of this interface need not be the first: another loader makes a filter for each interface. */
	if (is_new) {
		filter = &session->filters->kernel;
		error = kernel_attach(filter, interface, mode, reason);
	}
	if (error || !is_outgoing || session_attachment_on(session, interface, true))
		return error;
	error = kernel_attach_outgoing(filter, interface, &why);
	if (!error)
		return 0;
	*reason = why;
	if (is_new && !kernel_detach_direction(filter, &filter->attachments[filter->attachments_count - 1], &why))
		filter->attachments_count--;
	return error;
}

int session_keep(const struct session *session, const char *interface, bool is_outgoing, struct reason *reason)
{
	struct kernel_attachment *kept;

	for (int direction = 0; direction <= is_outgoing; direction++) {
		const struct kernel_filter *filter = session_filter_on(session, interface, direction, &kept);

		if (!filter || !run_is_unconfirmed(filter) || filter->config->pending_id)
			continue;
		for (size_t i = 0; i < filter->attachments_count; i++)
			if (kernel_place(&filter->attachments[i]) != kernel_place(kept) &&
			    kernel_kept_bit(&filter->attachments[i]) == kernel_kept_bit(kept))
				return reason_set(reason, -EBUSY,
						  "a load waits for xdp-cuckoo%s confirm, and its undo could "
						  "not leave '%s': confirm it, or wait",
						  session_name_option(session->name), interface);
		filter->config->kept |= kernel_kept_bit(kept);
	}
	for (size_t i = 0; i < session->filters_count; i++)
		kernel_forget_gone(&session->filters[i].kernel);
	return 0;
}

#define LEAVING_TRIES 40 /* of 50 ms: after a namespace has ended, the kernel takes its filters away */
#define UNLOADED_TRIES 6 /* after the last filter has left its interface */

/*
 * A change reaches only the filters of this network namespace. So a store belongs to the namespace in which its filters
 * run, until they are gone. -EADDRINUSE: they run in another one. If a single interface leaves the
 * namespace, its program keeps the old table once the filter here gets another one.
 */
static int check_home(struct session *session, enum store_mode mode, const char *state,
		      const struct kernel_filter *filters, size_t count, struct reason *reason)
{
	const enum store_home home = store_home(session->store);
	bool is_in_use = false, is_whole = true;
	int tries = mode == STORE_TRY ? 0 : LEAVING_TRIES;
	struct store_info info;
	int error = store_unread_reason(store_info(session->store, &info), reason);

	for (size_t i = 0; i < count && !error; i++) {
		const bool is_ours = !memcmp(filters[i].config->store_id, info.id, sizeof(info.id));

		is_in_use |= is_ours;
		is_whole &= !is_ours || !kernel_misses_interface(&filters[i]);
	}
	if (error || (home == STORE_HOME_HERE &&
		      ((is_in_use && is_whole) || mode == STORE_TRY || *session->not_reached.text)))
		return error;
	if (home == STORE_HOME_HERE)
		tries = is_in_use ? 0 : UNLOADED_TRIES;
	for (int i = 0; home != STORE_HOME_NEW && kernel_runs_elsewhere(info.id, filters, count); i++) {
		/* Somebody may hold a program that runs no more, so this only warns. */
		if (i == tries && home == STORE_HOME_HERE) {
			reason_set(&session->not_reached, 0,
				   "one with these rules is on no interface here: it runs in another network namespace (move "
				   "its interface back, or unload it there), or a pin holds it (bpftool --bpffs prog show)");
			return 0;
		}
		if (i == tries)
			return reason_set(reason, -EADDRINUSE,
					  "the filter with the rules in %s/%s runs in another network namespace, which this "
					  "command does not reach: run it there, or use another --name or --state here",
					  state ? state : SESSION_STATE_DEFAULT, session->name);
		usleep(50000);
	}
	if (home == STORE_HOME_ELSEWHERE && !privileges_has(CAP_SYS_ADMIN))
		reason_set(&session->not_reached, 0,
			   "one may run in the network namespace that had these rules before; only CAP_SYS_ADMIN sees it");
	if (home != STORE_HOME_HERE)
		store_take_home(session->store, is_in_use);
	return 0;
}

/*
 * A copy of a read-only store is nobody's home, and what changes it is lost. So it serves only to load a first filter, as at
 * boot: a second session would make that filter equal to the store again, without what the first one set.
 */
static int check_copy(const struct session *session, const struct kernel_filter *filters, size_t count,
		      const struct to_load *to_load, struct reason *reason)
{
	if (to_load->is_on_trial)
		return reason_set(reason, -EROFS,
				  "the store is on a read-only file system, and nothing could confirm or undo the load: "
				  "leave out --confirm");
	for (size_t i = 0; i < count; i++)
		if (filters[i].config->magic && belongs(session, &filters[i]))
			return reason_set(reason, -EROFS,
					  "the store is on a read-only file system, and its filter runs already on '%s': "
					  "it stays as it is",
					  filters[i].attachments->interface);
	return 0;
}

/* `session` is paused or zeroed. `to_load` is NULL for callers that load no filter. */
static int open_in(enum store_mode mode, struct session *session, const char *state, const char *name,
		   const struct to_load *to_load, struct reason *reason)
{
	struct kernel_filter *filters = session->paused;
	size_t count = session->paused_count;
	enum kernel_seen seen;
	const struct kernel_wish wish = { .must_see = name, .takes_other_versions = true, .seen = &seen };
	int error;

	session->paused = NULL;
	session->paused_count = 0;
	session->state = state;
	strncpy(session->name, name, sizeof(session->name) - 1);
	error = session_open_store(state, name, mode, &session->store, reason);
	if (!error) {
		error = kernel_find_filters(wish, &filters, &count, reason);
		if (!error && seen == KERNEL_SEEN)
			error = lock_adoption(session, mode, state, wish, &filters, &count, reason);
		if (!error && seen == KERNEL_SEEN)
			session->not_reached = *reason;
		else if (!error && seen == KERNEL_NOT_ALLOWED && to_load)
			*to_load->unseen = *reason;
		else if (!error)
			error = kernel_seen_error(seen);
	}
	if (!error && store_is_copy(session->store))
		error = check_copy(session, filters, count, to_load, reason);
	else if (!error)
		error = check_home(session, mode, state, filters, count, reason);
	if (!error)
		error = open_filters(session, filters, count, to_load, reason);
	if (!error)
		change_undo_overdue(session);
	kernel_filters_free(filters, count);
	if (error)
		session_close(session);
	return error;
}

int session_resume(struct session *session, const char *state, const char *name, struct reason *reason)
{
	return open_in(STORE_WRITE, session, state, name, NULL, reason);
}

int session_open(struct session *session, const char *state, const char *name, struct reason *reason)
{
	*session = (struct session){};
	return open_in(STORE_WRITE, session, state, name, NULL, reason);
}

int session_open_to_load(struct session *session, const char *state, const char *name, bool is_on_trial,
			 struct reason *unseen, struct reason *reason)
{
	const struct to_load to_load = { is_on_trial, unseen };

	*session = (struct session){};
	unseen->text[0] = '\0';
	return open_in(STORE_COPY, session, state, name, &to_load, reason);
}

int session_open_dry_run(struct session *session, const char *state, const char *name, struct reason *reason)
{
	char empty[] = "/tmp/xdp-cuckoo.XXXXXX";
	struct store *present = NULL;
	int error;

	*session = (struct session){ .is_dry_run = true };
	strncpy(session->name, name, sizeof(session->name) - 1);
	/* A trial of a store that does not exist yet uses an empty one, whose files are unlinked at once. */
	error = session_open_store(state, name, STORE_READ, &present, reason);
	store_close(present);
	if (!error)
		return session_open_store(state, name, STORE_TRIAL, &session->store, reason);
	if (error != -ENOENT)
		return error;
	if (!mkdtemp(empty))
		return reason_set(reason, -errno, "cannot make a directory in /tmp: %s", strerror(errno));
	error = store_open(empty, STORE_TRIAL, &session->store, reason);
	store_unlink(empty);
	return error;
}

int session_try_open(struct session *session, const char *state, const char *name, struct reason *reason)
{
	*session = (struct session){};
	return open_in(STORE_TRY, session, state, name, NULL, reason);
}

/* Refuses a capacity (0: not given) that is too small for the store, and a table that is too large. */
static int check_slots(const struct store_info *info, __u64 capacity, __u64 slots, struct reason *reason)
{
	if (capacity && info->keys > capacity)
		return reason_set(reason, -ENOSPC,
				  "the store holds %llu keys: more than the capacity of %llu; ask for more, or delete rules",
				  (unsigned long long)info->keys, (unsigned long long)capacity);
	if (slots <= 1ULL << ABI_SLOTS_MAX_LOG2)
		return 0;
	return reason_set(reason, -EINVAL, "a table holds at most %llu rules",
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

int session_load(struct session *session, const struct abi_options *options, __u64 capacity, struct filter **filter,
		 struct reason *reason)
{
	struct filter *new = &session->filters[session->filters_count];
	struct store_info info = {};
	__u64 slots, least, room;
	int error = options->is_exact ? 0 : forget_ended(session, reason);

	if (!error)
		error = store_unread_reason(store_info(session->store, &info), reason);
	/*
	 * The size if no capacity is given. A small exact table stays in the CPU caches, and grows when needed. A compact
	 * table is larger: its free slots are cheap, and make false positives rare.
	 */
	room = !options->is_exact ? 0 : info.keys / 2 < ROOM_MOST ? info.keys / 2 : ROOM_MOST;
	least = options->is_exact ? SLOTS_LEAST : 1ULL << ABI_SLOTS_DEFAULT_LOG2;
	slots = table_slots_for(capacity ? capacity : info.keys + room);
	if (!capacity && slots < least)
		slots = least;
	if (!error)
		error = check_slots(&info, capacity, slots, reason);
	if (!error)
		error = filter_create(new, options, slots, session->store, reason);
	if (error)
		return error;
	error = filter_update(new, session->store, session->name, reason);
	if (error) {
		filter_close(new);
		return error;
	}
	filter_start(new);
	new->state = FILTER_UP_TO_DATE; /* nobody else has loaded it */
	session->is_unwatched = true;
	session->filters_count++;
	*filter = new;
	return 0;
}

int session_resize(struct session *session, __u64 capacity, struct reason *reason)
{
	const __u64 slots = table_slots_for(capacity);
	struct store_info info;
	int error = store_unread_reason(store_info(session->store, &info), reason);

	if (!error)
		error = check_slots(&info, capacity, slots, reason);
	for (size_t i = 0; i < session->filters_count && !error; i++)
		error = filter_rebuild(&session->filters[i], session->store, NULL, slots, reason);
	return error;
}

int session_renew(struct session *session, const struct abi_options *options, __u64 capacity, size_t *renewed,
		  struct reason *reason)
{
	const __u64 least = capacity ? table_slots_for(capacity) : 0;
	bool is_same, becomes_compact = false;
	struct store_info info;
	int error = 0;

	*renewed = 0;
	for (size_t i = 0; i < session->filters_count; i++)
		becomes_compact |= session->filters[i].kernel.options.is_exact && !options->is_exact;
	if (becomes_compact)
		error = forget_ended(session, reason);
	if (!error)
		error = store_unread_reason(store_info(session->store, &info), reason);
	if (!error)
		error = check_slots(&info, 0, least, reason);
	for (size_t i = 0; i < session->filters_count && !error; i++) {
		struct filter *filter = &session->filters[i];
		struct abi_options as_now = *options;
		const __u64 slots = filter_slots(&filter->kernel);

		as_now.has_addresses = filter->kernel.options.has_addresses;
		error = kernel_runs_this_build(&filter->kernel, &is_same, reason);
		is_same = is_same && !memcmp(&as_now, &filter->kernel.options, sizeof(as_now));
		if (error || (is_same && slots >= least))
			continue;
		/* Equal programs can use the room of the present maps. */
		error = filter_rebuild(filter, session->store, is_same ? NULL : options, slots < least ? least : slots,
				       reason);
		*renewed += !error;
	}
	return error;
}
