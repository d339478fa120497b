/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of kernel/ only. */
#ifndef XDP_CUCKOO_KERNEL_INTERNAL_H
#define XDP_CUCKOO_KERNEL_INTERNAL_H

#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "kernel/kernel.h"

/* ---- libbpf_log.c ---- */

/* Whether the kernel's release is lower than that. */
bool kernel_is_before(unsigned int version, unsigned int patchlevel);

/* The kernel's error text since kernel_catch_messages(); "" where there was none. */
const char *kernel_error_text(void);

/* Whether it says that an interface above (a bridge, bond, VLAN, ...) runs a program: then none below can change. */
bool kernel_says_above(void);

/* Whether the kernel lacks what every filter needs: -ENOSYS, and the reason is set; 0: no, or this process may not ask. */
int kernel_lacks_reason(struct reason *reason);

/*
 * Sets the reason for a refused system call: `what` failed for `subject`. Returns `error`; -EINVAL becomes
 * -EIO, or -ENOSYS if the kernel lacks what filters need. The second function adds the kernel's text: call kernel_catch_messages() before, and nothing else that may
 * fail.
 */
int kernel_refuse(struct reason *reason, int error, const char *what, const char *subject);
int kernel_refuse_in_words(struct reason *reason, int error, const char *what, const char *subject);

/* ---- load_program.c ---- */

extern const char *const kernel_map_names[KERNEL_MAPS];

/* Maps the memory of a filter with open descriptors; of another version only the config. */
int kernel_map_memory(struct kernel_filter *filter, struct reason *reason);

/* Id, entries and bytes of a map, as the kernel describes it. */
void kernel_describe_map(const struct bpf_map_info *info, struct kernel_map *map);

/* Bytes of an element of the map of buckets. */
__u32 kernel_bucket_bytes(const struct abi_options *options);

/* The number of elements of a map. */
__u64 kernel_sizes_entries(const struct kernel_sizes *sizes, enum kernel_map_name name);

/* A BPF object inside this program. */
struct kernel_built_in {
	const char *name; /* libbpf makes names of maps from it */
	const void *(*bytes)(size_t *size);
};

/*
 * Opens the object, and sets its constants. Loading it makes only maps, until the caller
 * chooses a program by bpf_program__set_autoload(). NULL: *reason is set.
 */
struct bpf_object *kernel_open_object(const struct kernel_built_in *built_in, const struct abi_options *options,
				      struct reason *reason);

/* Lets an object that is not loaded yet use the maps of a running filter. */
int kernel_reuse_maps(const struct kernel_filter *filter, const struct bpf_object *object);

/* Loads a program over the filter's maps unless it is loaded. The verifier takes a tenth of a second. */
int kernel_load_program(struct kernel_filter *filter, enum kernel_program which, struct reason *reason);

/* Loads the programs that `filter` needs to replace `other` on every interface. */
int kernel_load_programs_of(const struct kernel_filter *other, struct kernel_filter *filter, struct reason *reason);

/* The descriptor of a loaded program. */
int kernel_program(const struct kernel_filter *filter, enum kernel_program which);

/* The program that runs at an attachment. */
enum kernel_program kernel_program_at(const struct kernel_attachment *attachment);

/* Notes in the attachment that it runs its program of `filter`. 0 or -errno. */
int kernel_record_program(const struct kernel_filter *filter, struct kernel_attachment *attachment);

/* What the kernel says about a program, but not its maps. If `fd` is negative, it is returned. 0 or -errno. */
int kernel_program_info(int fd, struct bpf_prog_info *info);

/* ---- object_file.c ---- */

/*
 * Makes an ELF file of the built-in object (`built_in`, `size` bytes), with the sizes of maps in `object` and the
 * values of the map `constants`. 0: *file is for free(); -errno.
 */
int kernel_write_object_file(const struct bpf_object *object, const struct bpf_map *constants, const char *built_in,
			     size_t size, char **file, size_t *bytes);

/* ---- pins.c ---- */

enum kernel_kind { KERNEL_OBJECT_MAP, KERNEL_OBJECT_PROGRAM };

/*
 * Opens an object by id, or by its pin if the kernel refuses ids to this process. A descriptor; -ENOENT;
 * -EPERM: there is no directory for pins.
 */
int kernel_open_id(enum kernel_kind kind, __u32 id);

/* Whether this thread may open objects by id: it has CAP_SYS_ADMIN. */
bool kernel_opens_ids(void);

/* Sets the reason for an error of kernel_open_id() or of pins. Returns the error for the caller. */
int kernel_pins_refuse(struct reason *reason, int error);

/*
 * Says that `interface` runs a program that is not pinned here and may be any filter; NULL: that a pinned filter may run at
 * tc. -EPERM.
 */
int kernel_unseen_reason(const char *interface, struct reason *reason);

/*
 * Call it before a filter whose programs are loaded is attached. Pins the filter if it could not be found
 * otherwise, or if `predecessor` (may be the filter itself) is pinned. 0 or -errno. In both cases call
 * kernel_pin_finish() with *lock after attaching.
 */
int kernel_pin(const struct kernel_filter *filter, const struct kernel_filter *predecessor, int *lock,
	       struct reason *reason);
void kernel_pin_finish(int lock);

/* Removes the pins of filters that no interface runs. */
void kernel_unpin_unused(void);

/* Whether filters are pinned here. */
bool kernel_has_pins(void);

/* ---- recognise.c ---- */

/* Whether maps belong to a filter that can be used. Functions return it, or -errno. */
enum kernel_found {
	KERNEL_USABLE,
	KERNEL_UNUSABLE, /* it is damaged, or of an unknown version */
	KERNEL_GONE,     /* it is just being removed */
};

/* Opens those of the maps that belong to a filter; records whether they are another version's. */
int kernel_open_maps(const __u32 *ids, __u32 count, struct kernel_filter *filter);

/*
 * Maps the memory of the filter on `interface` and sets its options. KERNEL_USABLE is also a filter of another version
 * that can be replaced. With KERNEL_UNUSABLE the reason is set.
 */
int kernel_open_config(struct kernel_filter *filter, const char *interface, struct reason *reason);

/* Says that the filter on `interface` is of an unknown version. -EPROTO. */
int kernel_unknown_version_reason(const char *interface, struct reason *reason);

/* ---- tc.c ---- */

/* Sets the programs of an interface at tc that may be ours. */
void tc_list(struct interface *interface);

/* As kernel_attach() and kernel_swap_program(), for an attachment at tc. 0; -EBUSY: a program of ours is there; -errno. */
int tc_attach(const struct kernel_attachment *attachment, int program);
int tc_swap(const struct kernel_attachment *attachment, int old, int new);

/* ---- swap_program.c ---- */

extern const __u32 kernel_mode_flags[INTERFACE_MODES];

/* Replaces program `old` by `new` (-1: by none), if `old` still runs there. 0 or -errno. */
int kernel_swap_program(const struct kernel_attachment *attachment, int old, int new);

/* ---- lost_interfaces.c ---- */

/* Whether the filter should be there, as its config remembers; for sent packets, of any interface with the same bit. */
bool kernel_is_wanted(const struct kernel_filter *filter, const struct kernel_attachment *attachment);

/* ---- attach.c ---- */

/* An attachment to this interface; its program is not known yet. */
struct kernel_attachment kernel_attachment_of(const struct interface *interface);

int kernel_add_attachment(struct kernel_filter *filter, const struct kernel_attachment *attachment);

#endif
