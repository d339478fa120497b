// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lists add: writes a section [list NAME] into the configuration, and becomes `refresh`, which fetches the list. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/safe_text.h"
#include "config/config.h"
#include "io/output.h"
#include "io/whole_file.h"
#include "tool/internal.h"

#define CONFIG_BYTES_MAX (1 << 20)

/* Leaves out the name of the temporary file, and the number of a line that is not written. */
static void report_mistake(const char *text)
{
	const char *what = strstr(text, ": ");

	command_report_bad_line(what ? what + 2 : text);
}

/* The operands behind NAME, and --preset, as lines of the section. -EINVAL: a word is none of these. */
static int put_section(FILE *to, const struct invocation *invocation, struct reason *reason)
{
	fprintf(to, "\n[list %s]\n", invocation->operands[1]);
	if (invocation->preset)
		fprintf(to, "preset = %s\n", invocation->preset);
	for (int i = 2; i < invocation->count; i++) {
		const char *word = invocation->operands[i];
		const size_t key = strcspn(word, "=:");
		const bool is_url = !strncmp(word + key, "://", 3);

		if (!text_is_safe(word, CONFIG_BYTES_MAX) || (!is_url && word[key] != '='))
			return reason_set(reason, -EINVAL,
					  "lists add '%s': must be a URL, KEY=VALUE as in a section [list NAME], or "
					  "--preset PRESET",
					  word);
		fprintf(to, "%.*s = %s\n", is_url ? 3 : (int)key, is_url ? "url" : word, word + (is_url ? 0 : key + 1));
	}
	return 0;
}

/* The section comes behind all that the file has. The new file takes the place of the old one if it is right. */
static int write_config(const char *path, const struct invocation *invocation, struct reason *reason)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct whole_file file;
	struct config *config;
	char *text = NULL;
	size_t length;
	int error = fd < 0 ? -errno : io_read_whole(fd, CONFIG_BYTES_MAX, &text, &length);

	if (!error)
		error = whole_file_open(&file, path);
	if (!error) {
		fprintf(file.to, "%s%s", text, length && text[length - 1] != '\n' ? "\n" : "");
		error = put_section(file.to, invocation, reason);
		fflush(file.to);
		if (!error)
			error = config_open(file.temporary, invocation->name, report_mistake, &config, reason);
		if (!error)
			config_close(config);
		else if (strstr(reason->text, " has mistakes;"))
			reason_set(reason, error, "'%s' with such a section has mistakes; nothing was changed", path);
		reason = error ? &(struct reason){} : reason;
		error = whole_file_close(&file, error);
	}
	if (error)
		reason_set(reason, error, "cannot write '%s': %s", path, strerror(-error));
	free(text);
	if (fd >= 0)
		close(fd);
	return error;
}

enum command_status command_list_add(const struct invocation *invocation)
{
	const char *name = invocation->count > 1 ? invocation->operands[1] : "",
		   *words[12] = { "xdp-cuckoo", "refresh" };
	const char *const options[][2] = { { name, "" },
					   { "--config", invocation->config_path },
					   { "--name", invocation->name },
					   { "--state", invocation->state },
					   { "--pins", invocation->pins },
					   { "--json", output_is_json() ? "" : NULL } };
	char path[PATH_MAX];
	struct store_lists lists;
	struct reason reason;
	struct store *store;
	size_t count = 2;
	int error;

	if (!*name || (invocation->count < 3 && !invocation->preset))
		return command_fail(STATUS_USAGE,
				    "lists add: which list? Write lists add NAME URL, or NAME --preset PRESET");
	snprintf(path, sizeof(path), CONFIG_DIR "/%s.conf", invocation->name);
	if (invocation->config_path)
		snprintf(path, sizeof(path), "%s", invocation->config_path);
	/* The lock of the store: two of these do not write over each other's section. */
	error = command_write_store(invocation, &store, &reason);
	if (error)
		return command_fail_because(error, &reason);
	error = store_unread_reason(store_lists(store, &lists), &reason);
	if (!error && store_lists_find(&lists, name))
		error = reason_set(&reason, -EINVAL,
				   "there is a list '%s' already: choose another name; nothing was changed", name);
	if (!error)
		error = write_config(path, invocation, &reason);
	store_close(store);
	if (error)
		return command_fail_because(error, &reason);
	output_note("wrote [list %s] into %s; to take it back: delete that section, then xdp-cuckoo%s lists delete %s",
		    name, path, session_name_option(invocation->name), name);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		for (int k = 0; k < 2 && options[i][1]; k++)
			if (*options[i][k])
				words[count++] = options[i][k];
	return program_start(command_find("refresh"), (char *const *)words);
}
