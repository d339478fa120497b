// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <inttypes.h>

#include "base/memory.h"
#include "base/safe_text.h"
#include "fleet/publisher.h"
#include "base/clock.h"
#include "change/change.h"
#include "io/metrics_text.h"

#define KEYS_AT_ONCE 10000
#define LOOKS_MAX 100000 /* so a billion keys */
#define NAMES_MAX 100000
#define STATE_LENGTH_MAX 20
#define EPOCH_AHEAD_MS 60000 /* an epoch of fleet.lua is never so far ahead of the broker's clock or the last epoch */

/* Another element of an array with room for NAMES_MAX of them; NULL: not enough memory. */
static void *more(void **elements, size_t *count, size_t size)
{
	return array_grow(elements, *count, size) ? NULL : memset((char *)*elements + size * (*count)++, 0, size);
}

/*
 * Notes the key if it is the status of a host, or the meta of a list. Whoever may write keys chooses their names: one that
 * no host or list can have is left out. 0; -ENOMEM; -EMSGSIZE: these are too many.
 */
static int take_key(struct fleet_view *view, const char *fleet, const char *key)
{
	char hosts[FLEET_KEY_BYTES], lists[FLEET_KEY_BYTES], name[ABI_NAME_BYTES];
	const char *end = strrchr(key, ':');
	struct fleet_host *host;
	struct fleet_list *list;

	if (view->hosts_count >= NAMES_MAX || view->lists_count >= NAMES_MAX)
		return -EMSGSIZE;
	snprintf(hosts, sizeof(hosts), "xc:%s:host:", fleet);
	snprintf(lists, sizeof(lists), "xc:%s:L:", fleet);
	if (!strncmp(key, hosts, strlen(hosts)) && text_is_safe(key + strlen(hosts), FLEET_HOST_BYTES)) {
		host = more((void **)&view->hosts, &view->hosts_count, sizeof(*host));
		if (!host)
			return -ENOMEM;
		strcpy(host->name, key + strlen(hosts));
	} else if (!strncmp(key, lists, strlen(lists)) && !strcmp(end, ":meta")) {
		snprintf(name, sizeof(name), "%.*s", (int)(end - key - strlen(lists)), key + strlen(lists));
		if (end - key - strlen(lists) != strlen(name) || !session_is_name(name))
			return 0;
		list = more((void **)&view->lists, &view->lists_count, sizeof(*list));
		if (!list)
			return -ENOMEM;
		strcpy(list->name, name);
	}
	return 0;
}

static int find_keys(struct fleet_view *view, struct broker *broker, const char *fleet, struct reason *reason)
{
	char cursor[32] = "0";
	unsigned int looks = 0;
	int error = 0;

	do {
		CODEC_FREED redisReply *reply = NULL;
		const redisReply *keys;
		const char *next;

		error = connection_ask(&broker->connection, &reply, reason, "SCAN %s MATCH xc:%s:[hL]*[^0-9]* COUNT %d",
				       cursor, fleet, KEYS_AT_ONCE);
		if (error)
			return error;
		next = codec_text_of(reply, 0);
		if (!next || reply->elements != 2)
			return reason_set(reason, -EPROTO,
					  "the broker's answer to SCAN is not that of Redis");
		snprintf(cursor, sizeof(cursor), "%s", next);
		keys = reply->element[1];
		for (size_t i = 0; i < keys->elements && !error; i++)
			if (codec_text_of(keys, i))
				error = take_key(view, fleet, codec_text_of(keys, i));
		if (++looks == LOOKS_MAX)
			error = -EMSGSIZE;
	} while (!error && strcmp(cursor, "0"));
	if (error == -EMSGSIZE)
		return reason_set(reason, error, "the broker has over %d hosts or lists, or its SCAN has no end",
				  NAMES_MAX);
	return error ? reason_set(reason, error, "not enough memory") : 0;
}

/* The name is the first member of both. */
static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Sorts the elements by name, and drops what SCAN has named twice. Returns how many are left. */
static size_t drop_repeated(void *elements, size_t count, size_t size)
{
	char *first = elements;
	size_t kept = 0;

	if (count)
		qsort(elements, count, size, compare_names);
	for (size_t i = 0; i < count; i++)
		if (!kept || compare_names(first + (kept - 1) * size, first + i * size))
			memmove(first + kept++ * size, first + i * size, size);
	return kept;
}

