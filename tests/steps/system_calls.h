/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf(2) and netlink in plain memory, below libbpf and libmnl, so that the whole of kernel/
 * runs without root: these functions come before those of libc. A map, a program, a BTF or a
 * link is a file in memory, so that descriptors and mmap() are real ones; a pin is a file with
 * the object's number. Interfaces are a list. Programs do not run. Each call can be made to
 * fail, and something can happen before it. world_uses() tells what is still open.
 */
#ifndef XDP_CUCKOO_STEPS_SYSTEM_CALLS_H
#define XDP_CUCKOO_STEPS_SYSTEM_CALLS_H

#include <dirent.h>
#include <dlfcn.h>
#include <net/if.h>
#include <libmnl/libmnl.h>
#include <linux/capability.h>
#include <linux/genetlink.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

#include "kernel/internal.h"
#include "unit/test.h"

#define WORLD_CPUS 3
#define WORLD_OBJECTS 1024
#define WORLD_MAPS 24 /* of a program */
#define WORLD_HOOK 4  /* programs at a hook of tc */
#define WORLD_FD 700  /* the test's own descriptors */
#define WORLD_BOOT_S 1000
#define WORLD_GUARD 4096 /* bytes behind each block of memory */
#define WORLD_TICK 5000
#define WORLD_FAMILY 17 /* of netdev, in generic netlink */

enum world_kind { WORLD_MAP, WORLD_PROGRAM, WORLD_LINK, WORLD_BTF };

struct world_object {
	enum world_kind kind;
	int fd;
	__u64 inode;
	bool is_gone; /* no number opens it; descriptors do */
	struct bpf_map_info map;
	struct bpf_prog_info program;
	struct bpf_link_info link;
	__u32 maps[WORLD_MAPS], flags, bytes;
};

struct world_interface {
	const char *name, *other_name, *kind, *bus;
	unsigned short type;
	__u32 mtu, master, link;
	bool is_link_elsewhere, is_absent;
	__u8 peer[16], peer_bytes;
	struct rtnl_link_stats64 counts;
	__u32 xdp[INTERFACE_XDP_MODES];
	__u32 held_by; /* the BPF link that holds its XDP program; 0: none */
	int driver; /* -errno for XDP there; 1: only programs for large frames; 2: none of these */
	const char *why; /* what it says then */
	__u64 features;
	bool is_covered; /* an interface above runs a program */
	bool has_clsact;
	struct {
		__u32 program, handle, priority; /* the last two without tcx */
	} hook[2][WORLD_HOOK];
};

enum { LO = 1, ETH0, ETH1, WG, GRE, WORLD_INTERFACES };

static struct {
	struct world_object object[WORLD_OBJECTS];
	__u32 objects;
	struct world_interface interface[WORLD_INTERFACES]; /* by index */
	bool has_tcx, has_netdev, has_conntrack, is_bpffs;
	int lacks; /* a helper that the kernel lacks */
	bool lacks_other;
	__u64 has; /* capabilities, as bits */
	const char *release;
	__s64 now_ms;
	int cpus;
	/* The answers to the last request, in one datagram. */
	char answer[32768] __attribute__((aligned(8)));
	struct nlmsghdr *last;
	bool answered;
	bool is_change;                  /* then they come for sure */
	unsigned int dumps, interrupted; /* so many of the next ones */
	/* Calls that may fail. */
	unsigned long until, calls;
	int error; /* -errno of the call `until`, 1 for all from there on; 0: it calls `race` */
	bool fails_on;
	void (*race)(void);
	void (*paused)(void);
	unsigned int graces, pauses;
	__s64 paused_ms;
	__u32 test_runs;
	int (*run)(union bpf_attr *attr); /* of BPF_PROG_TEST_RUN */
	long blocks, mappings;
} world;

#pragma GCC diagnostic ignored "-Wmissing-prototypes"         /* the linker calls them */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* rows of tables */

/* Whether this call fails: then errno is set. */
static inline bool world_fails(void)
{
	static char answer[sizeof(world.answer)];
	void (*const race)(void) = world.race;
	struct nlmsghdr *const last = world.last;
	const bool answered = world.answered;

	world.calls++;
	if (!world.until ||
	    (world.calls != world.until && !(world.fails_on && world.calls > world.until)))
		return false;
	if (!race) {
		errno = -world.error;
		return true;
	}
	/* It may ask itself, before the answers to the code under test are read. */
	world.race = NULL;
	memcpy(answer, world.answer, sizeof(answer));
	race();
	memcpy(world.answer, answer, sizeof(answer));
	world.last = last;
	world.answered = answered;
	world.race = race;
	return false;
}

/* ---- objects ---- */

static struct world_object *world_find(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return NULL;
	for (__u32 i = 0; i < world.objects; i++)
		if (world.object[i].inode == status.st_ino)
			return &world.object[i];
	return NULL;
}

static inline __u32 world_id(const struct world_object *object)
{
	return object ? object - world.object + 1 : 0;
}

