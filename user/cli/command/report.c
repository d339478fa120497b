// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What commands say on stderr about filters and stores. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "command/command.h"
#include "change/change.h"
#include "filter/filter.h"
#include "io/output.h"
#include "base/advice.h"
#include "base/clock.h"

#define BLOCKED_COUNTED_MAX 64

void command_report_undone(struct session *session)
{
	struct change_undone *undone = &session->undone;

	if (undone->is_reported)
		return;
	undone->is_reported = true;
	if (session->store && store_is_copy(session->store))
		output_warning(
			"the store is on a read-only file system: its rules are used, and nothing is stored; to change "
			"rules, make it writable, or copy it elsewhere and name the place with --state");
	if (undone->error)
		output_warning("a change that was not confirmed in time cannot be undone yet: %s; until then everything "
			       "passes; xdp-cuckoo%s confirm --force keeps the change instead",
			       undone->reason.text, session_name_option(session->name));
	if (undone->is_done && !undone->lost)
		output_warning("undid a change of %llu rule%s that was not confirmed in time: the rules are as before it",
			       undone->rules, undone->rules == 1 ? "" : "s");
	if (undone->lost)
		output_warning("a change that was not confirmed in time is undone, except for %llu earlier rule%s: %s",
			       undone->lost, undone->lost == 1 ? "" : "s", undone->reason.text);
}

static const char *first_interface(const struct kernel_filter *kernel)
{
	return kernel->attachments_count ? kernel->attachments[0].interface : "-";
}

void command_report_found(struct session *session)
{
	command_report_undone(session);
	if (*session->not_reached.text)
		output_warning("this does not reach every filter '%s': %s", session->name, session->not_reached.text);
	for (size_t i = 0; i < session->filters_count; i++) {
		const struct filter *filter = &session->filters[i];
		const char *interface = first_interface(&filter->kernel);

		if (filter->state == FILTER_SET_UP)
			output_note("adopted the filter on %s as '%s'", interface, session->name);
		if (filter->state == FILTER_REPAIRED)
			output_note("repaired the table of '%s' on %s: an earlier command did not finish",
				    session->name, interface);
		if (filter->state == FILTER_TAKEN_OVER)
			output_note("replaced the filter of another version on %s by this version's; it counts from 0",
				    interface);
		/* Such a filter ignores changes. After a failed undo, command_report_undone() has said that already. */
		if ((filter->kernel.config->run & ABI_RUN_PANIC || run_is_confirm_late(&filter->kernel)) &&
		    !session->undone.error)
			command_report_run(&filter->kernel);
	}
}

void command_report_session(struct session *session)
{
	if (session->is_dry_run)
		return;
	if (!session->filters_count)
		output_note("no filter '%s' is running; rules take effect at xdp-cuckoo%s load IFACE%s", session->name,
			    session_name_option(session->name),
			    *session_name_option(session->name) ? "; the name of a list is --list NAME" : "");
	command_report_found(session);
}

void command_report_rebuilds(const struct session *session)
{
	static const char *const why[] = {
		[FILTER_STUCK] = " with a new hash key: too many keys fell into one pair of buckets",
		[FILTER_AGED] = ": it was too old to know when new rules end",
		[FILTER_NEW_PLAN] = ": prefix lengths are joined differently, so that a packet needs few look-ups",
		[FILTER_AT_ONCE] = NULL,
	};

	if (session->voided.text[0])
		output_warning("%s", session->voided.text);
	if (session->limited.text[0])
		output_note("%s: packets above it are dropped", session->limited.text);
	if (session->kept_rates)
		output_note("rules with a rate that are left to other lists: %llu; each keeps the lowest rate that any list "
			    "gave; if a single list has the rule, the next import of that list sets its own",
			    (unsigned long long)session->kept_rates);
	for (size_t i = 0; i < session->filters_count; i++) {
		const struct filter *filter = &session->filters[i];
		const __u64 now = filter_slots(&filter->kernel), before = filter->slots_before;
		const char *interface = first_interface(&filter->kernel);

		if (before && before != now)
			output_note("the table of '%s' on %s went from %llu to %llu slots", session->name, interface,
				    before, now);
		else if (before && why[filter->cause])
			output_note("rebuilt the table of '%s' on %s%s", session->name, interface, why[filter->cause]);
	}
}

void command_note_feed(struct store *store, const char *list)
{
	struct store_feed feed;

	if (list && !store_feed(store, list, &feed))
		output_note("the list '%s' comes from a URL: its next fetch undoes this; to keep it, leave --list out, or "
			    "name another list",
			    list);
}

const char *command_format_name(const struct abi_options *options)
{
	static const char *const compact[BUCKET_FORMATS] = {
		[BUCKET_16] = "compact, 16 bits",
		[BUCKET_32] = "compact, 32 bits",
		[BUCKET_8] = "compact, 8 bits",
		[BUCKET_17] = "compact, 17 bits, semi-sorted",
	};

	if (!options->is_exact)
		return compact[options->format % BUCKET_FORMATS];
	return options->has_counts ? "exact, counted by rule" : "exact";
}