static void put_host(struct broker *broker, const char *fleet, const char *host)
{
	connection_put(&broker->connection, "HGETALL xc:%s:host:%s", fleet, host);
}

/* 0, also if nobody can read the report; 1: the same, and the connection is a new one, without other replies. */
static int get_host(struct fleet_host *host, struct broker *broker, struct reason *reason)
{
	int error = connection_expect(&broker->connection, &host->fields, reason);

	if (error == -EREMOTEIO)
		return 0;
	if (error != -EMSGSIZE)
		return error;
	error = broker_reopen(broker, reason);
	return error ? error : 1;
}

/*
 * Notes in list->broken that nothing can be published: the log has an entry that fleet.lua did not write, and after which
 * no epoch of it can come. 0; -errno: the connection is lost.
 */
static int look_at_log(struct fleet_list *list, struct broker *broker, const char *fleet, struct reason *reason)
{
	const __u64 now_ms = broker_now_ms(broker), epoch = list->head.last.epoch;
	CODEC_FREED redisReply *reply = NULL;
	const char *id;
	int error = connection_ask(&broker->connection, &reply, reason, "XRANGE xc:%s:L:%s:log %llu + COUNT 1", fleet,
				   list->name,
				   (unsigned long long)(epoch > now_ms ? epoch : now_ms) + EPOCH_AHEAD_MS);

	if (error == -EREMOTEIO && !strstr(reason->text, "NOPERM"))
		list->broken = *reason;
	if (error)
		return error == -EREMOTEIO ? 0 : error;
	id = reply->elements ? codec_text_of(reply->element[0], 0) : NULL;
	if (id)
		reason_set(&list->broken, 0,
			   "its log has the entry %.45s, after which nothing can be published; delete the key "
			   "xc:%s:L:%s:log, then publish again",
			   id, fleet, list->name);
	return 0;
}

/* The reports of all hosts: asked for at once, and again after a connection that a reply has ended. */
static int read_hosts(struct fleet_view *view, struct broker *broker, const char *fleet,
		      struct reason *reason)
{
	size_t asked = 0;
	int error = 0;

	for (size_t i = 0; i < view->hosts_count && error >= 0; i++) {
		for (; asked < view->hosts_count; asked++)
			put_host(broker, fleet, view->hosts[asked].name);
		error = get_host(&view->hosts[i], broker, reason);
		asked = error > 0 ? i + 1 : asked;
	}
	return error < 0 ? error : 0;
}

static int read_list(struct fleet_view *view, struct fleet_list *list, struct broker *broker,
		     const char *fleet, struct reason *reason)
{
	struct fleet_position at;
	int error = list_head_read(broker, fleet, list->name, &list->head, reason);

	for (size_t i = 0; i < view->hosts_count; i++)
		list->hosts += fleet_host_at(&view->hosts[i], list->name, &at);
	if (!error)
		return look_at_log(list, broker, fleet, reason);
	list->broken = *reason;
	list->head = (struct list_head){};
	return error == -EREMOTEIO || error == -EBADMSG ? 0 : error;
}

int fleet_view_open(struct fleet_view *view, struct broker *broker, const char *fleet,
		    struct reason *reason)
{
	int error;

	*view = (struct fleet_view){};
	error = find_keys(view, broker, fleet, reason);
	view->hosts_count = drop_repeated(view->hosts, view->hosts_count, sizeof(*view->hosts));
	view->lists_count = drop_repeated(view->lists, view->lists_count, sizeof(*view->lists));
	if (!error)
		error = read_hosts(view, broker, fleet, reason);
	for (size_t i = 0; i < view->lists_count && !error; i++)
		error = read_list(view, &view->lists[i], broker, fleet, reason);
	return error;
}

void fleet_view_close(struct fleet_view *view)
{
	for (size_t i = 0; i < view->hosts_count; i++)
		codec_free(&view->hosts[i].fields);
	free(view->hosts);
	free(view->lists);
	*view = (struct fleet_view){};
}

