// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Redis servers: clients, blocking commands, replication, disks. */
#include "simulation/server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "simulation/checks.h"
#include "simulation/functions.h"

#define REPLICATION_US 500
#define SYNC_US (200 * MS)

struct client {
	struct client *next;
	struct server *server;
	struct link *link;
	struct bytes in, waiting;    /* waiting: the command that blocks */
	bool is_reading, is_waiting; /* in XREAD, in WAIT */
	__u64 wake;                  /* of its last patience; 0: that is void */
	__s64 wrote;                 /* the offset after its last write */
	__s64 wanted;                /* replicas, in WAIT */
};

struct server servers[SERVERS_MAX];
unsigned int servers_count;

__s64 server_wall_ms(const struct server *server)
{
	return WALL_START_MS + now_us / MS + server->wall_ms;
}

static void draw_id(char id[41])
{
	for (int i = 0; i < 40; i++)
		id[i] = "0123456789abcdef"[chance_below(CHANCE_NETWORK, 16)];
	id[40] = '\0';
}

/* ---- replication ---- */

static void apply(struct dataset *data, struct bytes *effects)
{
	static struct word words[COMMAND_WORDS];
	struct bytes out = {};
	size_t taken = 0, length;
	int count;
	bool changes;

	while ((length = command_read(effects->data + taken, effects->used - taken, &count, words))) {
		dataset_do(data, count, words, 0, &out, &changes);
		out.used = 0;
		taken += length;
	}
	bytes_free(&out);
}

struct shipment {
	struct server *to, *from;
	__u64 link;
	__s64 offset;
	struct bytes effects;
	struct dataset *whole; /* a full synchronisation; NULL: effects */
};

static void serve_waiting(struct server *server);

struct receipt {
	struct server *from, *to;
	__u64 link;
	__s64 offset;
};

static void acknowledge(void *context)
{
	struct receipt *receipt = context;

	if (receipt->from->link == receipt->link && receipt->to->is_up && !receipt->to->is_silent &&
	    receipt->from->master == receipt->to) {
		receipt->to->acknowledged[receipt->from->number] = receipt->offset;
		serve_waiting(receipt->to);
	}
	free(receipt);
}

static void persist(struct server *server, struct bytes *effects)
{
	if (server->disk == DISK_EVERYSEC)
		bytes_add(&server->unsynced, effects->data, effects->used);
}

static void serve_readers(struct server *server);

static void arrive(void *context)
{
	struct shipment *shipment = context;
	struct server *to = shipment->to;
	struct receipt *receipt;

	if (to->link == shipment->link && to->is_up && to->master == shipment->from) {
		if (shipment->whole) {
			dataset_free(&to->data);
			to->data = *shipment->whole;
			to->is_linked = true;
			to->is_syncing = false;
			to->unsynced.used = 0;
			dataset_free(&to->durable);
			dataset_copy(&to->durable, &to->data);
			snprintf(to->replication_id, sizeof(to->replication_id), "%s", shipment->from->replication_id);
		} else {
			persist(to, &shipment->effects);
			apply(&to->data, &shipment->effects);
		}
		to->offset = shipment->offset;
		serve_readers(to);
		receipt = malloc(sizeof(*receipt));
		*receipt = (struct receipt){ to, shipment->from, to->link, to->offset };
		in(REPLICATION_US + to->lag_us, acknowledge, receipt);
	} else if (shipment->whole) {
		dataset_free(shipment->whole);
	}
	free(shipment->whole);
	bytes_free(&shipment->effects);
	free(shipment);
}

static void ship(struct server *from, struct server *to, struct dataset *whole, __s64 delay_us)
{
	struct shipment *shipment = calloc(1, sizeof(*shipment));
	const __s64 time_us = now_us + delay_us + to->lag_us + chance_below(CHANCE_NETWORK, REPLICATION_US);

	*shipment =
		(struct shipment){ .to = to, .from = from, .link = to->link, .offset = from->offset, .whole = whole };
	if (!whole)
		bytes_add(&shipment->effects, from->effects.data, from->effects.used);
	to->arrives_us = time_us > to->arrives_us ? time_us : to->arrives_us;
	at(to->arrives_us, arrive, shipment);
}