bool command_note_mode(const struct kernel_attachment *attachment, enum kernel_mode mode)
{
	const bool is_other = (mode == KERNEL_NATIVE && attachment->mode != INTERFACE_NATIVE) ||
			      (mode == KERNEL_SKB && attachment->mode != INTERFACE_SKB);

	if (is_other)
		output_note("'%s' runs the filter already, in mode %s; only unload and load change it, and nothing is "
			    "filtered in between",
			    attachment->interface, interface_mode_name(attachment->mode));
	return is_other;
}

/* The first condition that holds decides. */
const char *command_effect(const struct kernel_filter *kernel, char text[COMMAND_EFFECT_BYTES])
{
	const char *name = session_name_option(kernel->config->name);
	const __u32 run = kernel->config->run;
	char time[RULE_TIME_BYTES];

	if (!(run & ABI_RUN_SET_UP))
		return "passes everything until the next add, import or load";
	if (run & ABI_RUN_PANIC)
		snprintf(text, COMMAND_EFFECT_BYTES, "PANIC: passes everything; xdp-cuckoo%s panic off ends it", name);
	else if (run_is_confirm_late(kernel))
		snprintf(text, COMMAND_EFFECT_BYTES,
			 "UNCONFIRMED: passes everything; xdp-cuckoo%s confirm --force ends it", name);
	else if (run_is_unconfirmed(kernel))
		snprintf(text, COMMAND_EFFECT_BYTES,
			 "UNCONFIRMED: passes everything in %s unless xdp-cuckoo%s confirm comes before",
			 rule_time_format(run_confirm_left_ms(kernel), time), name);
	else
		return run & ABI_RUN_MONITOR ? "MONITOR-ONLY: drops nothing, and counts what it would drop" : "filters";
	return text;
}

void command_report_run(const struct kernel_filter *kernel)
{
	const bool is_late = run_is_confirm_late(kernel);
	char text[COMMAND_EFFECT_BYTES];

	/* --json hides notes, but not warnings: nobody has asked for the late state. */
	if (kernel->config->run & ~(ABI_RUN_SET_UP | ABI_RUN_REPLACING | ABI_RUN_FLEET))
		(is_late ? output_warning : output_note)("the filter '%s' on %s: %s", kernel->config->name,
							 first_interface(kernel), command_effect(kernel, text));
}

void command_report_old_buffers(const struct kernel_attachment *attachment)
{
	if (kernel_has_old_buffers(attachment))
		output_note("'%s' may lose frames of more than 3500 bytes until a packet has come in each receive buffer; to "
			    "renew all buffers, change the size of its RX ring and change it back: see "
			    "xdp-cuckoo-drivers(7)",
			    attachment->interface);
}

/* Settings that make each packet cost more. Only the first network namespace has them. They are told once. */
static void report_jit(void)
{
	static const struct {
		const char *name;
		int value;
		const char *cost;
	} settings[] = {
		{ "bpf_jit_enable", 0, "the kernel does not compile programs, and a packet costs many times as much" },
		{ "bpf_jit_harden", 2, "compiled programs are hardened, and a packet costs about twice as much" },
	};
	static bool is_told;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && !is_told; i++) {
		char path[64];
		FILE *file;
		int value;

		snprintf(path, sizeof(path), "/proc/sys/net/core/%s", settings[i].name);
		file = fopen(path, "re");
		if (file && fscanf(file, "%d", &value) == 1 && value == settings[i].value)
			output_note("net.core.%s is %d: %s; xdp-cuckoo bench measures it", settings[i].name, value,
				    settings[i].cost);
		if (file)
			fclose(file);
	}
	is_told = true;
}

bool command_report_bypass(const struct kernel_filter *kernel)
{
	char cure[128];
	bool is_lost = false;

	report_jit();
	for (size_t i = 0; i < kernel->attachments_count; i++) {
		struct kernel_attachment attachment = kernel->attachments[i];

		interface_clean_name(attachment.interface);
		is_lost |= attachment.is_bypassed;
		if (attachment.is_bypassed)
			output_note("NOT FILTERING on '%s': it receives packets, and the filter sees none of them; unload "
				    "it there and load it again, and if that does not help, with --mode skb",
				    attachment.interface);
		if (attachment.is_behind)
			output_note("at tc of '%s', a program of another tool comes before the filter for %s "
				    "packets, which does not see what that one passes by itself; let that "
				    "tool attach it behind the filter: bpftool net show dev %s",
				    attachment.interface, kernel_is_outgoing(&attachment) ? "sent" : "received",
				    attachment.interface);
		if (attachment.is_below)
			output_note("'%s' is below another interface with an XDP program (a bridge, bond, VLAN or macvlan): "
				    "the kernel replaces no program below, so no larger table can come; "
				    "unload the one above",
				    attachment.interface);
		if (!kernel_is_mtu_too_large(&attachment))
			continue;
		snprintf(cure, sizeof(cure), "xdp-cuckoo%s load %s fixes that, or says why it cannot",
			 session_name_option(kernel->config->name), attachment.interface);
		output_note("the MTU of '%s' is %u: its driver may lose frames that do not fit into one buffer; %s",
			    attachment.interface, attachment.mtu,
			    kernel_may_take_frags(&attachment) ?
				    cure :
				    "make the MTU smaller, or unload the filter there and load it with --mode skb");
	}
	return is_lost;
}

