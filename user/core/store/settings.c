// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a store knows about itself: identity, schema and settings. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/version.h"
#include "store/internal.h"

static const char meta_name[] = "store", tool_name[] = "tool", home_name[] = "home", undo_name[] = "undo_settings";

int store_meta_save(const struct store *store, MDB_txn *txn, const struct store_meta *meta)
{
	MDB_val key = store_key(meta_name);
	MDB_val value = { sizeof(*meta), (void *)meta };

	return mdb_put(txn, store->meta_db, &key, &value, 0);
}

static bool is_time(__s64 ms)
{
	return ms >= -STORE_TIME_MAX_MS && ms <= STORE_TIME_MAX_MS;
}

int store_meta_read(const struct store *store, MDB_txn *txn, struct store_meta *meta)
{
	MDB_val key = store_key(meta_name), value;
	int status = mdb_get(txn, store->meta_db, &key, &value);

	if (status)
		return status == MDB_NOTFOUND ? -EBADMSG : environment_error(status);
	*meta = (struct store_meta){};
	memcpy(meta, value.mv_data, MIN(value.mv_size, sizeof(*meta)));
	if (value.mv_size < offsetof(struct store_meta, id) || meta->magic != STORE_MAGIC)
		return -EBADMSG;
	if (meta->schema != STORE_SCHEMA)
		return -EPROTO;
	if (value.mv_size != sizeof(*meta))
		return -EBADMSG;
	for (size_t i = 0; i < OUTCOME_POLICIES; i++)
		if (meta->settings.policy[i] > VERDICT_DROP)
			return -EBADMSG;
	return meta->settings.is_monitor_only <= 1 && is_time(meta->clock_ms) && is_time(meta->wall_ms) &&
			       is_time(meta->seen_ms) && is_time(meta->pending_ms) &&
			       (!meta->pending_id || meta->pending_id == meta->last_pending_id) ?
		       0 :
		       -EBADMSG;
}

__u32 store_tool(const struct store *store, MDB_txn *txn)
{
	MDB_val key = store_key(tool_name), value;
	__u32 tool = 0;

	if (!mdb_get(txn, store->meta_db, &key, &value) && value.mv_size == sizeof(tool))
		memcpy(&tool, value.mv_data, sizeof(tool));
	return tool;
}

__u32 store_this_tool(void)
{
	unsigned int major = 0, minor = 0, patch = 0;

	sscanf(VERSION, "%u.%u.%u", &major, &minor, &patch);
	return major << 16 | minor << 8 | patch;
}

void store_record_tool(struct store *store)
{
	const __u32 tool = store_this_tool();

	store_record(store, tool_name, &tool, sizeof(tool));
}

/* ---- where it is in use ---- */

struct home {
	__u64 namespace; /* the network namespace */
	struct {
		char boot_id[STORE_BOOT_ID_BYTES];
		__u64 device, inode;
	} file; /* of the store, which a copy does not share */
};

static bool find_home(const struct store *store, struct home *home)
{
	struct stat namespace, file;
	int fd;

	if (stat("/proc/thread-self/ns/net", &namespace) || mdb_env_get_fd(store->env, &fd) || fstat(fd, &file))
		return false;
	*home = (struct home){ namespace.st_ino, { .device = file.st_dev, .inode = file.st_ino } };
	memcpy(home->file.boot_id, store->clock.boot_id, STORE_BOOT_ID_TEXT);
	return *home->file.boot_id;
}

enum store_home store_home(struct store *store)
{
	const MDB_val key = store_key(home_name);
	struct home here, there;

	if (!find_home(store, &here) || store_late_get(store, "meta", &key, &there, sizeof(there)) ||
	    memcmp(&here.file, &there.file, sizeof(here.file)))
		return STORE_HOME_NEW;
	return here.namespace == there.namespace ? STORE_HOME_HERE : STORE_HOME_ELSEWHERE;
}

