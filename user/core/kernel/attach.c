// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Puts a filter's program on an interface, and takes it off. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <net/if.h>

#include "kernel/internal.h"
#include "base/memory.h"
#include "base/suggest.h"

#define DETACH_TRIES 100 /* a writer may replace the program before each try */

/* ---- attach ---- */

/* Whether the error allows another try with another mode or program. */
static bool is_unsupported(int error)
{
	return error && error != -EBUSY && error != -EEXIST && error != -EPERM && error != -ENOSYS;
}

/*
 * Why the driver refused the program: the kernel's text, or else the meaning of the error. The kernel always has a text
 * where a driver has no native XDP; many drivers with native XDP write their reason only to the kernel's log.
 */
static const char *why_not_native(int error, struct reason *why)
{
	if (*kernel_error_text())
		reason_set(why, 0, "%s", kernel_error_text());
	else
		reason_set(why, 0, "%s, and its driver gives no reason here; dmesg may show it", strerror(-error));
	return why->text;
}

/* Another filter of this tool is there, under its own name. */
static bool has_other_filter(const char *interface, char name[ABI_NAME_BYTES])
{
	struct kernel_filter *filters = NULL;
	struct reason ignored;
	bool has = false;
	size_t count = 0;

	kernel_find_filters((struct kernel_wish){ .takes_other_versions = true, .keeps_pins = true }, &filters, &count,
			    &ignored);
	for (size_t i = 0; i < count && !has; i++)
		for (size_t k = 0; k < filters[i].attachments_count && !has; k++) {
			has = filters[i].attachments[k].ifindex == interfaces_index(interface);
			snprintf(name, ABI_NAME_BYTES, "%s", filters[i].config->name);
		}
	kernel_filters_free(filters, count);
	return has;
}

/* A driver's error means neither bad input nor a full table, as commands would think: it becomes -EIO. */
static int refuse_attach(int error, const char *interface, enum interface_mode mode, struct reason *reason)
{
	struct reason why;
	char name[ABI_NAME_BYTES];

	if (kernel_says_above())
		return kernel_refuse_in_words(reason, error, "cannot attach to ", interface);
	if ((error == -EBUSY || error == -EEXIST) && !kernel_opens_ids())
		return reason_set(reason, -EBUSY,
				  "'%s' runs an XDP program, maybe this filter, that only CAP_SYS_ADMIN may look at; see "
				  "xdp-cuckoo status with that",
				  interface);
	if (mode >= INTERFACE_XDP_MODES && (error == -EBUSY || error == -EEXIST))
		return reason_set(reason, -EBUSY,
				  "'%s' runs a filter of another --name at tc, or an ingress qdisc or a filter of priority 1 is "
				  "in the way; see xdp-cuckoo status and tc filter show dev %s egress",
				  interface, interface);
	if ((error == -EBUSY || error == -EEXIST) && has_other_filter(interface, name))
		return reason_set(reason, -EBUSY,
				  "'%s' runs another XDP program, the filter '%s': an interface has one filter, which may have "
				  "many lists (--list NAME)",
				  interface, name);
	if (error == -EBUSY || error == -EEXIST)
		return reason_set(reason, -EBUSY,
				  "'%s' runs another XDP program (ip link show dev %s says which); put both behind one "
				  "dispatcher with xdp-loader, or have its own tool take it off",
				  interface, interface);
	if (mode == INTERFACE_NATIVE && is_unsupported(error) && error != -EACCES)
		return reason_set(reason, error == -EOPNOTSUPP ? error : -EIO,
				  "'%s' does not take the filter in its driver: %s; use --mode skb or --mode auto",
				  interface, why_not_native(error, &why));
	kernel_refuse_in_words(reason, error, "cannot attach to ", interface);
	return error == -EPERM || error == -EACCES || error == -ENOMEM ? error : -EIO;
}

/* *refused: the error of the driver or the kernel; stays if the program was not even tried. */
static int attach(struct kernel_filter *filter, struct kernel_attachment *attachment, int *refused,
		  struct reason *reason)
{
	const enum kernel_program which = kernel_program_at(attachment);
	int lock, error = kernel_load_program(filter, which, reason);

