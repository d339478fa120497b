// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* monitor-only, panic, confirm: ways not to be locked out, and back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "commands/command.h"
#include "io/output.h"
#include "change/watchdog.h"

#define BLOCKED_TOLD_MAX 8
#define PANIC_ROUNDS 1000   /* each writer that comes between costs one */
#define PANIC_SETTLE_MS 100 /* in which a writer puts a table in the place of another and starts it */

static enum command_status run_monitor_only(const struct invocation *invocation);
static enum command_status run_panic(const struct invocation *invocation);
static enum command_status run_confirm(const struct invocation *invocation);

const struct command command_monitor_only = {
	.name = "monitor-only",
	.group = COMMAND_SAFETY,
	.usage = "on|off",
	.summary = "count what would be dropped, and drop nothing",
	.help = "For a list that is not trusted yet: rules and policies are looked up and counted as ever,\n"
		"and every packet passes; `stats` shows in columns of its own what would have been dropped. Kept\n"
		"with the rules, for all filters of the --name, and in force at once. `off` says, as `load` does,\n"
		"which stored rules block this host, its gateway or the SSH session this is typed in.\n"
		"\n"
		"  xdp-cuckoo monitor-only on\n"
		"  xdp-cuckoo monitor-only off\n",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_monitor_only,
};

const struct command command_panic = {
	.name = "panic",
	.group = COMMAND_SAFETY,
	.usage = "[off] [--all]",
	.summary = "pass everything at once; off: filter again",
	.help = "Every running filter of the --name, or of every name with --all, passes all packets from\n"
		"now on, until `panic off`, `unload` or a reboot. Touches nothing but the running filters: it\n"
		"works too while another command is at work, and where the stored rules are damaged. Rules stay,\n"
		"and may be changed meanwhile. Status 1 where no filter runs; 3 where one is of a version that nobody\n"
		"knows, or may run but cannot be seen (no CAP_SYS_ADMIN): with --all, all others have it.\n"
		"\n"
		"  xdp-cuckoo panic --all\n"
		"  xdp-cuckoo panic off --all\n",
	.options = OPTION_ALL,
	.min = 0,
	.max = 1,
	.needs = PRIVILEGE_KERNEL,
	.run = run_panic,
};

const struct command command_confirm = {
	.name = "confirm",
	.group = COMMAND_SAFETY,
	.usage = "[--force]",
	.summary = "keep what a --confirm TIME would undo",
	.help = "After `load --confirm 30s` or `import --confirm 30s`: says that this host can still be\n"
		"reached. Status 1 where nothing waits, or it comes too late: then everything passes, and what was\n"
		"not confirmed is undone. What was typed into a session that hung until then is too late as well.\n"
		"Where it cannot be undone, as on a full disk, the next command tries again, and goes on all the\n"
		"same. Rules from before that there is no room for any more, since rules that came meanwhile use\n"
		"the last of the 32 kinds, are left out: that command says so, or the system's log.\n"
		"  --force    also too late, where nothing could undo it: the filter filters again\n"
		"\n"
		"  xdp-cuckoo load eth0 --confirm 30s\n"
		"  xdp-cuckoo confirm\n"
		"  xdp-cuckoo --name web confirm\n",
	.options = OPTION_FORCE,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_confirm,
};

/* 0 or 1; -1 with the error printed. */
static int read_switch(const char *command, const char *word)
{
	if (!strcmp(word, "on"))
		return 1;
	if (!strcmp(word, "off"))
		return 0;
	command_not_a_choice(command, word, "on|off");
	return -1;
}

/* ---- what blocks the operator ---- */

static void report_blocker(const struct apply *apply, const struct guard_flow *flow, enum apply_blocker blocker,
			   const struct rule *rule)
{
	char blocker_text[RULE_TEXT_BYTES], flow_text[RULE_TEXT_BYTES], option[COMMAND_NAME_BYTES];

	output_note("%s blocks %s; to keep it: xdp-cuckoo%s add %s action pass",
		    blocker == APPLY_RULE ? rule_format(rule, blocker_text) : "the policy no-rule drop", flow->what,
		    command_name_option(apply->name, option), rule_format(&flow->flow, flow_text));
}

