/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TLS over a connected socket that does not block, by OpenSSL 3. It is loaded on the first use. */
#ifndef XDP_CUCKOO_TLS_H
#define XDP_CUCKOO_TLS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error_reason.h"

struct tls;

/*
 * Prepares a connection to the host `name` (a name or an address), whose certificate must come from one of
 * `certificates`, a text in PEM. 0; -ELIBACC; -EINVAL: there is none in it; -ENOMEM. tls_close() accepts NULL.
 */
int tls_open(int fd, const char *name, const char *certificates, struct tls **tls, struct reason *reason);
void tls_close(struct tls *tls);

/*
 * These return a number of bytes, 0 at the end of the stream, or -errno. After -EAGAIN poll the socket for *events and
 * call again. tls_shake_hands() returns 0 when it is done; -EKEYREJECTED: the certificate is refused.
 */
int tls_shake_hands(struct tls *tls, short *events, struct reason *reason);
ssize_t tls_read(struct tls *tls, void *bytes, size_t count, short *events);
ssize_t tls_write(struct tls *tls, const void *bytes, size_t count, short *events);

#endif
