// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/service_notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void service_notify(const char *format, ...)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[1024];
	va_list arguments;
	int fd;

	if (!path || !strchr("/@", *path) || strlen(path) >= sizeof(address.sun_path))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	strcpy(address.sun_path, path);
	/* "@" stands for the 0 byte of an abstract name. */
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address,
	       offsetof(struct sockaddr_un, sun_path) + strlen(path));
	close(fd);
}
