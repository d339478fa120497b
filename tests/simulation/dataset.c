// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keys, hashes, streams and sorted sets as Redis 7.0 has them, and its commands that the project uses. */
#include "simulation/dataset.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NODE_ENTRIES 100 /* stream-node-max-entries: XTRIM with ~ removes only whole nodes */

/* ---- words ---- */

struct word word_of(const char *text, size_t length)
{
	struct word word = { malloc(length + 1), length };

	memcpy(word.text, text, length);
	word.text[length] = '\0';
	return word;
}

static struct word copy_of(struct word word)
{
	return word_of(word.text, word.length);
}

static bool is_equal(struct word a, struct word b)
{
	return a.length == b.length && !memcmp(a.text, b.text, a.length);
}

/* ---- replies ---- */

static void add_text(struct bytes *out, const char *format, ...)
{
	char text[1200];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	bytes_add(out, text, length < (int)sizeof(text) ? length : (int)sizeof(text) - 1);
}

void reply_error(struct bytes *out, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (char *c = text; *c; c++)
		if (*c == '\r' || *c == '\n')
			*c = ' ';
	add_text(out, "-%s\r\n", text);
}

void reply_status(struct bytes *out, const char *text)
{
	add_text(out, "+%s\r\n", text);
}

void reply_integer(struct bytes *out, long long number)
{
	add_text(out, ":%lld\r\n", number);
}

void reply_bulk(struct bytes *out, const char *text, size_t length)
{
	add_text(out, "$%zu\r\n", length);
	bytes_add(out, text, length);
	bytes_add(out, "\r\n", 2);
}

void reply_text(struct bytes *out, const char *text)
{
	reply_bulk(out, text, strlen(text));
}

void reply_nil(struct bytes *out)
{
	add_text(out, "$-1\r\n");
}

void reply_array(struct bytes *out, size_t count)
{
	add_text(out, "*%zu\r\n", count);
}

static void reply_word(struct bytes *out, const struct word *word)
{
	if (word)
		reply_bulk(out, word->text, word->length);
	else
		reply_nil(out);
}

/* ---- values ---- */

static void value_free(struct value *value)
{
	for (size_t i = 0; i < value->count; i++) {
		if (value->kind == REDIS_HASH) {
			free(value->pairs[i].field.text);
			free(value->pairs[i].value.text);
		} else if (value->kind == REDIS_STREAM) {
			for (size_t j = 0; j < value->entries[i].count; j++)
				free(value->entries[i].words[j].text);
			free(value->entries[i].words);
		} else if (value->kind == REDIS_ZSET) {
			free(value->members[i].name.text);
		}
	}
	free(value->kind == REDIS_STRING ? (void *)value->string.text : (void *)value->pairs);
	free(value->key.text);
	free(value);
}

static struct value *value_copy(const struct value *from)
{
	struct value *to = malloc(sizeof(*to));
	const size_t size = from->kind == REDIS_HASH   ? sizeof(struct pair) :
			    from->kind == REDIS_STREAM ? sizeof(struct entry) :
							 sizeof(struct member);

	*to = *from;
	to->key = copy_of(from->key);
	to->room = from->count;
	if (from->kind == REDIS_STRING) {
		to->string = copy_of(from->string);
		return to;
	}
	to->pairs = malloc(from->count * size + 1);
	for (size_t i = 0; i < from->count; i++) {
		if (from->kind == REDIS_HASH) {
			to->pairs[i] = (struct pair){ copy_of(from->pairs[i].field), copy_of(from->pairs[i].value) };
		} else if (from->kind == REDIS_STREAM) {
			to->entries[i] = from->entries[i];
			to->entries[i].words = malloc(from->entries[i].count * sizeof(struct word));
			for (size_t j = 0; j < from->entries[i].count; j++)
				to->entries[i].words[j] = copy_of(from->entries[i].words[j]);
		} else {
			to->members[i] = (struct member){ from->members[i].score, copy_of(from->members[i].name) };
		}
	}
	return to;
}

void dataset_free(struct dataset *data)
{
	for (size_t i = 0; i < data->count; i++)
		value_free(data->values[i]);
	free(data->values);
	free(data->functions);
	*data = (struct dataset){};
}

