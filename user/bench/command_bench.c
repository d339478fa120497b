// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bench: measures what the filter costs per packet on this host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "bench/bench.h"
#include "base/memory.h"
#include "command/command.h"
#include "io/output.h"

#define SECONDS_DEFAULT 2
#define DRIVER_NS_DEFAULT 42
#define SET_UP_MS 60000            /* an upper estimate */
#define FRAME_BITS (8 * (64 + 20)) /* a frame of 64 bytes on the wire, with preamble and gap */
#define CPU_NAME_BYTES 128
#define MEASURED_BYTES 128
#define NAMES_BYTES 128 /* of running filters, in a message */

/* ---- a filter that no packet reaches: a copy of a running one, or the one that a load would make ---- */

/* The table that session_open_copy() makes; see session_load(). */
struct copy_wanted {
	bool is_another; /* use the two members below, instead of those of the running filter */
	struct abi_options options;
	__u64 capacity;
};

struct copy_original {
	bool is_running, is_copied;
	bool is_missing;             /* neither a filter nor a store of the name exists: this is an error */
	bool is_filtering;           /* neither monitor-only, panic nor unconfirmed */
	char interface[IF_NAMESIZE]; /* the first one of the running filter */
};

static const struct kernel_filter *find_named(const struct kernel_filter *filters, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (kernel_is_named(filters[i].config, name))
			return &filters[i];
	return NULL;
}

/* Lists each name once, as far as there is room. */
static const char *list_names(const struct kernel_filter *filters, size_t count, char names[NAMES_BYTES])
{
	size_t used = 0;

	names[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *name = filters[i].config->name;

		if (!filters[i].config->magic || find_named(filters, i, name) || used + strlen(name) + 3 > NAMES_BYTES)
			continue;
		if (used)
			names[used++] = ' ';
		used = stpcpy(names + used, name) - names;
	}
	return used ? names : "none";
}

/* While the store is locked, only the counters of the running filter change. */
static int copy_maps(const struct kernel_filter *from, const struct kernel_filter *to, struct reason *reason)
{
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
		int error;

		if (!from->map[name].memory)
			continue;
		if (from->map[name].bytes != to->map[name].bytes)
			return reason_set(reason, -EPROTO,
					  "the maps of the running filter have other sizes than its table; take it off "
					  "(xdp-cuckoo unload) and load it again");
		error = kernel_map_part(&from->map[name], 0, from->map[name].bytes);
		if (!error)
			error = kernel_map_part(&to->map[name], 0, to->map[name].bytes);
		if (error)
			return reason_set(reason, error, "cannot map the filter's table: %s", strerror(-error));
		memcpy(to->map[name].memory, from->map[name].memory, to->map[name].bytes);
	}
	return 0;
}

/* The store is locked. The running filter must have exactly its rules. */
static int check_original(const struct session *session, const struct kernel_filter *kernel, struct reason *reason)
{
	const struct abi_config *config = kernel->config;
	struct store_info info = {};
	int error = session->store ? store_info(session->store, &info) : 0;

	if (error)
		return store_unread_reason(error, reason);
	if (memcmp(config->store_id, info.id, sizeof(info.id)))
		return reason_set(reason, -EEXIST,
				  "the filter '%s' on %s is filled from another store; give the --state it was loaded "
				  "with",
				  session->name, kernel->attachments[0].interface);
	if (config->generation != info.generation)
		return reason_set(reason, -EPROTO,
				  "the table of '%s' on %s is not equal to the store: an earlier command did not finish; "
				  "xdp-cuckoo check repairs it",
				  session->name, kernel->attachments[0].interface);
	return 0;
}

