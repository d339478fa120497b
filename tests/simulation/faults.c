// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What goes wrong, and when. In each round things break for a while; then all is healed, and hosts must be level. */
#include "simulation/faults.h"

#include <stdlib.h>
#include <string.h>

#include "simulation/checks.h"
#include "simulation/nodes.h"
#include "simulation/work.h"

#define FOLLOWERS 3
#define FAULTS_US (40 * SECOND)
#define WORK_US (35 * SECOND) /* of the quiet: then publishers stop */
#define QUIET_US (75 * SECOND)
#define LOSS_QUIET_US (160 * SECOND)
#define RATE_US (20 * SECOND)

bool is_quiet, is_rate_checked = true;

static struct server *master = &servers[0];
static struct dataset backup;
static bool has_backup, had_loss;
static const char *allowed;

struct server *present_master(void)
{
	return master;
}

static bool is_allowed(char kind)
{
	return !allowed || strchr(allowed, kind);
}

static struct node *draw_host(void)
{
	return &nodes[chance_below(CHANCE_PLAN, FOLLOWERS)];
}

static struct server *draw_server(void)
{
	return &servers[chance_below(CHANCE_PLAN, servers_count)];
}

static __s64 draw_us(__s64 least_us, __s64 most_us)
{
	return least_us + chance_below(CHANCE_PLAN, most_us - least_us);
}

/* Many small numbers, some large ones. */
static __s64 draw_steps(void)
{
	return chance_below(CHANCE_PLAN, 4ULL << chance_below(CHANCE_PLAN, 10));
}

/* ---- faults; what undoes each; a fault that is over by itself undoes nothing at heal() ---- */

static void kill_follower(void)
{
	struct process *process = node_service(draw_host());

	if (process)
		process->steps_left = draw_steps();
}

static void kill_reader(void)
{
	struct process *process = process_child_of(node_service(draw_host()));

	if (process)
		process->steps_left = draw_steps();
}

static void kill_publisher(void)
{
	struct process *process = work_process(chance_below(CHANCE_PLAN, PUBLISHERS));

	if (process)
		process->steps_left = draw_steps();
}

static void reset_links(void)
{
	links_reset(chance_one_in(CHANCE_PLAN, 3) ? NULL : &nodes[chance_below(CHANCE_PLAN, nodes_count)],
		    chance_one_in(CHANCE_PLAN, 3) ? NULL : draw_server());
}

static void mend_cut(void *context)
{
	*(bool *)context = false;
}

static void cut(void)
{
	bool *is_one_cut = &is_cut[chance_below(CHANCE_PLAN, nodes_count)][chance_below(CHANCE_PLAN, servers_count)];

	*is_one_cut = true;
	in(draw_us(500 * MS, 30 * SECOND), mend_cut, is_one_cut);
}

static void note_loss(struct server *server, bool hosts_too)
{
	promises_excuse(server, hosts_too);
	master_since_us = now_us;
}

static void start_server(void *context)
{
	struct server *server = context;

	/* It comes back before Sentinel has made another the master: what was not on its disk is lost. */
	if (!server->is_up && server == master && server->disk == DISK_EVERYSEC)
		note_loss(server, true);
	server_start(server);
}

static void restart_server(void)
{
	struct server *server = draw_server();

	if (!server->is_up)
		return;
	server_kill(server);
	in(draw_us(50 * MS, 10 * SECOND), start_server, server);
}

static void wake_server(void *context)
{
	server_be_silent(context, false);
}

static void silence_server(void)
{
	struct server *server = draw_server();

	server_be_silent(server, true);
	in(draw_us(500 * MS, 25 * SECOND), wake_server, server);
}

/* A host that is off counts the time by its wall clock, and cannot know that somebody has set it. */
static void step_clock(void)
{
	struct node *node = draw_host();

	if (chance_one_in(CHANCE_PLAN, 2) && node_service(node) && node->committed_us > node->boot_us) {
		if (node->committed_us > node->stepped_us)
			node->wall_before_ms = node->wall_ms;
		node->stepped_us = now_us;
		node->wall_ms = (__s64)chance_below(CHANCE_PLAN, 7200000) - 3600000;
	} else {
		draw_server()->wall_ms = (__s64)chance_below(CHANCE_PLAN, 16000) - 8000;
	}
}

