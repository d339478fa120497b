/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of a simulation: its time, its chance, its processes. A process is a coroutine that runs code of the tool. The
 * program has its own versions of the C library's functions for time, chance, sockets and files (libc.c), so a process
 * that waits lets time go on, and nothing depends on the real machine. Everything follows from the seed.
 *
 * Words: a node is a machine: a host that follows, or one that publishes. A step is a call of one of these functions: a
 * process can be killed at each. A file is what a simulated descriptor stands for.
 */
#ifndef XDP_CUCKOO_SIMULATION_WORLD_H
#define XDP_CUCKOO_SIMULATION_WORLD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>

#include <linux/types.h>

#define FD_FIRST 1000000 /* of simulated files */
#define MS 1000LL        /* time is in microseconds */
#define SECOND (1000 * MS)
#define WALL_START_MS 1700000000000LL

/* ---- chance: one stream for each use, so that the plan of faults does not depend on what the tool draws ---- */

enum chance { CHANCE_PLAN, CHANCE_NETWORK, CHANCE_TOOL, CHANCE_WORK, CHANCES };

void chance_seed(__u64 seed);
__u64 chance(enum chance stream);
__u64 chance_below(enum chance stream, __u64 limit);
/* True in one of `n` cases. */
bool chance_one_in(enum chance stream, unsigned int n);

/* ---- time ---- */

extern __s64 now_us;

/* Calls `act` at that time. Acts of one time run in the order in which they were planned. */
void at(__s64 time_us, void (*act)(void *context), void *context);
void in(__s64 delay_us, void (*act)(void *context), void *context);

/* Runs until that time. */
void run_until(__s64 time_us);

/* ---- nodes and processes ---- */

struct node {
	char name[16];
	unsigned int number;
	__s64 boot_us;                                  /* the node was started at this time */
	__s64 wall_ms;                                  /* how wrong its wall clock is */
	__s64 wall_before_ms, stepped_us, committed_us; /* before its last step; when that was; its last change */
	unsigned int boot;
	bool is_disk_full;
	bool is_follower;
	__s64 undisturbed_us; /* since when nothing has hindered it */
	char dir[96];         /* its disk */
	char config[128];
};

#define NODES_MAX 16
#define PROCESS_FDS 64

struct process {
	int pid;
	char what[64];
	struct node *node;
	struct process *parent, *next;
	void (*run)(struct process *process);
	void *context;
	void (*ended)(struct process *process); /* NULL: nobody asks */
	ucontext_t at;
	void *stack;
	bool is_dead, is_killed, is_woken;
	__u64 wake;       /* counts: an old plan to wake it is void */
	__s64 steps_left; /* until it is killed; negative: it is not */
	int status;
	int fds[PROCESS_FDS]; /* real ones, to close */
	size_t fds_count;
	char said[512]; /* the last error that it printed */
	void *printed;  /* the last JSON value */
	char words[512];
	char *argv[40];
};

extern struct process *current; /* NULL: the world itself runs */

struct process *process_start(struct node *node, struct process *parent, const char *what,
			      void (*run)(struct process *process), void *context);
void process_kill(struct process *process);
void process_kill_all_of(const struct node *node);
struct process *process_with(int pid);
struct process *process_child_of(const struct process *parent);
void process_wake(struct process *process);

/* For code of a process: waits until somebody wakes it or that time has come. Negative: no such time. */
void process_wait(__s64 until_us);
void process_sleep(__s64 us);

/* A step of the current process, which may be its last. */
void process_step(void);
/* The same, if the caller does a part of the work first: true: it must, then it calls process_die(). */
bool process_is_last_step(void);
void process_die(void) __attribute__((noreturn));

/* ---- files ---- */

enum file_kind { FILE_FREE, FILE_PAIR, FILE_SOCKET, FILE_SIGNAL };

struct bytes {
	char *data;
	size_t used, room, taken;
};

void bytes_add(struct bytes *bytes, const void *data, size_t count);
size_t bytes_take(struct bytes *bytes, void *data, size_t count);
void bytes_free(struct bytes *bytes);

struct file {
	enum file_kind kind;
	struct process *owner;
	struct bytes in;
	bool is_ended; /* the other end is closed */
	struct file *pair;
	struct link *link; /* of a socket: network.h */
	int error;         /* of a socket: connecting or sending has failed */
};

struct file *file_of(int fd);
int file_open(enum file_kind kind, struct process *owner);
int fd_of(const struct file *file);
void file_close(struct file *file);
/* A signal comes to all processes of the node that wait for one. */
void files_signal(const struct node *node);
/* Readable and writable, as poll() says it. */
short file_events(const struct file *file);

/* ---- words ---- */

extern bool is_traced, is_summed;
extern __u64 trace_sum; /* of all lines of the trace, if is_summed */
/* The first breach of a promise ends the run. */
extern char breach[1024];

void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
void must(bool is_kept, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* realloc() that does not fail. */
void *enlarged(void *array, size_t bytes);
/* The model lacks something: the run says nothing. */
void missing(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
