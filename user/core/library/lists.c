// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions for whole lists. open_add_delete.c adds and deletes single rules of a list. */
#include <errno.h>
#include <string.h>

#include "change/change.h"
#include "library/internal.h"

#define SOURCE_DEFAULT "libxdp-cuckoo"

_Static_assert(XDP_CUCKOO_NAME_BYTES == ABI_NAME_BYTES && XDP_CUCKOO_SOURCE_BYTES == STORE_SOURCE_BYTES, "names");
_Static_assert(sizeof(struct xdp_cuckoo_list) == 312 && sizeof(struct xdp_cuckoo_replaced) == 40,
	       "layout of the library's lists");

/* ---- a list by its name ---- */

static int check_name(const char *name, struct reason *reason)
{
	if (name && (!*name || session_is_name(name)))
		return 0;
	return reason_set(reason, -EINVAL,
			  "list '%.40s': 1 to %d letters, digits, '.', '_' or '-', starting with none of '.' and '-'",
			  name ? name : "", ABI_NAME_BYTES - 1);
}

int public_find_list(struct xdp_cuckoo_filter *filter, struct store *store, const char *name, unsigned int *number)
{
	struct store_lists lists;
	int error = check_name(name, &filter->reason);

	*number = STORE_BY_HAND;
	if (error || !*name)
		return error;
	error = store_lists(store, &lists);
	if (error)
		return store_unread_reason(error, &filter->reason);
	*number = store_lists_find(&lists, name);
	return *number ? 0 : reason_set(&filter->reason, -ENOENT, "no list '%s'", name);
}

int public_open_list(struct xdp_cuckoo_filter *filter, const char *name, const char *source)
{
	int error = check_name(name, &filter->reason);

	return error ? error : change_open_list(&filter->session, *name ? name : NULL, source, &filter->reason);
}

int xdp_cuckoo_lists(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_list *lists, size_t room, size_t *count)
{
	struct store_lists stored = {};
	struct store *store;
	int error = public_enter(filter);

	*count = 0;
	if (!error)
		error = public_open_store(filter, &store);
	if (error)
		return public_leave(filter, error);
	error = store_lists(store, &stored);
	if (error)
		store_unread_reason(error, &filter->reason);
	for (size_t i = 1; i <= STORE_LISTS_MAX && !error; i++) {
		const struct store_list *list = &stored.list[i];

		if (!list->name[0])
			continue;
		if (*count < room) {
			lists[*count] =
				(struct xdp_cuckoo_list){ .rules = list->rules, .replaced_s = list->imported_s };
			strcpy(lists[*count].name, list->name);
			strcpy(lists[*count].source, list->source);
		}
		++*count;
	}
	public_close_store(filter, store);
	return public_leave(filter, error);
}

/* ---- replacing a list ---- */

int xdp_cuckoo_list_replace(struct xdp_cuckoo_filter *filter, const char *list, const char *source,
			    const struct xdp_cuckoo_rule *rules, size_t count, struct xdp_cuckoo_replaced *replaced)
{
	struct rule_set wanted = {};
	struct change_equal equal = { .wanted = &wanted, .is_at_once = true };
	const struct rule_diff *diff = &equal.diff;
	bool is_own;
	int error = public_begin_step(filter, NULL, NULL, &is_own);

	if (replaced)
		*replaced = (struct xdp_cuckoo_replaced){};
	if (error)
		return public_leave(filter, error);
	for (size_t i = 0; i < count && !error; i++) {
		struct reason why;
		struct rule rule;

		error = public_read_rule(filter, &rules[i], &rule, &why);
		if (!error)
			error = public_check_rate(&rule, &why);
		if (error)
			reason_set(&filter->reason, error, "rule %zu: %.400s", i, why.text);
		else if (rule_set_add(&wanted, &rule))
			error = reason_set(&filter->reason, -ENOMEM, "not enough memory");
	}
	if (!error)
		error = public_open_list(filter, list, source ? source : SOURCE_DEFAULT);
	if (!error)
		error = change_make_equal(&filter->session, &equal, &filter->reason);
	if (!error && replaced)
		*replaced = (struct xdp_cuckoo_replaced){ diff->added, diff->updated, diff->kept, diff->removed,
							  diff->left };
	rule_set_close(&wanted);
	change_equal_close(&equal);
	return public_end_step(filter, is_own, error);
}

int xdp_cuckoo_list_delete(struct xdp_cuckoo_filter *filter, const char *list)
{
	struct session *session = &filter->session;
	struct change_equal equal = { .wanted = &(struct rule_set){}, .is_at_once = true };
	bool is_own;
	int error = public_begin_step(filter, NULL, NULL, &is_own);

	if (error)
		return public_leave(filter, error);
	error = public_find_list(filter, session->store, list, &session->owner);
	if (!error && session->owner == STORE_BY_HAND)
		error = reason_set(&filter->reason, -EINVAL, "the rules added by hand are no list");
	if (!error)
		error = change_make_equal(session, &equal, &filter->reason);
	if (!error) {
		error = store_list_delete(session->store, session->owner);
		if (error)
			reason_set(&filter->reason, error, "cannot delete the list: %s", reason_of_write(error));
	}
	change_equal_close(&equal);
	return public_end_step(filter, is_own, error);
}