static void free_disk(void *context)
{
	((struct node *)context)->is_disk_full = false;
}

static void fill_disk(void)
{
	struct node *node = &nodes[chance_below(CHANCE_PLAN, nodes_count)];

	node->is_disk_full = true;
	in(draw_us(500 * MS, 20 * SECOND), free_disk, node);
}

static void trim_log(void)
{
	promises_excuse_lost();
	server_command(master, "XTRIM xc:f:L:%s:log MAXLEN %u", list_names[chance_below(CHANCE_PLAN, 3)],
		       (unsigned int)chance_below(CHANCE_PLAN, 6));
}

static void set_panic(void)
{
	operator_panic(chance_one_in(CHANCE_PLAN, 2));
}

static void allow_all(void *context)
{
	((struct server *)context)->denies = 0;
}

static void deny(void)
{
	struct server *server = draw_server();

	server->denies |= 1U << chance_below(CHANCE_PLAN, 4);
	in(draw_us(500 * MS, 25 * SECOND), allow_all, server);
}

static void boot(void *context)
{
	node_follow(context, true);
}

static void reboot_host(void)
{
	struct node *node = draw_host();

	node_follow(node, false);
	process_kill_all_of(node);
	node->boot += 100;
	node->boot_us = now_us;
	/* A host that was off counts the time by its wall clock, which keeps only what the store knows of. */
	if (node->stepped_us >= node->committed_us)
		node->wall_ms = node->wall_before_ms;
	in(draw_us(1 * SECOND, 20 * SECOND), boot, node);
}

static void stop_service(void)
{
	node_terminate(draw_host());
}

/* ---- failover ---- */

static void mend_replication(void *context)
{
	struct server *server = context;

	server->is_cut_off = false;
	server->lag_us = 0;
}

static void delay_replication(void)
{
	struct server *server = draw_server();

	if (chance_one_in(CHANCE_PLAN, 2))
		server->is_cut_off = true;
	else
		server->lag_us = draw_us(1 * MS, 3 * SECOND);
	in(draw_us(1 * SECOND, 20 * SECOND), mend_replication, server);
}

/* As Sentinel chooses: the replica with most of the data, of those that had a link to this master. */
static struct server *best_replica(void)
{
	struct server *best = NULL;

	for (unsigned int i = 0; i < servers_count; i++)
		if (servers[i].is_up && servers[i].master == master &&
		    !strcmp(servers[i].replication_id, master->replication_id) &&
		    (!best || servers[i].offset > best->offset))
			best = &servers[i];
	return best;
}

/* The other servers follow the new master; the old one only when it is seen again. */
static void follow_master(void *context)
{
	struct server *server = context;

	if (server == master || server->master == master)
		return;
	/* The old master had a replica for changes that it took after the promotion: WAIT cannot know better. */
	for (size_t i = 0; i < promises_count && server->master; i++)
		if (servers_differ(server, master, &promises[i]))
			promise_excuse(&promises[i]);
	if (server->is_up)
		server_follow(server, master);
	else
		server->master = master;
}

static void promote(void *context)
{
	struct server *best = best_replica(), *old = master;

	(void)context;
	if (!best || is_quiet)
		return;
	for (size_t i = 0; i < promises_count; i++) {
		struct promise *promise = &promises[i];
		bool is_elsewhere = false;

		if ((promise->state != PROMISE_LIVE && promise->state != PROMISE_GONE) || server_keeps(best, promise))
			continue;
		/* Another replica has the change, and could not be asked: the manual promises no more. */
		for (unsigned int k = 0; k < servers_count; k++)
			is_elsewhere |= &servers[k] != old && servers_differ(&servers[k], best, promise);
		promise->is_excused |= is_elsewhere;
	}
	master = best;
	master_since_us = now_us;
	server_promote(best);
	for (unsigned int i = 0; i < servers_count; i++)
		if (&servers[i] != master)
			in(&servers[i] == old ? draw_us(500 * MS, 9 * SECOND) : draw_us(10 * MS, 500 * MS),
			   follow_master, &servers[i]);
}