static bool is_told(const char *const *told, size_t count, const char *what)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(told[i], what))
			return true;
	return false;
}

int command_report_blocked(const struct apply *apply, struct reason *reason)
{
	const char *told[BLOCKED_TOLD_MAX];
	size_t count = 0;
	struct guard guard;
	int error = guard_open(&guard, reason);

	for (size_t i = 0; i < guard.count && count < BLOCKED_TOLD_MAX; i++) {
		const struct guard_flow *flow = &guard.flows[i];
		struct rule rule;
		const enum apply_blocker blocker = apply_blocks(apply->store, &flow->flow, &rule);

		if (blocker == APPLY_NOTHING || is_told(told, count, flow->what))
			continue;
		report_blocker(apply, flow, blocker, &rule);
		told[count++] = flow->what;
	}
	guard_close(&guard);
	return error;
}

/* ---- monitor-only ---- */

static enum command_status run_monitor_only(const struct invocation *invocation)
{
	struct apply apply;
	struct reason reason;
	const int is_on = read_switch("monitor-only", invocation->operands[0]);
	int error;

	if (is_on < 0)
		return STATUS_USAGE;
	error = apply_open(&apply, invocation->state, invocation->name, &reason);
	if (!error) {
		command_report_targets(&apply);
		error = is_on ? 0 : command_report_blocked(&apply, &reason);
	}
	if (!error)
		error = apply_set_monitor_only(&apply, is_on, &reason);
	apply_close(&apply);
	if (error)
		return command_failed(error, &reason);
	output_print(json_pack("{s:b}", "monitor_only", is_on));
	return STATUS_DONE;
}

/* ---- panic ---- */

/* One that nobody has set up passes everything, but may be about to be set up. */
static bool is_meant(const struct invocation *invocation, const struct kernel_filter *filter)
{
	return invocation->is_all || !filter->config->magic ||
	       !strncmp(filter->config->name, invocation->name, sizeof(filter->config->name));
}

/* What it is told itself, no writer tells it again. Returns whether it was so. */
static bool tell(__u32 *run, bool is_on)
{
	const __u32 ends = is_on ? ABI_RUN_HEIR : ABI_RUN_HEIR | ABI_RUN_PANIC;
	__u32 before = __atomic_fetch_and(run, ~ends, __ATOMIC_SEQ_CST);

	if (is_on)
		before = __atomic_fetch_or(run, ABI_RUN_PANIC, __ATOMIC_SEQ_CST);
	return is_on == !!(before & ABI_RUN_PANIC);
}

/* *changed: how many were not so yet. */
static void set_panic(const struct invocation *invocation, struct kernel_filter *filters, size_t count, bool is_on,
		      size_t *meant, size_t *changed)
{
	*meant = *changed = 0;
	for (size_t i = 0; i < count; i++) {
		if (!is_meant(invocation, &filters[i]))
			continue;
		++*meant;
		*changed += !tell(&filters[i].config->run, is_on);
	}
}

/*
 * Until a fresh look finds it so everywhere: a writer may be putting another table in the place of one. -EPROTO and
 * -EPERM: it is so wherever it can be.
 */
static int panic_until_all(const struct invocation *invocation, bool is_on, size_t *meant, struct reason *reason)
{
	size_t count, changed = 1;
	int error = 0;

	for (int round = 0; round < PANIC_ROUNDS && changed; round++) {
		struct kernel_filter *filters;

		error = kernel_find_all(invocation->is_all ? NULL : invocation->name, &filters, &count, reason);
		if (error && error != -EPROTO && error != -EPERM)
			return error;
		set_panic(invocation, filters, count, is_on, meant, &changed);
		kernel_filters_free(filters, count);
	}
	if (!changed)
		return error;
	return reason_set(reason, -EAGAIN,
			  "a writer puts new tables in the place of old ones without "
			  "end; stop it, or take the filter off (xdp-cuckoo unload)");
}