void dataset_copy(struct dataset *to, const struct dataset *from)
{
	*to = (struct dataset){ .values = malloc(from->count * sizeof(void *) + 1),
				.count = from->count,
				.room = from->count,
				.functions = from->functions ? strdup(from->functions) : NULL };
	for (size_t i = 0; i < from->count; i++)
		to->values[i] = value_copy(from->values[i]);
}

/* Sorted by key. */
static size_t place_of(const struct dataset *data, const char *key)
{
	size_t low = 0, high = data->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (strcmp(data->values[middle]->key.text, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct value *dataset_find(const struct dataset *data, const char *key)
{
	const size_t i = place_of(data, key);

	return i < data->count && !strcmp(data->values[i]->key.text, key) ? data->values[i] : NULL;
}

static struct value *value_make(struct dataset *data, struct word key, enum redis_type kind)
{
	const size_t i = place_of(data, key.text);
	struct value *value = calloc(1, sizeof(*value));

	*value = (struct value){ .key = copy_of(key), .kind = kind };
	if (data->count == data->room) {
		data->room = data->room ? 2 * data->room : 64;
		data->values = enlarged(data->values, data->room * sizeof(void *));
	}
	memmove(data->values + i + 1, data->values + i, (data->count - i) * sizeof(void *));
	data->values[i] = value;
	data->count++;
	return value;
}

static bool delete (struct dataset *data, const char *key)
{
	const size_t i = place_of(data, key);

	if (i == data->count || strcmp(data->values[i]->key.text, key))
		return false;
	value_free(data->values[i]);
	memmove(data->values + i, data->values + i + 1, (--data->count - i) * sizeof(void *));
	return true;
}

static void make_room(struct value *value, size_t size)
{
	if (value->count < value->room)
		return;
	value->room = value->room ? 2 * value->room : 8;
	value->pairs = enlarged(value->pairs, value->room * size);
}

/* ---- hashes ---- */

static size_t pair_place(const struct value *hash, const char *field, size_t length)
{
	size_t i = 0;

	while (i < hash->count &&
	       (hash->pairs[i].field.length != length || memcmp(hash->pairs[i].field.text, field, length)))
		i++;
	return i;
}

struct word *hash_find(const struct value *hash, const char *field)
{
	const size_t i = hash ? pair_place(hash, field, strlen(field)) : 0;

	return hash && hash->kind == REDIS_HASH && i < hash->count ? &hash->pairs[i].value : NULL;
}

/* Returns whether the field is new. */
static bool hash_set(struct value *hash, struct word field, struct word value)
{
	const size_t i = pair_place(hash, field.text, field.length);

	if (i < hash->count) {
		free(hash->pairs[i].value.text);
		hash->pairs[i].value = copy_of(value);
		return false;
	}
	make_room(hash, sizeof(struct pair));
	hash->pairs[hash->count++] = (struct pair){ copy_of(field), copy_of(value) };
	return true;
}

static bool hash_delete(struct value *hash, struct word field)
{
	const size_t i = pair_place(hash, field.text, field.length);

	if (i == hash->count)
		return false;
	free(hash->pairs[i].field.text);
	free(hash->pairs[i].value.text);
	memmove(hash->pairs + i, hash->pairs + i + 1, (--hash->count - i) * sizeof(struct pair));
	return true;
}

/* ---- sorted sets ---- */

static bool zset_delete(struct value *zset, struct word name)
{
	for (size_t i = 0; i < zset->count; i++) {
		if (!is_equal(zset->members[i].name, name))
			continue;
		free(zset->members[i].name.text);
		memmove(zset->members + i, zset->members + i + 1, (--zset->count - i) * sizeof(struct member));
		return true;
	}
	return false;
}

static bool zset_add(struct value *zset, double score, struct word name)
{
	struct word copy = copy_of(name);
	const bool is_new = !zset_delete(zset, name);
	size_t i = 0;

	make_room(zset, sizeof(struct member));
	while (i < zset->count &&
	       (zset->members[i].score < score ||
		(zset->members[i].score == score && strcmp(zset->members[i].name.text, copy.text) < 0)))
		i++;
	memmove(zset->members + i + 1, zset->members + i, (zset->count++ - i) * sizeof(struct member));
	zset->members[i] = (struct member){ score, copy };
	return is_new;
}

/* ---- streams ---- */

static bool id_parse(const char *text, __u64 default_seq, __u64 *epoch, __u64 *seq)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*epoch = strtoull(text, &end, 10);
	*seq = default_seq;
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*seq = strtoull(end + 1, &end, 10);
	return !*end && !errno;
}

static int id_compare(__u64 a_epoch, __u64 a_seq, __u64 b_epoch, __u64 b_seq)
{
	return a_epoch != b_epoch ? (a_epoch < b_epoch ? -1 : 1) : a_seq == b_seq ? 0 : a_seq < b_seq ? -1 : 1;
}

static void reply_entry(struct bytes *out, const struct entry *entry)
{
	char id[48];

	snprintf(id, sizeof(id), "%llu-%llu", (unsigned long long)entry->epoch, (unsigned long long)entry->seq);
	reply_array(out, 2);
	reply_text(out, id);
	reply_array(out, entry->count);
	for (size_t i = 0; i < entry->count; i++)
		reply_word(out, &entry->words[i]);
}

size_t stream_read(const struct value *stream, const char *after, size_t most, struct bytes *out)
{
	__u64 epoch = 0, seq = 0;
	size_t first = 0, count;

	if (!stream || stream->kind != REDIS_STREAM || !id_parse(after, 0, &epoch, &seq))
		return 0;
	while (first < stream->count &&
	       id_compare(stream->entries[first].epoch, stream->entries[first].seq, epoch, seq) <= 0)
		first++;
	count = stream->count - first < most ? stream->count - first : most;
	if (!count)
		return 0;
	reply_array(out, 2);
	reply_word(out, &stream->key);
	reply_array(out, count);
	for (size_t i = first; i < first + count; i++)
		reply_entry(out, &stream->entries[i]);
	return count;
}

static void trim(struct value *stream, size_t length, bool is_exact)
{
	size_t gone = stream->count > length ? stream->count - length : 0;

	if (!is_exact)
		gone -= gone % NODE_ENTRIES;
	for (size_t i = 0; i < gone; i++) {
		for (size_t j = 0; j < stream->entries[i].count; j++)
			free(stream->entries[i].words[j].text);
		free(stream->entries[i].words);
	}
	if (gone)
		memmove(stream->entries, stream->entries + gone, (stream->count - gone) * sizeof(struct entry));
	stream->count -= gone;
}

/* The words after the key: [MAXLEN [~|=] N]. Returns how many there are. */
static int trim_words(int count, const struct word *words, size_t *length, bool *is_exact)
{
	int at_word = 1;

	*length = SIZE_MAX;
	*is_exact = true;
	if (count < 2 || strcasecmp(words[0].text, "MAXLEN"))
		return 0;
	if (!strcmp(words[1].text, "~") || !strcmp(words[1].text, "=")) {
		*is_exact = *words[1].text == '=';
		at_word = 2;
	}
	*length = strtoull(words[at_word].text, NULL, 10);
	return at_word + 1;
}

static void xadd(struct dataset *data, int count, const struct word *words, __s64 wall_ms, struct bytes *out)
{
	struct value *stream = dataset_find(data, words[1].text);
	size_t length;
	bool is_exact;
	int id = 2 + trim_words(count - 2, words + 2, &length, &is_exact);
	struct entry entry = {};
	char text[48];

	if (count < id + 3 || (count - id - 1) % 2) {
		reply_error(out, "ERR wrong number of arguments for 'xadd' command");
		return;
	}
	if (!strcmp(words[id].text, "*")) {
		entry.epoch = wall_ms;
		if (stream && entry.epoch <= stream->last_epoch) {
			entry.epoch = stream->last_epoch;
			entry.seq = stream->last_seq + 1;
		}
	} else if (!id_parse(words[id].text, 0, &entry.epoch, &entry.seq)) {
		reply_error(out, "ERR Invalid stream ID specified as stream command argument");
		return;
	}
	if ((!entry.epoch && !entry.seq) ||
	    (stream && id_compare(entry.epoch, entry.seq, stream->last_epoch, stream->last_seq) <= 0)) {
		reply_error(out, "ERR The ID specified in XADD is equal or smaller than the target stream top item");
		return;
	}
	if (!stream)
		stream = value_make(data, words[1], REDIS_STREAM);
	entry.count = count - id - 1;
	entry.words = malloc(entry.count * sizeof(struct word));
	for (size_t i = 0; i < entry.count; i++)
		entry.words[i] = copy_of(words[id + 1 + i]);
	make_room(stream, sizeof(struct entry));
	stream->entries[stream->count++] = entry;
	stream->last_epoch = entry.epoch;
	stream->last_seq = entry.seq;
	trim(stream, length, is_exact);
	snprintf(text, sizeof(text), "%llu-%llu", (unsigned long long)entry.epoch, (unsigned long long)entry.seq);
	reply_text(out, text);
}

static bool bound_parse(const char *text, bool is_end, __u64 *epoch, __u64 *seq)
{
	const bool is_open = *text == '(';

	if (!strcmp(text, "-") || !strcmp(text, "+")) {
		*epoch = *seq = *text == '-' ? 0 : UINT64_MAX;
		return true;
	}
	if (!id_parse(text + is_open, is_end ? UINT64_MAX : 0, epoch, seq))
		return false;
	if (is_open)
		*seq += is_end ? -1 : 1;
	return true;
}

static void xrange(const struct value *stream, int count, const struct word *words, bool is_reverse, struct bytes *out)
{
	__u64 from_epoch, from_seq, to_epoch, to_seq;
	size_t most = count == 6 ? strtoull(words[5].text, NULL, 10) : SIZE_MAX, found = 0;
	struct bytes entries = {};

	if (!bound_parse(words[is_reverse ? 3 : 2].text, false, &from_epoch, &from_seq) ||
	    !bound_parse(words[is_reverse ? 2 : 3].text, true, &to_epoch, &to_seq)) {
		reply_error(out, "ERR Invalid stream ID specified as stream command argument");
		return;
	}
	for (size_t i = 0; stream && i < stream->count && found < most; i++) {
		const struct entry *entry = &stream->entries[is_reverse ? stream->count - 1 - i : i];

		if (id_compare(entry->epoch, entry->seq, from_epoch, from_seq) < 0 ||
		    id_compare(entry->epoch, entry->seq, to_epoch, to_seq) > 0)
			continue;
		reply_entry(&entries, entry);
		found++;
	}
	reply_array(out, found);
	bytes_add(out, entries.data ? entries.data : "", entries.used);
	bytes_free(&entries);
}

/* ---- commands ---- */

static const struct known {
	const char *name;
	int least;          /* words */
	int key;            /* enum redis_type of the first key; -1: any */
	bool writes, makes; /* makes the key */
} known[] = {
	{ "HGET", 3, REDIS_HASH, false, false },
	{ "HMGET", 3, REDIS_HASH, false, false },
	{ "HGETALL", 2, REDIS_HASH, false, false },
	{ "HLEN", 2, REDIS_HASH, false, false },
	{ "HEXISTS", 3, REDIS_HASH, false, false },
	{ "HSET", 4, REDIS_HASH, true, true },
	{ "HSETNX", 4, REDIS_HASH, true, true },
	{ "HDEL", 3, REDIS_HASH, true, false },
	{ "HINCRBY", 4, REDIS_HASH, true, true },
	{ "HKEYS", 2, REDIS_HASH, false, false },
	{ "HSTRLEN", 3, REDIS_HASH, false, false },
	{ "ZADD", 4, REDIS_ZSET, true, true },
	{ "ZREM", 3, REDIS_ZSET, true, false },
	{ "ZCARD", 2, REDIS_ZSET, false, false },
	{ "ZRANGEBYSCORE", 4, REDIS_ZSET, false, false },
	{ "ZCOUNT", 4, REDIS_ZSET, false, false },
	{ "ZSCORE", 3, REDIS_ZSET, false, false },
	{ "ZREMRANGEBYSCORE", 4, REDIS_ZSET, true, false },
	{ "XADD", 5, REDIS_STREAM, true, false },
	{ "XRANGE", 4, REDIS_STREAM, false, false },
	{ "XREVRANGE", 4, REDIS_STREAM, false, false },
	{ "XLEN", 2, REDIS_STREAM, false, false },
	{ "XTRIM", 4, REDIS_STREAM, true, false },
	{ "GET", 2, REDIS_STRING, false, false },
	{ "SET", 3, -1, true, false },
	{ "DEL", 2, -1, true, false },
	{ "UNLINK", 2, -1, true, false },
	{ "EXISTS", 2, -1, false, false },
	{ "TYPE", 2, -1, false, false },
	{ "EXPIRE", 3, -1, true, false },
	{ "PEXPIRE", 3, -1, true, false },
	{ "RENAME", 3, -1, true, false },
	{ "SCAN", 2, -1, false, false },
	{ "FLUSHALL", 1, -1, true, false },
	{ "PING", 1, -1, false, false },
	{ "FUNCTION", 3, -1, true, false },
};

static const struct known *find_known(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcasecmp(known[i].name, name))
			return &known[i];
	return NULL;
}

bool command_writes(const char *name)
{
	const struct known *command = find_known(name);

	return command && command->writes;
}

static bool is_one_of(const char *name, const char *a, const char *b)
{
	return !strcmp(name, a) || !strcmp(name, b);
}

static double score_of(const char *text)
{
	return !strcasecmp(text, "-inf") ? -1e308 : !strcasecmp(text, "+inf") ? 1e308 : atof(text + (*text == '('));
}

static void do_hash(struct value *hash, const char *name, int count, const struct word *words, struct bytes *out,
		    bool *changes)
{
	long long number = 0;

	if (!strcmp(name, "HGET")) {
		reply_word(out, hash_find(hash, words[2].text));
	} else if (!strcmp(name, "HMGET")) {
		reply_array(out, count - 2);
		for (int i = 2; i < count; i++)
			reply_word(out, hash_find(hash, words[i].text));
	} else if (is_one_of(name, "HGETALL", "HKEYS")) {
		const bool has_values = !strcmp(name, "HGETALL");

		reply_array(out, hash ? hash->count * (1 + has_values) : 0);
		for (size_t i = 0; hash && i < hash->count; i++) {
			reply_word(out, &hash->pairs[i].field);
			if (has_values)
				reply_word(out, &hash->pairs[i].value);
		}
	} else if (!strcmp(name, "HLEN")) {
		reply_integer(out, hash ? hash->count : 0);
	} else if (is_one_of(name, "HEXISTS", "HSTRLEN")) {
		const struct word *value = hash_find(hash, words[2].text);

		reply_integer(out, !value ? 0 : !strcmp(name, "HEXISTS") ? 1 : (long long)value->length);
	} else if (!strcmp(name, "HSET")) {
		if (count % 2) {
			reply_error(out, "ERR wrong number of arguments for 'hset' command");
			return;
		}
		for (int i = 2; i < count; i += 2)
			number += hash_set(hash, words[i], words[i + 1]);
		*changes = true;
		reply_integer(out, number);
	} else if (!strcmp(name, "HSETNX")) {
		*changes = !hash_find(hash, words[2].text);
		if (*changes)
			hash_set(hash, words[2], words[3]);
		reply_integer(out, *changes);
	} else if (!strcmp(name, "HINCRBY")) {
		const struct word *value = hash_find(hash, words[2].text);
		char text[32];

		snprintf(text, sizeof(text), "%lld", (value ? atoll(value->text) : 0) + atoll(words[3].text));
		hash_set(hash, words[2], (struct word){ text, strlen(text) });
		*changes = true;
		reply_integer(out, atoll(text));
	} else {
		for (int i = 2; hash && i < count; i++)
			number += hash_delete(hash, words[i]);
		*changes = number;
		reply_integer(out, number);
	}
}

static void do_zset(struct value *zset, const char *name, int count, const struct word *words, struct bytes *out,
		    bool *changes)
{
	long long number = 0;

	if (!strcmp(name, "ZADD")) {
		for (int i = 2; i + 1 < count; i += 2)
			number += zset_add(zset, atof(words[i].text), words[i + 1]);
		*changes = true;
		reply_integer(out, number);
	} else if (!strcmp(name, "ZREM")) {
		for (int i = 2; zset && i < count; i++)
			number += zset_delete(zset, words[i]);
		*changes = number;
		reply_integer(out, number);
	} else if (!strcmp(name, "ZCARD")) {
		reply_integer(out, zset ? zset->count : 0);
	} else if (!strcmp(name, "ZSCORE")) {
		for (size_t i = 0; zset && i < zset->count; i++)
			if (is_equal(zset->members[i].name, words[2])) {
				char text[32];

				snprintf(text, sizeof(text), "%.17g", zset->members[i].score);
				reply_text(out, text);
				return;
			}
		reply_nil(out);
	} else {
		const double low = score_of(words[2].text), high = score_of(words[3].text);
		const bool has_limit = count == 7 && !strcasecmp(words[4].text, "LIMIT");
		const size_t most = has_limit ? strtoull(words[6].text, NULL, 10) : SIZE_MAX;
		struct bytes found = {};

		for (size_t i = 0; zset && i < zset->count && (size_t)number < most; i++) {
			const double score = zset->members[i].score;

			if (score < low || score > high || (*words[2].text == '(' && score == low) ||
			    (*words[3].text == '(' && score == high))
				continue;
			number++;
			reply_word(&found, &zset->members[i].name);
		}
		if (!strcmp(name, "ZRANGEBYSCORE")) {
			reply_array(out, number);
			bytes_add(out, found.data ? found.data : "", found.used);
		} else {
			reply_integer(out, number);
		}
		bytes_free(&found);
		if (!strcmp(name, "ZREMRANGEBYSCORE")) {
			for (size_t i = 0; zset && i < zset->count;)
				if (zset->members[i].score >= low && zset->members[i].score <= high)
					zset_delete(zset, zset->members[i].name);
				else
					i++;
			*changes = number;
		}
	}
}

static void do_keys(struct dataset *data, const char *name, int count, const struct word *words, struct bytes *out,
		    bool *changes)
{
	long long number = 0;

	if (is_one_of(name, "DEL", "UNLINK")) {
		for (int i = 1; i < count; i++)
			number += delete (data, words[i].text);
		*changes = number;
		reply_integer(out, number);
	} else if (!strcmp(name, "EXISTS")) {
		for (int i = 1; i < count; i++)
			number += dataset_find(data, words[i].text) != NULL;
		reply_integer(out, number);
	} else if (!strcmp(name, "TYPE")) {
		static const char *const names[] = { "hash", "stream", "zset", "string" };
		const struct value *value = dataset_find(data, words[1].text);

		reply_status(out, value ? names[value->kind] : "none");
	} else if (is_one_of(name, "EXPIRE", "PEXPIRE")) {
		/* Nothing here lives so long. */
		reply_integer(out, dataset_find(data, words[1].text) != NULL);
	} else if (!strcmp(name, "SET")) {
		delete (data, words[1].text);
		value_make(data, words[1], REDIS_STRING)->string = copy_of(words[2]);
		*changes = true;
		reply_status(out, "OK");
	} else if (!strcmp(name, "RENAME")) {
		struct value *value = dataset_find(data, words[1].text), *copy;

		if (!value) {
			reply_error(out, "ERR no such key");
			return;
		}
		copy = value_copy(value);
		delete (data, words[1].text);
		delete (data, words[2].text);
		free(copy->key.text);
		value = value_make(data, words[2], copy->kind);
		copy->key = value->key;
		*value = *copy;
		free(copy);
		*changes = true;
		reply_status(out, "OK");
	} else if (!strcmp(name, "SCAN")) {
		struct bytes found = {};
		const char *pattern = "*";

		for (int i = 2; i + 1 < count; i += 2)
			pattern = !strcasecmp(words[i].text, "MATCH") ? words[i + 1].text : pattern;
		for (size_t i = 0; i < data->count; i++)
			if (!fnmatch(pattern, data->values[i]->key.text, 0)) {
				reply_word(&found, &data->values[i]->key);
				number++;
			}
		reply_array(out, 2);
		reply_text(out, "0");
		reply_array(out, number);
		bytes_add(out, found.data ? found.data : "", found.used);
		bytes_free(&found);
	} else if (!strcmp(name, "FLUSHALL")) {
		char *functions = data->functions;

		data->functions = NULL; /* FLUSHALL leaves them */
		dataset_free(data);
		data->functions = functions;
		*changes = true;
		reply_status(out, "OK");
	} else if (!strcmp(name, "FUNCTION")) {
		if (count != 4 || strcasecmp(words[1].text, "LOAD") || strcasecmp(words[2].text, "REPLACE"))
			missing("FUNCTION %s", words[1].text);
		free(data->functions);
		data->functions = strdup(words[3].text);
		*changes = true;
		reply_text(out, "xdp_cuckoo");
	} else {
		reply_status(out, "PONG");
	}
}

bool dataset_do(struct dataset *data, int count, const struct word *words, __s64 wall_ms, struct bytes *out,
		bool *changes)
{
	const struct known *command = find_known(words[0].text);
	struct value *value;

	*changes = false;
	if (!command)
		return false;
	if (count < command->least) {
		reply_error(out, "ERR wrong number of arguments for '%s' command", command->name);
		return true;
	}
	if (command->key < 0) {
		do_keys(data, command->name, count, words, out, changes);
		return true;
	}
	value = dataset_find(data, words[1].text);
	if (value && value->kind != (enum redis_type)command->key) {
		reply_error(out, "WRONGTYPE Operation against a key holding the wrong kind of value");
		return true;
	}
	if (!value && command->makes)
		value = value_make(data, words[1], command->key);
	if (command->key == REDIS_HASH) {
		do_hash(value, command->name, count, words, out, changes);
	} else if (command->key == REDIS_ZSET) {
		do_zset(value, command->name, count, words, out, changes);
	} else if (!strcmp(command->name, "XADD")) {
		const size_t before = out->used;

		xadd(data, count, words, wall_ms, out);
		*changes = out->data[before] != '-';
	} else if (!strcmp(command->name, "XLEN")) {
		reply_integer(out, value ? value->count : 0);
	} else if (!strcmp(command->name, "XTRIM")) {
		size_t length, had = value ? value->count : 0;
		bool is_exact;

		trim_words(count - 2, words + 2, &length, &is_exact);
		if (value)
			trim(value, length, is_exact);
		*changes = value && value->count != had;
		reply_integer(out, value ? had - value->count : 0);
	} else if (command->key == REDIS_STREAM) {
		xrange(value, count, words, !strcmp(command->name, "XREVRANGE"), out);
	} else {
		reply_word(out, value ? &value->string : NULL);
	}
	/* Redis keeps no empty hash or set. */
	value = dataset_find(data, words[1].text);
	if (value && !value->count && (value->kind == REDIS_HASH || value->kind == REDIS_ZSET))
		delete (data, words[1].text);
	return true;
}

/* ---- the protocol ---- */

size_t command_read(char *bytes, size_t used, int *count, struct word *words)
{
	char *next = bytes, *end = bytes + used, *stop;
	long elements;

	if (used < 4 || *bytes != '*' || !(stop = memchr(bytes, '\n', used)))
		return 0;
	elements = strtol(bytes + 1, NULL, 10);
	if (elements > COMMAND_WORDS)
		missing("a command of %ld words", elements);
	next = stop + 1;
	for (*count = 0; *count < elements; ++*count) {
		size_t length;

		stop = next < end ? memchr(next, '\n', end - next) : NULL;
		if (!stop)
			return 0;
		length = strtoull(next + 1, NULL, 10);
		if ((size_t)(end - stop - 1) < length + 2)
			return 0;
		words[*count] = (struct word){ stop + 1, length };
		next = stop + 1 + length + 2;
	}
	/* The '\r' after a word becomes its final 0, once all are there. */
	for (int i = 0; i < *count; i++)
		words[i].text[words[i].length] = '\0';
	return next - bytes;
}

void command_write(struct bytes *out, int count, const struct word *words)
{
	reply_array(out, count);
	for (int i = 0; i < count; i++)
		reply_word(out, &words[i]);
}
