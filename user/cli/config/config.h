/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A configuration file, xdp-cuckoo.conf(5): which filter, policies and lists there should be. This folder
 * reads and checks the file. `up` makes the host follow it.
 */
#ifndef XDP_CUCKOO_CONFIG_H
#define XDP_CUCKOO_CONFIG_H

#include "base/error_reason.h"
#include "host/host.h"
#include "kernel/kernel.h"
#include "lists/list.h"
#include "store/store.h"

#define CONFIG_DIR HOST_CONFIG_DIR
#define CONFIG_INTERFACES_MAX 64
#define CONFIG_TEXTS_MAX (48 + 16 * STORE_LISTS_MAX)
#define CONFIG_URL_BYTES 256
#define CONFIG_URLS_MAX 16   /* of a list */
#define CONFIG_NAMES_MAX 256 /* countries or autonomous systems of a list */

/* ---- values of the command line and of the file: option_values.c ---- */

/* What a value must be, and the C type at its destination. */
enum value_kind {
	VALUE_NONE,     /* no value; sets a bool */
	VALUE_SWITCH,   /* yes or no: bool */
	VALUE_OPPOSITE, /* the same; the bool says the opposite of the key: has_no_counters */
	VALUE_TIME,     /* milliseconds: __s64 */
	VALUE_MODE,     /* enum kernel_mode */
	VALUE_COUNT,    /* number of rules, 1 or more: __u64; so is the next, which may be written as 10k or 10M */
	VALUE_RULES,
	VALUE_WHOLE,       /* number from 1 to a limit of its own: __u64 */
	VALUE_TABLE,       /* bool: is it compact? */
	VALUE_FINGERPRINT, /* width in bits: unsigned int */
	VALUE_ACTION,      /* enum rule_action */
	VALUE_PERCENT,     /* unsigned int; so are the next two */
	VALUE_GROWTH,
	VALUE_SMALL,    /* 0 to 16 */
	VALUE_PREFIXES, /* unsigned int[2] */
	VALUE_TEXT,     /* const char *; so are the next ones */
	VALUE_NAME,     /* of a filter or a list */
	VALUE_WORD,
	VALUE_FILE,
	VALUE_FORMAT,
	VALUE_JSON, /* list_is_json_path() */
	VALUE_URL,
	VALUE_URLS, /* one or more of these */
	VALUE_PIN,
	VALUE_COUNTRIES, /* as country_parse() and asn_parse() write them */
	VALUE_SYSTEMS,
	VALUE_BROKERS, /* const char *[]; so is the next */
	VALUE_LISTS,
	VALUE_INTERFACES, /* names: config->interfaces */
	VALUE_OWN,        /* config->flowspec: own, own_count, is_any */
	VALUE_PRESET,     /* const struct list_preset * */
	VALUE_KINDS
};

/* "yes or no", ..., for messages. NULL: the message is made where the value is read. */
extern const char *const value_must_be[VALUE_KINDS];

/*
 * Reads a value of the kinds from VALUE_SWITCH to VALUE_SMALL, except VALUE_RULES and VALUE_WHOLE, which only the command
 * line has, and of texts, which must stay in memory. False: it is not what value_must_be[] says.
 */
bool value_parse(enum value_kind kind, const char *text, void *to);

/* Reads digits, and then `suffix`, if the value has one. */
bool small_parse(const char *value, const char *suffix, unsigned int most, unsigned int *number);

/* How to load a filter. */
struct load_options {
	enum kernel_mode mode;
	__u64 capacity; /* in rules; 0: not given */
	bool is_compact, has_no_counters, has_no_spare;
	unsigned int fingerprint_bits; /* 0: not given */
	bool is_monitor_only;
	bool is_outgoing; /* also filter the packets that this host sends */
};

/* Reads a decimal number, 1 or more. 0; -EINVAL. */
int count_parse(const char *text, __u64 *number);

/* Reads "auto", "native" or "skb". 0; -EINVAL. */
int mode_parse(const char *word, enum kernel_mode *mode);

/* The table that the options describe. */
struct abi_options table_options_of(const struct load_options *load);

/* Whether the options say anything about the kind of table. */
bool table_options_are_given(const struct load_options *load);

/* The outcome with this name, in upper or lower case; OUTCOME_POLICIES: no outcome with a policy has it. */
enum abi_outcome policy_outcome_named(const char *word);