static int world_open(enum world_kind kind, __u32 id)
{
	if (!id || id > world.objects || world.object[id - 1].kind != kind ||
	    world.object[id - 1].is_gone)
		return -ENOENT;
	return fcntl(world.object[id - 1].fd, F_DUPFD_CLOEXEC, 0);
}

static struct world_object *world_add(enum world_kind kind, size_t bytes)
{
	struct world_object *object = &world.object[world.objects];
	const int fd = memfd_create("world", MFD_CLOEXEC);
	struct stat status;

	assert_true(world.objects < WORLD_OBJECTS && fd >= 0 && !ftruncate(fd, bytes) &&
		    !fstat(fd, &status));
	*object = (struct world_object){ .kind = kind,
					 .fd = fcntl(fd, F_DUPFD_CLOEXEC, WORLD_FD),
					 .inode = status.st_ino,
					 .bytes = bytes };
	assert_true(object->fd >= 0 && !close(fd));
	world.objects++;
	return object;
}

static int world_new(enum world_kind kind, size_t bytes)
{
	world_add(kind, bytes);
	return world_open(kind, world.objects);
}

static __u32 world_each(const struct bpf_map_info *map)
{
	return (map->value_size + 7) & ~7U;
}

static int world_map_create(const union bpf_attr *attr)
{
	struct bpf_map_info map = { .type = attr->map_type,
				    .id = world.objects + 1,
				    .key_size = attr->key_size,
				    .value_size = attr->value_size,
				    .max_entries = attr->max_entries,
				    .map_flags = attr->map_flags,
				    .btf_id = world_id(world_find(attr->btf_fd)),
				    .btf_key_type_id = attr->btf_key_type_id,
				    .btf_value_type_id = attr->btf_value_type_id };
	const int fd = world_new(WORLD_MAP,
				 map.type == BPF_MAP_TYPE_RINGBUF ?
					 2 * (size_t)map.max_entries + 2 * sysconf(_SC_PAGESIZE) :
					 (size_t)map.max_entries * world_each(&map) * WORLD_CPUS);

	memcpy(map.name, attr->map_name, sizeof(map.name));
	world.object[world.objects - 1].map = map;
	return fd;
}

static int world_element(const union bpf_attr *attr, bool is_update)
{
	const struct world_object *map = world_find(attr->map_fd);
	const bool is_per_cpu = map && map->map.type == BPF_MAP_TYPE_PERCPU_ARRAY;
	const __u32 key = map ? *(__u32 *)(unsigned long)attr->key : 0;
	void *value = (void *)(unsigned long)attr->value;
	size_t bytes = map ? is_per_cpu ? WORLD_CPUS * (size_t)world_each(&map->map) :
					  map->map.value_size :
			     0;

	if (!map || key >= map->map.max_entries)
		return map ? -ENOENT : -EBADF;
	return (is_update ? pwrite(map->fd, value, bytes,
				   key * (is_per_cpu ? bytes : world_each(&map->map))) :
			    pread(map->fd, value, bytes,
				  key * (is_per_cpu ? bytes : world_each(&map->map)))) ==
			       (ssize_t)bytes ?
		       0 :
		       -EFAULT;
}