const char *fleet_host_field(const struct fleet_host *host, const char *name)
{
	for (size_t i = 0; host->fields && i < host->fields->elements; i += 2) {
		const char *field = codec_text_of(host->fields, i), *value = codec_text_of(host->fields, i + 1);

		if (field && value && !strcmp(field, name))
			return value;
	}
	return "";
}

__s64 fleet_host_number(const struct fleet_host *host, const char *name)
{
	const __s64 number = atoll(fleet_host_field(host, name)), most = 1LL << 53;

	return number > most ? most : number < -most ? -most : number;
}

bool fleet_host_at(const struct fleet_host *host, const char *list, struct fleet_position *at)
{
	const char *lists = fleet_host_field(host, "lists"), *found = strstr(lists, list);
	char name[ABI_NAME_BYTES + 8];

	/* The field of a list that is not followed any more stays. */
	while (found && ((found > lists && found[-1] != ' ') || !strchr(" ", found[strlen(list)])))
		found = strstr(found + 1, list);
	if (*lists && !found)
		return false;
	snprintf(name, sizeof(name), "at:%s", list);
	return !fleet_position_parse(fleet_host_field(host, name), at);
}

bool fleet_host_is_behind(const struct fleet_view *view, const struct fleet_host *host)
{
	struct fleet_position at;

	for (size_t i = 0; i < view->lists_count; i++)
		if (fleet_host_at(host, view->lists[i].name, &at) &&
		    fleet_position_compare(at, view->lists[i].head.last) < 0)
			return true;
	return false;
}

const char *fleet_host_state(const struct fleet_view *view, const struct fleet_host *host, __s64 now_ms)
{
	const char *state = fleet_host_field(host, "state");
	const size_t length = strspn(state, "abcdefghijklmnopqrstuvwxyz-");

	if (!host->fields)
		return "unreadable";
	if (now_ms - fleet_host_number(host, "seen") > HOSTS_SILENT_MS)
		return "silent";
	if (!strcmp(fleet_host_field(host, "shared"), "1"))
		return "shared";
	if (!length || state[length] || length > STATE_LENGTH_MAX)
		return "unknown";
	if (strcmp(state, "level"))
		return state;
	return view && fleet_host_is_behind(view, host) ? "behind" : state;
}

/* ---- waiting until hosts have a change ---- */

#define LOOK_FIRST_MS 4 /* each pause between two looks is twice as long as the one before, up to: */
#define LOOK_MS 64
#define FORGET_MS 1000 /* hosts that are late then are looked at: they may be gone */
#define NOBODY_MS 7000 /* a host reports every 5 s */
#define WAIT_MS 60000
#define NAMED_MAX 3

static int count_hosts(struct waiting *waiting, struct reason *reason)
{
	struct connection *connection = &waiting->broker->connection;
	const char *fleet = waiting->fleet, *list = waiting->list;
	size_t *const numbers[] = { &waiting->hosts, &waiting->done, &waiting->refusing };
	char first[24] = "+inf";
	int error = 0;

	if (waiting->first.epoch)
		snprintf(first, sizeof(first), "%" PRIu64, (uint64_t)fleet_position_score(waiting->first));
	connection_put(connection, "ZCARD xc:%s:L:%s:hosts", fleet, list);
	connection_put(connection, "ZCOUNT xc:%s:L:%s:hosts %llu +inf", fleet, list,
		       (unsigned long long)fleet_position_score(waiting->last));
	connection_put(connection, "ZCOUNT xc:%s:L:%s:refused %s +inf", fleet, list, first);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && !error; i++) {
		CODEC_FREED redisReply *reply = NULL;

		error = connection_expect(connection, &reply, reason);
		if (!error)
			*numbers[i] = codec_number(reply);
	}
	return error;
}

/* Forgets a host in the sets of the list. That is no more than tidy: it may be refused. */
static int forget_host(struct waiting *waiting, const char *name, struct reason *reason)
{
	static const char *const sets[] = { "hosts", "refused" };

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		const int error = connection_ask(&waiting->broker->connection, NULL, reason,
						 "ZREM xc:%s:L:%s:%s %s", waiting->fleet,
						 waiting->list, sets[i], name);

		if (error && error != -EREMOTEIO)
			return error;
	}
	return 0;
}

