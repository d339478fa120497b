// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections between processes and brokers: late, in parts, cut and reset. */
#include "simulation/network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simulation/server.h"

#define LATENCY_US 300
#define JITTER_US 2500
#define AGAIN_US (1 * SECOND) /* between two tries of TCP to get through */

bool is_cut[NODES_MAX][SERVERS_MAX];
unsigned int connects[NODES_MAX];

/* Every link that somebody may still name. */
static struct link **links;
static size_t links_count, links_room;

static void release(struct link *link)
{
	if (link->users || link->file || link->client)
		return;
	for (size_t i = 0; i < links_count; i++)
		if (links[i] == link)
			links[i] = links[--links_count];
	free(link);
}

static bool gets_through(const struct link *link)
{
	return !is_cut[link->node->number][link->server->number];
}

static __s64 latency(void)
{
	return LATENCY_US +
	       chance_below(CHANCE_NETWORK, chance_one_in(CHANCE_NETWORK, 50) ? 40 * JITTER_US : JITTER_US);
}

unsigned int link_server_number(const struct link *link)
{
	return link->server->number;
}

short link_events(const struct file *file)
{
	const struct link *link = file->link;

	if (file->error)
		return POLLIN | POLLOUT | POLLERR;
	if (!link || link->state != LINK_OPEN)
		return link && link->state == LINK_GONE ? POLLIN | POLLOUT | POLLHUP : 0;
	return POLLOUT | (file->in.used > file->in.taken || file->is_ended ? POLLIN : 0);
}

/* ---- resets ---- */

static void fail(struct link *link, int error)
{
	link->state = LINK_GONE;
	link->is_reset = true;
	if (link->file) {
		link->file->error = error;
		process_wake(link->file->owner);
	}
}

static void arrive_reset(void *context)
{
	struct link *link = context;

	if (!gets_through(link) && link->file) {
		in(AGAIN_US, arrive_reset, link);
		return;
	}
	link->users--;
	if (link->file && link->state != LINK_GONE)
		fail(link, ECONNRESET);
	release(link);
}

void link_reset(struct link *link)
{
	link->client = NULL;
	link->users++;
	/* What was sent before may be lost. */
	at(chance_one_in(CHANCE_NETWORK, 2) ? link->down.time_us : now_us + latency(), arrive_reset, link);
}

void links_reset(const struct node *node, const struct server *server)
{
	for (size_t i = 0; i < links_count; i++) {
		struct link *link = links[i];

		if ((node && link->node != node) || (server && link->server != server) || link->state != LINK_OPEN)
			continue;
		link->users++;
		if (link->client)
			server_forget_client(link->client);
		link->client = NULL;
		fail(link, ECONNRESET);
		link->users--;
	}
}

/* ---- connecting ---- */

static void arrive_connect(void *context)
{
	struct link *link = context;

	if (!link->file) {
		link->users--;
		release(link);
		return;
	}
	if (!gets_through(link) || server_is_silent(link->server)) {
		in(AGAIN_US, arrive_connect, link);
		return;
	}
	link->users--;
	if (!server_accept(link->server, link)) {
		fail(link, ECONNREFUSED);
		return;
	}
	link->state = LINK_OPEN;
	process_wake(link->file->owner);
}

void link_connect(struct file *file, unsigned int server)
{
	struct link *link = calloc(1, sizeof(*link));

	*link = (struct link){ .file = file, .node = file->owner->node, .server = &servers[server], .users = 1 };
	link->state = LINK_CONNECTING;
	file->link = link;
	if (links_count == links_room) {
		links_room = links_room ? 2 * links_room : 64;
		links = enlarged(links, links_room * sizeof(void *));
	}
	links[links_count++] = link;
	connects[link->node->number]++;
	in(2 * latency(), arrive_connect, link);
}

/* ---- bytes ---- */

struct parcel {
	struct parcel *next;
	size_t count;
	bool is_end;
	char data[];
};

/* A plan of an arrival is for the first parcel of the queue, so that parcels stay in order. */
static struct parcel *pack(struct link *link, struct queue *queue, const void *data, size_t count)
{
	struct parcel *parcel = malloc(sizeof(*parcel) + count), **end = &queue->first;

	*parcel = (struct parcel){ .count = count };
	memcpy(parcel->data, data, count);
	while (*end)
		end = &(*end)->next;
	*end = parcel;
	link->users++;
	return parcel;
}

static struct parcel *unpack(struct link *link, struct queue *queue)
{
	struct parcel *parcel = queue->first;

	queue->first = parcel->next;
	link->users--;
	return parcel;
}

static void arrive_up(void *context)
{
	struct link *link = context;
	struct parcel *parcel;

	if (!gets_through(link) && link->client) {
		in(AGAIN_US, arrive_up, link);
		return;
	}
	parcel = unpack(link, &link->up);
	if (link->client && parcel->is_end) {
		server_forget_client(link->client);
		link->client = NULL;
	} else if (link->client) {
		server_receive(link->client, parcel->data, parcel->count);
	}
	release(link);
	free(parcel);
}

static void plan_up(struct link *link)
{
	const __s64 time_us = now_us + latency();

	link->up.time_us = time_us > link->up.time_us ? time_us : link->up.time_us;
	at(link->up.time_us, arrive_up, link);
}

void link_send(struct link *link, const void *data, size_t count)
{
	/* A server that is down answers with a reset. */
	if (!link->client) {
		link->users++;
		in(latency(), arrive_reset, link);
		return;
	}
	pack(link, &link->up, data, count);
	plan_up(link);
}

void link_close(struct link *link)
{
	link->file = NULL;
	if (link->client) {
		pack(link, &link->up, "", 0)->is_end = true;
		plan_up(link);
	}
	link->state = LINK_GONE;
	release(link);
}

static void arrive_down(void *context)
{
	struct link *link = context;
	struct parcel *parcel;

	if (!gets_through(link) && link->file) {
		in(AGAIN_US, arrive_down, link);
		return;
	}
	parcel = unpack(link, &link->down);
	if (link->file && link->state == LINK_OPEN) {
		bytes_add(&link->file->in, parcel->data, parcel->count);
		process_wake(link->file->owner);
	}
	release(link);
	free(parcel);
}

void link_answer(struct link *link, const void *data, size_t count)
{
	/* In one part, or in two. */
	size_t first = count > 1 && chance_one_in(CHANCE_NETWORK, 8) ? 1 + chance_below(CHANCE_NETWORK, count - 1) :
								       count;

	for (size_t sent = 0; sent < count; sent += first, first = count - sent) {
		const __s64 time_us = now_us + latency();

		link->down.time_us = time_us > link->down.time_us ? time_us : link->down.time_us;
		pack(link, &link->down, (const char *)data + sent, first);
		at(link->down.time_us, arrive_down, link);
	}
}