static int world_program_load(union bpf_attr *attr)
{
	const struct bpf_insn *insn = (void *)(unsigned long)attr->insns;
	const int lacked = insn->code == (BPF_JMP | BPF_CALL) && insn->imm &&
			   insn->imm == world.lacks;
	struct world_object *program;
	__u64 hash = attr->insn_cnt;
	int fd;

	if (lacked) {
		snprintf((char *)(unsigned long)attr->log_buf, attr->log_buf ? attr->log_size : 0,
			 "invalid func unknown#1");
		return -EINVAL;
	}
	fd = world_new(WORLD_PROGRAM, 0);
	program = &world.object[world.objects - 1];
	program->flags = attr->prog_flags;
	program->program = (struct bpf_prog_info){ .type = attr->prog_type,
						   .id = world.objects,
						   .load_time = WORLD_BOOT_S * 1000000000ULL };
	memcpy(program->program.name, attr->prog_name, sizeof(attr->prog_name));
	for (__u32 i = 0; i < attr->insn_cnt; i++) {
		const bool is_map = insn[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
				    (insn[i].src_reg == BPF_PSEUDO_MAP_FD ||
				     insn[i].src_reg == BPF_PSEUDO_MAP_VALUE);
		const __u32 id = is_map ? world_id(world_find(insn[i].imm)) : 0;
		__u32 k = 0;

		hash = (hash ^ insn[i].code ^ (is_map ? 0 : (__u32)insn[i].imm)) * 0x100000001b3;
		while (id && k < program->program.nr_map_ids && program->maps[k] != id)
			k++;
		if (id && k == program->program.nr_map_ids)
			program->maps[program->program.nr_map_ids++] = id;
	}
	memcpy(program->program.tag, &hash, sizeof(hash));
	return fd;
}

static int world_info(union bpf_attr *attr)
{
	const struct world_object *object = world_find(attr->info.bpf_fd);
	void *info = (void *)(unsigned long)attr->info.info;

	if (!object)
		return -EBADF;
	if (object->kind == WORLD_MAP) {
		memcpy(info, &object->map, MIN(attr->info.info_len, sizeof(object->map)));
	} else if (object->kind == WORLD_LINK) {
		memcpy(info, &object->link, MIN(attr->info.info_len, sizeof(object->link)));
	} else if (object->kind == WORLD_PROGRAM) {
		const struct bpf_prog_info asked = *(struct bpf_prog_info *)info;
		struct bpf_prog_info *told = info;

		memcpy(info, &object->program, MIN(attr->info.info_len, sizeof(object->program)));
		if (asked.map_ids)
			memcpy((void *)(unsigned long)asked.map_ids, object->maps,
			       MIN(asked.nr_map_ids, told->nr_map_ids) * sizeof(__u32));
		told->map_ids = asked.map_ids;
	} else {
		struct bpf_btf_info *told = info;

		if (told->btf_size && pread(object->fd, (void *)(unsigned long)told->btf,
					    MIN(told->btf_size, object->bytes), 0) < 0)
			return -EFAULT;
		told->btf_size = object->bytes;
		told->id = world_id(object);
	}
	return 0;
}

static int world_next_id(union bpf_attr *attr, enum world_kind kind)
{
	for (__u32 id = attr->start_id + 1; id <= world.objects; id++)
		if (world.object[id - 1].kind == kind) {
			attr->next_id = id;
			return 0;
		}
	return -ENOENT;
}

/* ---- programs on interfaces ---- */

static struct world_interface *world_interface(__u32 index)
{
	return index && index < WORLD_INTERFACES && !world.interface[index].is_absent ?
		       &world.interface[index] :
		       NULL;
}

static int world_link_change(const union bpf_attr *attr, bool is_update)
{
	struct world_object *link =
		world_find(is_update ? attr->link_update.link_fd : attr->link_detach.link_fd);
	struct world_interface *interface = link ? world_interface(link->link.xdp.ifindex) : NULL;
	__u32 *runs = interface ? &interface->xdp[INTERFACE_NATIVE] : NULL;

	if (!runs)
		return -ENOLINK;
	if (is_update && attr->link_update.flags & BPF_F_REPLACE &&
	    *runs != world_id(world_find(attr->link_update.old_prog_fd)))
		return -EPERM;
	*runs = link->link.prog_id =
		is_update ? world_id(world_find(attr->link_update.new_prog_fd)) : 0;
	if (!is_update)
		interface->held_by = 0;
	return 0;
}

/* At a hook of tc there is no hole. `at` moves to the free place at the front; or is filled. */
static void world_hook_insert(struct world_interface *interface, int side, __u32 program)
{
	memmove(&interface->hook[side][1], &interface->hook[side][0],
		(WORLD_HOOK - 1) * sizeof(interface->hook[0][0]));
	interface->hook[side][0].program = program;
}

static void world_hook_remove(struct world_interface *interface, int side, int at)
{
	memmove(&interface->hook[side][at], &interface->hook[side][at + 1],
		(WORLD_HOOK - at - 1) * sizeof(interface->hook[0][0]));
	memset(&interface->hook[side][WORLD_HOOK - 1], 0, sizeof(interface->hook[0][0]));
}

#define WORLD_TCX_INGRESS 46

static int world_tcx(union bpf_attr *attr, enum bpf_cmd command)
{
	const __u32 program = world_id(world_find(attr->attach_bpf_fd));
	const int side = (int)attr->attach_type - WORLD_TCX_INGRESS;
	struct world_interface *interface = world_interface(attr->target_fd);
	int at = 0;

	if (command == BPF_PROG_QUERY) {
		const int hook = (int)attr->query.attach_type - WORLD_TCX_INGRESS;
		__u32 *ids = (void *)(unsigned long)attr->query.prog_ids;

		interface = world_interface(attr->query.target_fd);
		if (!world.has_tcx || !(world.has >> CAP_NET_ADMIN & 1))
			return world.has >> CAP_NET_ADMIN & 1 ? -EINVAL : -EPERM;
		if (!interface)
			return -ENODEV;
		for (; at < WORLD_HOOK && interface->hook[hook][at].program; at++)
			ids[at] = interface->hook[hook][at].program;
		attr->query.prog_cnt = at;
		return at ? 0 : -ENOENT;
	}
	if (!world.has_tcx || !interface)
		return -EINVAL;
	if (command == BPF_PROG_ATTACH && !(attr->attach_flags & BPF_F_REPLACE)) {
		if (interface->hook[side][WORLD_HOOK - 1].program ||
		    !(attr->attach_flags & 1U << 3))
			return -ERANGE;
		world_hook_insert(interface, side, program);
		return 0;
	}
	while (at < WORLD_HOOK &&
	       interface->hook[side][at].program !=
		       (command == BPF_PROG_ATTACH ? world_id(world_find(attr->replace_bpf_fd)) :
						     program))
		at++;
	if (at == WORLD_HOOK)
		return -ENOENT;
	if (command == BPF_PROG_ATTACH)
		interface->hook[side][at].program = program;
	else
		world_hook_remove(interface, side, at);
	return 0;
}

/* ---- bpf(2) ---- */

static int world_pin(const union bpf_attr *attr, bool is_new)
{
	const int fd = open((char *)(unsigned long)attr->pathname,
			    is_new ? O_CREAT | O_EXCL | O_WRONLY : O_RDONLY, 0600);
	__u32 word[2] = { is_new ? world_id(world_find(attr->bpf_fd)) : 0 };
	const int error = fd < 0 ? -errno : 0;
	bool is_done;

	if (error)
		return error;
	word[1] = word[0] ? world.object[word[0] - 1].kind : 0;
	is_done = is_new ? write(fd, word, sizeof(word)) == sizeof(word) :
			   read(fd, word, sizeof(word)) == sizeof(word);
	close(fd);
	return !is_done ? -EIO : is_new ? 0 : world_open(word[1], word[0]);
}

static int world_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	const bool has_ids = world.has >> CAP_SYS_ADMIN & 1;

	switch (command) {
	case BPF_MAP_CREATE:
		return world_map_create(attr);
	case BPF_MAP_LOOKUP_ELEM:
	case BPF_MAP_UPDATE_ELEM:
		return world_element(attr, command == BPF_MAP_UPDATE_ELEM);
	case BPF_PROG_LOAD:
		return world_program_load(attr);
	case BPF_PROG_BIND_MAP:
	case BPF_MAP_FREEZE:
		return 0;
	case BPF_BTF_LOAD: {
		const int fd = world_new(WORLD_BTF, attr->btf_size);

		return pwrite(fd, (void *)(unsigned long)attr->btf, attr->btf_size, 0) ==
				       attr->btf_size ?
			       fd :
			       -EFAULT;
	}
	case BPF_OBJ_GET_INFO_BY_FD:
		return world_info(attr);
	case BPF_MAP_GET_FD_BY_ID:
		return has_ids ? world_open(WORLD_MAP, attr->map_id) : -EPERM;
	case BPF_PROG_GET_FD_BY_ID:
		return has_ids ? world_open(WORLD_PROGRAM, attr->prog_id) : -EPERM;
	case BPF_LINK_GET_FD_BY_ID:
		return has_ids ? world_open(WORLD_LINK, attr->link_id) : -EPERM;
	case BPF_BTF_GET_FD_BY_ID:
		return has_ids ? world_open(WORLD_BTF, attr->btf_id) : -EPERM;
	case BPF_PROG_GET_NEXT_ID:
		return has_ids ? world_next_id(attr, WORLD_PROGRAM) : -EPERM;
	case BPF_LINK_GET_NEXT_ID:
		return has_ids ? world_next_id(attr, WORLD_LINK) : -EPERM;
	case BPF_LINK_UPDATE:
	case BPF_LINK_DETACH:
		return world_link_change(attr, command == BPF_LINK_UPDATE);
	case BPF_PROG_QUERY:
	case BPF_PROG_ATTACH:
	case BPF_PROG_DETACH:
		return world_tcx(attr, command);
	case BPF_PROG_TEST_RUN:
		return world.run(attr);
	case BPF_OBJ_PIN:
	case BPF_OBJ_GET:
		return world_pin(attr, command == BPF_OBJ_PIN);
	default:
		return -EINVAL;
	}
}

