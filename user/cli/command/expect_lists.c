// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lists that something is to feed are there from the first moment, and count as not fed. */
#include "command/command.h"

#include <errno.h>
#include <stdio.h>

int command_close_written(struct store *store, int error, struct reason *reason)
{
	if (!error)
		error = store_commit(store);
	store_close(store);
	return error ? reason_set(reason, error, "cannot write to the store: %s", reason_of_write(error)) : 0;
}

int command_write_store(const struct invocation *invocation, struct store **store, struct reason *reason)
{
	int error;

	*store = NULL;
	error = session_open_store(invocation->state, invocation->name, STORE_WRITE, store, reason);
	if (error)
		return error;
	error = store_begin(*store);
	return error ? command_close_written(*store, error, reason) : 0;
}

int command_expect_list(struct store *store, const struct invocation *invocation, const char *list, __s64 stale_s,
			struct reason *reason)
{
	struct session session = { .store = store };
	unsigned int number;
	int error = store_list_open(store, list, NULL, &number);

	if (!error)
		store_list_expect(store, number, stale_s);
	if (error != -EUSERS)
		return error;
	snprintf(session.name, sizeof(session.name), "%s", invocation->name);
	return change_say_too_many_lists(&session, reason);
}

int command_expect_lists(const struct invocation *invocation, const struct config *config, struct reason *reason)
{
	const bool follows = program->number == PROGRAM_FLEET; /* whatever `follow --once` left */
	const char *name, *homeless = NULL;                    /* the first list without a place */
	struct store_lists lists;
	struct store *store;
	struct reason why, ignored;
	__s64 stale_s;
	int error;

	if (!config_source(config, 0, &stale_s))
		return 0;
	error = command_write_store(invocation, &store, reason);
	if (error)
		return error;
	error = store_lists(store, &lists);
	if (error)
		return command_close_written(store, error, reason);
	for (size_t i = 0; !error && (name = config_source(config, i, &stale_s)); i++) {
		const struct store_list *list = &lists.list[store_lists_find(&lists, name)];

		if (!config_must_expect(list) && !(follows && !list->stale_s))
			continue;
		error = command_expect_list(store, invocation, name, stale_s,
					    homeless ? &ignored : &why);
		if (error != -EUSERS)
			continue;
		homeless = homeless ? homeless : name;
		error = 0;
	}
	/* By its feed `refresh` finds a list that the configuration no longer has. */
	for (size_t i = 0; i < config->lists_count && !error; i++) {
		struct store_feed feed = { .config = config_list_hash(&config->list[i]) };

		if (config->list[i].url && store_feed(store, config->list[i].name, &(struct store_feed){}) == -ENOENT)
			error = store_feed_put(store, config->list[i].name, &feed);
	}
	error = command_close_written(store, error, reason);
	return error || !homeless ? error : reason_set(reason, -EUSERS, "list '%s': %s", homeless, why.text);
}
