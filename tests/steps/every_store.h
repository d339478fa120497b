/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls a function after every single store to the maps of memory_kernel.h. The maps lose the right to be written. A store
 * then raises SIGSEGV; the handler gives the right back and lets the processor do one instruction (one turn of a `rep`),
 * after which SIGTRAP comes. So no store escapes, whoever makes it: memcpy() and memset() too. x86-64 only.
 */
#ifndef XDP_CUCKOO_STEPS_EVERY_STORE_H
#define XDP_CUCKOO_STEPS_EVERY_STORE_H

#include <signal.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "steps/memory_kernel.h"

#define EVERY_STORE_TRAP 0x100 /* the trap flag of the processor */
#define EVERY_STORE_FREE (PROT_READ | PROT_WRITE)

static struct {
	/* Handlers of signals use all of these. */
	void (*volatile judge)(uintptr_t address); /* of the store; 0: no store, but another step */
	volatile uintptr_t address;
	volatile uint64_t stores;
	volatile bool is_on;
	bool is_whole;       /* watches all maps: those that no packet can reach yet, or any more, too */
	uint64_t before[16]; /* the 128 bytes from the line of `address` on, before the store */
	volatile uint64_t tables;
} every_store;

/* The rights of whole pages. */
static inline void every_store_protect(uintptr_t start, size_t bytes, int rights)
{
	const uintptr_t first = start & ~(MEMORY_PAGE - 1),
			end = (start + bytes + MEMORY_PAGE - 1) & ~(MEMORY_PAGE - 1);

	if (bytes && mprotect((void *)first, end - first, rights))
		abort();
}

/* What tells which tables packets can reach. */
static inline uint64_t every_store_tables(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < MEMORY_INTERFACES; i++)
		if (memory_path(i))
			sum = sum * 1000003 + memory.interface[i].program * 7919 + path.config->active;
	return sum;
}

/*
 * Watches what packets can reach: the configs of filters that interfaces run, and their active tables. memory_kernel.h ends
 * the test if the packet path reads anything else.
 */
static inline void every_store_watch(void)
{
	every_store_protect((uintptr_t)memory.start, memory.used, every_store.is_whole ? PROT_READ : EVERY_STORE_FREE);
	every_store.tables = every_store_tables();
	for (size_t i = 0; i < MEMORY_INTERFACES && !every_store.is_whole; i++) {
		if (!memory_path(i))
			continue;
		every_store_protect((uintptr_t)path.config, sizeof(*path.config), PROT_READ);

		for (int map = 0; map < PATH_RANGES; map++)
			every_store_protect((uintptr_t)path.range[map].start, path.range[map].bytes, PROT_READ);
	}
}

/* In place of the C library's. Most that is cleared is clear: such a store is no step, and need not be caught. */
void *memset(void *to, int value, size_t bytes)
{
	const uint64_t word = (uint8_t)value * 0x0101010101010101ULL;
	char *at = to, *end = at + bytes;

	if (memory.start && at >= memory.start && at < memory.start + memory.used && !((uintptr_t)at % 8))
		for (; end - at >= 8; at += 8)
			if (*(volatile uint64_t *)at != word)
				*(volatile uint64_t *)at = word;
	bytes = end - at;
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
	return to;
}

static void every_store_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	const uintptr_t address = (uintptr_t)info->si_addr, start = (uintptr_t)memory.start;

	if (!every_store.is_on || address < start || address >= start + memory.used) {
		signal(number, SIG_DFL);
		return;
	}
	every_store.address = address;
	memcpy(every_store.before, (void *)(address & ~63UL), sizeof(every_store.before));
	every_store_protect(address, 64, EVERY_STORE_FREE);
	at->uc_mcontext.gregs[REG_EFL] |= EVERY_STORE_TRAP;
}

static void every_store_done(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)number, (void)info;
	at->uc_mcontext.gregs[REG_EFL] &= ~EVERY_STORE_TRAP;
	every_store.stores++;
	every_store.judge(every_store.address);
	if (every_store_tables() != every_store.tables)
		every_store_watch();
	else
		every_store_protect(every_store.address, 64, PROT_READ);
}

/* A step that is no store: a program is exchanged. */
static void every_store_step(void)
{
	if (!every_store.is_on)
		return;
	every_store.judge(0);
	every_store_watch();
}

static inline void every_store_begin(void (*judge)(uintptr_t address))
{
	const struct sigaction fault = { .sa_sigaction = every_store_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
	const struct sigaction done = { .sa_sigaction = every_store_done, .sa_flags = SA_SIGINFO };

	if (sigaction(SIGSEGV, &fault, NULL) || sigaction(SIGTRAP, &done, NULL))
		abort();
	every_store.judge = judge;
	every_store.is_on = true;
	memory.step = every_store_step;
	every_store_watch();
}

static inline void every_store_end(void)
{
	every_store.is_on = false;
	memory.step = NULL;
	every_store_protect((uintptr_t)memory.start, memory.used, EVERY_STORE_FREE);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGTRAP, SIG_DFL);
}

#endif