#pragma GCC visibility push(default) /* for libbpf and libmnl */

/* It reads six words, also where a caller gives fewer. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long word[6], result;
	va_list words;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	va_start(words, number);
	for (size_t i = 0; i < COUNT(word); i++)
		word[i] = va_arg(words, long);
	va_end(words);
	if (number == SYS_membarrier) {
		world.graces++;
		return 0;
	}
	if (number != SYS_bpf)
		return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
	if (world_fails())
		return -1;
	result = world_bpf((enum bpf_cmd)word[0], (union bpf_attr *)word[1]);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* ---- netlink ---- */

static void *world_say(const struct nlmsghdr *request, __u16 type, __u16 flags, size_t bytes)
{
	char *at = world.last ? (char *)world.last + NLMSG_ALIGN(world.last->nlmsg_len) :
				world.answer;

	world.last = mnl_nlmsg_put_header(at);
	world.last->nlmsg_type = type;
	world.last->nlmsg_flags = flags;
	world.last->nlmsg_seq = request->nlmsg_seq;
	world.last->nlmsg_pid = 1;
	return mnl_nlmsg_put_extra_header(world.last, bytes);
}

static void world_acknowledge(const struct nlmsghdr *request, int error, const char *text)
{
	struct nlmsgerr *told = world_say(request, NLMSG_ERROR,
					  text ? NLM_F_CAPPED | NLM_F_ACK_TLVS : NLM_F_CAPPED,
					  sizeof(*told));

	told->error = error;
	told->msg = *request;
	if (text)
		mnl_attr_put_strz(world.last, NLMSGERR_ATTR_MSG, text);
}

