// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Opens maps and programs by id. The kernel allows that only with CAP_SYS_ADMIN. For other processes a
 * filter's maps and programs are pinned in a BPF file system before it is attached, as
 * PINS/NET/CONFIG/{map,prog}_ID. NET is the number of the network namespace, CONFIG the id of the config
 * map. A pin counts only if the kernel says that its object has the wanted id.
 *
 * A pin keeps a map in memory even when no interface runs the filter, so every search for filters
 * removes such pins. The lock of PINS/NET protects new pins from this: it is shared while a process
 * attaches what it has pinned.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/magic.h>

#include "kernel/internal.h"
#include "base/memory.h"
#include "base/privileges.h"
#include "base/waiting.h"

#define PIN_NAME_BYTES 32
#define PIN_PATH_BYTES 96

static const char *pins = KERNEL_PINS_DEFAULT;

void kernel_use_pins(const char *dir)
{
	pins = dir;
}

/* ---- directories ---- */

/* Opens a directory of a BPF file system that nobody else may read or write. A descriptor or -errno. */
static int open_dir_at(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), error = 0;
	struct statfs system;
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || fstatfs(fd, &system))
		error = -errno;
	else if (system.f_type != BPF_FS_MAGIC)
		error = -EMEDIUMTYPE;
	else if (status.st_uid != geteuid() || status.st_mode & (S_IRWXG | S_IRWXO))
		error = -EPERM;
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Removes the new directory again if it is not in a BPF file system. */
static int make_dir_at(int parent_fd, const char *name)
{
	const bool is_new = !mkdirat(parent_fd, name, 0700);
	int fd;

	if (!is_new && errno != EEXIST)
		return -errno;
	fd = open_dir_at(parent_fd, name);
	if (fd < 0 && is_new)
		unlinkat(parent_fd, name, AT_REMOVEDIR);
	return fd;
}

/* Opens the directory of this network namespace. A descriptor or -errno. */
static int open_net_dir(bool makes)
{
	int (*const open_at)(int parent_fd, const char *name) = makes ? make_dir_at : open_dir_at;
	char name[PIN_NAME_BYTES];
	struct stat status;
	FD_CLOSED int all = -1;

	if (stat("/proc/thread-self/ns/net", &status))
		return -errno;
	snprintf(name, sizeof(name), "net_%llu", (unsigned long long)status.st_ino);
	all = open_at(AT_FDCWD, pins);
	return all < 0 ? all : open_at(all, name);
}

/* Takes the descriptor of a directory, or -errno: then, and without memory, NULL. */
static DIR *list_dir(int fd)
{
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

/* ---- from an id to a descriptor ---- */

static const char *const object_names[] = { [KERNEL_OBJECT_MAP] = "map", [KERNEL_OBJECT_PROGRAM] = "prog" };

/* Asks the kernel for kind and id, because the name of a pin proves nothing. */
static bool is_object(int fd, enum kernel_kind kind, __u32 id)
{
	char link[PIN_PATH_BYTES], wanted[PIN_PATH_BYTES], target[PIN_PATH_BYTES] = "";
	struct bpf_prog_info program = {};
	struct bpf_map_info map = {};
	const bool is_map = kind == KERNEL_OBJECT_MAP;
	__u32 length = is_map ? sizeof(map) : sizeof(program);

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	snprintf(wanted, sizeof(wanted), "anon_inode:bpf-%s", object_names[kind]);
	if (readlink(link, target, sizeof(target) - 1) < 0 || strcmp(target, wanted) ||
	    bpf_obj_get_info_by_fd(fd, is_map ? (void *)&map : &program, &length))
		return false;
	return (is_map ? map.id : program.id) == id;
}

bool kernel_opens_ids(void)
{
	return privileges_has(CAP_SYS_ADMIN);
}

int kernel_open_id(enum kernel_kind kind, __u32 id)
{
	int fd = kind == KERNEL_OBJECT_MAP ? bpf_map_get_fd_by_id(id) : bpf_prog_get_fd_by_id(id), net;
	const struct dirent *entry;
	char path[PIN_PATH_BYTES];
	DIR *directory;

	if (fd != -EPERM || kernel_opens_ids())
		return fd;
	net = open_net_dir(false);
	if (net < 0)
		return net == -ENOENT ? net : -EPERM;
	directory = list_dir(net);
	if (!directory)
		return -ENOMEM;
	while (fd < 0 && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d/%.31s/%s_%u", net, entry->d_name, object_names[kind],
			 id);
		fd = bpf_obj_get(path);
		if (fd >= 0 && !is_object(fd, kind, id)) {
			close(fd);
			fd = -ENOENT;
		}
	}
	closedir(directory);
	return fd < 0 ? -ENOENT : fd;
}

/* ---- pinning ---- */

static int pin(int fd, int filter_dir, enum kernel_kind kind, __u32 id)
{
	char path[PIN_PATH_BYTES];
	int error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s_%u", filter_dir, object_names[kind], id);
	error = bpf_obj_pin(fd, path);
	return error == -EEXIST ? 0 : error;
}