/* Sets session->filters to one filter: a copy, or the one that a load would make. */
static int make_filter(struct session *session, const struct copy_wanted *wanted, const struct kernel_filter *filters,
		       size_t count, struct copy_original *original, struct reason *reason)
{
	const struct kernel_filter *kernel = find_named(filters, count, session->name);
	struct filter *filter;
	char names[NAMES_BYTES];
	int error;

	session->filters = calloc(1, sizeof(*session->filters));
	if (!session->filters)
		return reason_set(reason, -ENOMEM, "no memory for the list of filters");
	original->is_missing = !kernel && !session->store;
	if (original->is_missing)
		return reason_set(reason, -ENOENT,
				  "no filter '%s' is running here, and no rules are stored under that --name; "
				  "running: %s",
				  session->name, list_names(filters, count, names));
	if (kernel) {
		original->is_running = true;
		original->is_filtering = (kernel->config->run & ~(ABI_RUN_REPLACING | ABI_RUN_FLEET)) == ABI_RUN_SET_UP;
		memcpy(original->interface, kernel->attachments[0].interface, IF_NAMESIZE);
	}
	if (kernel && (!wanted->is_another || !session->store)) {
		original->is_copied = true;
		error = check_original(session, kernel, reason);
		if (!error)
			error = filter_create_like(session->filters, kernel, reason);
		if (!error) {
			session->filters_count++;
			error = copy_maps(kernel, &session->filters->kernel, reason);
		}
		if (!error)
			error = filter_reopen(session->filters, reason);
	} else {
		error = session_load(session, &wanted->options, wanted->capacity, &filter, reason);
	}
	if (error)
		return error;
	session->filters->kernel.config->run = ABI_RUN_SET_UP;
	session->filters->kernel.config->listener = 0;
	return 0;
}

/*
 * Opens one filter that receives no packets: a copy of the first running filter of the name, or else the
 * filter that a load would make from the store. The copy filters even if the original does not. The running
 * filter is only read. This process is the only writer until session_unlock(). 0; -errno with the reason.
 */
static int session_open_copy(struct session *session, const char *state, const char *name, const struct copy_wanted *wanted,
		      struct copy_original *original, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	struct store *store = NULL;
	size_t count = 0;
	int error;

	*session = (struct session){};
	*original = (struct copy_original){};
	strncpy(session->name, name, sizeof(session->name) - 1);
	/* Locks the store against writers. Creates no store: if there is none, session->store stays NULL. */
	error = session_open_store(state, name, STORE_READ, &store, reason);
	store_close(store);
	if (!error)
		error = session_open_store(state, name, STORE_WRITE, &session->store, reason);
	else if (error == -ENOENT)
		error = 0;
	if (!error)
		error = kernel_find_filters((struct kernel_wish){ .must_see = name }, &filters, &count, reason);
	if (!error)
		error = make_filter(session, wanted, filters, count, original, reason);
	kernel_filters_free(filters, count);
	if (error)
		session_close(session);
	return error;
}

/* ---- the figures ---- */

/* The measured filter, which no packet reaches, and the results. */
struct benching {
	struct session session;
	struct copy_original original;
	struct store_info info;
	struct bench_lists lists;
	struct bench_results results;
};

/* The name that the kernel gives; "unknown" if it gives none. */
static const char *cpu_name(char name[CPU_NAME_BYTES])
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[512];

	strcpy(name, "unknown");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "model name : %127[^\n]", name) == 1)
			break;
	if (file)
		fclose(file);
	return name;
}

/* The figures are for one CPU, while `cpus` CPUs worked at the same time. */
static json_t *figures_row(const struct bench_result *result, const struct bench_figure *figures, unsigned int cpus)
{
	const struct bench_figure *filter = &figures[BENCH_FILTER];
	const double drop_ns = figures[BENCH_DROP].median;
	const double parse_ns = figures[BENCH_PARSE].median;

	return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "family", bench_family_names[result->family],
			 "traffic", bench_traffic_names[result->traffic], "ns", filter->median, "lower_quartile",
			 filter->lower_quartile, "upper_quartile", filter->upper_quartile, "drop_ns", drop_ns,
			 "ns_over_drop", filter->median - drop_ns, "ns_over_parse", filter->median - parse_ns,
			 "million_packets_per_s", cpus * 1e9 / filter->median / 1e6);
}