static void world_say_link(const struct nlmsghdr *request, __u32 index, __u16 flags)
{
	static const __u16 mode_of[] = { IFLA_XDP_DRV_PROG_ID, IFLA_XDP_SKB_PROG_ID,
					 IFLA_XDP_HW_PROG_ID };
	const struct world_interface *interface = world_interface(index);
	struct ifinfomsg *link = world_say(request, RTM_NEWLINK, flags, sizeof(*link));
	struct nlattr *nest;

	link->ifi_index = index;
	link->ifi_type = interface->type;
	mnl_attr_put_strz(world.last, IFLA_IFNAME, interface->name);
	mnl_attr_put_u32(world.last, IFLA_MTU, interface->mtu);
	if (interface->master)
		mnl_attr_put_u32(world.last, IFLA_MASTER, interface->master);
	if (interface->link)
		mnl_attr_put_u32(world.last, IFLA_LINK, interface->link);
	if (interface->is_link_elsewhere)
		mnl_attr_put_u32(world.last, IFLA_LINK_NETNSID, 0);
	if (interface->peer_bytes)
		mnl_attr_put(world.last, IFLA_BROADCAST, interface->peer_bytes, interface->peer);
	if (interface->bus)
		mnl_attr_put_strz(world.last, IFLA_PARENT_DEV_BUS_NAME, interface->bus);
	mnl_attr_put(world.last, IFLA_STATS64, sizeof(interface->counts), &interface->counts);
	nest = mnl_attr_nest_start(world.last, IFLA_PROP_LIST);
	if (interface->other_name)
		mnl_attr_put_strz(world.last, IFLA_ALT_IFNAME, interface->other_name);
	mnl_attr_nest_end(world.last, nest);
	nest = mnl_attr_nest_start(world.last, IFLA_LINKINFO);
	if (interface->kind) {
		mnl_attr_put(world.last, IFLA_INFO_XSTATS, 0, NULL);
		mnl_attr_put_strz(world.last, IFLA_INFO_KIND, interface->kind);
	}
	mnl_attr_nest_end(world.last, nest);
	nest = mnl_attr_nest_start(world.last, IFLA_XDP);
	for (int mode = 0; mode < INTERFACE_XDP_MODES; mode++)
		if (interface->xdp[mode])
			mnl_attr_put_u32(world.last, mode_of[mode], interface->xdp[mode]);
	mnl_attr_nest_end(world.last, nest);
}

static int world_get_link(const struct nlmsghdr *request)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(request);
	const struct nlattr *name;

	mnl_attr_for_each(name, request, sizeof(*header))
		for (__u32 i = 1; i < WORLD_INTERFACES; i++) {
			const struct world_interface *interface = world_interface(i);

			if (interface &&
			    (!strcmp(mnl_attr_get_str(name), interface->name) ||
			     (interface->other_name &&
			      !strcmp(mnl_attr_get_str(name), interface->other_name)))) {
				world_say_link(request, i, 0);
				return 0;
			}
		}
	return -ENODEV;
}

/* As dev_xdp_attach() of the kernel. */
static int world_set_xdp(const struct nlmsghdr *request, const char **why)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(request);
	struct world_interface *interface = world_interface(header->ifi_index);
	__u32 words[IFLA_XDP_MAX + 1] = {}, program;
	const struct nlattr *outer, *inner;
	enum interface_mode mode;

	mnl_attr_for_each(outer, request, sizeof(*header))
		if (mnl_attr_get_type(outer) == IFLA_XDP)
			mnl_attr_for_each_nested(inner, outer)
				words[mnl_attr_get_type(inner)] = mnl_attr_get_u32(inner);
	program = world_id(world_find((int)words[IFLA_XDP_FD]));
	mode = words[IFLA_XDP_FLAGS] & XDP_FLAGS_HW_MODE  ? INTERFACE_OFFLOAD :
	       words[IFLA_XDP_FLAGS] & XDP_FLAGS_DRV_MODE ? INTERFACE_NATIVE :
							    INTERFACE_SKB;
	if (!interface)
		return -ENODEV;
	*why = "Can't replace active BPF XDP link";
	if (interface->held_by)
		return -EBUSY;
	*why = "Cannot attach when an upper device already has a program";
	if (interface->is_covered)
		return -EEXIST;
	*why = "Active program does not match expected";
	if (words[IFLA_XDP_FLAGS] & XDP_FLAGS_REPLACE &&
	    interface->xdp[mode] != world_id(world_find((int)words[IFLA_XDP_EXPECTED_FD])))
		return -EEXIST;
	*why = "XDP program already attached";
	if (words[IFLA_XDP_FLAGS] & XDP_FLAGS_UPDATE_IF_NOEXIST && interface->xdp[mode])
		return -EBUSY;
	*why = "Native and generic XDP can't be active at the same time";
	if (program && mode < INTERFACE_OFFLOAD && interface->xdp[INTERFACE_SKB - mode])
		return -EEXIST;
	*why = interface->why;
	if (program && mode == INTERFACE_NATIVE && interface->driver < 0)
		return interface->driver;
	if (program && mode == INTERFACE_NATIVE && interface->driver &&
	    interface->driver != 2 - !!(world.object[program - 1].flags & BPF_F_XDP_HAS_FRAGS))
		return -EINVAL;
	*why = NULL;
	interface->xdp[mode] = program;
	return 0;
}