/* What is on its way to the replica gets lost. */
static void unlink_replica(struct server *replica)
{
	replica->is_linked = replica->is_syncing = false;
	replica->link++;
	replica->arrives_us = 0;
}

/* A replica that has no link asks for a full synchronisation. */
static void look_for_master(void *context)
{
	struct server *server = context;
	struct dataset *whole;

	in(1 * SECOND, look_for_master, server);
	if (!server->is_up || !server->master)
		return;
	if (!server->master->is_up || server->is_cut_off || server->master->master || server->master->is_silent) {
		unlink_replica(server);
		return;
	}
	if (server->is_linked || server->is_syncing)
		return;
	unlink_replica(server);
	server->is_syncing = true;
	whole = malloc(sizeof(*whole));
	dataset_copy(whole, &server->master->data);
	ship(server->master, server, whole, SYNC_US);
}

static void replicate(struct server *server)
{
	server->offset += server->effects.used;
	persist(server, &server->effects);
	for (unsigned int i = 0; i < servers_count; i++) {
		struct server *replica = &servers[i];

		if (replica->master != server || !replica->is_up)
			continue;
		if (replica->is_cut_off) {
			/* What it misses comes with a full synchronisation. */
			unlink_replica(replica);
		} else if (replica->is_linked || replica->is_syncing) {
			ship(server, replica, NULL, REPLICATION_US);
		}
	}
	server->effects.used = 0;
}

static void write_to_disk(void *context)
{
	struct server *server = context;
	static unsigned int seconds;

	in(1 * SECOND, write_to_disk, server);
	if (!server->is_up)
		return;
	if (server->disk == DISK_EVERYSEC && server->unsynced.used) {
		apply(&server->durable, &server->unsynced);
		server->unsynced.used = 0;
	} else if (server->disk == DISK_SNAPSHOT && !(seconds++ % 60)) {
		dataset_free(&server->durable);
		dataset_copy(&server->durable, &server->data);
	}
}

/* ---- commands ---- */

static bool is_named(const struct word *word, const char *name)
{
	return !strcasecmp(word->text, name);
}

static void note_effect(struct server *server, int count, const struct word *words, const struct bytes *reply,
			size_t from)
{
	static struct word copy[COMMAND_WORDS];
	char id[48];

	memcpy(copy, words, count * sizeof(*words));
	/* A replica must give the same id as its master. */
	for (int i = 2; i < count && is_named(&words[0], "XADD"); i++)
		if (!strcmp(words[i].text, "*")) {
			sscanf(strchr(reply->data + from, '\n') + 1, "%47[0-9-]", id);
			copy[i] = (struct word){ id, strlen(id) };
			break;
		}
	command_write(&server->effects, count, copy);
	if (is_named(&words[0], "XADD"))
		trace("%s: %s %s: %s", server->where, words[1].text, copy[count - 3].text, copy[count - 1].text);
}

/* A command of a client, or of a function. */
static void do_data(struct server *server, int count, const struct word *words, struct bytes *out)
{
	const size_t before = out->used;
	bool changes;

	if (!dataset_do(&server->data, count, words, server_wall_ms(server), out, &changes))
		missing("the command %s", words[0].text);
	if (changes)
		note_effect(server, count, words, out, before);
}

static void do_info(const struct server *server, struct bytes *out)
{
	unsigned int replicas = 0;
	char text[1000];

	for (unsigned int i = 0; i < servers_count; i++)
		replicas += servers[i].master == server && servers[i].is_linked;
	snprintf(text, sizeof(text),
		 "# Server\r\nredis_version:7.0.15\r\nrun_id:%s\r\n# Replication\r\nrole:%s\r\nconnected_slaves:%u\r\n"
		 "master_replid:%s\r\nmaster_repl_offset:%lld\r\nslave_repl_offset:%lld\r\nmin_slaves_good_slaves:%u\r\n"
		 "# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:%d\r\nloading:0\r\n",
		 server->run_id, server->master ? "slave" : "master", replicas, server->replication_id,
		 (long long)server->offset, (long long)server->offset, replicas, server->disk <= DISK_EVERYSEC);
	reply_text(out, text);
}