/* And once more, when the writer that was seen at work has started the table it had ready. */
static int panic(const struct invocation *invocation, bool is_on, size_t *meant, struct reason *reason)
{
	const struct timespec settle = { .tv_nsec = PANIC_SETTLE_MS * 1000000 };
	int error = panic_until_all(invocation, is_on, meant, reason);

	if ((error && error != -EPROTO && error != -EPERM) || !*meant)
		return error;
	nanosleep(&settle, NULL);
	return panic_until_all(invocation, is_on, meant, reason);
}

static enum command_status run_panic(const struct invocation *invocation)
{
	bool is_on = true;
	struct reason reason;
	size_t meant = 0;
	int error;

	if (invocation->count && strcmp(invocation->operands[0], "off"))
		return command_error(STATUS_USAGE,
				     "panic '%s': must be off, or nothing: xdp-cuckoo panic, or "
				     "xdp-cuckoo panic off",
				     invocation->operands[0]);
	is_on = !invocation->count;
	error = panic(invocation, is_on, &meant, &reason);
	if (error)
		return command_failed(error, &reason);
	if (!meant)
		return !invocation->is_all ?
			       command_not_running(invocation->name) :
			       command_error(STATUS_NO, "no filter is running here; xdp-cuckoo load IFACE "
							"runs one");
	output_print(json_pack("{s:b, s:I}", "panic", is_on, "filters", (json_int_t)meant));
	return STATUS_DONE;
}

/* ---- confirm ---- */

/*
 * By the clock of the packet path itself: once it has let packets pass, what comes with them proves
 * nothing, be it a `confirm` that was typed while the session hung.
 */
static int check_in_time(const struct apply *apply, struct reason *reason)
{
	double ticks_per_second;
	__u32 tick;
	int error = apply->targets_count ? kernel_tick(&tick, &ticks_per_second, reason) : 0;

	if (!error && apply->undone.error)
		error = reason_set(reason, -ETIMEDOUT,
				   "too late: the time is over; confirm --force keeps what could "
				   "not be undone");
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		const struct abi_config *config = apply->targets[i].filter.config;

		if (config->run & ABI_RUN_UNCONFIRMED && tick >= config->confirm_by)
			error = reason_set(reason, -ETIMEDOUT,
					   "too late: '%s' passes everything since "
					   "the time is over; xdp-cuckoo unload takes it off, confirm "
					   "--force lets it filter",
					   apply->name);
	}
	return error;
}

static enum command_status run_confirm(const struct invocation *invocation)
{
	struct apply apply;
	struct reason reason;
	int error = apply_open(&apply, invocation->state, invocation->name, &reason);

	if (!error)
		command_report_undone(&apply);
	if (!error && !invocation->is_forced)
		error = check_in_time(&apply, &reason);
	if (!error)
		error = apply_confirm(&apply, &reason);
	apply_close(&apply);
	if (error == -ETIMEDOUT)
		return command_error(STATUS_NO, "%s", reason.text);
	if (error == -ENOENT)
		return command_error(STATUS_NO, "nothing waits to be confirmed; what is not confirmed in "
						"time is undone: see xdp-cuckoo status");
	if (error)
		return command_failed(error, &reason);
	output_print(json_pack("{s:s}", "confirmed", invocation->name));
	return STATUS_DONE;
}

void command_report_confirm(const struct invocation *invocation, __s64 deadline_ms)
{
	struct timespec now;
	time_t until;
	char clock[16], option[COMMAND_NAME_BYTES];
	struct tm local;

	clock_gettime(CLOCK_REALTIME, &now);
	until = now.tv_sec + (now.tv_nsec / 1000000 + watchdog_left(deadline_ms)) / 1000;
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&until, &local));
	output_note("undone at %s, unless you type before: xdp-cuckoo%s%s%s confirm", clock,
		    command_name_option(invocation->name, option), invocation->state ? " --state " : "",
		    invocation->state ? invocation->state : "");
}
