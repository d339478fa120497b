// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs commands of the tool as processes of the simulation. What knows kernels, processes of the real machine, and
 * terminals is replaced here, by --wrap of the linker; all else is the tool's own code.
 */
#include "simulation/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unprivileged.h"
#include "command/options.h"
#include "filter/filter.h"
#include "fleet/apply.h"
#include "fleet/follow_internal.h"
#include "io/output.h"
#include "io/signals.h"
#include "simulation/checks.h"

#define RESTART_US (1 * SECOND)

struct node nodes[NODES_MAX];
unsigned int nodes_count;
__s64 master_since_us;

static char root[64];
static struct service {
	bool is_wanted;
	struct process *process;
	char said[REASON_BYTES];
	bool is_panic;
	bool has_signal;
	bool has_held;
} services[NODES_MAX];

/* ---- what the tool finds in place of kernel and system ---- */

int __wrap_kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count,
			       struct reason *reason);
void __wrap_host_filter_look(const char *name, struct kernel_filter **filters, size_t *count,
			     struct host_filter *found);
bool __wrap_host_panic_is_due(const char *name, struct kernel_filter **filters, size_t *count, bool is_on);
int __wrap_filter_panic(const char *name, enum panic_by by, bool is_on, size_t *meant, bool *is_changed,
			struct reason *reason);
int __wrap_guard_open(struct guard *guard, const char *state, struct reason *reason);
int __wrap_unprivileged_start(struct unprivileged *process, void (*run)(const void *context, int fd),
			      const void *context, size_t memory, struct reason *reason);
void __wrap_unprivileged_stop(struct unprivileged *process);
int __wrap_signals_take(struct signals *signals);
void __wrap_signals_give_back(struct signals *signals);
int __real_apply_commit(struct apply *apply, __u64 *failed, struct reason *reason);
int __wrap_apply_commit(struct apply *apply, __u64 *failed, struct reason *reason);
void __wrap_output_print(json_t *value);
void __wrap_output_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
enum command_status __wrap_command_error(enum command_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

int __wrap_kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count,
			       struct reason *reason)
{
	free(*filters);
	*filters = NULL;
	*count = 0;
	reason->text[0] = '\0';
	if (wish.seen)
		*wish.seen = KERNEL_SEEN;
	return 0;
}

void __wrap_host_filter_look(const char *name, struct kernel_filter **filters, size_t *count, struct host_filter *found)
{
	(void)name, (void)filters, (void)count;
	*found = (struct host_filter){ .is_panic = services[current->node->number].is_panic };
}

bool __wrap_host_panic_is_due(const char *name, struct kernel_filter **filters, size_t *count, bool is_on)
{
	(void)name, (void)filters, (void)count;
	return services[current->node->number].is_panic != is_on;
}

int __wrap_filter_panic(const char *name, enum panic_by by, bool is_on, size_t *meant, bool *is_changed,
			struct reason *reason)
{
	(void)name, (void)by, (void)is_changed, (void)reason;
	services[current->node->number].is_panic = is_on;
	*meant = 1;
	trace("panic %s", is_on ? "on" : "off");
	return 0;
}

/* Each host has a gateway of its own. */
int __wrap_guard_open(struct guard *guard, const char *state, struct reason *reason)
{
	char text[64];

	(void)state;
	*guard = (struct guard){ .flows = calloc(1, sizeof(*guard->flows)), .count = 1 };
	snprintf(text, sizeof(text), "src 10.0.9.%u", current->node->number);
	snprintf(guard->flows[0].what, sizeof(guard->flows[0].what), "the gateway 10.0.9.%u", current->node->number);
	return rule_parse(text, &guard->flows[0].flow, reason);
}

/* ---- the process without privileges ---- */

struct reader_process {
	void (*run)(const void *context, int fd);
	struct log_reader_start start;
	int fd;
};

static void run_reader(struct process *process)
{
	struct reader_process *reader = process->context;

	reader->run(&reader->start, reader->fd);
}

