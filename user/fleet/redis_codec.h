/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol of Redis in bytes: hiredis formats commands and reads replies. The library is loaded on the first use,
 * so other commands need neither the package nor the time. Knows no sockets.
 */
#ifndef XDP_CUCKOO_REDIS_CODEC_H
#define XDP_CUCKOO_REDIS_CODEC_H

#include <hiredis/hiredis.h>

#include "base/error_reason.h"

/* A reply with more elements, in all its arrays together, is too large. */
#define CODEC_ELEMENTS_MAX (1 << 16)

struct codec {
	struct redisReader *reader;
	size_t elements; /* of the reply that is being read */
};

/* 0; -ELIBACC: the library is missing; -ENOMEM. codec_close() accepts a zeroed struct. */
int codec_open(struct codec *codec, struct reason *reason);
void codec_close(struct codec *codec);

/* The bytes of a command, for codec_free_command(). The length; negative: -ENOMEM. */
long codec_format(char **bytes, int count, const char *const *words, const size_t *lengths);
void codec_free_command(char *bytes);

/* Takes bytes from the broker. 0; -EPROTO; -ENOMEM. */
int codec_feed(struct codec *codec, const char *bytes, size_t count);

/*
 * The next whole reply, or NULL in *reply if there is none yet. 0; -EPROTO; -EMSGSIZE: it is too large. codec_free()
 * accepts NULL.
 */
int codec_next(struct codec *codec, redisReply **reply);
void codec_free(redisReply *reply);

#endif