	if (error)
		return error;
	error = kernel_pin(filter, filter, &lock, reason);
	if (!error) {
		error = kernel_record_program(filter, attachment);
		kernel_catch_messages();
		if (!error && attachment->mode >= INTERFACE_XDP_MODES)
			error = tc_attach(attachment, kernel_program(filter, which));
		else if (!error)
			error = bpf_xdp_attach(attachment->ifindex, kernel_program(filter, which),
					       kernel_mode_flags[attachment->mode] | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
		if (error) {
			*refused = error;
			error = refuse_attach(error, attachment->interface, attachment->mode, reason);
		}
	}
	kernel_pin_finish(lock);
	return error;
}

/*
 * Tries the program for frames in one buffer first, because it is faster. If the MTU is too large for one page, and the
 * driver says that it has frames in several buffers, tries the other program first: virtio_net takes the one for a single
 * buffer even then, and loses large frames.
 */
static int attach_mode(struct kernel_filter *filter, enum interface_mode mode, struct kernel_attachment *attachment,
		       int *refused, struct reason *reason)
{
	int error;

	attachment->mode = mode;
	attachment->is_frags = false;
	if (kernel_is_mtu_too_large(attachment) && interfaces_takes_frags(attachment->ifindex, false)) {
		attachment->is_frags = true;
		error = attach(filter, attachment, refused, reason);
		if (!is_unsupported(error))
			return error;
		attachment->is_frags = false;
	}
	error = attach(filter, attachment, refused, reason);
	if (is_unsupported(error) && mode == INTERFACE_NATIVE && kernel_may_take_frags(attachment)) {
		attachment->is_frags = true;
		error = attach(filter, attachment, refused, reason);
	}
	return error;
}

static void offer_name(const char *name, void *context)
{
	suggest_offer(context, name);
}

int kernel_no_interface_reason(const char *name, struct reason *reason)
{
	struct suggest suggest = suggest_for(name);
	char text[SUGGEST_TEXT_BYTES];

	interfaces_names(offer_name, &suggest);
	return reason_set(reason, -ENODEV, "there is no interface '%s' here%s", name,
			  strchr(name, ',') ? "; write several with spaces" : suggest_text(&suggest, "ip link", text));
}

struct kernel_attachment kernel_attachment_of(const struct interface *interface)
{
	struct kernel_attachment attachment = { .ifindex = interface->index,
						.has_ethernet = interface->has_ethernet,
						.mtu = interface->mtu,
						.lost = interface->lost,
						.is_tap = interface->is_tap,
						.is_virtio_net = interface->is_virtio_net };

	memcpy(attachment.interface, interface->name, sizeof(attachment.interface));
	return attachment;
}

/* Finds the interface, and makes room for a record of it: a program must not be attached and unknown. */
static int prepare(struct kernel_filter *filter, const char *interface, struct kernel_attachment *attachment,
		   struct reason *reason)
{
	struct interface found;
	int error = interfaces_find(interface, &found);