static int world_clsact(const struct nlmsghdr *request)
{
	const struct tcmsg *header = mnl_nlmsg_get_payload(request);
	struct world_interface *interface = world_interface(header->tcm_ifindex);
	const bool is_new = request->nlmsg_type == RTM_NEWQDISC;

	if (!interface || header->tcm_parent != TC_H_CLSACT)
		return -ENODEV;
	if (is_new && interface->has_clsact)
		return -EEXIST;
	if (!is_new && !interface->has_clsact)
		return -ENOENT;
	interface->has_clsact = is_new;
	memset(interface->hook, 0, sizeof(interface->hook));
	return 0;
}

/* A new or other filter, or one less; or all of a hook are told. */
static int world_filter(const struct nlmsghdr *request)
{
	const struct tcmsg *header = mnl_nlmsg_get_payload(request);
	struct world_interface *interface = world_interface(header->tcm_ifindex);
	const int side = header->tcm_parent == TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
	const __u32 priority = TC_H_MAJ(header->tcm_info) >> 16;
	const struct nlattr *outer, *inner;
	__u32 program = 0;
	int at = 0;

	if (!interface || !interface->has_clsact)
		return request->nlmsg_type == RTM_GETTFILTER && interface ? 0 : -EINVAL;
	mnl_attr_for_each(outer, request, sizeof(*header))
		if (mnl_attr_get_type(outer) == TCA_OPTIONS)
			mnl_attr_for_each_nested(inner, outer)
				if (mnl_attr_get_type(inner) == TCA_BPF_FD)
					program =
						world_id(world_find((int)mnl_attr_get_u32(inner)));
	if (request->nlmsg_type != RTM_GETTFILTER) {
		while (at < WORLD_HOOK && interface->hook[side][at].program &&
		       (interface->hook[side][at].handle != header->tcm_handle ||
			interface->hook[side][at].priority != priority))
			at++;
		if (request->nlmsg_type == RTM_DELTFILTER) {
			if (at == WORLD_HOOK || !interface->hook[side][at].program)
				return -ENOENT;
			world_hook_remove(interface, side, at);
			return 0;
		}
		if (at == WORLD_HOOK ||
		    (request->nlmsg_flags & NLM_F_EXCL && interface->hook[side][at].program))
			return -EEXIST;
		interface->hook[side][at].program = program;
		interface->hook[side][at].handle = header->tcm_handle;
		interface->hook[side][at].priority = priority;
	}
	for (; at < WORLD_HOOK && interface->hook[side][at].program; at++) {
		const bool is_dump = request->nlmsg_type == RTM_GETTFILTER;
		struct tcmsg *told;
		struct nlattr *nest;

		if (is_dump) /* as the kernel: first one of the priority, without a handle */
			world_say(request, RTM_NEWTFILTER, NLM_F_MULTI, sizeof(*told));
		told = world_say(request, RTM_NEWTFILTER, is_dump ? NLM_F_MULTI : 0, sizeof(*told));
		*told = *header;
		told->tcm_handle = interface->hook[side][at].handle;
		told->tcm_info = TC_H_MAKE(interface->hook[side][at].priority << 16, 0);
		mnl_attr_put_strz(world.last, TCA_KIND, "bpf");
		nest = mnl_attr_nest_start(world.last, TCA_OPTIONS);
		mnl_attr_put_u32(world.last, TCA_BPF_ID, interface->hook[side][at].program);
		mnl_attr_nest_end(world.last, nest);
		if (!is_dump)
			break;
	}
	return 0;
}

static int world_generic(const struct nlmsghdr *request)
{
	const struct world_interface *interface;
	const struct nlattr *attribute;

	attribute = mnl_nlmsg_get_payload_offset(request, sizeof(struct genlmsghdr));
	if (request->nlmsg_type == GENL_ID_CTRL) {
		if (!world.has_netdev || strcmp(mnl_attr_get_str(attribute), "netdev"))
			return -ENOENT;
		world_say(request, GENL_ID_CTRL, 0, sizeof(struct genlmsghdr));
		mnl_attr_put_strz(world.last, CTRL_ATTR_FAMILY_NAME, "netdev");
		mnl_attr_put_u16(world.last, CTRL_ATTR_FAMILY_ID, WORLD_FAMILY);
		return 0;
	}
	interface = request->nlmsg_type == WORLD_FAMILY ?
			    world_interface(mnl_attr_get_u32(attribute)) :
			    NULL;
	if (!interface)
		return -ENODEV;
	world_say(request, WORLD_FAMILY, 0, sizeof(struct genlmsghdr));
	mnl_attr_put_u32(world.last, 1, mnl_attr_get_u32(attribute));
	mnl_attr_put_u64(world.last, 3, interface->features);
	return 0;
}

