/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of kernel/ share; nobody else includes it. */
#ifndef XDP_CUCKOO_KERNEL_INTERNAL_H
#define XDP_CUCKOO_KERNEL_INTERNAL_H

#include <bpf/libbpf.h>

#include "kernel/kernel.h"

/* ---- libbpf_log.c ---- */

/* The kernel's words since kernel_listen(); "" where it had none. */
const char *kernel_words(void);

/*
 * The message for a refused system call: what was being done, to what. Returns `error`. The second one has the
 * kernel's words too: for bpf_xdp_attach(), with a kernel_listen() before it and nothing that fails in between.
 */
int kernel_refused(struct reason *reason, int error, const char *what, const char *subject);
int kernel_refused_in_words(struct reason *reason, int error, const char *what, const char *subject);

/* ---- maps.c ---- */

extern const char *const kernel_map_names[KERNEL_MAPS];

/* Maps the memory of a filter whose descriptors are open; of another version only the config's. */
int kernel_map_memory(struct kernel_filter *filter, struct reason *reason);

/* Id, entries and bytes of a map, as the kernel describes it. */
void kernel_describe_map(const struct bpf_map_info *info, struct kernel_map *map);

/* Bytes of the elements of the maps of buckets and records. */
__u32 kernel_bucket_bytes(const struct abi_options *options);

/* Elements that a map of that name gets. */
__u64 kernel_plan_entries(const struct kernel_plan *plan, enum kernel_map_name name);

void kernel_close_map(struct kernel_map *map);

/* ---- load_program.c ---- */

/* The maps of a filter that is there are used by an object that is about to be loaded, too. */
int kernel_reuse_maps(const struct kernel_filter *filter, const struct bpf_object *object);

/* Sets the constants of maps.h in the read-only data of an object that is about to be loaded. */
void kernel_set_constants(const struct abi_options *options, volatile const struct abi_options *xc_options,
			  volatile const __u16 *xc_prefixes);

/* Loads a program over the filter's maps, where it is not loaded yet: the verifier takes a tenth of a second for each. */
int kernel_load_program(struct kernel_filter *filter, bool is_frags, struct reason *reason);

/* Loads the programs by which `filter` can take the place of `other` on every interface. */
int kernel_load_programs_of(const struct kernel_filter *other, struct kernel_filter *filter, struct reason *reason);

/* The descriptor of a loaded program. */
int kernel_program(const struct kernel_filter *filter, bool is_frags);

int kernel_program_id(const struct kernel_filter *filter, bool is_frags, __u32 *id);

/* ---- pins.c ---- */

enum kernel_object { KERNEL_OBJECT_MAP, KERNEL_OBJECT_PROGRAM };

/*
 * A descriptor of the object with that id, by its pin where the kernel gives it only to others. -ENOENT;
 * -EPERM where there is no directory for pins, either.
 */
int kernel_open_id(enum kernel_object kind, __u32 id);

/* Whether the kernel does it for this thread: it has CAP_SYS_ADMIN. */
bool kernel_opens_ids(void);

/* The message for that, and for whatever else is wrong with pins. Returns the error for the caller. */
int kernel_pins_refused(struct reason *reason, int error);

/* -EPERM, and as the reason that nobody has pinned here what `interface` runs, so that it may be any filter. */
int kernel_unseen(const char *interface, struct reason *reason);

/*
 * Before a filter whose programs are loaded is attached: pins it where it would not be found else, or where
 * `predecessor` (which may be itself) is pinned. 0 or -errno; in any case *held is for kernel_pin_done(), to be
 * called when it is attached, or is not going to be.
 */
int kernel_pin(const struct kernel_filter *filter, const struct kernel_filter *predecessor, int *held,
	       struct reason *reason);
void kernel_pin_done(int held);

/* Takes away the pins of what no interface runs any more. */
void kernel_unpin_unused(void);

/* ---- recognise.c ---- */

/* Keeps descriptors of those of the maps that a filter has, and notes whether they are another version's. -errno. */
int kernel_open_maps(const __u32 *ids, __u32 count, struct kernel_filter *filter);

/*
 * Whether the filter on `interface`, whose maps are mapped, can be used; sets its options. The second one is for maps
 * of another version, and maps the config's. 0; -EPROTO; -ENOENT: it is being taken off.
 */
int kernel_recognise(struct kernel_filter *filter, const char *interface, struct reason *reason);
int kernel_recognise_other(struct kernel_filter *filter, const char *interface, struct reason *reason);

/* The messages for what is not of this version. -EPROTO. */
int kernel_say_unknown_version(const char *interface, struct reason *reason);
int kernel_say_other_version(const struct kernel_filter *filter, struct reason *reason);

/* ---- swap_program.c ---- */

extern const __u32 kernel_mode_flags[INTERFACE_MODES];

/* Puts program `new` (-1: none) in the place of `old`, if that is what runs there. */
int kernel_swap_program(const struct kernel_attachment *attachment, int old, int new);

/* By libxdp's dispatcher, so that we cannot exchange it. */
bool kernel_is_held(const struct kernel_attachment *attachment);

/* ---- attach.c ---- */

int kernel_add_attachment(struct kernel_filter *filter, const struct kernel_attachment *attachment);

#endif