/* The master is lost, or only Sentinel does not see it any more: then there are two masters for a while. */
static void fail_over(void)
{
	if (servers_count < 2)
		return;
	if (chance_one_in(CHANCE_PLAN, 2)) {
		struct server *old = master;

		server_kill(old);
		in(draw_us(2 * SECOND, 15 * SECOND), start_server, old);
	}
	in(draw_us(100 * MS, 4 * SECOND), promote, NULL);
}

/* ---- losses ---- */

static void take_backup(void)
{
	dataset_free(&backup);
	dataset_copy(&backup, &master->data);
	has_backup = true;
}

static void restore_backup(void)
{
	if (!has_backup || servers_count > 1)
		return;
	had_loss = true;
	server_kill(master);
	server_restore(master, &backup);
	note_loss(master, false);
	in(draw_us(100 * MS, 3 * SECOND), start_server, master);
}

static void flush_all(void)
{
	if (!master->is_up || servers_count > 1)
		return;
	had_loss = true;
	server_command(master, "FLUSHALL");
	note_loss(master, false);
}

static void spoil(void)
{
	write_garbage(chance_below(CHANCE_PLAN, GARBAGE_KINDS));
}

static const struct fault {
	void (*begin)(void);
	char letter;
	unsigned char weight;
	bool is_loss;
} faults[] = {
	{ kill_follower, 'f', 8, false },  { kill_reader, 'r', 3, false },  { kill_publisher, 'p', 8, false },
	{ reset_links, 'l', 6, false },    { cut, 'c', 6, false },          { restart_server, 's', 5, false },
	{ silence_server, 'h', 3, false }, { step_clock, 't', 2, false },   { fill_disk, 'd', 4, false },
	{ trim_log, 'x', 4, false },       { set_panic, 'n', 3, false },    { deny, 'a', 3, false },
	{ reboot_host, 'b', 2, false },    { stop_service, 'q', 2, false }, { delay_replication, 'y', 6, false },
	{ fail_over, 'o', 5, false },      { take_backup, 'k', 3, true },   { restore_backup, 'e', 3, true },
	{ flush_all, 'z', 2, true },       { spoil, 'g', 1, false },
};

static bool may_lose; /* in this run */

static void draw_fault(void *context)
{
	const size_t count = sizeof(faults) / sizeof(faults[0]);
	unsigned int weights = 0, draw;

	(void)context;
	if (is_quiet)
		return;
	for (size_t i = 0; i < count; i++)
		weights += is_allowed(faults[i].letter) && (may_lose || !faults[i].is_loss) ? faults[i].weight : 0;
	draw = chance_below(CHANCE_PLAN, weights);
	for (size_t i = 0; i < count; i++) {
		const unsigned int weight =
			is_allowed(faults[i].letter) && (may_lose || !faults[i].is_loss) ? faults[i].weight : 0;

		if (draw < weight) {
			trace("fault %c", faults[i].letter);
			faults[i].begin();
			break;
		}
		draw -= weight;
	}
	in(draw_us(100 * MS, 6 * SECOND), draw_fault, NULL);
}

/* ---- healing ---- */

static void heal(void)
{
	is_quiet = true;
	trace("heals");
	memset(is_cut, 0, sizeof(is_cut));
	for (unsigned int i = 0; i < servers_count; i++) {
		servers[i].denies = 0;
		mend_replication(&servers[i]);
		if (servers[i].is_silent)
			server_be_silent(&servers[i], false);
		start_server(&servers[i]);
	}
	/* A promotion that was not decided yet does not come. */
	if (master->master)
		server_promote(master);
	for (unsigned int i = 0; i < servers_count; i++)
		follow_master(&servers[i]);
	for (unsigned int i = 0; i < nodes_count; i++) {
		nodes[i].is_disk_full = false;
		nodes[i].undisturbed_us = now_us + 10 * SECOND; /* what is cut takes a while to notice */
		if (nodes[i].is_follower)
			node_follow(&nodes[i], true);
	}
}

