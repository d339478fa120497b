// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/connection.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if HIREDIS_MAJOR >= 1
typedef size_t elements_count;
#else
typedef int elements_count;
#endif

static __typeof__(((redisReplyObjectFunctions *)NULL)->createArray) create_array;

/* hiredis would take memory for as many elements as a broker announces. NULL ends the reading with an error. */
static void *create_small_array(const redisReadTask *task, elements_count elements)
{
	struct codec *codec = task->privdata;

	codec->elements += elements;
	return codec->elements > CODEC_ELEMENTS_MAX ? NULL : create_array(task, elements);
}

int codec_open(struct codec *codec, struct reason *reason)
{
	static redisReplyObjectFunctions functions;

	codec->reader = redisReaderCreate();
	if (!codec->reader)
		return reason_set(reason, -ENOMEM, "not enough memory");
	if (codec->reader->fn->createArray != create_small_array) {
		create_array = codec->reader->fn->createArray;
		functions = *codec->reader->fn;
		functions.createArray = create_small_array;
	}
	codec->reader->fn = &functions;
	codec->elements = 0;
	return 0;
}

void codec_close(struct codec *codec)
{
	if (codec->reader)
		redisReaderFree(codec->reader);
	codec->reader = NULL;
}

int codec_feed(struct codec *codec, const char *bytes, size_t count)
{
	return redisReaderFeed(codec->reader, bytes, count) == REDIS_OK ? 0 : -ENOMEM;
}

int codec_next(struct codec *codec, redisReply **reply)
{
	void *next = NULL;

	*reply = NULL;
	codec->reader->privdata = codec;
	if (redisReaderGetReply(codec->reader, &next) != REDIS_OK)
		return codec->elements > CODEC_ELEMENTS_MAX ? -EMSGSIZE : -EPROTO;
	if (next)
		codec->elements = 0;
	*reply = next;
	return 0;
}

const char *codec_text(const redisReply *reply)
{
	return reply && reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
}

const char *codec_text_of(const redisReply *array, size_t i)
{
	return array && array->type == REDIS_REPLY_ARRAY && i < array->elements ? codec_text(array->element[i]) : NULL;
}

void codec_free(redisReply **reply)
{
	if (*reply)
		freeReplyObject(*reply);
	*reply = NULL;
}

__s64 codec_number(const redisReply *reply)
{
	return reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}

const char *codec_info(const char *info, const char *name, char value[CODEC_INFO_BYTES])
{
	const char *found = strstr(info, name);

	snprintf(value, CODEC_INFO_BYTES, "%.*s",
		 found ? (int)strcspn(found + strlen(name), "\r\n") : 0,
		 found ? found + strlen(name) : "");
	return value;
}
