// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs a fuzz target over files, and the files of directories, that are given: seeds, and what fuzzing has
 * found before. Any compiler will do. Ends as the first bad input makes it end, with its name.
 */
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "fuzz.h"

#define SECONDS_MAX 20 /* for one input, sanitizers included */

static const char *current;
static size_t inputs;

static void say_current(void)
{
	if (current)
		fprintf(stderr, "input: %s\n", current);
}

static void *resize(void *bytes, size_t room)
{
	void *resized = realloc(bytes, room);

	if (resized)
		return resized;
	fputs("not enough memory\n", stderr);
	exit(1);
}

/* Whatever ends the program, the input is named. */
static void on_signal(int number)
{
	say_current();
	signal(number, SIG_DFL);
	raise(number);
}

static void run_file(const char *path)
{
	FILE *file = fopen(path, "r");
	uint8_t *bytes = NULL;
	size_t room = 0, used = 0, got = 1;

	for (; file && got; used += got) {
		if (used == room) {
			room = 2 * room + 4096;
			bytes = resize(bytes, room);
		}
		got = fread(bytes + used, 1, room - used, file);
	}
	if (!file || ferror(file)) {
		fprintf(stderr, "cannot read '%s'\n", path);
		exit(1);
	}
	fclose(file);
	/* Exactly as long as it is, for a sanitizer. */
	bytes = resize(bytes, used ? used : 1);
	current = path;
	alarm(SECONDS_MAX);
	LLVMFuzzerTestOneInput(bytes, used);
	alarm(0);
	current = NULL;
	inputs++;
	free(bytes);
}

static void run_all(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char inner[4096];

	if (!directory) {
		run_file(path);
		return;
	}
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
		run_all(inner);
	}
	closedir(directory);
}

int main(int argc, char **argv)
{
	signal(SIGABRT, on_signal);
	signal(SIGALRM, on_signal);
	atexit(say_current); /* sanitizers end with exit() */
	for (int i = 1; i < argc; i++)
		run_all(argv[i]);
	printf("%zu inputs\n", inputs);
	return inputs ? 0 : 1;
}
