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

/*
 * Reads the files of password and certificates that the options name. This process and its children keep what it read, for
 * they may have given up the right to read them. If they cannot be read now, what was kept stays. 0; 1: the same, but
 * something else was kept before; -EACCES: others can read the password; other -errno.
 */
int broker_secrets_keep(const struct fleet_options *options, struct reason *reason);

/* The certificates that are kept, in PEM; NULL: there are none, so no TLS. */
const char *broker_certificates(void);

/*
 * Connects to a broker, with the secrets of broker_secrets_keep(). BROKER_WRITE needs the master, which a replica
 * names and no other broker contradicts; BROKER_READ takes any that is in touch with its master, in random order.
 * -EACCES: the password is wrong; -EROFS: there is no master; other -errno: the reason is that of the last broker tried.
 * broker_close() accepts a struct whose connection.fd is -1.
 */
int broker_open(struct broker *broker, const struct fleet_options *options, enum broker_use use,
		struct reason *reason);
void broker_close(struct broker *broker);

/* Opens it anew, after an error that has ended the connection. */
int broker_reopen(struct broker *broker, struct reason *reason);

/* Measures offset_ms, to within half of the time that an answer takes. */
int broker_read_clock(struct broker *broker, struct reason *reason);

/* The broker's time now, in ms. */
__s64 broker_now_ms(const struct broker *broker);

#endif
