// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions that open and close a filter, and change its rules. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "library/internal.h"

#define FLAGS (XDP_CUCKOO_CHANGE | XDP_CUCKOO_NO_WAIT | XDP_CUCKOO_FORCE)

const char *xdp_cuckoo_version(void)
{
	return VERSION;
}

/* ---- around each function ---- */

int public_enter(struct xdp_cuckoo_filter *filter)
{
	kernel_catch_messages();
	filter->warning.text[0] = '\0';
	if (!filter->is_open)
		return reason_set(&filter->reason, -EBADF, "the filter was not opened");
	if (filter->is_visiting)
		return reason_set(&filter->reason, -EBUSY, "a visit is under way, which cannot use the filter");
	if (filter->is_changing && !pthread_equal(filter->changer, pthread_self()))
		return reason_set(&filter->reason, -EBUSY, "another thread's change is under way");
	/* Keep the reason why a change has ended early: the commit reports it. */
	if (!filter->refused)
		filter->reason.text[0] = '\0';
	return filter->refused;
}

int public_enter_alone(struct xdp_cuckoo_filter *filter)
{
	int error = public_enter(filter);

	if (!error && !(filter->flags & XDP_CUCKOO_CHANGE))
		error = reason_set(&filter->reason, -EROFS, "the filter was opened to look only");
	if (!error && filter->is_changing)
		error = reason_set(&filter->reason, -EBUSY, "a change is under way; end it first");
	return error;
}

int public_leave(struct xdp_cuckoo_filter *filter, int error)
{
	if (!error)
		filter->reason = filter->warning;
	kernel_catch_no_messages();
	return error;
}

/* A closed descriptor would be reused for the store, and output of the program would be written into it. */
int public_check_files(struct reason *reason)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return reason_set(reason, -EINVAL, "descriptor %d is closed; open /dev/null there", fd);
	return 0;
}

int public_open_session(struct xdp_cuckoo_filter *filter)
{
	const bool has_guard = !(filter->flags & XDP_CUCKOO_FORCE);
	int error = public_check_files(&filter->reason);

	if (!error && has_guard)
		error = guard_open(&filter->guard, filter->state, &filter->reason);
	if (!error)
		error = (filter->flags & XDP_CUCKOO_NO_WAIT ?
				 session_try_open :
				 session_open)(&filter->session, filter->state, filter->name, &filter->reason);
	if (error)
		guard_close(&filter->guard);
	else if (has_guard)
		filter->session.guard = &filter->guard;
	return error;
}

void public_close_session(struct xdp_cuckoo_filter *filter)
{
	const struct session *session = &filter->session;

	if (session->undone.error)
		reason_set(&filter->warning, 0,
			   "a change that was not confirmed in time cannot be undone yet, and "
			   "everything passes: %.300s",
			   session->undone.reason.text);
	else if (*session->not_reached.text)
		reason_set(&filter->warning, 0, "changes do not reach every filter '%s': %.300s",
			   filter->name, session->not_reached.text);
	session_close(&filter->session);
	guard_close(&filter->guard);
}

int public_open_store(struct xdp_cuckoo_filter *filter, struct store **store)
{
	int error;

	*store = filter->is_changing ? filter->session.store : NULL;
	if (filter->is_changing)
		return 0;
	error = public_check_files(&filter->reason);
	return error ? error : session_open_store(filter->state, filter->name, STORE_READ, store, &filter->reason);
}

void public_close_store(const struct xdp_cuckoo_filter *filter, struct store *store)
{
	if (!filter->is_changing)
		store_close(store);
}

/* ---- a filter ---- */

int xdp_cuckoo_open(const char *name, const char *state, unsigned int flags, struct xdp_cuckoo_filter **filter)
{
	struct xdp_cuckoo_filter *new = calloc(1, sizeof(*new));
	char here[PATH_MAX];
	struct store *store;
	int error = 0;

	*filter = new;
	if (!new)
		return -ENOMEM;
	name = name ? name : SESSION_NAME_DEFAULT;
	kernel_catch_messages();
	new->flags = flags;
	if (!session_is_name(name))
		error = reason_set(&new->reason, -EINVAL,
				   "name '%.40s': 1 to %d letters, digits, '.', '_' or '-', starting "
				   "with none of '.' and '-'",
				   name, ABI_NAME_BYTES - 1);
	else if (flags & ~FLAGS)
		error = reason_set(&new->reason, -EINVAL, "flags %#x do not exist", flags & ~FLAGS);
	if (!error)
		strcpy(new->name, name);
	/* Makes the path absolute: the working directory may change later. */
	if (!error && state && *state != '/' && !getcwd(here, sizeof(here)))
		error = reason_set(&new->reason, -errno, "no working directory: %s", strerror(errno));
	if (!error && state &&
	    asprintf(&new->state, "%s%s%s", *state == '/' ? "" : here, *state == '/' ? "" : "/", state) < 0) {
		new->state = NULL;
		error = reason_set(&new->reason, -ENOMEM, "no memory");
	}
	/* Finds errors that every later call would meet. */
	if (!error && flags & XDP_CUCKOO_CHANGE) {
		error = public_open_session(new);
		public_close_session(new);
	} else if (!error) {
		error = public_open_store(new, &store);
		if (!error)
			store_close(store);
	}
	new->is_open = !error;
	return public_leave(new, error);
}