static bool read_meta(struct store *store, struct store_meta *meta)
{
	STORE_VIEW view = store_meta_view(store, meta);

	return !view.error;
}

void store_take_home(struct store *store, bool is_in_use)
{
	const MDB_val key = store_key(home_name);
	struct home here, there;
	struct store_meta meta;

	if (!find_home(store, &here))
		return;
	if (!is_in_use && !store_late_get(store, "meta", &key, &there, sizeof(there)) &&
	    (here.file.device != there.file.device || here.file.inode != there.file.inode) && read_meta(store, &meta) &&
	    !random_draw(meta.id, sizeof(meta.id)))
		store_record(store, meta_name, &meta, sizeof(meta));
	store_record(store, home_name, &here, sizeof(here));
}

int store_meta_create(struct store *store, MDB_txn *txn)
{
	struct store_meta meta = { .magic = STORE_MAGIC, .schema = STORE_SCHEMA };

	if (random_draw(meta.id, sizeof(meta.id)))
		return EIO;
	/* Random: a watchdog of an earlier store in this directory must not take a change of this one for its own. */
	meta.last_pending_id = meta.id[1] >> 16;
	if (store_clock_set(&store->clock, &meta))
		return EIO;
	store_clock_record(&store->clock, &meta);
	return store_meta_save(store, txn, &meta);
}

/* ---- settings ---- */

const struct store_settings store_settings_default = { .policy = { [OUTCOME_TOO_MANY_HEADERS] = VERDICT_DROP } };
const struct store_settings store_settings_kept = { { [0 ... OUTCOME_POLICIES - 1] = STORE_SETTING_KEPT },
						    STORE_SETTING_KEPT };

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
	STORE_VIEW view = store_meta_view(store, &meta);

	if (!view.error)
		*settings = settings_of(&meta);
	return view.error;
}

/* An entry of database "meta". It counts while that change is pending. */
struct undo_settings {
	__u64 pending_id;
	struct store_settings settings;
};

int store_undone_settings(struct store *store, struct store_settings *settings)
{
	const MDB_val key = store_key(undo_name);
	struct store_pending pending;
	struct undo_settings undo;
	int error = store_settings(store, settings);

	if (!error)
		error = store_pending(store, &pending);
	if (!error && pending.id)
		error = store_late_get(store, "meta", &key, &undo, sizeof(undo));
	if (!error && pending.id && undo.pending_id == pending.id)
		*settings = undo.settings;
	return error == -ENOENT ? 0 : error;
}

static void settings_change(struct store_settings *to, const struct store_settings *wanted)
{
	__u8 *bytes = (__u8 *)to;

	for (size_t i = 0; i < sizeof(*to); i++)
		if (((const __u8 *)wanted)[i] != STORE_SETTING_KEPT)
			bytes[i] = ((const __u8 *)wanted)[i];
}

int store_set_settings(struct store *store, const struct store_settings *settings)
{
	const MDB_val key = store_key(undo_name);
	struct undo_settings undo = { .pending_id = store->meta.pending_id };
	MDB_val value = { sizeof(undo), &undo };
	const struct store_settings before = settings_of(&store->meta);
	struct store_settings now = before, undone;
	int error = store_undone_settings(store, &undone);

	if (error)
		return error;
	settings_change(&now, settings);
	undo.settings = undone;
	if (store_has_earlier_pending(store))
		settings_change(&undo.settings, settings);
	store->is_changed |= memcmp(&before, &now, sizeof(now)) || memcmp(&undone, &undo.settings, sizeof(undone));
	store->meta.settings = now;
	store->meta.flags &= ~STORE_META_PASSES_HEADERS;
	if (now.policy[OUTCOME_TOO_MANY_HEADERS] == VERDICT_PASS)
		store->meta.flags |= STORE_META_PASSES_HEADERS;
	return undo.pending_id ? store_pair_put(store, store->meta_db, &key, &value, 0) : 0;
}
