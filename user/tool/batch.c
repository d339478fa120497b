// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * batch: runs lines of add, del and test in one process. The lines that are at hand form a group. A group is
 * one change with one commit, and its answers are written after the commit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/internal.h"
#include "io/line_pipe.h"
#include "host/host.h"
#include "io/output.h"
#include "base/clock.h"
#include "base/memory.h"

/* Limits of a group. A writer that waits for its answer waits for one change. */
#define GROUP_LINES 32768
#define GROUP_BYTES (4 << 20)
#define GROUP_MS 20

/* If the table is full and a change has deleted so many rules, it ends before the next add: that frees their room. */
#define ROOM_LINES 1024

/* Hold the lock at most so long while other writers wait, then leave it to them for a moment. */
#define HOLD_MS 200
#define LEAVE_MS 2

struct batch {
	const struct invocation *invocation;
	struct line_pipe pipe;
	struct guard guard;
	struct session session;
	bool is_open;          /* session and guard are open */
	bool has_noted_masked; /* a note said that a prefix has host bits */
	double opened_s;
	struct batch_line *lines; /* the group */
	size_t count;
	enum command_status status;
};

/* ---- the lines at hand ---- */

/* 1: took a line, or skipped an empty one; 0: no line is at hand; -ENOMEM. */
static int take_line(struct batch *batch)
{
	size_t text;
	int got = line_pipe_next(&batch->pipe, &text);

	if (!got)
		return 0;
	text = batch_line_trim(batch->pipe.bytes + text) - batch->pipe.bytes;
	if (got > 0 && (!batch->pipe.bytes[text] || batch->pipe.bytes[text] == '#'))
		return 1;
	if (array_grow(&batch->lines, batch->count, sizeof(*batch->lines)))
		return -ENOMEM;
	batch->lines[batch->count++] = (struct batch_line){
		.number = batch->pipe.number,
		.text = text,
		.unread = got < 0 ? got : 0,
	};
	return 1;
}

/*
 * Fills the group with the lines at hand; with --strict, with all lines. 1: the group is full; 0: no more is
 * at hand; -EINTR: a signal; other -errno.
 */
static int collect(struct batch *batch)
{
	const bool is_strict = batch->invocation->is_strict;
	const double start_s = clock_seconds();
	int got;

	do {
		while ((got = take_line(batch)) > 0)
			if (!is_strict && (batch->count >= GROUP_LINES || batch->pipe.next >= GROUP_BYTES))
				return 1;
		if (!got && batch->pipe.is_ended)
			return 0;
		if (!got && !is_strict && 1000 * (clock_seconds() - start_s) >= GROUP_MS)
			return 1;
		if (!got)
			got = line_pipe_wait(&batch->pipe, is_strict ? -1 : 0);
		if (got > 0)
			got = line_pipe_read(&batch->pipe);
		else if (!got)
			return 0;
	} while (!got);
	return got;
}

/* ---- the lock ---- */

static void close_session(struct batch *batch)
{
	if (!batch->is_open)
		return;
	session_unlock(&batch->session);
	command_report_rebuilds(&batch->session);
	session_close(&batch->session);
	guard_close(&batch->guard);
	batch->is_open = false;
}

static int open_session(struct batch *batch, struct reason *reason)
{
	int error;

	if (batch->is_open)
		return 0;
	error = command_open_guarded(batch->invocation, NULL, &batch->session, &batch->guard, reason);
	if (error) {
		session_close(&batch->session);
		guard_close(&batch->guard);
		return error;
	}
	command_note_adder(&batch->session);
	batch->opened_s = clock_seconds();
	batch->is_open = true;
	command_report_undone(&batch->session);
	return 0;
}

/* File locks have no queue, so a waiting process needs a moment to take the lock. */
static void let_others_in(struct batch *batch)
{
	if (!batch->is_open)
		return;
	close_session(batch);
	clock_pause(LEAVE_MS);
}

/* How long the lock may still be held. */
static int left_ms(const struct batch *batch)
{
	const double held_ms = 1000 * (clock_seconds() - batch->opened_s);

	return held_ms < HOLD_MS ? HOLD_MS - held_ms : 0;
}

