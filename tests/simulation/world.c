// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Time, chance, processes and files of a simulation. */
#include "simulation/world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simulation/network.h"

#define STACK_BYTES (512 << 10)

bool is_traced, is_summed;
__u64 trace_sum;
char breach[1024];

/* ---- words ---- */

void trace(const char *format, ...)
{
	char line[2048];
	va_list arguments;
	int used;

	if (!is_traced && !is_summed)
		return;
	used = snprintf(line, sizeof(line), "%9.4f %s%s%s%s", now_us / 1e6, current ? current->node->name : "",
			current ? "/" : "", current ? current->what : "", current ? ": " : "");
	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - used, format, arguments);
	va_end(arguments);
	if (is_traced)
		puts(line);
	for (const char *c = line; *c; c++) /* FNV-1a */
		trace_sum = (trace_sum ^ (unsigned char)*c) * 0x100000001b3;
}

void must(bool is_kept, const char *format, ...)
{
	va_list arguments;
	size_t used;

	if (is_kept || *breach)
		return;
	used = snprintf(breach, sizeof(breach), "at %.3f s: ", now_us / 1e6);
	va_start(arguments, format);
	vsnprintf(breach + used, sizeof(breach) - used, format, arguments);
	va_end(arguments);
	trace("BREACH %s", breach);
}

void missing(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("the model lacks: ");
	vprintf(format, arguments);
	putchar('\n');
	fflush(NULL);
	va_end(arguments);
	_exit(3);
}

void *enlarged(void *array, size_t bytes)
{
	void *larger = realloc(array, bytes);

	if (!larger)
		missing("memory");
	return larger;
}

/* ---- chance ---- */

static __u64 states[CHANCES];

/* SplitMix64. */
__u64 chance(enum chance stream)
{
	__u64 z = states[stream] += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

void chance_seed(__u64 seed)
{
	for (int i = 0; i < CHANCES; i++)
		states[i] = (seed << 3) + i;
	for (int i = 0; i < CHANCES; i++)
		states[i] = chance(i);
}

__u64 chance_below(enum chance stream, __u64 limit)
{
	return limit ? chance(stream) % limit : 0;
}

bool chance_one_in(enum chance stream, unsigned int n)
{
	return !chance_below(stream, n);
}

/* ---- time ---- */

__s64 now_us;

struct plan {
	__s64 time_us;
	__u64 number;
	void (*act)(void *context);
	void *context;
};

static struct plan *plans; /* a heap: the first is the next */
static size_t plans_count, plans_room;

static bool is_before(const struct plan *a, const struct plan *b)
{
	return a->time_us < b->time_us || (a->time_us == b->time_us && a->number < b->number);
}

void at(__s64 time_us, void (*act)(void *context), void *context)
{
	static __u64 number;
	const struct plan new = { time_us > now_us ? time_us : now_us, number++, act, context };
	size_t i = plans_count++;

	if (plans_count > plans_room) {
		plans_room = plans_room ? 2 * plans_room : 1024;
		plans = enlarged(plans, plans_room * sizeof(*plans));
	}
	for (; i && is_before(&new, &plans[(i - 1) / 2]); i = (i - 1) / 2)
		plans[i] = plans[(i - 1) / 2];
	plans[i] = new;
}

void in(__s64 delay_us, void (*act)(void *context), void *context)
{
	at(now_us + delay_us, act, context);
}

static struct plan next_plan(void)
{
	const struct plan first = plans[0], last = plans[--plans_count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < plans_count) {
		if (child + 1 < plans_count && is_before(&plans[child + 1], &plans[child]))
			child++;
		if (!is_before(&plans[child], &last))
			break;
		plans[i] = plans[child];
		i = child;
	}
	plans[i] = last;
	return first;
}

void run_until(__s64 time_us)
{
	while (plans_count && plans[0].time_us <= time_us && !*breach) {
		const struct plan plan = next_plan();

		now_us = plan.time_us;
		plan.act(plan.context);
	}
	if (!*breach)
		now_us = time_us;
}

/* ---- processes ---- */

struct process *current;
static struct process *processes;
static ucontext_t world;
static void *free_stacks[256];
static size_t free_stacks_count;

static void enter(void)
{
	current->run(current);
	current->is_dead = true;
	swapcontext(&current->at, &world);
	abort();
}

static void forget(struct process *process)
{
	struct process **place = &processes;

	for (size_t i = 0; i < process->fds_count; i++)
		syscall(SYS_close, process->fds[i]);
	process->fds_count = 0;
	files_close_of(process);
	if (process->stack && free_stacks_count < sizeof(free_stacks) / sizeof(free_stacks[0]))
		free_stacks[free_stacks_count++] = process->stack;
	process->stack = NULL;
	while (*place && *place != process)
		place = &(*place)->next;
	if (*place)
		*place = process->next;
}

/* What it had started ends with it. */
static void end(struct process *process)
{
	for (struct process *other = processes, *next; other; other = next) {
		next = other->next;
		if (other->parent == process && !other->is_dead) {
			other->is_dead = other->is_killed = true;
			forget(other);
		}
	}
	forget(process);
	if (process->ended)
		process->ended(process);
}

static void resume(struct process *process)
{
	if (process->is_dead)
		return;
	process->is_woken = false;
	process->wake++;
	current = process;
	swapcontext(&world, &process->at);
	current = NULL;
	if (process->is_dead)
		end(process);
}

static void resume_woken(void *context)
{
	struct process *process = context;

	if (process->is_woken)
		resume(process);
}

void process_wake(struct process *process)
{
	if (!process || process->is_dead || process->is_woken)
		return;
	process->is_woken = true;
	/* The scheduler of a busy machine. */
	in(chance_below(CHANCE_NETWORK, 200), resume_woken, process);
}

struct process *process_start(struct node *node, struct process *parent, const char *what,
			      void (*run)(struct process *process), void *context)
{
	static int pid = 1000;
	struct process *process = calloc(1, sizeof(*process));

	pid++;
	*process = (struct process){ .pid = pid,
				     .node = node,
				     .parent = parent,
				     .run = run,
				     .context = context,
				     .steps_left = -1,
				     .next = processes };
	snprintf(process->what, sizeof(process->what), "%s", what);
	processes = process;
	process->stack = free_stacks_count ? free_stacks[--free_stacks_count] :
					     mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	getcontext(&process->at);
	process->at.uc_stack.ss_sp = process->stack;
	process->at.uc_stack.ss_size = STACK_BYTES;
	process->at.uc_link = NULL;
	makecontext(&process->at, enter, 0);
	process_wake(process);
	return process;
}

void process_kill(struct process *process)
{
	if (!process || process->is_dead || process == current)
		return;
	process->is_dead = process->is_killed = true;
	end(process);
}

void process_kill_all_of(const struct node *node)
{
	for (struct process *process = processes; process;) {
		if (process->node == node && !process->is_dead) {
			process_kill(process);
			process = processes; /* others may be gone, too */
		} else {
			process = process->next;
		}
	}
}

struct process *process_with(int pid)
{
	for (struct process *process = processes; process; process = process->next)
		if (process->pid == pid && !process->is_dead)
			return process;
	return NULL;
}

struct process *process_child_of(const struct process *parent)
{
	for (struct process *process = processes; process && parent; process = process->next)
		if (process->parent == parent && !process->is_dead)
			return process;
	return NULL;
}

struct waiting {
	struct process *process;
	__u64 wake;
};

static void time_is_up(void *context)
{
	struct waiting *waiting = context;

	if (!waiting->process->is_dead && waiting->wake == waiting->process->wake)
		resume(waiting->process);
	free(waiting);
}

void process_wait(__s64 until_us)
{
	struct process *process = current;

	if (until_us >= 0) {
		struct waiting *waiting = malloc(sizeof(*waiting));

		*waiting = (struct waiting){ process, process->wake };
		at(until_us, time_is_up, waiting);
	}
	swapcontext(&process->at, &world);
}

void process_sleep(__s64 us)
{
	const __s64 until_us = now_us + us;

	while (now_us < until_us)
		process_wait(until_us);
}

bool process_is_last_step(void)
{
	return current && current->steps_left >= 0 && current->steps_left-- == 0;
}

void process_die(void)
{
	trace("killed");
	current->is_dead = current->is_killed = true;
	swapcontext(&current->at, &world);
	abort();
}

void process_step(void)
{
	if (process_is_last_step())
		process_die();
}

/* ---- bytes ---- */

void bytes_add(struct bytes *bytes, const void *data, size_t count)
{
	if (bytes->taken == bytes->used)
		bytes->taken = bytes->used = 0;
	if (bytes->used + count > bytes->room) {
		bytes->room = 2 * (bytes->used + count) + 256;
		bytes->data = enlarged(bytes->data, bytes->room);
	}
	memcpy(bytes->data + bytes->used, data, count);
	bytes->used += count;
}

size_t bytes_take(struct bytes *bytes, void *data, size_t count)
{
	const size_t left = bytes->used - bytes->taken;

	if (count > left)
		count = left;
	memcpy(data, bytes->data + bytes->taken, count);
	bytes->taken += count;
	return count;
}

void bytes_free(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){};
}