/* Forgets the host if it is gone, else adds its name to the text, with its reason, unless NAMED_MAX are there. */
static int look_at_host(struct waiting *waiting, const char *name, const char *state_if_level,
			size_t *named, struct reason *text, struct reason *reason)
{
	const size_t used = strlen(text->text);
	struct fleet_host host = {};
	struct fleet_position at;
	int error;

	snprintf(host.name, sizeof(host.name), "%s", name);
	put_host(waiting->broker, waiting->fleet, host.name);
	error = get_host(&host, waiting->broker, reason);
	/* A report that nobody can read does not say that the host is gone. */
	if (error >= 0 && host.fields && !fleet_host_at(&host, waiting->list, &at)) {
		error = forget_host(waiting, name, reason);
	} else if (error >= 0 && (*named)++ < NAMED_MAX) {
		const char *why = fleet_host_field(&host, "why");
		const char *state = fleet_host_state(NULL, &host, broker_now_ms(waiting->broker));

		snprintf(text->text + used, sizeof(text->text) - used, "; %s: %s%s%.*s", host.name,
			 strcmp(state, "level") ? state : state_if_level,
			 *why && strcmp(why, " ") ? ": " : "", (int)strcspn(why, ";"), why);
	}
	codec_free(&host.fields);
	return error < 0 ? error : 0;
}

/* Looks at the hosts of a set with a score from `low` to `high`. */
static int look_at_hosts(struct waiting *waiting, const char *set, const char *low, const char *high,
			 struct reason *text, struct reason *reason)
{
	const char *state_if_level = *set == 'h' ? "behind" : "refuses rules";
	CODEC_FREED redisReply *names = NULL;
	size_t named = 0;
	int error = connection_ask(&waiting->broker->connection, &names, reason,
				   "ZRANGEBYSCORE xc:%s:L:%s:%s %s %s", waiting->fleet,
				   waiting->list, set, low, high);

	for (size_t i = 0; !error && names->type == REDIS_REPLY_ARRAY && i < names->elements; i++) {
		const char *name = codec_text_of(names, i);

		error = look_at_host(waiting, name ? name : "", state_if_level, &named, text,
				     reason);
	}
	return error;
}

static int look_at_late(struct waiting *waiting, struct reason *text, struct reason *reason)
{
	char last[24], first[24];
	int error;

	text->text[0] = '\0';
	snprintf(last, sizeof(last), "(%" PRIu64, (uint64_t)fleet_position_score(waiting->last));
	snprintf(first, sizeof(first), "%" PRIu64, (uint64_t)fleet_position_score(waiting->first));
	error = look_at_hosts(waiting, "hosts", "-inf", last, text, reason);
	if (!error && waiting->refusing)
		error = look_at_hosts(waiting, "refused", first, "+inf", text, reason);
	return error ? error : count_hosts(waiting, reason);
}

int waiting_for_hosts(struct waiting *waiting, struct reason *reason)
{
	const __s64 start_ms = fleet_now_ms();
	bool has_looked = false;
	struct reason late = {};
	int pause_ms = 0, error;

	for (;;) {
		const __s64 waited_ms = fleet_now_ms() - start_ms;
		size_t have;

		error = count_hosts(waiting, reason);
		/* A host that has gone is counted, and late, until look_at_late() forgets it. */
		if (!error && !has_looked && waited_ms >= FORGET_MS) {
			has_looked = true;
			error = look_at_late(waiting, &late, reason);
		}
		if (error)
			return error;
		have = waiting->done > waiting->refusing ? waiting->done - waiting->refusing : 0;
		if (waiting->hosts && have * 100 >= waiting->hosts * waiting->percent) {
			waiting->done = have;
			return 0;
		}
		if (waited_ms >= (waiting->hosts ? WAIT_MS : NOBODY_MS) ||
		    (waiting->hosts && waiting->done == waiting->hosts))
			break;
		clock_pause(pause_ms = pause_longer(pause_ms, LOOK_FIRST_MS, LOOK_MS));
	}
	if (!waiting->hosts)
		return reason_set(reason, -EBADE, "nobody follows the list '%s': no host has reported it",
				  waiting->list);
	error = look_at_late(waiting, &late, reason);
	waiting->done = waiting->done > waiting->refusing ? waiting->done - waiting->refusing : 0;
	return error ? error :
		       reason_set(reason, -EBADE, "%zu of %zu hosts have the change%s", waiting->done, waiting->hosts,
				  late.text);
}

