// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* panic: passes everything at once. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "commands/command.h"
#include "io/output.h"

#define PANIC_ROUNDS 1000   /* each writer that interferes costs one round */
#define PANIC_SETTLE_MS 100 /* a writer replaces a table and starts the new one within this time */

static enum command_status run_panic(const struct invocation *invocation);

const struct command command_panic = {
	.name = "panic",
	.group = COMMAND_SAFETY,
	.usage = "[on|off] [--all]",
	.summary = "pass everything at once; off: filter again",
	.help = "Every running filter of the --name, or with --all of every name, passes all\n"
		"packets from now on, until `panic off`, `unload` or a reboot. It changes only\n"
		"the running filters, so it works while another command runs, and if the\n"
		"stored rules are damaged. The rules stay, and you can change them meanwhile.\n"
		"Status 1: no filter runs. Status 3: a filter is of an unknown version, or may\n"
		"run but cannot be seen (no CAP_SYS_ADMIN); all other filters are in panic.\n"
		"\n"
		"  xdp-cuckoo panic --all\n"
		"  xdp-cuckoo panic off --all\n",
	.options = OPTION_ALL,
	.max = 1,
	.needs = PRIVILEGE_KERNEL,
	.run = run_panic,
};

/*
 * Clears ABI_RUN_HEIR too, so that no writer overrides the panic bit. Returns whether the filter was in this
 * state before.
 */
static bool set_panic(__u32 *run, bool is_on)
{
	__u32 before =
		__atomic_fetch_and(run, ~(is_on ? ABI_RUN_HEIR : ABI_RUN_HEIR | ABI_RUN_PANIC), __ATOMIC_SEQ_CST);

	if (is_on)
		before = __atomic_fetch_or(run, ABI_RUN_PANIC, __ATOMIC_SEQ_CST);
	return is_on == !!(before & ABI_RUN_PANIC);
}

/*
 * Repeats until a fresh look finds every filter in the wanted state, since a writer may replace a table meanwhile.
 * Counts the filters in *meant. -EPROTO, -EPERM: some filters cannot be seen or used; all others are in that state.
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
		*meant = changed = 0;
		for (size_t i = 0; i < count; i++) {
			struct abi_config *config = filters[i].config;

			/* A filter that is not set up passes everything, but a writer may be about to set it up. */
			if (!invocation->is_all && config->magic &&
			    strncmp(config->name, invocation->name, sizeof(config->name)))
				continue;
			++*meant;
			changed += !set_panic(&config->run, is_on);
		}
		kernel_filters_free(filters, count);
	}
	if (!changed)
		return error;
	return reason_set(reason, -EAGAIN,
			  "another command keeps replacing tables; stop it, or take the filter off (xdp-cuckoo unload)");
}

static int panic(const struct invocation *invocation, bool is_on, size_t *meant, struct reason *reason)
{
	const struct timespec settle = { .tv_nsec = PANIC_SETTLE_MS * 1000000 };
	int error = panic_until_all(invocation, is_on, meant, reason);

	if ((error && error != -EPROTO && error != -EPERM) || !*meant)
		return error;
	/* A writer may have had a new table ready. Wait until it has started it. */
	nanosleep(&settle, NULL);
	return panic_until_all(invocation, is_on, meant, reason);
}

static enum command_status run_panic(const struct invocation *invocation)
{
	bool is_on = true;
	struct reason reason;
	size_t meant = 0;
	int error;

	if (invocation->count && strcmp(invocation->operands[0], "off") && strcmp(invocation->operands[0], "on"))
		return command_say_choices("panic", invocation->operands[0], "on|off");
	is_on = !invocation->count || !strcmp(invocation->operands[0], "on");
	error = panic(invocation, is_on, &meant, &reason);
	if (error)
		return command_failed(error, &reason);
	if (!meant)
		return !invocation->is_all ?
			       command_say_not_running(invocation->name) :
			       command_error(STATUS_NO, "no filter is running here; xdp-cuckoo load IFACE runs one");
	output_print(json_pack("{s:b, s:I}", "panic", is_on, "filters", (json_int_t)meant));
	return STATUS_DONE;
}
