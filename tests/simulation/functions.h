/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the functions of fleet.lua as Redis does: by Lua 5.1, with redis.call() on a server of the model. */
#ifndef XDP_CUCKOO_SIMULATION_FUNCTIONS_H
#define XDP_CUCKOO_SIMULATION_FUNCTIONS_H

#include "simulation/dataset.h"

struct lua_State;

/* FCALL NAME KEYS KEY... ARG...; `call` does a command of the function. *lua is kept for the next call with the same code. */
void function_call(struct lua_State **lua, const char *code, int count, const struct word *words,
		   void (*call)(void *context, int count, const struct word *words, struct bytes *out), void *context,
		   struct bytes *out);
void functions_forget(struct lua_State **lua);

#endif