static json_t *make_answer(const struct invocation *invocation, const struct benching *benching)
{
	const struct kernel_filter *filter = &benching->session.filters->kernel;
	const struct copy_original *original = &benching->original;
	static const unsigned int gbit_per_s[] = { 10, 25, 40, 100 };
	const __u64 driver_ns = invocation->driver_ns ? invocation->driver_ns : DRIVER_NS_DEFAULT;
	json_t *one_cpu = json_array(), *all_cpus = json_array(), *cores = json_array(), *answer;
	char cpu[CPU_NAME_BYTES], measured[MEASURED_BYTES], name[32];
	struct utsname system = {};

	snprintf(measured, sizeof(measured),
		 original->is_copied  ? "a copy of the filter on %s" :
		 original->is_running ? "what load would make with these options; on %s another table runs" :
					"what load would make; no filter runs",
		 original->interface);
	uname(&system);
	answer = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:I, s:s, s:I, s:f, s:I}", "kernel", system.release,
			   "machine", system.machine, "cpu", cpu_name(cpu), "cpus", (json_int_t)bench_cpus(), "name",
			   benching->session.name, "measured", measured, "rules", (json_int_t)benching->info.rules,
			   "table", command_format_name(&filter->options), "slots",
			   (json_int_t)filter_slots(&benching->session.filters->kernel), "load_factor",
			   query_fill(filter), "table_bytes", (json_int_t)kernel_filter_bytes(filter));
	for (size_t i = 0; i < benching->results.count; i++) {
		const struct bench_result *result = &benching->results.result[i];
		const double over_drop = result->all_cpus[BENCH_FILTER].median - result->all_cpus[BENCH_DROP].median;
		const double ns = driver_ns + over_drop;
		json_t *model = json_pack("{s:s, s:s, s:f, s:f}", "family", bench_family_names[result->family],
					  "traffic", bench_traffic_names[result->traffic], "ns", ns,
					  "million_packets_per_s", 1e9 / ns / 1e6);

		json_array_append_new(one_cpu, figures_row(result, result->one_cpu, 1));
		json_array_append_new(all_cpus, figures_row(result, result->all_cpus, bench_cpus()));
		/* A core handles one packet at a time: packets per second times seconds per packet is the number of busy cores. */
		for (size_t k = 0; k < sizeof(gbit_per_s) / sizeof(gbit_per_s[0]); k++) {
			snprintf(name, sizeof(name), "cores_%u_gbit", gbit_per_s[k]);
			json_object_set_new(model, name, json_real(gbit_per_s[k] * 1e9 / FRAME_BITS * ns / 1e9));
		}
		json_array_append_new(cores, model);
	}
	json_object_update_new(answer,
			       json_pack("{s:o, s:o, s:s, s:I, s:o}", "one_cpu", one_cpu, "all_cpus", all_cpus, "model",
					 "not measured: packets/s x (driver ns + ns over drop on all cpus), "
					 "frames of 64 bytes",
					 "driver_ns", (json_int_t)driver_ns, "cores_needed", cores));
	return answer;
}

static enum command_status run_bench(const struct invocation *invocation)
{
	const __u64 seconds = invocation->seconds ? invocation->seconds : SECONDS_DEFAULT;
	const struct copy_wanted wanted = {
		.is_another = table_options_are_given(&invocation->load) || invocation->load.capacity,
		.options = table_options_of(&invocation->load),
		.capacity = invocation->load.capacity,
	};
	struct benching benching = {};
	struct session *session = &benching.session;
	struct reason reason;
	int error;

	if (command_check_format(&invocation->load))
		return STATUS_USAGE;
	error = session_open_copy(session, invocation->state, invocation->name, &wanted, &benching.original, &reason);
	if (!error)
		error = store_unread_reason(store_info(session->store, &benching.info), &reason);
	if (!error)
		error = memory_check(bench_lists_bytes() + bench_bytes(), "bench", "nothing is measured", &reason);
	if (!error)
		error = bench_lists_open(&benching.lists, session->store, &session->filters->kernel,
					 1000 * (__s64)seconds + SET_UP_MS, &reason);
	if (!error) {
		/* Other commands may change the store while bench measures. */
		session_unlock(session);
		error = bench_measure(&session->filters->kernel, &benching.lists, seconds, &benching.results, &reason);
	}
	if (!error) {
		if (benching.original.is_running && !benching.original.is_filtering)
			output_note("the running filter on %s does not filter as measured; see xdp-cuckoo status",
				    benching.original.interface);
		output_print(make_answer(invocation, &benching));
	}
	bench_lists_close(&benching.lists);
	session_close(session);
	if (benching.original.is_missing)
		return command_fail(STATUS_NO, "%s", reason.text);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

const struct command command_bench = {
	.name = "bench",
	.usage = "[--seconds N] [--driver-ns N] [--capacity N] [--compact [--fingerprint 8|16|17|32]] "
		 "[--no-counters] [--no-spare]",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_bench,
};