static bool has_fleet(void)
{
	return hash_find(dataset_find(&master->data, "xc:f:meta"), "id");
}

static void look(void *context)
{
	(void)context;
	if (is_quiet)
		operator_look();
}

static void rates(void *context)
{
	(void)context;
	if (is_rate_checked)
		check_rates(RATE_US);
	in(RATE_US, rates, NULL);
}

static void check_panic(void)
{
	const struct word *word = hash_find(dataset_find(&master->data, "xc:f:meta"), "panic");
	const bool is_on = word && !strcmp(word->text, "on");

	for (unsigned int i = 0; i < FOLLOWERS; i++)
		must(node_has_panic(&nodes[i]) == is_on, "%s %s panic, and the broker says %s", nodes[i].name,
		     node_has_panic(&nodes[i]) ? "has" : "has no", is_on ? "on" : "off");
}

static bool hosts_hold(void)
{
	bool is_held = false;

	for (unsigned int i = 0; i < FOLLOWERS; i++)
		is_held |= node_has_held(&nodes[i]);
	return is_held;
}

static void be_quiet(void)
{
	const bool has_loss = had_loss || !has_fleet();
	char why[512];

	heal();
	work_start();
	for (__s64 us = 28 * SECOND; us < QUIET_US; us += 15 * SECOND)
		in(us, look, NULL);
	if (!has_fleet())
		in(8 * SECOND, (void (*)(void *))operator_init, NULL);
	run_until(now_us + WORK_US);
	work_stop();
	run_until(now_us + QUIET_US - WORK_US);
	if (has_loss) {
		operator_republish();
		run_until(now_us + 10 * SECOND);
		operator_accept();
		run_until(now_us + LOSS_QUIET_US - QUIET_US - 10 * SECOND);
	}
	/* A host may hold what failovers have lost, and says so: somebody must accept it. */
	if (!hosts_are_level(master, why) && hosts_hold()) {
		operator_accept();
		run_until(now_us + 40 * SECOND);
	}
	must(hosts_are_level(master, why), "after %lld s of quiet %s", (long long)(QUIET_US / SECOND), why);
	if (!has_loss)
		check_promises(master);
	check_panic();
	for (unsigned int i = 0; i < PUBLISHERS; i++)
		must(!work_process(i), "publisher%u still runs: %.200s", i,
		     work_process(i) ? work_process(i)->words : "");
	had_loss = false;
}

void faults_run(unsigned int seconds, const char *kinds)
{
	const __u64 disk = chance_below(CHANCE_PLAN, 10);
	unsigned int brokers;

	allowed = kinds;
	brokers = chance_one_in(CHANCE_PLAN, 2) && is_allowed('o') ? 3 : 1;
	may_lose = brokers == 1 && chance_one_in(CHANCE_PLAN, 3);
	servers_open(brokers);
	for (unsigned int i = 0; i < brokers; i++)
		servers[i].disk = disk < 7 || !is_allowed('w') ? DISK_ALWAYS : DISK_EVERYSEC;
	nodes_open(FOLLOWERS, PUBLISHERS + 1, brokers, brokers > 1);
	trace("%u brokers%s", brokers, may_lose ? ", data may be lost" : "");
	in(1 * SECOND, rates, NULL);
	run_until(3 * SECOND);
	operator_init();
	run_until(4 * SECOND);
	if (chance_one_in(CHANCE_PLAN, 2))
		server_command(master, "HSET xc:f:meta log 20");
	for (unsigned int i = 0; i < FOLLOWERS; i++)
		node_follow(&nodes[i], true);
	work_start();
	run_until(20 * SECOND);
	while (now_us + FAULTS_US + QUIET_US <= seconds * SECOND && !*breach) {
		is_quiet = false;
		hosts_accept_no_more();
		work_start();
		in(draw_us(100 * MS, 3 * SECOND), draw_fault, NULL);
		run_until(now_us + FAULTS_US);
		be_quiet();
	}
	nodes_close();
}