	if (error == -ENODEV)
		return kernel_no_interface_reason(interface, reason);
	if (error)
		return kernel_refuse(reason, error, "cannot look at the interface ", interface);
	if (!found.has_ethernet && !found.has_ip)
		return reason_set(
			reason, -EINVAL,
			"packets of '%s' start neither with an Ethernet header nor with IP (it is a tunnel with many "
			"peers, or of another kind), so the filter would find none there; load it on the interface "
			"below",
			interface);
	*attachment = kernel_attachment_of(&found);
	error = kernel_add_attachment(filter, attachment);
	if (error)
		return kernel_refuse(reason, error, "cannot note the attachment to ", interface);
	filter->attachments_count--;
	return 0;
}

int kernel_attach(struct kernel_filter *filter, const char *interface, enum kernel_mode wanted, struct reason *reason)
{
	struct kernel_attachment attachment = {};
	struct reason why;
	int refused = 0, error = prepare(filter, interface, &attachment, reason);

	if (error)
		return error;
	if (!attachment.has_ethernet && wanted == KERNEL_NATIVE)
		return reason_set(
			reason, -EOPNOTSUPP,
			"'%s' has no Ethernet header, so no driver runs the filter there; tc does: use --mode auto",
			interface);
	reason_set(&why, 0, "%s", "");
	if (!attachment.has_ethernet) {
		attachment.mode = INTERFACE_TC;
		error = attach(filter, &attachment, &refused, reason);
	} else {
		error = attach_mode(filter, wanted == KERNEL_SKB ? INTERFACE_SKB : INTERFACE_NATIVE, &attachment,
				    &refused, reason);
		if (is_unsupported(error) && wanted == KERNEL_AUTO) {
			why_not_native(refused ? refused : error, &why);
			error = attach_mode(filter, INTERFACE_SKB, &attachment, &refused, reason);
		}
	}
	if (error)
		return error;
	*reason = why;
	attachment.is_new = true;
	attachment.was_lost = kernel_is_wanted(filter, &attachment);
	filter->attachments[filter->attachments_count++] = attachment;
	/* The bit may be left from an interface that is gone. */
	if (!kernel_other_direction(filter, &attachment))
		kernel_want_outgoing(filter, &attachment, false);
	kernel_want_received(filter, attachment.ifindex, true);
	return 0;
}

int kernel_attach_outgoing(struct kernel_filter *filter, const char *interface, struct reason *reason)
{
	struct kernel_attachment attachment;
	int refused, error = prepare(filter, interface, &attachment, reason);

	attachment.mode = INTERFACE_TC_SENT;
	if (!error)
		error = attach(filter, &attachment, &refused, reason);
	if (error)
		return error;
	attachment.is_new = true;
	attachment.was_lost = kernel_is_wanted(filter, &attachment);
	filter->attachments[filter->attachments_count++] = attachment;
	kernel_want_outgoing(filter, &attachment, true);
	return 0;
}

/* ---- detach ---- */

static int detach(const struct kernel_attachment *attachment, struct reason *reason)
{
	FD_CLOSED const int program = kernel_open_id(KERNEL_OBJECT_PROGRAM, attachment->prog_id);
	int error;

	kernel_catch_messages();
	error = program < 0 ? program : kernel_swap_program(attachment, program, -1);
	return error ? kernel_refuse_in_words(reason, error, "cannot detach from ", attachment->interface) : 0;
}

/*
 * Reads again which program of the filter `name` runs at this place; prog_id 0: none does. False: it is still the same
 * one, or this cannot be told.
 */
static bool refresh_attachment(const char *name, struct kernel_attachment *attachment)
{
	const __u32 before = attachment->prog_id;
	struct kernel_filter *filters = NULL;
	enum kernel_seen ignored_seen = KERNEL_NOT_ALLOWED;
	struct reason ignored;
	size_t count = 0;
	const int error = kernel_find_filters((struct kernel_wish){ .must_see = name,
								    .takes_other_versions = true,
								    .seen = &ignored_seen },
					      &filters, &count, &ignored);

	if (error || ignored_seen == KERNEL_NOT_ALLOWED) {
		kernel_filters_free(filters, count);
		return false;
	}
	attachment->prog_id = 0;
	for (size_t i = 0; i < count; i++) {
		if (strncmp(filters[i].config->name, name, sizeof(filters[i].config->name)))
			continue;
		for (size_t k = 0; k < filters[i].attachments_count; k++) {
			const struct kernel_attachment *now = &filters[i].attachments[k];

			if (now->ifindex == attachment->ifindex && now->mode == attachment->mode)
				*attachment = *now;
		}
	}
	kernel_filters_free(filters, count);
	return attachment->prog_id != before;
}

const struct kernel_attachment *kernel_other_direction(const struct kernel_filter *filter,
						       const struct kernel_attachment *attachment)
{
	for (size_t i = 0; i < filter->attachments_count; i++)
		if (kernel_place(&filter->attachments[i]) == -kernel_place(attachment))
			return &filter->attachments[i];
	return NULL;
}

bool kernel_goes_with_another(const struct kernel_filter *filter, const struct kernel_attachment *attachment)
{
	return kernel_is_outgoing(attachment) && kernel_other_direction(filter, attachment);
}

int kernel_detach_direction(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
			    struct reason *reason)
{
	struct kernel_attachment now = *attachment;
	int error;

