// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The C library's functions for time, chance, sockets and files, as a process of the simulation sees them. The program's own
 * versions also serve the libraries that it loads, such as LMDB. Each call is a step. When no process runs, they are
 * the real ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "simulation/network.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define LOCK_LOOK_US (10 * MS)

/* What becomes of the last write of a process does not matter. */
static void ignore(long result)
{
	(void)result;
}

/* ---- time and chance ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	__s64 us;

	if (!current || (clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return syscall(SYS_clock_gettime, clock, time);
	process_step();
	us = clock == CLOCK_REALTIME ? now_us + (WALL_START_MS + current->node->wall_ms) * MS :
				       now_us - current->node->boot_us + 10 * SECOND;
	*time = (struct timespec){ .tv_sec = us / SECOND, .tv_nsec = us % SECOND * 1000 };
	return 0;
}

time_t time(time_t *seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (seconds)
		*seconds = now.tv_sec;
	return now.tv_sec;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	if (!current)
		return syscall(SYS_nanosleep, time, left);
	process_step();
	process_sleep(time->tv_sec * SECOND + time->tv_nsec / 1000);
	return 0;
}

ssize_t getrandom(void *bytes, size_t count, unsigned int flags)
{
	if (!current)
		return syscall(SYS_getrandom, bytes, count, flags);
	process_step();
	for (size_t i = 0; i < count; i++)
		((unsigned char *)bytes)[i] = chance(CHANCE_TOOL) >> 32;
	return count;
}

/* Each process has its own, so that the store does not take two of them for one: store/open_once.c. */
pid_t getpid(void)
{
	return current ? current->pid : syscall(SYS_getpid);
}

int gethostname(char *name, size_t size)
{
	snprintf(name, size, "%s", current ? current->node->name : "world");
	return 0;
}

int kill(pid_t pid, int number)
{
	if (!current)
		return syscall(SYS_kill, pid, number);
	errno = ESRCH;
	return process_with(pid) && !number ? 0 : -1;
}

/* ---- sockets ---- */

int socket(int family, int type, int protocol)
{
	if (!current || family == AF_NETLINK)
		return syscall(SYS_socket, family, type, protocol);
	process_step();
	return file_open(FILE_SOCKET, current);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	return file_of(fd) ? 0 : syscall(SYS_setsockopt, fd, level, name, value, size);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	struct file *file = file_of(fd);

	if (!file)
		return syscall(SYS_getsockopt, fd, level, name, value, size);
	*(int *)value = file->error;
	return 0;
}

/* 10.0.0.1 is the first server. */
int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)address;
	struct file *file = file_of(fd);
	unsigned int server;

	if (!file)
		return syscall(SYS_connect, fd, address, size);
	process_step();
	server = (ntohl(to->sin_addr.s_addr) & 0xff) - 1;
	if (server >= SERVERS_MAX)
		missing("a server 10.0.0.%u", server + 1);
	link_connect(file, server);
	errno = EINPROGRESS;
	return -1;
}

int getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	const struct file *file = file_of(fd);
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(6379) };

	if (!file)
		return syscall(SYS_getpeername, fd, address, size);
	if (!file->link) {
		errno = ENOTCONN;
		return -1;
	}
	peer.sin_addr.s_addr = htonl(0x0a000001 + link_server_number(file->link));
	memcpy(address, &peer, sizeof(peer));
	*size = sizeof(peer);
	return 0;
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	struct sockaddr_in *address = calloc(1, sizeof(*address));
	unsigned int number = 0;

	(void)port, (void)hints;
	*found = calloc(1, sizeof(**found));
	if (sscanf(host, "10.0.0.%u", &number) != 1)
		missing("the address of '%s'", host);
	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000000 + number) };
	**found = (struct addrinfo){ .ai_family = AF_INET,
				     .ai_socktype = SOCK_STREAM,
				     .ai_addr = (struct sockaddr *)address,
				     .ai_addrlen = sizeof(*address) };
	return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
	free(found->ai_addr);
	free(found);
}

static ssize_t take_bytes(struct file *file, void *bytes, size_t count, bool waits)
{
	process_step();
	for (;;) {
		if (file->in.used > file->in.taken)
			return bytes_take(&file->in, bytes, count);
		if (file->error) {
			errno = file->error;
			return -1;
		}
		if (file->is_ended || (file->kind == FILE_SOCKET && (file_events(file) & POLLHUP)))
			return 0;
		if (!waits) {
			errno = EAGAIN;
			return -1;
		}
		process_wait(-1);
	}
}