/* fork() gives the child a copy of what it needs. */
int __wrap_unprivileged_start(struct unprivileged *process, void (*run)(const void *context, int fd),
			      const void *context, size_t memory, struct reason *reason)
{
	struct reader_process *reader = calloc(1, sizeof(*reader));
	struct process *child;
	struct file *own, *other;
	int fd;

	(void)memory, (void)reason;
	process_step();
	reader->run = run;
	memcpy(&reader->start, context, sizeof(reader->start));
	fd = file_open(FILE_PAIR, current);
	child = process_start(current->node, current, "reader", run_reader, reader);
	reader->fd = file_open(FILE_PAIR, child);
	own = file_of(fd);
	other = file_of(reader->fd);
	own->pair = other;
	other->pair = own;
	*process = (struct unprivileged){ .pid = child->pid, .fd = fd };
	return 0;
}

void __wrap_unprivileged_stop(struct unprivileged *process)
{
	process_step();
	if (process->fd >= 0)
		close(process->fd);
	process_kill(process_with(process->pid));
	*process = (struct unprivileged){ .fd = -1 };
}

/* ---- signals ---- */

int __wrap_signals_take(struct signals *signals)
{
	struct file *file;

	*signals = (struct signals){ .fd = file_open(FILE_SIGNAL, current) };
	file = file_of(signals->fd);
	file->is_ended = services[current->node->number].has_signal;
	return 0;
}

void __wrap_signals_give_back(struct signals *signals)
{
	if (signals->fd)
		close(signals->fd);
	*signals = (struct signals){};
}

/* ---- what is checked and printed ---- */

int __wrap_apply_commit(struct apply *apply, __u64 *failed, struct reason *reason)
{
	size_t wanted = 0;
	int error;

	for (size_t i = 0; i < apply->count; i++)
		wanted += apply->lists[i].has_changes;
	error = __real_apply_commit(apply, failed, reason);
	if (wanted)
		check_host(apply);
	return error;
}

void __wrap_output_print(json_t *value)
{
	json_decref(current->printed);
	current->printed = value;
}