/* ---- files ---- */

#define FILES_MAX 4096

static struct file files[FILES_MAX];
static size_t files_end; /* all in use are before it */

struct file *file_of(int fd)
{
	return fd >= FD_FIRST && fd < FD_FIRST + FILES_MAX && files[fd - FD_FIRST].kind ? &files[fd - FD_FIRST] : NULL;
}

int fd_of(const struct file *file)
{
	return FD_FIRST + (file - files);
}

int file_open(enum file_kind kind, struct process *owner)
{
	size_t i = 0;

	while (i < FILES_MAX && files[i].kind)
		i++;
	if (i == FILES_MAX)
		missing("more than %d files", FILES_MAX);
	files[i] = (struct file){ .kind = kind, .owner = owner };
	if (i >= files_end)
		files_end = i + 1;
	return FD_FIRST + i;
}

void file_close(struct file *file)
{
	if (file->pair) {
		file->pair->is_ended = true;
		file->pair->pair = NULL;
		process_wake(file->pair->owner);
	}
	if (file->link)
		link_close(file->link);
	bytes_free(&file->in);
	file->kind = FILE_FREE;
}

void files_close_of(const struct process *process)
{
	for (size_t i = 0; i < files_end; i++)
		if (files[i].kind && files[i].owner == process)
			file_close(&files[i]);
}

void files_signal(const struct node *node)
{
	for (size_t i = 0; i < files_end; i++)
		if (files[i].kind == FILE_SIGNAL && files[i].owner->node == node) {
			files[i].is_ended = true;
			process_wake(files[i].owner);
		}
}

short file_events(const struct file *file)
{
	return file->kind == FILE_SOCKET                        ? link_events(file) :
	       file->in.used > file->in.taken || file->is_ended ? POLLIN | POLLOUT :
								  POLLOUT;
}