void command_watch(const char *name)
{
	struct kernel_filter *filters = NULL;
	struct reason ignored;
	size_t count = 0;

	if (output_is_json())
		return;
	kernel_find_filters((struct kernel_wish){ .must_see = name, .keeps_pins = true }, &filters, &count, &ignored);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(filters[i].config->name, name))
			continue;
		/* The prompt waits for this. `status` looks longer. */
		kernel_watch(&filters[i], 1, 6);
		command_report_bypass(&filters[i]);
	}
	kernel_filters_free(filters, count);
}

void command_fit_mtu(struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++) {
		struct kernel_filter *kernel = &session->filters[i].kernel;

		for (size_t k = 0; k < kernel->attachments_count; k++) {
			struct kernel_attachment *attachment = &kernel->attachments[k];
			const bool was_frags = attachment->is_frags;
			struct reason reason;

			if (kernel_fit_mtu(kernel, attachment, &reason)) {
				output_note("'%s' keeps the program for frames of one buffer: %s",
					    attachment->interface, reason.text);
			} else if (attachment->is_frags != was_frags) {
				output_note("'%s' now runs the program for frames of several buffers: its MTU has grown "
					    "to %u",
					    attachment->interface, attachment->mtu);
				command_report_old_buffers(attachment);
			}
		}
	}
}

/* One line: the first flow, how many others there are, and what keeps all. */
int command_report_blocked(const struct session *session, const char *state, struct reason *reason)
{
	char blocker[RULE_TEXT_BYTES], commands[GUARD_ADVICE_BYTES], time[RULE_TIME_BYTES], more[64] = "";
	const char *what[BLOCKED_COUNTED_MAX];
	struct query_block first = {}, block;
	struct guard_advice advice = {};
	struct guard guard;
	size_t count = 0;
	int error = guard_open(&guard, state, reason);

	if (*guard.missing.text)
		output_note("%s", guard.missing.text);
	for (size_t i = 0; i < guard.count && count < BLOCKED_COUNTED_MAX && !error; i++) {
		bool is_counted = false;

		error = store_unread_reason(query_blocks(session->store, &guard.flows[i].flow, false, &block), reason);
		if (error || block.by == QUERY_NOTHING)
			continue;
		guard_advise(&advice, &guard.flows[i]);
		for (size_t k = 0; k < count; k++)
			is_counted |= !strcmp(what[k], guard.flows[i].what);
		if (is_counted)
			continue;
		if (!count)
			first = block;
		what[count++] = guard.flows[i].what;
	}
	if (count > 1)
		snprintf(more, sizeof(more), "; %s%zu more that this host needs %s blocked",
			 count == BLOCKED_COUNTED_MAX ? "at least " : "", count - 1, count == 2 ? "is" : "are");
	if (count)
		output_note("%s blocks %s%s%s%s; to keep %s: %s",
			    first.by == QUERY_RULE ? rule_format(&first.rule, blocker) : "the policy no-rule drop",
			    *what, first.in_ms ? " when the pass rule for it ends, in " : "",
			    first.in_ms ? rule_time_format(first.in_ms, time) : "", more, count > 1 ? "them" : "it",
			    guard_advice_text(&advice, session_name_option(session->name), commands));
	guard_close(&guard);
	return error;
}

const char *command_pass_advice(const char *name, const struct rule *packets, char text[2 * RULE_TEXT_BYTES])
{
	char rule[RULE_TEXT_BYTES];

	*text = '\0';
	if (packets->src_len >= 8)
		snprintf(text, 2 * RULE_TEXT_BYTES, "; to let it pass: " ADVICE_PASS, session_name_option(name),
			 rule_format(packets, rule));
	return text;
}

void command_report_confirm(const struct invocation *invocation, __s64 deadline_ms)
{
	const time_t until = (clock_ms(CLOCK_REALTIME) + watchdog_left(deadline_ms)) / 1000;
	char clock[16];
	struct tm local;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&until, &local));
	output_note("this is undone at %s unless you type before: xdp-cuckoo%s%s%s confirm", clock,
		    session_name_option(invocation->name), invocation->state ? " --state " : "",
		    invocation->state ? invocation->state : "");
}