static void world_answer(const struct nlmsghdr *request)
{
	const bool is_dump =
		(request->nlmsg_type == RTM_GETLINK || request->nlmsg_type == RTM_GETTFILTER) &&
		(request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	const char *why = NULL;
	int error = 0;

	world.last = NULL;
	world.answered = 0;
	world.dumps += is_dump && request->nlmsg_type == RTM_GETLINK;
	world.is_change = !is_dump && request->nlmsg_type >= RTM_SETLINK &&
			  request->nlmsg_type != RTM_GETLINK;
	if (request->nlmsg_type == RTM_GETLINK && is_dump) {
		for (__u32 i = 1; i < WORLD_INTERFACES; i++)
			if (world_interface(i))
				world_say_link(request, i, NLM_F_MULTI);
	} else if (request->nlmsg_type == RTM_GETLINK)
		error = world_get_link(request);
	else if (request->nlmsg_type == RTM_SETLINK)
		error = world_set_xdp(request, &why);
	else if (request->nlmsg_type == RTM_NEWQDISC || request->nlmsg_type == RTM_DELQDISC)
		error = world_clsact(request);
	else if (request->nlmsg_type >= RTM_NEWTFILTER && request->nlmsg_type <= RTM_GETTFILTER)
		error = world_filter(request);
	else
		error = world_generic(request);
	if (!is_dump || error) {
		world_acknowledge(request, error, why);
	} else {
		*(int *)world_say(request, NLMSG_DONE,
				  NLM_F_MULTI | (world.interrupted ? NLM_F_DUMP_INTR : 0),
				  sizeof(int)) = 0;
		world.interrupted -= world.interrupted > 0;
	}
}

int socket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	return world_fails() ? -1 : memfd_create("socket", MFD_CLOEXEC);
}

int bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
	(void)fd, (void)address, (void)bytes;
	return world_fails() ? -1 : 0;
}

int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict bytes)
{
	(void)fd;
	*(struct sockaddr_nl *)address =
		(struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = 1 };
	*bytes = sizeof(struct sockaddr_nl);
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	(void)fd, (void)level, (void)name, (void)value, (void)bytes;
	return 0;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
	(void)fd, (void)flags;
	if (world_fails())
		return -1;
	world_answer(bytes);
	return count;
}