void __wrap_output_note(const char *format, ...)
{
	char text[REASON_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	trace("says: %s", text);
	if (current != services[current->node->number].process)
		return;
	snprintf(services[current->node->number].said, REASON_BYTES, "%s", text);
	services[current->node->number].has_held |= strstr(text, "would drop") != NULL;
}

enum command_status __wrap_command_error(enum command_status status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(current->said, sizeof(current->said), format, arguments);
	va_end(arguments);
	trace("fails: %s", current->said);
	return status;
}

/* ---- commands ---- */

extern const struct command command_fleet, command_publish, command_follow;

static void run_command(struct process *process)
{
	struct options_arguments arguments = { .invocation = { .name = SESSION_NAME_DEFAULT } };
	static const struct command *const commands[] = { &command_fleet, &command_publish, &command_follow, NULL };
	static const struct program fleet = { PROGRAM_FLEET, commands, NULL };
	const struct command *command;
	int count = 0;

	process->argv[count++] = (char *)"xdp-cuckoo";
	for (char *word = process->words; *word;) {
		while (*word == ' ')
			*word++ = '\0';
		if (*word)
			process->argv[count++] = word;
		word += strcspn(word, " ");
	}
	program = &fleet;
	optind = 0;
	process->status = options_read(count, process->argv, &arguments);
	if (process->status == STATUS_DONE) {
		command = program_command(command_find(process->argv[optind]));
		arguments.invocation.operands = process->argv + optind + 1;
		arguments.invocation.count = count - optind - 1;
		process->status = command->run(&arguments.invocation);
	}
	trace("ends with %d", process->status);
}

struct process *node_run(struct node *node, const char *what, void (*ended)(struct process *process),
			 const char *format, ...)
{
	struct process *process = process_start(node, NULL, what, run_command, NULL);
	va_list arguments;
	size_t used;

	process->ended = ended;
	va_start(arguments, format);
	used = vsnprintf(process->words, sizeof(process->words), format, arguments);
	va_end(arguments);
	trace("%s runs %s", node->name, process->words);
	snprintf(process->words + used, sizeof(process->words) - used, " --name f --state %s --config %s", node->dir,
		 node->config);
	return process;
}

/* ---- the service ---- */

static void start_service(void *context);

static void service_ended(struct process *process)
{
	struct node *node = process->node;

	if (services[node->number].process != process)
		return;
	services[node->number].process = NULL;
	services[node->number].has_signal = false;
	node->undisturbed_us = now_us;
	in(RESTART_US, start_service, node);
}

static void start_service(void *context)
{
	struct node *node = context;
	struct service *service = &services[node->number];

	if (!service->is_wanted || service->process)
		return;
	service->has_signal = false;
	service->process = node_run(node, "follow", service_ended, "follow");
}

void node_terminate(struct node *node)
{
	services[node->number].has_signal = true;
	files_signal(node);
}

void node_follow(struct node *node, bool is_on)
{
	services[node->number].is_wanted = is_on;
	if (is_on)
		start_service(node);
	else
		node_terminate(node);
}

/* ---- nodes ---- */

struct node *node_named(const char *name)
{
	for (unsigned int i = 0; i < nodes_count; i++)
		if (!strcmp(nodes[i].name, name))
			return &nodes[i];
	return NULL;
}

bool node_follows(const struct node *node, int list)
{
	return node->is_follower && (!strchr(list_names[list], '.') || node->number % 2);
}

const char *node_said(const struct node *node)
{
	return services[node->number].said;
}

bool node_has_held(const struct node *node)
{
	const bool has_held = services[node->number].has_held;

	services[node->number].has_held = false;
	return has_held;
}

bool node_has_panic(const struct node *node)
{
	return services[node->number].is_panic;
}

struct process *node_service(const struct node *node)
{
	return services[node->number].process;
}

static void write_config(const struct node *node, unsigned int brokers, unsigned int replicas)
{
	FILE *file = fopen(node->config, "w");

	fprintf(file, "[fleet]\nbroker =");
	for (unsigned int i = 0; i < brokers; i++)
		fprintf(file, " 10.0.0.%u", i + 1);
	fprintf(file, "\nlists = alpha beta junk\nresync-jitter = 3s\nreplicas = %u\n", replicas);
	if (node->number % 2)
		fprintf(file, "staged = yes\n");
	fclose(file);
	chmod(node->config, 0600);
}

void nodes_close(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command))
		printf("%s is left\n", root);
}

void nodes_open(unsigned int followers, unsigned int others, unsigned int brokers, unsigned int replicas)
{
	snprintf(root, sizeof(root), "/dev/shm/xdp-cuckoo-simulation.%d", getpid());
	if (mkdir(root, 0700)) {
		/* A process that was killed has left its directory, and had our number. */
		nodes_close();
		if (mkdir(root, 0700))
			missing("a directory %s", root);
	}
	/* Nodes have relative paths, so no number of a process gets into what they do and say. */
	if (chdir(root))
		missing("the directory %s", root);
	output_use_json(true);
	for (nodes_count = 0; nodes_count < followers + others; nodes_count++) {
		struct node *node = &nodes[nodes_count];

		*node = (struct node){ .number = nodes_count,
				       .boot = 1 + nodes_count,
				       .is_follower = nodes_count < followers };
		snprintf(node->name, sizeof(node->name), node->is_follower ? "host%u" : "publisher%u",
			 node->is_follower ? nodes_count : nodes_count - followers);
		snprintf(node->dir, sizeof(node->dir), "%u", nodes_count);
		snprintf(node->config, sizeof(node->config), "%u/config", nodes_count);
		mkdir(node->dir, 0700);
		write_config(node, brokers, replicas);
	}
}
