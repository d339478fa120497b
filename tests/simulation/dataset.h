/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The data of a model of Redis, and the commands on it. Knows no connections: server.h has them. */
#ifndef XDP_CUCKOO_SIMULATION_DATASET_H
#define XDP_CUCKOO_SIMULATION_DATASET_H

#include "simulation/world.h"

#define COMMAND_WORDS 2100

struct word {
	char *text; /* with a final 0 */
	size_t length;
};

struct word word_of(const char *text, size_t length);

struct pair {
	struct word field, value;
};

struct entry {
	__u64 epoch, seq;
	size_t count;
	struct word *words; /* fields and values */
};

enum redis_type { REDIS_HASH, REDIS_STREAM, REDIS_ZSET, REDIS_STRING };

struct value {
	struct word key;
	enum redis_type kind;
	size_t count, room;
	union {
		struct pair *pairs; /* of a hash */
		struct entry *entries;
		struct member {
			double score;
			struct word name;
		} * members;
		struct word string;
	};
	__u64 last_epoch, last_seq; /* of a stream */
};

struct dataset {
	struct value **values;
	size_t count, room;
	char *functions; /* the code of FUNCTION LOAD; NULL: none */
};

void dataset_free(struct dataset *data);
void dataset_copy(struct dataset *to, const struct dataset *from);
struct value *dataset_find(const struct dataset *data, const char *key);
struct word *hash_find(const struct value *hash, const char *field);

/* ---- replies ---- */

void reply_error(struct bytes *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_status(struct bytes *out, const char *text);
void reply_integer(struct bytes *out, long long number);
void reply_bulk(struct bytes *out, const char *text, size_t length);
void reply_nil(struct bytes *out);
void reply_array(struct bytes *out, size_t count);
void reply_text(struct bytes *out, const char *text);

/* ---- commands ---- */

/* A command on data alone. False: there is no such command. *changes: it writes, and has changed something. */
bool dataset_do(struct dataset *data, int count, const struct word *words, __s64 wall_ms, struct bytes *out,
		bool *changes);

/* Whether it is a command that writes. */
bool command_writes(const char *name);

/* The entries of XREAD that a stream has after the id: as one element of its answer. 0: none, nothing is written. */
size_t stream_read(const struct value *stream, const char *after, size_t most, struct bytes *out);

/* Reads one command of a client; 0: it is not whole yet. The words point into the bytes. */
size_t command_read(char *bytes, size_t used, int *count, struct word *words);
void command_write(struct bytes *out, int count, const struct word *words);

#endif
