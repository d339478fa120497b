// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a store knows about itself: identity, schema and settings. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "store/internal.h"

static const char meta_name[] = "store";

int store_meta_save(const struct store *store, MDB_txn *txn, const struct store_meta *meta)
{
	MDB_val key = { strlen(meta_name), (void *)meta_name };
	MDB_val value = { sizeof(*meta), (void *)meta };

	return mdb_put(txn, store->meta_db, &key, &value, 0);
}

static bool is_time(__s64 ms)
{
	return ms >= -STORE_TIME_MAX_MS && ms <= STORE_TIME_MAX_MS;
}

static bool is_sound(const struct store_meta *meta)
{
	for (size_t i = 0; i < OUTCOME_POLICIES; i++)
		if (meta->settings.policy[i] > VERDICT_DROP)
			return false;
	return meta->settings.is_monitor_only <= 1 && is_time(meta->clock_ms) && is_time(meta->wall_ms) &&
	       is_time(meta->seen_ms) && is_time(meta->pending_ms);
}

int store_meta_load(const struct store *store, MDB_txn *txn, struct store_meta *meta)
{
	MDB_val key = { strlen(meta_name), (void *)meta_name }, value;
	int status = mdb_get(txn, store->meta_db, &key, &value);
	size_t bytes;

	if (status)
		return status == MDB_NOTFOUND ? -EBADMSG : environment_error(status);
	if (value.mv_size < STORE_META_BYTES_1)
		return -EBADMSG;
	*meta = (struct store_meta){};
	memcpy(meta, value.mv_data, STORE_META_BYTES_1);
	if (meta->magic != STORE_MAGIC)
		return -EBADMSG;
	if (meta->schema == 0 || meta->schema > STORE_SCHEMA)
		return -EPROTO;
	bytes = meta->schema == 1 ? STORE_META_BYTES_1 : sizeof(*meta);
	if (value.mv_size != bytes)
		return -EBADMSG;
	memcpy(meta, value.mv_data, bytes);
	return is_sound(meta) ? 0 : -EBADMSG;
}

int store_meta_create(struct store *store, MDB_txn *txn)
{
	struct store_meta meta = { .magic = STORE_MAGIC, .schema = STORE_SCHEMA };

	if (getrandom(meta.id, sizeof(meta.id), 0) != sizeof(meta.id))
		return EIO;
	if (store_clock_set(&store->clock, &meta))
		return EIO;
	store_clock_note(&store->clock, &meta);
	return store_meta_save(store, txn, &meta);
}

/* ---- settings ---- */

const struct store_settings store_settings_default = { .policy = { [OUTCOME_TOO_MANY_HEADERS] = VERDICT_DROP } };

static struct store_settings settings_of(const struct store_meta *meta)
{
	struct store_settings settings = meta->settings;

	settings.policy[OUTCOME_TOO_MANY_HEADERS] = meta->flags & STORE_META_PASSES_HEADERS ? VERDICT_PASS :
											      VERDICT_DROP;
	return settings;
}

int store_settings(struct store *store, struct store_settings *settings)
{
	struct store_meta meta;
	MDB_txn *txn;
	int error = store_meta_view(store, &txn, &meta);

	if (error)
		return error;
	*settings = settings_of(&meta);
	store_view_end(store);
	return 0;
}

int store_set_settings(struct store *store, const struct store_settings *settings)
{
	const struct store_settings before = settings_of(&store->meta);

	store->is_changed |= memcmp(&before, settings, sizeof(before)) != 0;
	store->meta.settings = *settings;
	store->meta.flags &= ~STORE_META_PASSES_HEADERS;
	if (settings->policy[OUTCOME_TOO_MANY_HEADERS] == VERDICT_PASS)
		store->meta.flags |= STORE_META_PASSES_HEADERS;
	return 0;
}
