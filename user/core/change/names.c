// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of filters and their stores, and what several files say. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "change/internal.h"

bool session_is_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= ABI_NAME_BYTES || *name == '.' || *name == '-')
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return true;
}

const char *session_name_option(const char *name)
{
	static _Thread_local char text[sizeof(" --name ") + ABI_NAME_BYTES];
	const bool is_named = *name && strcmp(name, SESSION_NAME_DEFAULT);

	snprintf(text, sizeof(text), "%s%.*s", is_named ? " --name " : "", ABI_NAME_BYTES - 1, is_named ? name : "");
	return text;
}

int session_state_dir(const char *state, const char *name, char *dir, size_t size)
{
	int length = snprintf(dir, size, "%s/%s", state ? state : SESSION_STATE_DEFAULT, name);

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

int session_open_store(const char *state, const char *name, enum store_mode mode, struct store **store,
		       struct reason *reason)
{
	char dir[PATH_MAX];
	int error = session_state_dir(state, name, dir, sizeof(dir));

	if (error)
		return reason_set(reason, error, "the name of the state directory is too long: '%.40s...'", state);
	return store_resume(dir, mode, store, reason);
}

int change_unwritten_reason(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot write to the store: %s%s", reason_of_write(error),
			  error == -ENOSPC ? "; free some space on the disk with the rules (--state)" : "");
}