/* ---- a change ---- */

/* Lines that become one change: those before `next` have run. */
struct span {
	struct batch *batch;
	size_t first, next, end;
	size_t deleted;
};

/* Runs the next line, or ends the span before it. With --strict a bad line ends the change. */
static int run_line(struct span *span, struct reason *reason)
{
	struct batch *batch = span->batch;
	struct batch_line *line = &batch->lines[span->next];
	const bool is_strict = batch->invocation->is_strict;
	struct batch_request request = {};
	bool is_guarded = false;
	struct reason bad;
	int error;

	if (line->unread)
		error = reason_set(&bad, -EINVAL,
				   line->unread == -EILSEQ ? "a NUL byte; this is not text" : "the line is too long");
	else if (batch->invocation->is_addresses)
		error = batch_address_parse(batch->pipe.bytes + line->text, batch->invocation->list_name, is_strict,
					    &request, &bad);
	else
		error = batch_line_parse(batch->pipe.bytes + line->text, batch->invocation->list_name, is_strict,
					 &request, &bad);
	for (size_t i = 0; !error && request.verb == BATCH_ADD && i < request.rules.count; i++)
		if (!request.rules.rule[i].timeout_ms)
			request.rules.rule[i].timeout_ms = batch->invocation->timeout_ms;
	if (!error && request.rules.masked.count && !batch->has_noted_masked) {
		output_note("%s:%llu: '%s' has host bits set; its network is taken, here and in later lines; --strict "
			    "refuses them",
			    batch->pipe.name, line->number, request.rules.masked.first);
		batch->has_noted_masked = true;
	}
	/* A refusal at this point undoes no other line. */
	if (!error && !is_strict && request.verb == BATCH_ADD)
		error = change_check_kinds(&batch->session, request.rules.rule, request.rules.count, &bad);
	if (error && is_strict)
		return reason_set(reason, error, "%s", bad.text);
	if (error) {
		rules_free(&request.rules);
		batch_line_fail(line, error, &bad);
		span->next++;
		return 0;
	}
	/* A line that the guard may refuse is a change of its own: there are few, and its refusal undoes no other line. */
	for (size_t i = 0; !is_strict && request.verb != BATCH_TEST && i < request.rules.count; i++)
		is_guarded |= guard_concerns(&batch->guard, &request.rules.rule[i]);
	if (is_guarded)
		span->end = span->next > span->first ? span->next : span->next + 1;
	/* The room of deleted rules is free only after the change. */
	if (request.verb == BATCH_ADD && span->deleted >= ROOM_LINES && !is_strict && change_is_full(&batch->session))
		span->end = span->next;
	if (span->next < span->end) {
		error = batch_line_run(line, &batch->session, &request, reason);
		span->deleted += line->answer == BATCH_DELETED;
		span->next += !error;
	}
	rules_free(&request.rules);
	return error;
}

/* Makes one change of the lines of the span. */
static int run_lines(struct span *span, struct reason *reason)
{
	struct session *session = &span->batch->session;
	int error = change_begin(session, reason);

	if (error)
		return error;
	while (span->next < span->end && !error)
		error = run_line(span, reason);
	return change_end(session, error, reason);
}

/* For change_series(). */
static int make(void *context, size_t first, size_t *end, size_t *at, struct reason *reason)
{
	struct batch *batch = context;
	struct span span = { .batch = batch, .first = first, .next = first, .end = *end };
	int error;

	if (!left_ms(batch))
		let_others_in(batch);
	error = open_session(batch, reason);
	if (error)
		return error;
	error = run_lines(&span, reason);
	*end = span.end;
	*at = span.next;
	return error;
}

static bool is_at_fault(void *context, int error)
{
	(void)error;
	return ((struct batch *)context)->is_open;
}

static void fail(void *context, size_t first, size_t end, int error, const struct reason *reason)
{
	for (size_t i = first; i < end; i++)
		batch_line_fail(&((struct batch *)context)->lines[i], error, reason);
}

/* ---- groups ---- */