static void do_time(const struct server *server, struct bytes *out)
{
	const __s64 ms = server_wall_ms(server);
	char text[32];

	reply_array(out, 2);
	snprintf(text, sizeof(text), "%lld", (long long)(ms / 1000));
	reply_text(out, text);
	snprintf(text, sizeof(text), "%lld", (long long)(ms % 1000 * 1000 + now_us % 1000));
	reply_text(out, text);
}

static void do_role(const struct server *server, struct bytes *out)
{
	char address[16];

	if (!server->master) {
		reply_array(out, 3);
		reply_text(out, "master");
		reply_integer(out, server->offset);
		reply_array(out, 0);
		return;
	}
	reply_array(out, 5);
	reply_text(out, "slave");
	snprintf(address, sizeof(address), "10.0.0.%u", server->master->number + 1);
	reply_text(out, address);
	reply_integer(out, 6379);
	reply_text(out, server->is_linked ? "connected" : "connect");
	reply_integer(out, server->offset);
}

static void call_of_function(void *context, int count, const struct word *words, struct bytes *out)
{
	struct server *server = context;

	if (is_named(&words[0], "TIME"))
		do_time(server, out);
	else if (is_named(&words[0], "INFO"))
		do_info(server, out);
	else
		do_data(server, count, words, out);
}

static bool is_denied(const struct server *server, const struct word *words, int count, struct bytes *out)
{
	const bool writes = command_writes(words[0].text) || is_named(&words[0], "FCALL");
	const bool reports = is_named(&words[0], "HSET") && count > 1 && strstr(words[1].text, ":host:");

	if (writes && server->master)
		reply_error(out, "READONLY You can't write against a read only replica.");
	else if (server->denies & DENY_MEMORY && writes && !is_named(&words[0], "DEL"))
		reply_error(out, "OOM command not allowed when used memory > 'maxmemory'.");
	else if ((server->denies & DENY_REPORTS && reports) ||
		 (server->denies & DENY_READS && is_named(&words[0], "XREAD")))
		reply_error(out, "NOPERM this user has no permissions to access one of the keys used as arguments");
	else
		return false;
	return true;
}

static void do_command(struct server *server, int count, const struct word *words, struct bytes *out)
{
	if (is_denied(server, words, count, out))
		return;
	if (is_named(&words[0], "AUTH")) {
		if (server->denies & DENY_LOGIN)
			reply_error(out, "WRONGPASS invalid username-password pair or user is disabled.");
		else
			reply_status(out, "OK");
	} else if (is_named(&words[0], "ROLE")) {
		do_role(server, out);
	} else if (is_named(&words[0], "TIME")) {
		do_time(server, out);
	} else if (is_named(&words[0], "INFO")) {
		do_info(server, out);
	} else if (is_named(&words[0], "FCALL")) {
		function_call(&server->lua, server->data.functions, count, words, call_of_function, server, out);
	} else {
		do_data(server, count, words, out);
	}
}

static void finish(struct server *server, int count, const struct word *words)
{
	if (!server->effects.used)
		return;
	if (!server->master)
		history_note(server, count, words);
	replicate(server);
	serve_readers(server);
}

bool server_command_words(struct server *server, int count, const struct word *words)
{
	struct bytes out = {};
	bool is_done;

	do_command(server, count, words, &out);
	is_done = *out.data != '-';
	finish(server, count, words);
	bytes_free(&out);
	return is_done;
}

bool server_command(struct server *server, const char *format, ...)
{
	struct word words[32];
	char text[1000];
	va_list arguments;
	int count = 0;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (char *word = strtok(text, " "); word && count < 32; word = strtok(NULL, " "))
		words[count++] = (struct word){ word, strlen(word) };
	return server_command_words(server, count, words);
}

/* ---- clients ---- */

