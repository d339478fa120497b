// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lua for the model of Redis: redis.call(), redis.sha1hex() and what else fleet.lua may use. */
#include "simulation/functions.h"

#include <stdlib.h>
#include <string.h>

#include <lua5.1/lauxlib.h>
#include <lua5.1/lua.h>
#include <lua5.1/lualib.h>

static void (*do_call)(void *context, int count, const struct word *words, struct bytes *out);
static void *call_context;

/* ---- SHA-1 ---- */

static __u32 turned(__u32 word, int bits)
{
	return word << bits | word >> (32 - bits);
}

static void sha1_block(__u32 h[5], const unsigned char *block)
{
	__u32 w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int i = 0; i < 16; i++)
		w[i] = (__u32)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 80; i++)
		w[i] = turned(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		const __u32 f = i < 20 ? (b & c) | (~b & d) :
				i < 40 ? b ^ c ^ d :
				i < 60 ? (b & c) | (b & d) | (c & d) :
					 b ^ c ^ d;
		const __u32 k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
		const __u32 next = turned(a, 5) + f + e + k + w[i];

		e = d;
		d = c;
		c = turned(b, 30);
		b = a;
		a = next;
	}
	h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

static int sha1hex(lua_State *lua)
{
	__u32 h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	size_t length, done = 0;
	const char *text = luaL_checklstring(lua, 1, &length);
	unsigned char last[128] = {};
	char hex[41];
	size_t rest, blocks;

	for (; length - done >= 64; done += 64)
		sha1_block(h, (const unsigned char *)text + done);
	rest = length - done;
	memcpy(last, text + done, rest);
	last[rest] = 0x80;
	blocks = rest < 56 ? 1 : 2;
	for (int i = 0; i < 8; i++)
		last[64 * blocks - 1 - i] = (__u64)length * 8 >> 8 * i;
	for (size_t i = 0; i < blocks; i++)
		sha1_block(h, last + 64 * i);
	for (int i = 0; i < 5; i++)
		snprintf(hex + 8 * i, 9, "%08x", h[i]);
	lua_pushstring(lua, hex);
	return 1;
}

/* ---- answers ---- */

/* Pushes what a reply is in Lua; returns where it ends. */
static const char *push_reply(lua_State *lua, const char *reply)
{
	const char *end = strchr(reply, '\n') + 1;
	const long long number = atoll(reply + 1);

	luaL_checkstack(lua, 8, NULL);
	switch (*reply) {
	case ':':
		lua_pushnumber(lua, number);
		return end;
	case '+':
	case '-':
		lua_newtable(lua);
		lua_pushlstring(lua, reply + 1, end - reply - 3);
		lua_setfield(lua, -2, *reply == '+' ? "ok" : "err");
		return end;
	case '$':
		if (number < 0) {
			lua_pushboolean(lua, false);
			return end;
		}
		lua_pushlstring(lua, end, number);
		return end + number + 2;
	default:
		if (number < 0) {
			lua_pushboolean(lua, false);
			return end;
		}
		lua_createtable(lua, number, 0);
		for (long long i = 1; i <= number; i++) {
			end = push_reply(lua, end);
			lua_rawseti(lua, -2, i);
		}
		return end;
	}
}

/* What the function returns, as a reply. */
static void write_reply(lua_State *lua, struct bytes *out)
{
	size_t length;
	const char *text;

	if (lua_type(lua, -1) == LUA_TSTRING) {
		text = lua_tolstring(lua, -1, &length);
		reply_bulk(out, text, length);
	} else if (lua_type(lua, -1) == LUA_TNUMBER) {
		reply_integer(out, lua_tonumber(lua, -1));
	} else if (lua_type(lua, -1) == LUA_TBOOLEAN && lua_toboolean(lua, -1)) {
		reply_integer(out, 1);
	} else if (lua_type(lua, -1) != LUA_TTABLE) {
		reply_nil(out);
	} else {
		int count = 0;

		lua_getfield(lua, -1, "err");
		if (lua_type(lua, -1) == LUA_TSTRING) {
			reply_error(out, "%s", lua_tostring(lua, -1));
			lua_pop(lua, 1);
			return;
		}
		lua_pop(lua, 1);
		lua_getfield(lua, -1, "ok");
		if (lua_type(lua, -1) == LUA_TSTRING) {
			reply_status(out, lua_tostring(lua, -1));
			lua_pop(lua, 1);
			return;
		}
		lua_pop(lua, 1);
		for (;; count++) {
			lua_rawgeti(lua, -1, count + 1);
			if (lua_isnil(lua, -1))
				break;
			lua_pop(lua, 1);
		}
		lua_pop(lua, 1);
		reply_array(out, count);
		for (int i = 1; i <= count; i++) {
			lua_rawgeti(lua, -1, i);
			write_reply(lua, out);
			lua_pop(lua, 1);
		}
	}
}

/* ---- redis.* ---- */