/* How dropping these packets can lock the operator out, whatever the rules are; NULL: it cannot. */
const char *policy_danger(enum abi_outcome outcome);

/* ---- lists of well-known providers: list_presets.c ---- */

struct list_preset {
	const char *name, *url, *format; /* in a URL, the first * is what `key` names; the second is 4 or 6 */
	__s64 every_ms; /* the shortest time between two fetches that the provider allows, or that is useful */
	const char *terms;
	const char *about;
	unsigned int space_max; /* percent of the public addresses that it may cover */
	const char *key;        /* "country" or "asn", the key that names what to fetch; NULL: the URL is the list's */
};

/* Number `index`; NULL after the last. */
const struct list_preset *list_preset(size_t index);

/* NULL: there is none of this name. */
const struct list_preset *list_preset_named(const char *name);

/* A hash of the URL and options of a list, which struct store_feed keeps. Never 0. */
struct config_list;
__u64 config_list_hash(const struct config_list *list);

/* ---- [fleet]: how this host takes part in a fleet, see xdp-cuckoo-fleet(7) ---- */

#define FLEET_BROKERS_MAX 8
#define FLEET_LISTS_MAX 16
#define FLEET_STAGED ".next" /* L.next holds the rules that --stage tries */

/* Texts belong to the configuration. */
struct fleet_options {
	const char *brokers[FLEET_BROKERS_MAX]; /* HOST, HOST:PORT, [IPv6]:PORT, or the path of a socket */
	size_t brokers_count;
	const char *user, *password_file; /* NULL: no authentication */
	const char *ca;                   /* file of certificates; NULL: no TLS */
	const char *host;                 /* name of this host in the status; NULL: the kernel's */
	const char *lists[FLEET_LISTS_MAX];
	size_t lists_count;
	bool is_staged;             /* also follow the staged rules of the lists */
	bool may_pass;              /* accept pass rules */
	unsigned int prefix_min[2]; /* shortest prefix of IPv4 and of IPv6 */
	__u64 rules_max;            /* of all lists; 0: no limit */
	unsigned int shrink_max;    /* percent of a list that a resync may drop */
	unsigned int replicas;      /* that must have a change before the publisher forgets it */
	__s64 jitter_ms;            /* a resync waits a random part of this */
};

/* ---- [flowspec]: which flows of BGP become rules, see xdp-cuckoo-flowspec(7) ---- */

#define FLOWSPEC_PREFIXES_MAX 64
#define FLOWSPEC_LIST_DEFAULT "flowspec"

struct flowspec_options {
	struct rule own[FLOWSPEC_PREFIXES_MAX]; /* the destination of a flow must be in one of these: `dst PREFIX` */
	size_t own_count;
	bool is_any;             /* flows may have any destination, or none */
	__u64 flows_max;         /* announced at a time */
	__u64 peer_flows_max;    /* the same, by one peer; 0: as many as flows_max */
	__u64 rules_max;         /* of all flows */
	__s64 stale_ms;          /* rules end so long after their source has gone, and at most a quarter later */
	bool takes_blackholes;   /* unicast routes with the community BLACKHOLE (RFC 7999) */
	enum rule_action action; /* RULE_DROP, or RULE_MONITOR for a trial */
	const char *list;        /* of the rules; NULL: not given */
};

/* ---- [crowdsec]: which decisions of CrowdSec become rules ---- */

#define CROWDSEC_LIST_DEFAULT "crowdsec"

struct crowdsec_options {
	const char *url, *socket;               /* of the LAPI; socket NULL: the host of the URL */
	const char *key_file, *cert, *cert_key; /* who this host is; NULL: not given */
	const char *ca;                         /* NULL: that of the system */
	const char *origins, *scenarios;        /* words; "-WORD" excludes; NULL: all */
	const char *list;                       /* of the rules; NULL: not given */
	__s64 every_ms, metrics_ms;             /* between two polls, and between two reports */
	__u64 rules_max;
	unsigned int prefix_min[2]; /* the shortest prefix of IPv4, and of IPv6 */
	enum rule_action action;    /* RULE_DROP, or RULE_MONITOR for a trial */
};

/* ---- the file ---- */

struct config_list;

/* One of the files that a list by URL is made of. */
struct list_part {
	char url[CONFIG_URL_BYTES];
	char what[32]; /* "country CN, IPv6", "AS64496, IPv4", "URL 2"; "": the list has one URL */
	bool is_pair;  /* this and its neighbour are of one name: first IPv4, then IPv6 */
};