/* Answers XREAD if there is something. */
static bool read_streams(struct client *client, int count, const struct word *words, __s64 *block_ms)
{
	struct bytes streams = {}, out = {};
	size_t most = SIZE_MAX, found = 0;
	int i = 1, half;

	*block_ms = -1;
	for (; i + 1 < count && !is_named(&words[i], "STREAMS"); i += 2) {
		if (is_named(&words[i], "COUNT"))
			most = strtoull(words[i + 1].text, NULL, 10);
		else if (is_named(&words[i], "BLOCK"))
			*block_ms = atoll(words[i + 1].text);
	}
	half = (count - ++i) / 2;
	for (int k = i; k < i + half; k++) {
		const struct value *stream = dataset_find(&client->server->data, words[k].text);

		if (stream && stream->kind != REDIS_STREAM) {
			reply_error(&out, "WRONGTYPE Operation against a key holding the wrong kind of value");
			link_answer(client->link, out.data, out.used);
			bytes_free(&streams);
			bytes_free(&out);
			return true;
		}
		found += stream_read(stream, words[k + half].text, most, &streams) > 0;
	}
	if (found) {
		reply_array(&out, found);
		bytes_add(&out, streams.data, streams.used);
		link_answer(client->link, out.data, out.used);
	}
	bytes_free(&streams);
	bytes_free(&out);
	return found;
}

struct patience {
	struct client *client;
	struct server *server;
	__u64 wake;
};

static void serve(struct client *client);

static unsigned int count_replicas(const struct client *client)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < servers_count; i++)
		count += servers[i].master == client->server && servers[i].is_linked &&
			 client->server->acknowledged[i] >= client->wrote;
	return count;
}

static void answer_wait(struct client *client)
{
	struct bytes out = {};

	client->is_waiting = false;
	client->wake = 0;
	reply_integer(&out, count_replicas(client));
	link_answer(client->link, out.data, out.used);
	bytes_free(&out);
	serve(client);
}

static bool is_client(const struct server *server, const struct client *client)
{
	const struct client *other = server->clients;

	while (other && other != client)
		other = other->next;
	return other;
}

static void lose_patience(void *context)
{
	struct patience *patience = context;
	struct client *client = patience->client;
	struct bytes out = {};

	/* A machine that hangs answers nobody in time. */
	if (is_client(patience->server, client) && client->wake == patience->wake && patience->server->is_silent) {
		in(1 * SECOND, lose_patience, patience);
		return;
	}
	if (is_client(patience->server, client) && client->wake == patience->wake) {
		if (client->is_waiting) {
			answer_wait(client);
		} else if (client->is_reading) {
			client->is_reading = false;
			client->wake = 0;
			bytes_add(&out, "*-1\r\n", 5);
			link_answer(client->link, out.data, out.used);
			bytes_free(&out);
			serve(client);
		}
	}
	free(patience);
}

/* A later client may get the memory of one that has gone: so each patience of all clients has its own number. */
static void wait_at_most(struct client *client, __s64 ms)
{
	static __u64 numbers;
	struct patience *patience = malloc(sizeof(*patience));

	*patience = (struct patience){ client, client->server, client->wake = ++numbers };
	in(ms * MS, lose_patience, patience);
}

/* Commands that have come, in order; a command that blocks lets the others wait. */
static void serve(struct client *client)
{
	static struct word words[COMMAND_WORDS];
	struct server *server = client->server;
	struct bytes out = {};
	int count;
	size_t length;
	__s64 block_ms;

	while (!client->is_reading && !client->is_waiting && !server->is_silent &&
	       (length = command_read(client->in.data + client->in.taken, client->in.used - client->in.taken, &count,
				      words))) {
		const __s64 before = server->offset;

		server->commands[client->link->node->number]++;
		trace("%s does %s %s %s %s for %s", server->where, words[0].text, count > 1 ? words[1].text : "",
		      count > 3 ? words[3].text : "", count > 5 ? words[5].text : "", client->link->node->name);
		if (is_named(&words[0], "XREAD") && !(server->denies & DENY_READS)) {
			if (!read_streams(client, count, words, &block_ms)) {
				client->is_reading = true;
				client->waiting.used = client->waiting.taken = 0;
				command_write(&client->waiting, count, words);
				wait_at_most(client, block_ms < 0 ? 0 : block_ms);
			}
		} else if (is_named(&words[0], "WAIT")) {
			client->wanted = atoll(words[1].text);
			client->is_waiting = true;
			wait_at_most(client, atoll(words[2].text));
			if (count_replicas(client) >= client->wanted) {
				client->in.taken += length;
				answer_wait(client);
				return;
			}
		} else {
			do_command(server, count, words, &out);
			link_answer(client->link, out.data, out.used);
			out.used = 0;
			finish(server, count, words);
			if (server->offset != before)
				client->wrote = server->offset;
		}
		client->in.taken += length;
	}
	bytes_free(&out);
}