ssize_t sendto(int fd, const void *bytes, size_t count, int flags, const struct sockaddr *to,
	       socklen_t to_bytes)
{
	(void)to, (void)to_bytes;
	return send(fd, bytes, count, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	const size_t bytes =
		world.answered || !world.last ?
			0 :
			(char *)world.last + NLMSG_ALIGN(world.last->nlmsg_len) - world.answer;

	(void)fd;
	if (!(flags & MSG_PEEK) && !world.is_change && world_fails())
		return -1;
	message->msg_flags = 0;
	memcpy(message->msg_iov->iov_base, world.answer, MIN(bytes, message->msg_iov->iov_len));
	world.answered = !(flags & MSG_PEEK);
	return bytes;
}

#pragma GCC visibility pop

/* ---- what the linker wraps ---- */

#define WRAPPED(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

/* Who reads behind the end of a block reads no zeroes. */
static void *world_guard(void *block, size_t bytes)
{
	return block ? memset((char *)block + bytes, 0xa5, WORLD_GUARD), block : NULL;
}

WRAPPED(void *, realloc, void *old, size_t bytes)
{
	if (world_fails())
		return NULL;
	world.blocks += !old;
	return world_guard(__real_realloc(old, bytes + WORLD_GUARD), bytes);
}

WRAPPED(void *, malloc, size_t bytes)
{
	return __wrap_realloc(NULL, bytes);
}

WRAPPED(void *, calloc, size_t count, size_t bytes)
{
	void *block = __wrap_realloc(NULL, count * bytes);

	return block ? memset(block, 0, count * bytes) : NULL;
}

WRAPPED(void *, reallocarray, void *old, size_t count, size_t bytes)
{
	return __wrap_realloc(old, count * bytes);
}

WRAPPED(void, free, void *block)
{
	world.blocks -= block != NULL;
	__real_free(block);
}

WRAPPED(void *, mmap, void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (world_fails())
		return MAP_FAILED;
	world.mappings += !(flags & MAP_FIXED);
	return __real_mmap(at, bytes, protection, flags, fd, offset);
}

WRAPPED(int, munmap, void *at, size_t bytes)
{
	world.mappings--;
	return __real_munmap(at, bytes);
}

/* Epoll takes no file in memory. */
__attribute__((visibility("default"))) int epoll_ctl(int epoll, int operation, int fd,
						     struct epoll_event *event)
{
	(void)epoll, (void)operation, (void)fd, (void)event;
	return world_fails() ? -1 : 0;
}

bool __wrap_privileges_has(int capability)
{
	return world.has >> capability & 1;
}

int __wrap_uname(struct utsname *host)
{
	memset(host, 0, sizeof(*host));
	strcpy(host->release, world.release);
	return 0;
}

WRAPPED(int, access, const char *path, int mode)
{
	return strcmp(path, "/sys/module/nf_conntrack") ? __real_access(path, mode) :
	       world.has_conntrack                      ? 0 :
							  -1;
}

WRAPPED(int, fstatfs, int fd, struct statfs *status)
{
	const int error = __real_fstatfs(fd, status);

	if (world.is_bpffs)
		status->f_type = BPF_FS_MAGIC;
	return error;
}

ssize_t __wrap_readlink(const char *path, char *target, size_t bytes)
{
	static const char *const kinds[] = { "map", "prog", "link", "btf" };
	const struct world_object *object = world_find(atoi(strrchr(path, '/') + 1));

	return object ? snprintf(target, bytes, "anon_inode:bpf-%s", kinds[object->kind]) : -1;
}

int __wrap_libbpf_num_possible_cpus(void)
{
	return world.cpus;
}

struct if_nameindex *__wrap_if_nameindex(void)
{
	struct if_nameindex *all =
		world_fails() ? NULL : __wrap_calloc(WORLD_INTERFACES + 1, sizeof(*all));

	for (__u32 i = 1, n = 0; all && i < WORLD_INTERFACES; i++)
		if (world_interface(i))
			all[n++] = (struct if_nameindex){ i, (char *)world_interface(i)->name };
	return all;
}

void __wrap_if_freenameindex(struct if_nameindex *all)
{
	__wrap_free(all);
}

char *__wrap_if_indextoname(unsigned int index, char *name)
{
	return world_interface(index) ? strcpy(name, world_interface(index)->name) : NULL;
}

__s64 __wrap_clock_ns(clockid_t clock)
{
	return (clock == CLOCK_BOOTTIME ? WORLD_BOOT_S * 1000000000LL : 0) + world.now_ms * 1000000;
}

__s64 __wrap_clock_ms(clockid_t clock)
{
	return __wrap_clock_ns(clock) / 1000000;
}

double __wrap_clock_seconds(void)
{
	return world.now_ms / 1000.;
}

int __wrap_clock_pause(__s64 ms)
{
	world.pauses++;
	world.paused_ms = ms;
	world.now_ms += ms;
	if (world.paused)
		world.paused();
	return 0;
}

/* ---- for tests ---- */

static int world_run_tick(union bpf_attr *attr)
{
	attr->test.retval = WORLD_TICK;
	attr->test.duration = 7;
	return attr->test.data_size_in >= 14 ? 0 : -EINVAL;
}

static void world_reset(void)
{
	for (__u32 i = 0; i < world.objects; i++)
		close(world.object[i].fd);
	memset(&world, 0, sizeof(world));
	world.has = ~0ULL;
	world.has_tcx = world.has_netdev = world.is_bpffs = true;
	world.release = "6.18.0";
	world.now_ms = 1000000;
	world.cpus = WORLD_CPUS;
	world.run = world_run_tick;
	world.interface[LO] = (struct world_interface){
		.name = "lo",
		.type = ARPHRD_LOOPBACK,
		.driver = -EOPNOTSUPP,
		.why = "Underlying driver does not support XDP in native mode"
	};
	world.interface[ETH0] = (struct world_interface){ .name = "eth0",
							  .type = ARPHRD_ETHER,
							  .other_name = "uplink" };
	world.interface[ETH1] = (struct world_interface){ .name = "eth1", .type = ARPHRD_ETHER };
	world.interface[WG] = (struct world_interface){ .name = "wg0", .type = ARPHRD_NONE };
	world.interface[GRE] =
		(struct world_interface){ .name = "gre1", .type = ARPHRD_IPGRE, .peer_bytes = 4 };
	for (size_t i = 0; i < WORLD_INTERFACES; i++)
		world.interface[i].mtu = 1500;
}

/* Open descriptors, blocks of memory and mappings of the code under test, as one number. */
static long world_uses(void)
{
	DIR *open_files = opendir("/proc/self/fd");
	long count = -(long)world.objects;

	while (readdir(open_files))
		count++;
	closedir(open_files);
	return count + 1000 * (world.blocks + 1000 * world.mappings);
}

/* The name of the filter that a program belongs to; "?": it is none of ours. */
static const char *world_filter_name(const struct world_object *program)
{
	static struct abi_config config;

	for (__u32 i = 0; i < program->program.nr_map_ids; i++) {
		const struct world_object *map = &world.object[program->maps[i] - 1];

		if (!strcmp(map->map.name, ABI_CONFIG_MAP) &&
		    pread(map->fd, &config, sizeof(config), 0) == sizeof(config))
			return *config.name ? config.name : "-";
	}
	return "?";
}

/* What runs: "eth0 native xdp_cuckoo(a), eth0 out xdp_cuckoo_sent(a)". */
static const char *world_runs(void)
{
	static const char *const hooks[] = { "in", "out" };
	static char text[1024];
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < WORLD_INTERFACES; i++)
		for (int k = 0; k < INTERFACE_XDP_MODES + 2 * WORLD_HOOK; k++) {
			const struct world_interface *interface = &world.interface[i];
			const int hook = k - INTERFACE_XDP_MODES;
			const __u32 id =
				hook < 0 ? interface->xdp[k] :
					   interface->hook[hook / WORLD_HOOK][hook % WORLD_HOOK]
						   .program;

			if (id)
				at += snprintf(text + at, sizeof(text) - at, "%s%s %s %s(%s)",
					       at ? ", " : "", interface->name,
					       hook < 0 ? interface_mode_name(k) :
							  hooks[hook / WORLD_HOOK],
					       world.object[id - 1].program.name,
					       world_filter_name(&world.object[id - 1]));
		}
	return text;
}

#endif