/* Part number `index` of a list by URL. False: it has fewer. */
bool config_list_part(const struct config_list *list, size_t index, struct list_part *part);

/* Whether this is what value_must_be[VALUE_URL] says. */
bool url_is_right(const char *text);

/* Whether `other` names the same scheme, host and port as `url` (the first of several), in the same letters. */
bool url_is_same_server(const char *url, const char *other);

/*
 * A country by its code of ISO 3166, an autonomous system by its number. Writes "CN" or "AS64496". NULL; or what is
 * wrong with the word, or must be written.
 */
const char *country_parse(const char *word, char code[3]);
const char *asn_parse(const char *word, char name[16]);

/*
 * A [list NAME] section, as `import --list NAME --replace FILE` takes it. It has either a file or a URL. The texts
 * are kept in config->texts; NULL: not given.
 */
struct config_list {
	char *file;
	const char *name, *format, *set, *json;         /* format, set, json NULL: not given */
	const char *url, *sha256_url, *pinned_key, *ca; /* `url` may be several, with spaces between */
	const char *header_file;                        /* headers for the server of `url` */
	const char *country, *asn;                      /* "CN RU", "AS64496": of a preset with this key */
	const struct list_preset *preset;               /* that `url` and `format` are from */
	__s64 every_ms, fetch_ms;                       /* between two fetches; the most that one may take */
	__u64 rules_max;                                /* 0: any number */
	unsigned int shrink_max;                        /* percent of the list that an import may drop, */
	unsigned int grow_max;                          /* and may add */
	struct list_limits limits;                      /* of a list by URL */
	enum rule_action action;                        /* of rules that name none */
	__s64 timeout_ms;                               /* 0: not given */
	bool is_strict, is_forced;
	bool is_new_only;  /* every rule that does not pass gets `state new` */
	bool has_new_only; /* the file says so or says no */
	unsigned int line; /* where the section starts */
};

struct config {
	struct load_options load;
	bool detaches_on_stop;
	__s64 wait_ms; /* for interfaces that do not exist yet */
	char *interfaces[CONFIG_INTERFACES_MAX];
	size_t interfaces_count;
	__u8 policy[OUTCOME_POLICIES];     /* enum abi_verdict */
	bool has_policy[OUTCOME_POLICIES]; /* the file sets this policy */
	bool is_forced;                    /* accept policies that may lock the operator out */
	struct config_list list[STORE_LISTS_MAX];
	size_t lists_count;
	struct fleet_options fleet;       /* without a section [fleet], it has no broker */
	struct flowspec_options flowspec; /* without a section [flowspec], it has no list */
	struct crowdsec_options crowdsec; /* without a section [crowdsec], it has no list */
	char *texts[CONFIG_TEXTS_MAX];    /* that the others point to */
	size_t texts_count;
	bool has_gone_keys; /* of earlier versions; with `report`, a warning has named them */
};

/*
 * Reads the file at `path`, or if that is NULL, CONFIG_DIR/NAME.conf. Calls `report`, if not NULL, for each
 * mistake, with one line that names file and line; then returns -EINVAL. -EPERM: other users may write to the
 * file. Other -errno, with the reason. config_close() accepts NULL. *config is NULL after an error.
 */
int config_open(const char *path, const char *name, void (*report)(const char *text), struct config **config,
		struct reason *reason);
void config_close(struct config *config);

/*
 * Number `index` of the lists that a source is to feed: by URL, of [crowdsec], [flowspec] and [fleet]. NULL: there are no more.
 * *stale_s: how long its source may be silent until that source itself says so.
 */
const char *config_source(const struct config *config, size_t index, __s64 *stale_s);

#define CROWDSEC_STALE_POLLS 12 /* an answer may be late, or an error end soon */
#define FLEET_STALE_S 180       /* the broker is noted as heard each minute */

/* Whether such a list is new, or was last imported by hand, so it has no stale_s yet. `follow --once` wants none. */
bool config_must_expect(const struct store_list *list);

/* Whether one of these has the name. */
bool config_has_source(const struct config *config, const char *list);

/* Adds the lists of the configuration of this name that were never fed. They have no rules yet. */
void config_expect(const char *name, struct store_lists *lists);

/* Refuses a list in a FIFO, since a service must not wait for a writer. 0; -EINVAL with the reason. */
int config_check_list_file(const struct config_list *list, struct reason *reason);

#endif