	if (kernel_is_held(attachment))
		return reason_set(reason, -EBUSY,
				  "on '%s' libxdp's dispatcher runs the filter; use xdp-loader unload %s "
				  "-i %u",
				  attachment->interface, attachment->interface, attachment->prog_id);
	error = detach(&now, reason);
	/* A writer may have replaced the filter by a new table. */
	for (int try = 0; error && try < DETACH_TRIES && refresh_attachment(filter->config->name, &now); try++)
		error = now.prog_id ? detach(&now, reason) : 0;
	if (!error && !filter->is_other_version) {
		if (kernel_is_outgoing(attachment))
			kernel_want_outgoing(filter, attachment, attachment->was_lost);
		else
			kernel_want_received(filter, attachment->ifindex, attachment->was_lost);
	}
	kernel_unpin_unused();
	return error;
}

/* Takes the program for sent packets off last: it is never refused. */
int kernel_detach(const struct kernel_filter *filter, const struct kernel_attachment *attachment, struct reason *reason)
{
	int error = kernel_detach_direction(filter, attachment, reason);

	if (!error && !filter->is_other_version) {
		kernel_want_outgoing(filter, attachment, false);
		kernel_want_received(filter, attachment->ifindex, false);
	}
	if (!error && !kernel_is_outgoing(attachment) && kernel_other_direction(filter, attachment))
		error = kernel_detach_direction(filter, kernel_other_direction(filter, attachment), reason);
	return error;
}

bool kernel_is_meant(const struct kernel_where *where, const struct kernel_filter *filter, const char *interface)
{
	bool is_named = false;

	for (size_t i = 0; i < where->count && !is_named; i++)
		is_named = interfaces_are_one(where->interfaces[i], interface);
	return (!where->name || kernel_is_named(filter->config, where->name) ||
		(where->is_nameless_too && kernel_may_be_named(filter->config, where->name))) &&
	       (is_named != where->is_except || (!where->count && !where->is_except));
}

/* A filter of another name was there in its place, and only that one was meant. */
static bool has_taken_another(const struct kernel_taken *taken, size_t count, int ifindex, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (taken[i].attachment.prog_id && taken[i].attachment.ifindex == ifindex &&
		    strncmp(taken[i].name, name, sizeof(taken[i].name)))
			return true;
	return false;
}

/*
 * Looks anew: a writer may have replaced a filter by one with an older copy of its config, and that one would be missed where
 * its predecessor was taken off.
 */
static int want_no_more(const struct kernel_where *where, struct kernel_taken **taken, size_t *taken_count)
{
	struct if_nameindex *there = if_nameindex();
	struct kernel_filter *filters = NULL;
	struct reason ignored;
	size_t count = 0;
	int error = 0;

	kernel_find_filters((struct kernel_wish){}, &filters, &count, &ignored);
	for (size_t i = 0; i < count; i++)
		for (const struct if_nameindex *at = there; at && at->if_index && !error; at++) {
			struct kernel_taken lost = { .attachment.ifindex = (int)at->if_index };

			if (!kernel_has_lost_interface(filters, count, i, lost.attachment.ifindex) ||
			    !kernel_is_meant(where, &filters[i], at->if_name) ||
			    has_taken_another(*taken, *taken_count, lost.attachment.ifindex, filters[i].config->name))
				continue;
			kernel_want_received(&filters[i], lost.attachment.ifindex, false);
			strncpy(lost.attachment.interface, at->if_name, sizeof(lost.attachment.interface) - 1);
			error = array_grow(taken, *taken_count, sizeof(**taken));
			if (!error)
				(*taken)[(*taken_count)++] = lost;
		}
	kernel_filters_free(filters, count);
	if (there)
		if_freenameindex(there);
	return error;
}

int kernel_take_off(const struct kernel_filter *filters, size_t count, const struct kernel_where *where,
		    struct kernel_taken **taken, size_t *taken_count)
{
	*taken = NULL;
	*taken_count = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < filters[i].attachments_count; k++) {
			const struct kernel_attachment *attachment = &filters[i].attachments[k];
			struct kernel_taken *off;

			if (kernel_goes_with_another(&filters[i], attachment) ||
			    !kernel_is_meant(where, &filters[i], attachment->interface))
				continue;
			if (array_grow(taken, *taken_count, sizeof(**taken)))
				return -ENOMEM;
			off = &(*taken)[(*taken_count)++];
			off->attachment = *attachment;
			memcpy(off->name, filters[i].config->name, sizeof(off->name));
			off->error = kernel_detach(&filters[i], attachment, &off->reason);
		}
	return want_no_more(where, taken, taken_count);
}