/* While nobody reads the answers, other commands get the lock. -ETIMEDOUT: a signal ends the wait for that reader. */
static int hand_on(struct batch *batch)
{
	int error;

	if (batch->is_open && !output_can_flush(left_ms(batch)))
		let_others_in(batch);
	error = signals_await_room(&batch->pipe.signals, STDOUT_FILENO);
	return error ? error : output_flush();
}

static int print_answers(struct batch *batch)
{
	int error = 0;

	for (size_t i = 0; i < batch->count; i++) {
		struct batch_line *line = &batch->lines[i];

		if (batch->status < line->status)
			batch->status = line->status;
		if (!error)
			batch_line_print(line, batch->pipe.name);
		if (!error && output_is_due())
			error = hand_on(batch);
		batch_line_close(line);
	}
	batch->count = 0;
	line_pipe_forget(&batch->pipe);
	return error ? error : hand_on(batch);
}

/* Runs groups until the end of the input or a signal. 0; -EINTR: lines at hand are not done; other -errno. */
static int run_groups(struct batch *batch)
{
	const struct change_series series = { batch, make, is_at_fault, fail };
	int got;

	do {
		int error;

		got = collect(batch);
		change_series(&series, 0, batch->count);
		error = print_answers(batch);
		if (error)
			return error;
		if (!got && !batch->pipe.is_ended) {
			close_session(batch);
			got = line_pipe_wait(&batch->pipe, -1);
		}
	} while (got > 0);
	return got == -EINTR && !line_pipe_has_rest(&batch->pipe) ? 0 : got;
}

/* Makes one change of all lines, and prints why if that fails. 0; -errno: the lines cannot be read. */
static int run_strict(struct batch *batch)
{
	struct span span = { .batch = batch };
	struct reason reason;
	int error = collect(batch);

	if (error)
		return error;
	error = open_session(batch, &reason);
	if (!error) {
		span.end = batch->count;
		error = run_lines(&span, &reason);
	}
	close_session(batch);
	if (!error)
		return print_answers(batch);
	batch->status = command_status_of(error);
	if (span.next < span.end)
		command_fail(batch->status, "%s:%llu: %s: nothing was changed", batch->pipe.name,
			     batch->lines[span.next].number, reason.text);
	else
		command_fail_because(error, &reason);
	return 0;
}

static enum command_status run_batch(const struct invocation *invocation)
{
	struct batch batch = { .invocation = invocation };
	const char *path = invocation->operands[0];
	enum command_status status;
	struct reason reason;
	int error = line_pipe_open(&batch.pipe, path);

	output_hold();
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot read '%s': %s; name a file, or - for standard input", path,
				    strerror(-error));
	/* Report an error that would stop every line before the first line. */
	error = open_session(&batch, &reason);
	if (!error) {
		session_unlock(&batch.session);
		command_report_session(&batch.session);
	}
	close_session(&batch);
	if (error) {
		status = command_fail_because(error, &reason);
	} else {
		error = invocation->is_strict ? run_strict(&batch) : run_groups(&batch);
		status = error ? STATUS_SYSTEM : batch.status;
		if (error == -ETIMEDOUT) {
			output_give_up();
			command_fail(status,
				     "interrupted: nobody reads the answers; the lines after %llu were not done",
				     batch.pipe.number);
		} else if (error == -EINTR && invocation->is_strict) {
			command_fail(status, "interrupted: nothing was changed");
		} else if (error == -EINTR) {
			command_fail(status, "interrupted: the lines after %llu were not done", batch.pipe.number);
		} else if (error && !ferror(stdout)) {
			/* main() reports a failure of standard output. */
			command_fail(status, "%s: %s", batch.pipe.name, strerror(-error));
		}
	}
	close_session(&batch);
	for (size_t i = 0; i < batch.count; i++)
		batch_line_close(&batch.lines[i]);
	free(batch.lines);
	line_pipe_close(&batch.pipe);
	return status;
}

const struct command command_batch = {
	.name = "batch",
	.usage = "FILE|- [--addresses] [--list NAME] [--timeout TIME] [--strict] [--force]",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_batch,
};
