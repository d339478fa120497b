// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lists add: writes a section [list NAME] into the configuration, and becomes `refresh`, which fetches the list. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

		/* The file's reader takes what follows # or ; for a comment. */
		if (!text_is_safe(word, CONFIG_BYTES_MAX) || strchr("#;[ ", *word) || strstr(word, " #") ||
		    strstr(word, " ;") || (!is_url && (word[key] != '=' || strchr("#;", word[key + 1]))))
			return reason_set(reason, -EINVAL,
					  "lists add '%s': must be a URL, KEY=VALUE as in a section [list NAME], or "
					  "--preset PRESET",
					  word);
		fprintf(to, "%.*s = %s\n", is_url ? 3 : (int)key, is_url ? "url" : word, word + (is_url ? 0 : key + 1));
	}
	return 0;
}

/* Locks the file. The one that had the lock may have replaced it. -errno. */
static int open_locked(const char *path)
{
	struct stat ours, named;
	int error, fd;

	for (;;) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			return -errno;
		/* NFS locks no file that is open for reading only. */
		error = (flock(fd, LOCK_EX) && errno != EBADF) || fstat(fd, &ours) || stat(path, &named) ? -errno : 0;
		if (!error && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino)
			return fd;
		close(fd);
		if (error)
			return error;
	}
}

/* Whether the new file may replace the old one, `fd`: it is right, its last section is the new list, its owner the same. */
static int check_new(const struct whole_file *file, int fd, const struct invocation *invocation, struct reason *reason)
{
	const struct config_list *last;
	struct stat before, now;
	struct config *config;
	int error = config_open(file->temporary, invocation->name, report_mistake, &config, reason);

	if (error && strstr(reason->text, " has mistakes;"))
		reason_set(reason, error, "'%s' with such a section has mistakes; nothing was changed", file->path);
	if (error)
		return error;
	last = config->lists_count ? &config->list[config->lists_count - 1] : NULL;
	if (!last || strcmp(last->name, invocation->operands[1]) || !last->url)
		error = reason_set(reason, -EINVAL,
				   "lists add '%s': no URL and no --preset PRESET; nothing was changed",
				   invocation->operands[1]);
	else if (fstat(fd, &before) || fstat(fileno(file->to), &now) || before.st_uid != now.st_uid ||
		 before.st_gid != now.st_gid)
		error = reason_set(reason, -EPERM,
				   "a new '%s' would have another owner or group; nothing was changed; write the section "
				   "[list %s] with an editor",
				   file->path, invocation->operands[1]);
	config_close(config);
	return error;
}

/* The section comes behind all that the file, `fd`, has. The new file takes the place of the old one if it is right. */
static int write_config(const char *path, int fd, const struct invocation *invocation, struct reason *reason)
{
	struct whole_file file;
	size_t length;
	char *text;
	int closed, error = io_read_whole(fd, CONFIG_BYTES_MAX, &text, &length);

	if (!error)
		error = whole_file_open(&file, path);
	if (error) {
		free(text);
		return reason_set(reason, error, "cannot write '%s': %s", path, strerror(-error));
	}
	fwrite(text, 1, length, file.to);
	if (length && text[length - 1] != '\n')
		fputc('\n', file.to);
	free(text);
	error = put_section(file.to, invocation, reason);
	fflush(file.to);
	if (!error)
		error = check_new(&file, fd, invocation, reason);
	closed = whole_file_close(&file, error);
	return error || !closed ? error : reason_set(reason, closed, "cannot write '%s': %s", path, strerror(-closed));
}

/* Writes the section of the new list, unless there is a list of that name. `fd`: the lock on `path`, or -errno. */
static int add_list(const struct invocation *invocation, const char *name, const char *path, int fd,
		    struct reason *reason)
{
	struct store_lists lists;
	struct config *config;
	struct store *store = NULL;
	int error = config_open(path, invocation->name, command_report_bad_line, &config, reason);

	if (!error && fd < 0)
		error = reason_set(reason, fd, "cannot lock '%s': %s", path, strerror(-fd));
	if (!error)
		error = command_write_store(invocation, &store, reason);
	if (!error)
		error = store_unread_reason(store_lists(store, &lists), reason);
	if (!error && store_lists_find(&lists, name))
		error = config_has_source(config, name) ?
				reason_set(reason, -EINVAL,
					   "there is a list '%s' already, and '%s' has it; to fetch it: xdp-cuckoo%s "
					   "refresh %s --config %s",
					   name, path, session_name_option(invocation->name), name, path) :
				reason_set(reason, -EINVAL,
					   "there is a list '%s' already: choose another name; nothing was changed",
					   name);
	if (!error)
		error = write_config(path, fd, invocation, reason);
	store_close(store);
	config_close(config);
	return error;
}

enum command_status command_list_add(const struct invocation *invocation)
{
	const char *name = invocation->count > 1 ? invocation->operands[1] : "",
		   *preset = invocation->preset ? invocation->preset : "", *words[16] = { "xdp-cuckoo", "refresh" };
	const char *const options[][2] = { { name, "" },
					   { "--config", invocation->config_path },
					   { "--name", invocation->name },
					   { "--state", invocation->state },
					   { "--pins", invocation->pins },
					   { "--json", output_is_json() ? "" : NULL } };
	char path[PATH_MAX];
	struct reason reason;
	size_t count = 2;
	int error, fd;

	if (!*name || (invocation->count < 3 && !invocation->preset))
		return command_fail(STATUS_USAGE,
				    "lists add: which list? Write lists add NAME URL, or NAME --preset PRESET");
	if (!text_is_safe(name, CONFIG_BYTES_MAX) || preset[strcspn(preset, " #;")] ||
	    !text_is_safe(preset, CONFIG_BYTES_MAX))
		return command_fail(STATUS_USAGE, "lists add: no space or control character may be in NAME or PRESET");
	if (invocation->config_path)
		snprintf(path, sizeof(path), "%s", invocation->config_path);
	else
		snprintf(path, sizeof(path), CONFIG_DIR "/%s.conf", invocation->name);
	fd = open_locked(path);
	error = add_list(invocation, name, path, fd, &reason);
	if (fd >= 0)
		close(fd);
	if (error)
		return command_fail_because(error, &reason);
	output_warning("wrote [list %s] into %s; to take it back: delete that section, then xdp-cuckoo%s lists delete %s",
		       name, path, session_name_option(invocation->name), name);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		for (int k = 0; k < 2 && options[i][1]; k++)
			if (*options[i][k])
				words[count++] = options[i][k];
	return program_start(command_find("refresh"), (char *const *)words);
}