int kernel_pins_refuse(struct reason *reason, int error)
{
	if (error == -EPERM || error == -EMEDIUMTYPE || error == -ENOENT || error == -EACCES || error == -ELOOP ||
	    error == -ENOTDIR)
		return reason_set(reason, -EPERM,
				  "%s: not a directory of this user's in a BPF file system, with mode 0700: "
				  "without CAP_SYS_ADMIN filters are found by pins there; name one with --pins, or "
				  "run it as root",
				  pins);
	return kernel_refuse(reason, error, "cannot pin the filter in ", pins);
}

int kernel_unseen_reason(const char *interface, struct reason *reason)
{
	if (!interface)
		return reason_set(reason, -EPERM,
				  "cannot see what runs: a filter is pinned in %s, and only CAP_NET_ADMIN shows whether it "
				  "runs at tc; run this with CAP_NET_ADMIN",
				  pins);
	return reason_set(reason, -EPERM,
			  "cannot see what runs: '%s' runs a program, maybe this filter, that only CAP_SYS_ADMIN may "
			  "look at; run this with CAP_SYS_ADMIN, or with the --pins DIR that the filter was loaded with (now "
			  "%s)",
			  interface, pins);
}

static void describe_unpinning(int fd, struct reason *text)
{
	(void)fd;
	reason_set(text, 0, "waiting for another xdp-cuckoo that removes pins in %s", pins);
}

int kernel_pin(const struct kernel_filter *filter, const struct kernel_filter *predecessor, int *lock,
	       struct reason *reason)
{
	const bool is_needed = !kernel_opens_ids();
	struct bpf_prog_info info;
	char name[PIN_NAME_BYTES];
	FD_CLOSED int filter_dir = -1;
	int net = open_net_dir(is_needed), error;

	*lock = -1;
	/* If a process with fewer privileges pinned the predecessor, it must be able to find this filter, too. */
	snprintf(name, sizeof(name), "%u", predecessor->map[KERNEL_CONFIG].id);
	if (!is_needed && (net < 0 || faccessat(net, name, F_OK, 0))) {
		if (net >= 0)
			close(net);
		return 0;
	}
	if (net < 0)
		return kernel_pins_refuse(reason, net);
	snprintf(name, sizeof(name), "%u", filter->map[KERNEL_CONFIG].id);
	error = waiting_lock(net, LOCK_SH, describe_unpinning);
	filter_dir = error ? error : make_dir_at(net, name);
	error = filter_dir < 0 ? filter_dir : 0;
	for (enum kernel_map_name map = 0; map < KERNEL_MAPS && !error; map++)
		error = pin(filter->map[map].fd, filter_dir, KERNEL_OBJECT_MAP, filter->map[map].id);
	for (enum kernel_program which = 0; which < KERNEL_PROGRAMS && !error; which++) {
		if (!filter->program[which])
			continue;
		error = kernel_program_info(kernel_program(filter, which), &info);
		if (!error)
			error = pin(kernel_program(filter, which), filter_dir, KERNEL_OBJECT_PROGRAM, info.id);
	}
	*lock = net;
	return error ? kernel_pins_refuse(reason, error) : 0;
}

void kernel_pin_finish(int lock)
{
	if (lock < 0)
		return;
	close(lock);
	kernel_unpin_unused();
}

/* ---- taking away ---- */

/* Removes the pins of programs that no interface runs. If none runs, removes the pins of maps, too. */
static void unpin_filter(int net, const char *name, const struct interface *interfaces, size_t count)
{
	const int fd = open_dir_at(net, name);
	DIR *filter = list_dir(fd);
	const struct dirent *entry;
	bool runs = false;

	if (!filter)
		return;
	while ((entry = readdir(filter))) {
		bool is_running = false;
		__u32 id;

		if (strncmp(entry->d_name, "prog_", strlen("prog_")))
			continue;
		id = strtoul(entry->d_name + strlen("prog_"), NULL, 10);
		for (size_t i = 0; i < count; i++)
			for (int mode = 0; mode < INTERFACE_MODES; mode++)
				is_running |= interfaces[i].prog_id[mode] == id;
		if (!is_running)
			unlinkat(fd, entry->d_name, 0);
		runs |= is_running;
	}
	if (!runs) {
		rewinddir(filter);
		while ((entry = readdir(filter)))
			if (!strncmp(entry->d_name, "map_", strlen("map_")))
				unlinkat(fd, entry->d_name, 0);
		unlinkat(net, name, AT_REMOVEDIR);
	}
	closedir(filter);
}

bool kernel_has_pins(void)
{
	DIR *net = list_dir(open_net_dir(false));
	const struct dirent *entry;
	bool has_any = false;

	while (net && !has_any && (entry = readdir(net)))
		has_any = entry->d_name[0] != '.';
	if (net)
		closedir(net);
	return has_any;
}

/*
 * Does nothing while another process attaches what it has pinned; the next search removes the pins. Programs that this
 * process cannot see would look unused.
 */
void kernel_unpin_unused(void)
{
	const int fd = kernel_sees_tc() ? open_net_dir(false) : -EPERM;
	DIR *net = list_dir(fd);
	FREED struct interface *interfaces = NULL;
	const struct dirent *entry;
	size_t count;

	if (net && !flock(fd, LOCK_EX | LOCK_NB) && !interfaces_list(&interfaces, &count))
		while ((entry = readdir(net)))
			if (entry->d_name[0] != '.')
				unpin_filter(fd, entry->d_name, interfaces, count);
	if (net)
		closedir(net);
}
