/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds a broker that serves: tries those of the configuration, logs in, and asks for its role. */
#ifndef XDP_CUCKOO_BROKER_H
#define XDP_CUCKOO_BROKER_H

#include "fleet/connection.h"

enum broker_use { BROKER_READ, BROKER_WRITE };

struct broker {
	struct connection connection;
	bool is_master;
	__s64 offset_ms;              /* the broker's wall clock, minus fleet_now_ms() */
	struct fleet_options options; /* of broker_open() */
	enum broker_use use;
};

/* The contents of the files that the options name. */
struct broker_secrets {
	char *password;     /* NULL: no authentication */
	char *certificates; /* PEM; NULL: no TLS */
};

/* 0; -EACCES: others can read the password; other -errno. broker_secrets_forget() accepts a zeroed struct. */
int broker_secrets_read(struct broker_secrets *secrets, const struct fleet_options *options, struct reason *reason);
void broker_secrets_forget(struct broker_secrets *secrets);
bool broker_secrets_equal(const struct broker_secrets *a, const struct broker_secrets *b);

/*
 * For a process that gives up the right to read the files: reads them, and keeps what it read. If it cannot read them
 * later, broker_open() takes what was kept. Errors as broker_secrets_read(). broker_secrets_kept(): what was read last.
 */
int broker_secrets_keep(const struct fleet_options *options, struct reason *reason);
const struct broker_secrets *broker_secrets_kept(void);

/*
 * Connects to a broker. `secrets` NULL: those of broker_secrets_keep(). BROKER_WRITE needs the master, which a replica
 * names and no other broker contradicts; BROKER_READ takes any that is in touch with its master, in random order.
 * -EACCES: the password is wrong; -EROFS: there is no master; other -errno: the reason is that of the last broker tried.
 * broker_close() accepts a struct whose connection.fd is -1.
 */
int broker_open(struct broker *broker, const struct fleet_options *options, const struct broker_secrets *secrets,
		enum broker_use use, int timeout_ms, struct reason *reason);
void broker_close(struct broker *broker);

/* Opens it anew, after an error that has ended the connection. */
int broker_reopen(struct broker *broker, struct reason *reason);

/* Measures offset_ms, to within half of the time that an answer takes. */
int broker_read_clock(struct broker *broker, struct reason *reason);

/* The broker's time now, in ms. */
__s64 broker_now_ms(const struct broker *broker);

#endif