/* ---- metrics for Prometheus ---- */

static json_t *gauge(json_t *metrics, const char *name, const char *help)
{
	return metrics_family(metrics, name, METRIC_GAUGE, help);
}

static void add_lists(json_t *metrics, const struct fleet_view *view, const char *fleet)
{
	json_t *rules = gauge(metrics, "xdp_cuckoo_fleet_list_rules", "Rules of a list at the broker.");
	json_t *broken = gauge(metrics, "xdp_cuckoo_fleet_list_broken",
			       "1: nothing can be published to the list; 0: something can.");

	for (size_t i = 0; i < view->lists_count; i++) {
		const struct fleet_list *list = &view->lists[i];
		json_auto_t *labels = json_pack("{s:s, s:s}", "fleet", fleet, "list", list->name);

		if (!*list->broken.text)
			metrics_sample(rules, json_incref(labels), list->head.rules);
		metrics_sample(broken, json_incref(labels), *list->broken.text != 0);
	}
}

/* What a host reports as a number. */
static const struct {
	const char *field;
	double unit;
	enum metric_type type;
	const char *name, *help;
} numbers[] = {
	{ "seen", 1000, METRIC_GAUGE, "xdp_cuckoo_fleet_host_last_seen_timestamp_seconds",
	  "When the host last reported, by the broker's clock." },
	{ "skew", 1000, METRIC_GAUGE, "xdp_cuckoo_fleet_host_clock_skew_seconds",
	  "The clock of the host minus that of the broker." },
	{ "rules", 1, METRIC_GAUGE, "xdp_cuckoo_fleet_host_rules", "Rules of the fleet's lists on the host." },
	{ "refused", 1, METRIC_GAUGE, "xdp_cuckoo_fleet_host_refused_rules", "Rules that the host has left out." },
	{ "dropped", 1, METRIC_COUNTER, "xdp_cuckoo_fleet_host_dropped_packets_total",
	  "Packets that the host's filter has dropped, by rules of any list and by policies." },
};

static void add_hosts(json_t *metrics, const struct fleet_view *view, const char *fleet, __s64 now_ms)
{
	json_t *family = gauge(metrics, "xdp_cuckoo_fleet_host_state",
			       "1: the state of the host; xdp-cuckoo-fleet(7) explains them.");

	for (size_t i = 0; i < view->hosts_count; i++)
		metrics_sample(family,
			       json_pack("{s:s, s:s, s:s}", "fleet", fleet, "host", view->hosts[i].name, "state",
					 fleet_host_state(view, &view->hosts[i], now_ms)),
			       1);
	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
		family = metrics_family(metrics, numbers[n].name, numbers[n].type, numbers[n].help);
		for (size_t i = 0; i < view->hosts_count; i++)
			metrics_sample(family,
				       json_pack("{s:s, s:s}", "fleet", fleet, "host", view->hosts[i].name),
				       fleet_host_number(&view->hosts[i], numbers[n].field) / numbers[n].unit);
	}
}

int view_metrics(const struct fleet_view *view, const char *fleet, bool is_panic, __s64 now_ms, json_t **metrics)
{
	int error;

	*metrics = metrics_begin();
	metrics_sample(gauge(*metrics, "xdp_cuckoo_fleet_panic", "1: the fleet passes everything; 0: it filters."),
		       json_pack("{s:s}", "fleet", fleet), is_panic);
	metrics_sample(gauge(*metrics, "xdp_cuckoo_fleet_written_timestamp_seconds",
			     "When these metrics were read from the broker, by this host's clock."),
		       json_pack("{s:s}", "fleet", fleet), time(NULL));
	add_lists(*metrics, view, fleet);
	add_hosts(*metrics, view, fleet, now_ms);
	error = metrics_end();
	if (error)
		json_decref(*metrics);
	return error;
}