static void serve_readers(struct server *server)
{
	static struct word words[COMMAND_WORDS];

	for (struct client *client = server->clients; client; client = client->next) {
		struct bytes copy = {};
		__s64 ignored;
		int count;

		if (!client->is_reading)
			continue;
		bytes_add(&copy, client->waiting.data, client->waiting.used);
		command_read(copy.data, copy.used, &count, words);
		if (read_streams(client, count, words, &ignored)) {
			client->is_reading = false;
			client->wake = 0;
			serve(client);
		}
		bytes_free(&copy);
	}
}

static void serve_waiting(struct server *server)
{
	for (struct client *client = server->clients; client; client = client->next)
		if (client->is_waiting && count_replicas(client) >= client->wanted)
			answer_wait(client);
}

bool server_accept(struct server *server, struct link *link)
{
	struct client *client;

	if (!server->is_up)
		return false;
	client = calloc(1, sizeof(*client));
	*client = (struct client){ .server = server, .link = link, .next = server->clients };
	client->wrote = server->offset;
	server->clients = client;
	link->client = client;
	return true;
}

void server_receive(struct client *client, const char *data, size_t count)
{
	bytes_add(&client->in, data, count);
	serve(client);
}

void server_forget_client(struct client *client)
{
	struct client **place = &client->server->clients;

	while (*place != client)
		place = &(*place)->next;
	*place = client->next;
	bytes_free(&client->in);
	bytes_free(&client->waiting);
	free(client);
}

static void drop_clients(struct server *server)
{
	while (server->clients) {
		struct link *link = server->clients->link;

		server_forget_client(server->clients);
		link_reset(link);
	}
}

/* ---- lives ---- */

void server_kill(struct server *server)
{
	if (!server->is_up)
		return;
	trace("%s is killed", server->where);
	server->is_up = server->is_silent = false;
	unlink_replica(server);
	/* A master that is back before its replicas look has other data, perhaps: they must read all of it. */
	for (unsigned int i = 0; i < servers_count; i++)
		if (servers[i].master == server)
			unlink_replica(&servers[i]);
	drop_clients(server);
	if (server->disk != DISK_ALWAYS) {
		dataset_free(&server->data);
		if (server->disk != DISK_NONE)
			dataset_copy(&server->data, &server->durable);
	}
	server->unsynced.used = 0;
}

void server_start(struct server *server)
{
	if (server->is_up)
		return;
	server->is_up = true;
	server->run++;
	draw_id(server->run_id);
	draw_id(server->replication_id);
	server->offset = 0;
	memset(server->acknowledged, 0, sizeof(server->acknowledged));
	dataset_free(&server->durable);
	dataset_copy(&server->durable, &server->data);
	trace("%s starts as %s with %zu keys", server->where, server->master ? "a replica" : "a master",
	      server->data.count);
}

void server_restore(struct server *server, const struct dataset *backup)
{
	dataset_free(&server->data);
	dataset_copy(&server->data, backup);
}

void server_promote(struct server *server)
{
	trace("%s becomes the master", server->where);
	server->master = NULL;
	unlink_replica(server);
	draw_id(server->replication_id);
	memset(server->acknowledged, 0, sizeof(server->acknowledged));
}

/* Sentinel then also closes the connections of clients. */
void server_follow(struct server *server, struct server *master)
{
	trace("%s follows %s", server->where, master->where);
	server->master = master;
	unlink_replica(server);
	drop_clients(server);
}

void server_be_silent(struct server *server, bool is_silent)
{
	server->is_silent = is_silent;
	for (struct client *client = server->clients; client && !is_silent; client = client->next)
		serve(client);
}

bool server_is_silent(const struct server *server)
{
	return server->is_up && server->is_silent;
}

void servers_open(unsigned int count)
{
	servers_count = count;
	for (unsigned int i = 0; i < count; i++) {
		servers[i] = (struct server){ .number = i, .master = i ? &servers[0] : NULL };
		snprintf(servers[i].where, sizeof(servers[i].where), "10.0.0.%u:6379", i + 1);
		server_start(&servers[i]);
		in(1 * SECOND, look_for_master, &servers[i]);
		in(1 * SECOND, write_to_disk, &servers[i]);
	}
}