void xdp_cuckoo_close(struct xdp_cuckoo_filter *filter)
{
	if (!filter)
		return;
	if (filter->is_changing)
		xdp_cuckoo_abort(filter);
	if (filter->listener.fd)
		xdp_cuckoo_samples_close(filter);
	free(filter->state);
	free(filter);
}

const char *xdp_cuckoo_error(const struct xdp_cuckoo_filter *filter)
{
	return filter->reason.text;
}

/* ---- changes ---- */

static int begin(struct xdp_cuckoo_filter *filter)
{
	int error = public_open_session(filter);

	if (error)
		return error;
	error = change_begin(&filter->session, &filter->reason);
	if (error) {
		public_close_session(filter);
		return error;
	}
	filter->is_changing = true;
	filter->changer = pthread_self();
	return 0;
}

/* Commits, or aborts after an error. */
static int end(struct xdp_cuckoo_filter *filter, int error)
{
	error = change_end(&filter->session, error, &filter->reason);
	filter->is_changing = false;
	filter->refused = 0;
	public_close_session(filter);
	return error;
}

int xdp_cuckoo_begin(struct xdp_cuckoo_filter *filter)
{
	int error = public_enter_alone(filter);

	return public_leave(filter, error ? error : begin(filter));
}

/* Commit and abort must also end a change that an error has ended early. */
static int enter_to_end(struct xdp_cuckoo_filter *filter)
{
	int error = public_enter(filter);

	if (filter->is_changing)
		return error == filter->refused ? 0 : error;
	return error ? error : reason_set(&filter->reason, -EINVAL, "no change is under way");
}

int xdp_cuckoo_commit(struct xdp_cuckoo_filter *filter)
{
	int error = enter_to_end(filter);

	return public_leave(filter, error ? error : end(filter, filter->refused));
}

int xdp_cuckoo_abort(struct xdp_cuckoo_filter *filter)
{
	int error = enter_to_end(filter);

	if (!error)
		end(filter, -ECANCELED);
	return public_leave(filter, error);
}

/* ---- steps of a change, or changes of their own ---- */

int public_begin_step(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *from, struct rule *rule,
		      bool *is_own)
{
	int error;

	*is_own = !filter->is_changing;
	error = *is_own ? public_enter_alone(filter) : public_enter(filter);
	if (!error && from)
		error = public_read_rule(filter, from, rule, &filter->reason);
	return error || !*is_own ? error : begin(filter);
}

/* Whether the error is final: see xdp_cuckoo_add(). After the four others no rule has changed. */
static bool is_final(int error)
{
	return error && error != -EEXIST && error != -ENOENT && error != -EINVAL && error != -EUSERS;
}

int public_end_step(struct xdp_cuckoo_filter *filter, bool is_own, int error)
{
	if (is_own) {
		/* Even a rule that is there already may change what the undo of a pending change leaves. */
		const int failed = end(filter, is_final(error) ? error : 0);

		return public_leave(filter, failed ? failed : error);
	}
	filter->refused = is_final(error) ? error : 0;
	return public_leave(filter, error);
}

int xdp_cuckoo_list_add(struct xdp_cuckoo_filter *filter, const char *list, const struct xdp_cuckoo_rule *from)
{
	char text[RULE_TEXT_BYTES];
	enum store_added added;
	struct rule rule;
	bool is_own;
	int error = public_begin_step(filter, from, &rule, &is_own);

	if (error)
		return public_leave(filter, error);
	error = public_check_rate(&rule, &filter->reason);
	if (!error)
		error = public_open_list(filter, list, NULL);
	if (!error)
		error = change_add(&filter->session, &rule, &added, &filter->reason);
	if (!error && added == STORE_UNCHANGED)
		error = reason_set(&filter->reason, -EEXIST, "already there: %.250s", rule_format(&rule, text));
	return public_end_step(filter, is_own, error);
}

int xdp_cuckoo_add(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *rule)
{
	return xdp_cuckoo_list_add(filter, XDP_CUCKOO_BY_HAND, rule);
}

/* `is_of_list`: only the list gives the rule up; else all its owners do. */
static int del(struct xdp_cuckoo_filter *filter, bool is_of_list, const char *list, const struct xdp_cuckoo_rule *from)
{
	struct session *session = &filter->session;
	enum store_deleted deleted;
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	bool is_own;
	int error = public_begin_step(filter, from, &rule, &is_own);

	if (error)
		return public_leave(filter, error);
	if (is_of_list)
		error = public_find_list(filter, session->store, list, &session->owner);
	if (!error)
		error = is_of_list ? change_give_up(session, &rule, &deleted, &filter->reason) :
				     change_del(session, &rule, &deleted, &filter->reason);
	if (!error && deleted == STORE_NO_SUCH_RULE)
		error = reason_set(&filter->reason, -ENOENT, "no such rule: %.250s", rule_format(&rule, text));
	return public_end_step(filter, is_own, error);
}

int xdp_cuckoo_list_del(struct xdp_cuckoo_filter *filter, const char *list, const struct xdp_cuckoo_rule *rule)
{
	return del(filter, true, list, rule);
}

int xdp_cuckoo_del(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *rule)
{
	return del(filter, false, NULL, rule);
}

int xdp_cuckoo_expire(struct xdp_cuckoo_filter *filter, uint64_t *count)
{
	__u64 expired = 0;
	bool is_own;
	int error = public_begin_step(filter, NULL, NULL, &is_own);

	if (error)
		return public_leave(filter, error);
	error = change_expire(&filter->session, &expired, &filter->reason);
	if (count)
		*count = expired;
	return public_end_step(filter, is_own, error);
}
