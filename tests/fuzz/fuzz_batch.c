// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes the input of batch: pieces, each a byte with its length and that many bytes, as a pipe brings them; a
 * length of 255 stands for many of one byte, 254 for a pause in which lines are taken. Lines are those of the
 * whole, wherever it is cut; what they ask for is a rule; and each answer is one line, of JSON too.
 */
#include "fuzz.h"

#include <errno.h>
#include <unistd.h>

#include <jansson.h>

#include "tool/internal.h"
#include "io/line_pipe.h"
#include "io/output.h"

#define PIECE_FILLER 255
#define PIECE_PAUSE 254
#define FILLER_BYTES 30000 /* three make a line too long */
#define WHOLE_BYTES_MAX 262144
#define ANSWERS_MAX 64 /* that are looked at */

struct input {
	struct line_pipe feed;
	int write_fd;
	char *whole; /* all that was written so far */
	size_t written;
	size_t checked; /* of it, in whole lines */
	__u64 lines;
};

static void open_input(struct input *input)
{
	char path[32];
	int fds[2];

	*input = (struct input){ .whole = malloc(WHOLE_BYTES_MAX) };
	fuzz_check(!pipe(fds), "%s", strerror(errno));
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
	fuzz_check(!line_pipe_open(&input->feed, path), "%s", path);
	close(fds[0]);
	input->write_fd = fds[1];
}

static void write_piece(struct input *input, const void *bytes, size_t length)
{
	if (input->written + length > WHOLE_BYTES_MAX || !length)
		return;
	memcpy(input->whole + input->written, bytes, length);
	input->written += length;
	fuzz_check(write(input->write_fd, bytes, length) == (ssize_t)length, "%s", strerror(errno));
	fuzz_check(line_pipe_wait(&input->feed, 0) == 1, "nothing to read");
	fuzz_check(!line_pipe_read(&input->feed), "not read");
}

/* ---- answers ---- */

/* What is printed, to free(). */
static char *printed(const struct batch_line *line, bool is_json)
{
	FILE *const console = stdout;
	char *text = NULL;
	size_t length;

	stdout = open_memstream(&text, &length);
	output_use_json(is_json);
	batch_line_print(line, "input");
	fclose(stdout);
	stdout = console;
	return text;
}

static void check_answer(const struct batch_line *line)
{
	char *text = printed(line, false), *json_text = printed(line, true);
	json_t *json = json_loads(json_text, 0, NULL);

	fuzz_check(!strncmp(text, "error: input:", 13), "%s", text);
	fuzz_check(strchr(text, '\n') == text + strlen(text) - 1, "more lines than one: %s", text);
	fuzz_check(strchr(json_text, '\n') == json_text + strlen(json_text) - 1, "%s", json_text);
	fuzz_check((__u64)json_integer_value(json_object_get(json, "line")) == line->number, "%s", json_text);
	fuzz_check(json_is_string(json_object_get(json, "error")), "%s", json_text);
	json_decref(json);
	free(text);
	free(json_text);
}

static void check_line(const char *text, __u64 number)
{
	struct batch_line line = { .number = number };
	struct batch_request request;
	struct reason reason = { "" };
	int error = batch_line_parse(text + strspn(text, BATCH_WHITE), NULL, false, &request, &reason);

	if (!error) {
		fuzz_check(request.verb <= BATCH_TEST, "verb %d", request.verb);
		fuzz_check(request.rules.count && (request.verb != BATCH_TEST || request.rules.count == 1), "%zu rules",
			   request.rules.count);
		for (size_t i = 0; i < request.rules.count; i++)
			fuzz_check_rule(&request.rules.rule[i]);
		rules_free(&request.rules);
		return;
	}
	fuzz_check(error == -EINVAL, "%d", error);
	fuzz_check_reason(reason.text);
	if (number > ANSWERS_MAX)
		return;
	batch_line_fail(&line, error, &reason);
	check_answer(&line);
	batch_line_close(&line);
}

/* ---- lines ---- */

/* The next line of the whole, which line_pipe_next() must give: as it has it, or why not. */
static void check_next(struct input *input, int got, size_t offset)
{
	const char *start = input->whole + input->checked;
	const size_t rest = input->written - input->checked;
	const char *end = memchr(start, '\n', rest);
	const size_t length = end ? (size_t)(end - start) : rest;
	const bool has_nul = memchr(start, '\0', length);
	const size_t mark = input->lines || length < 3 || memcmp(start, "\xef\xbb\xbf", 3) ? 0 : 3;

	fuzz_check(end || input->feed.is_ended, "a line that has not ended");
	fuzz_check(input->feed.number == ++input->lines, "number %llu", (unsigned long long)input->feed.number);
	input->checked += length + (end != NULL);
	if (got == -EMSGSIZE) {
		fuzz_check(length > LINE_PIPE_BYTES, "%zu bytes are too many", length);
		return;
	}
	fuzz_check(got == (has_nul ? -EILSEQ : 1), "%d of %zu bytes", got, length);
	fuzz_check(!memcmp(input->feed.bytes + offset, start + mark, length - mark) &&
			   !input->feed.bytes[offset + length - mark],
		   "other bytes");
	if (got > 0)
		check_line(input->feed.bytes + offset, input->lines);
}

static void take_lines(struct input *input)
{
	size_t offset;
	int got;

	while ((got = line_pipe_next(&input->feed, &offset)))
		check_next(input, got, offset);
	fuzz_check(input->feed.is_ended ||
			   !memchr(input->whole + input->checked, '\n', input->written - input->checked),
		   "a line is left");
	line_pipe_forget(&input->feed);
}

static void close_input(struct input *input)
{
	close(input->write_fd);
	while (!input->feed.is_ended)
		fuzz_check(!line_pipe_read(&input->feed), "not read");
	take_lines(input);
	fuzz_check(input->checked == input->written, "%zu of %zu bytes came", input->checked, input->written);
	fuzz_check(!line_pipe_has_rest(&input->feed), "more than all");
	line_pipe_close(&input->feed);
	free(input->whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;
	const uint8_t *piece;

	open_input(&input);
	take_lines(&input); /* of nothing */
	while ((piece = fuzz_take(&data, &size, 1))) {
		size_t length = *piece;

		if (length == PIECE_PAUSE) {
			take_lines(&input);
		} else if (length == PIECE_FILLER) {
			char filler[FILLER_BYTES];

			memset(filler, size ? *data : 'x', sizeof(filler));
			write_piece(&input, filler, sizeof(filler));
		} else {
			length = length < size ? length : size;
			write_piece(&input, fuzz_take(&data, &size, length), length);
		}
	}
	close_input(&input);
	return 0;
}
