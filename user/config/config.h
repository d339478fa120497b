/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A configuration file, xdp-cuckoo.conf(5): which filter, policies and lists there should be. This folder
 * reads and checks the file. `up` makes the host follow it.
 */
#ifndef XDP_CUCKOO_CONFIG_H
#define XDP_CUCKOO_CONFIG_H

#include "base/error_reason.h"
#include "config/fleet_options.h"
#include "config/flowspec_options.h"
#include "config/list_presets.h"
#include "config/option_values.h"
#include "lists/list.h"
#include "store/store.h"

#define CONFIG_DIR "/etc/xdp-cuckoo"
#define CONFIG_INTERFACES_MAX 64
#define CONFIG_TEXTS_MAX (32 + 4 * STORE_LISTS_MAX)
#define CONFIG_URL_BYTES 256

/*
 * A [list NAME] section, as `import --list NAME --replace FILE` takes it. It has either a file or a URL. The texts behind
 * `url` are kept in config->texts; NULL: not given.
 */
struct config_list {
	char *name, *file, *format, *set; /* format, set NULL: not given */
	const char *url, *sha256_url, *pinned_key, *ca;
	const struct list_preset *preset; /* that `url` and `format` are from */
	__s64 every_ms, fetch_ms;         /* between two fetches; the most that one may take */
	__u64 rules_max;                  /* 0: any number */
	unsigned int shrink_max;          /* percent of the list that an import may drop, */
	unsigned int grow_max;            /* and may add */
	struct list_limits limits;        /* of a list by URL */
	enum rule_action action;          /* of rules that name none */
	__s64 timeout_ms;                 /* 0: not given */
	bool is_strict, is_forced;
	unsigned int line; /* where the section starts */
};

struct config {
	struct load_options load;
	bool has_monitor_only; /* the file sets load.is_monitor_only */
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
	char *texts[CONFIG_TEXTS_MAX];    /* that `fleet` and `flowspec` point to */
	size_t texts_count;
};

/*
 * Reads the file at `path`, or if that is NULL, CONFIG_DIR/NAME.conf. Calls `report` for each mistake in the
 * file, with one line that names file and line; then returns -EINVAL. -EPERM: other users may write to the
 * file. Other -errno, with the reason. config_close() accepts NULL. *config is NULL after an error.
 */
int config_open(const char *path, const char *name, void (*report)(const char *text), struct config **config,
		struct reason *reason);
void config_close(struct config *config);

/* Refuses a list in a FIFO, since a service must not wait for a writer. 0; -EINVAL with the reason. */
int config_check_list_file(const struct config_list *list, struct reason *reason);

#endif