static int redis_do(lua_State *lua, bool raises)
{
	static struct word words[COMMAND_WORDS];
	static char numbers[64][40];
	struct bytes out = {};
	int count = lua_gettop(lua), used = 0;

	for (int i = 0; i < count; i++) {
		if (lua_type(lua, i + 1) == LUA_TNUMBER) {
			snprintf(numbers[used], sizeof(numbers[0]), "%.17g", lua_tonumber(lua, i + 1));
			words[i] = (struct word){ numbers[used], strlen(numbers[used]) };
			used = (used + 1) % 64;
		} else {
			words[i].text = (char *)luaL_checklstring(lua, i + 1, &words[i].length);
		}
	}
	do_call(call_context, count, words, &out);
	bytes_add(&out, "", 1);
	lua_settop(lua, 0);
	push_reply(lua, out.data);
	bytes_free(&out);
	if (!raises || lua_type(lua, -1) != LUA_TTABLE)
		return 1;
	lua_getfield(lua, -1, "err");
	if (lua_isnil(lua, -1)) {
		lua_pop(lua, 1);
		return 1;
	}
	lua_pop(lua, 1);
	return lua_error(lua);
}

static int redis_call(lua_State *lua)
{
	return redis_do(lua, true);
}

static int redis_pcall(lua_State *lua)
{
	return redis_do(lua, false);
}

static int error_reply(lua_State *lua)
{
	const char *text = luaL_checkstring(lua, 1);

	lua_newtable(lua);
	if (*text == '-')
		text++;
	lua_pushstring(lua, text);
	lua_setfield(lua, -2, "err");
	return 1;
}

static int status_reply(lua_State *lua)
{
	lua_newtable(lua);
	lua_pushvalue(lua, 1);
	lua_setfield(lua, -2, "ok");
	return 1;
}

static int redis_log(lua_State *lua)
{
	(void)lua;
	return 0;
}

static int register_function(lua_State *lua)
{
	if (lua_type(lua, 1) == LUA_TTABLE) {
		lua_getfield(lua, 1, "function_name");
		lua_getfield(lua, 1, "callback");
		lua_remove(lua, 1);
	}
	lua_pushfstring(lua, "fn:%s", luaL_checkstring(lua, 1));
	lua_pushvalue(lua, 2);
	lua_settable(lua, LUA_REGISTRYINDEX);
	return 0;
}

static const luaL_Reg redis_library[] = { { "call", redis_call },
					  { "pcall", redis_pcall },
					  { "error_reply", error_reply },
					  { "status_reply", status_reply },
					  { "sha1hex", sha1hex },
					  { "log", redis_log },
					  { "register_function", register_function },
					  { NULL, NULL } };

static lua_State *load(const char *code)
{
	lua_State *lua = luaL_newstate();
	const char *body = strchr(code, '\n'); /* after "#!lua name=..." */

	luaL_openlibs(lua);
	luaL_register(lua, "redis", redis_library);
	lua_pop(lua, 1);
	if (luaL_loadstring(lua, body) || lua_pcall(lua, 0, 0, 0))
		missing("fleet.lua: %s", lua_tostring(lua, -1));
	lua_pushstring(lua, code);
	lua_setfield(lua, LUA_REGISTRYINDEX, "code");
	return lua;
}

void functions_forget(lua_State **lua)
{
	if (*lua)
		lua_close(*lua);
	*lua = NULL;
}

static void push_words(lua_State *lua, int count, const struct word *words)
{
	lua_createtable(lua, count, 0);
	for (int i = 0; i < count; i++) {
		lua_pushlstring(lua, words[i].text, words[i].length);
		lua_rawseti(lua, -2, i + 1);
	}
}

void function_call(lua_State **lua, const char *code, int count, const struct word *words,
		   void (*call)(void *context, int count, const struct word *words, struct bytes *out), void *context,
		   struct bytes *out)
{
	const int keys = count > 2 ? atoi(words[2].text) : 0;
	char name[80];

	if (*lua) {
		lua_getfield(*lua, LUA_REGISTRYINDEX, "code");
		if (!code || strcmp(lua_tostring(*lua, -1), code))
			functions_forget(lua);
		else
			lua_pop(*lua, 1);
	}
	if (code && !*lua)
		*lua = load(code);
	snprintf(name, sizeof(name), "fn:%s", words[1].text);
	if (*lua)
		lua_getfield(*lua, LUA_REGISTRYINDEX, name);
	if (!*lua || lua_isnil(*lua, -1)) {
		if (*lua)
			lua_pop(*lua, 1);
		reply_error(out, "ERR Function not found");
		return;
	}
	do_call = call;
	call_context = context;
	push_words(*lua, keys, words + 3);
	push_words(*lua, count - 3 - keys, words + 3 + keys);
	if (!lua_pcall(*lua, 2, 1, 0)) {
		write_reply(*lua, out);
	} else if (lua_type(*lua, -1) == LUA_TTABLE) {
		lua_getfield(*lua, -1, "err");
		reply_error(out, "%s script: %s, on @user_function:1.", lua_tostring(*lua, -1), words[1].text);
		lua_pop(*lua, 1);
	} else {
		/* As Redis says it: an error of Lua itself. */
		reply_error(out, "ERR %s script: %s, on @user_function:1.", lua_tostring(*lua, -1), words[1].text);
	}
	lua_settop(*lua, 0);
}
