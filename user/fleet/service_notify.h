/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells the service manager the state of this process: sd_notify(3), without its library. */
#ifndef XDP_CUCKOO_SERVICE_NOTIFY_H
#define XDP_CUCKOO_SERVICE_NOTIFY_H

/* Lines like "READY=1". Does nothing if no service manager listens. */
__attribute__((format(printf, 1, 2))) void service_notify(const char *format, ...);

#endif