/* `kills`: a write to a connection that the other end has reset raises SIGPIPE. */
static ssize_t give_bytes(struct file *file, const void *bytes, size_t count, bool kills)
{
	process_step();
	if (file->kind == FILE_PAIR && file->pair) {
		bytes_add(&file->pair->in, bytes, count);
		process_wake(file->pair->owner);
		return count;
	}
	if (file->kind == FILE_SOCKET && !file->error && (file_events(file) & POLLOUT) &&
	    !(file_events(file) & POLLHUP)) {
		if (count > 1 && chance_one_in(CHANCE_NETWORK, 16))
			count = 1 + chance_below(CHANCE_NETWORK, count);
		link_send(file->link, bytes, count);
		return count;
	}
	if (kills) {
		must(false, "%s/%s was killed by SIGPIPE", current->node->name, current->what);
		process_die();
	}
	errno = file->error == ECONNREFUSED ? ENOTCONN : EPIPE;
	return -1;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
	struct file *file = file_of(fd);

	return file ? give_bytes(file, bytes, count, !(flags & MSG_NOSIGNAL)) :
		      syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}

ssize_t recv(int fd, void *bytes, size_t count, int flags)
{
	struct file *file = file_of(fd);

	return file ? take_bytes(file, bytes, count, file->kind == FILE_PAIR && !(flags & MSG_DONTWAIT)) :
		      syscall(SYS_recvfrom, fd, bytes, count, flags, NULL, NULL);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	const __s64 until_us = timeout_ms < 0 ? -1 : now_us + timeout_ms * MS;
	bool is_real = false;

	for (nfds_t i = 0; i < count; i++)
		is_real |= fds[i].fd >= 0 && !file_of(fds[i].fd);
	if (!current || is_real)
		return syscall(SYS_poll, fds, count, timeout_ms);
	process_step();
	for (;;) {
		int ready = 0;

		for (nfds_t i = 0; i < count; i++) {
			const struct file *file = file_of(fds[i].fd);

			fds[i].revents = file ? file_events(file) & (fds[i].events | POLLERR | POLLHUP) : 0;
			ready += fds[i].revents != 0;
		}
		if (ready || (until_us >= 0 && now_us >= until_us))
			return ready;
		process_wait(until_us);
	}
}

/* ---- files ---- */

static int note_fd(int fd)
{
	if (fd >= 0 && current) {
		if (current->fds_count == PROCESS_FDS)
			missing("more than %d open files of %s", PROCESS_FDS, current->what);
		current->fds[current->fds_count++] = fd;
	}
	return fd;
}

/* A node has a boot id that changes when it starts. */
static int open_boot_id(void)
{
	const int fd = memfd_create("boot_id", MFD_CLOEXEC);

	if (dprintf(fd, "%08x-0000-4000-8000-%012x\n", current->node->boot, current->node->number) < 0)
		abort();
	lseek(fd, 0, SEEK_SET);
	return note_fd(fd);
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	if (current)
		process_step();
	if (current && !strcmp(path, BOOT_ID_PATH))
		return open_boot_id();
	return note_fd(syscall(SYS_openat, dir, path, flags, mode));
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_at(dir, path, flags, mode);
}

int close(int fd)
{
	struct file *file = file_of(fd);

	if (current)
		process_step();
	if (file) {
		file_close(file);
		return 0;
	}
	for (size_t i = 0; current && i < current->fds_count; i++)
		if (current->fds[i] == fd)
			current->fds[i] = current->fds[--current->fds_count];
	return syscall(SYS_close, fd);
}

/* Whether a write to the file fails. The last step of a process may write a part. */
static bool is_full(void)
{
	if (!current)
		return false;
	errno = ENOSPC;
	return current->node->is_disk_full;
}

static size_t part_of(size_t count)
{
	return count > 1 ? chance_below(CHANCE_TOOL, count) : 0;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
	struct file *file = file_of(fd);

	if (file)
		return give_bytes(file, bytes, count, true);
	if (current && fd > STDERR_FILENO && process_is_last_step()) {
		ignore(syscall(SYS_write, fd, bytes, part_of(count)));
		process_die();
	}
	return fd > STDERR_FILENO && is_full() ? -1 : syscall(SYS_write, fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	if (current && process_is_last_step()) {
		ignore(syscall(SYS_pwrite64, fd, bytes, part_of(count), offset));
		process_die();
	}
	return is_full() ? -1 : syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	process_step();
	return is_full() ? -1 : syscall(SYS_writev, fd, parts, count);
}

ssize_t read(int fd, void *bytes, size_t count)
{
	struct file *file = file_of(fd);

	return file ? take_bytes(file, bytes, count, false) : syscall(SYS_read, fd, bytes, count);
}

int fsync(int fd)
{
	(void)fd;
	process_step();
	return 0;
}

int fdatasync(int fd)
{
	return fsync(fd);
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
	process_step();
	return is_full() ? ENOSPC : syscall(SYS_fallocate, fd, 0, offset, length) ? errno : 0;
}

/* A process of the same node may have the lock, and must run to give it back. */
int flock(int fd, int operation)
{
	if (!current)
		return syscall(SYS_flock, fd, operation);
	process_step();
	while (syscall(SYS_flock, fd, operation | LOCK_NB)) {
		if (errno != EWOULDBLOCK || operation & LOCK_NB)
			return -1;
		process_sleep(LOCK_LOOK_US);
	}
	return 0;
}

int rename(const char *from, const char *to)
{
	if (current)
		process_step();
	return syscall(SYS_rename, from, to);
}
