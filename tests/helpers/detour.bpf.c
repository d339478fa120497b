// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tc at the ingress of an interface: what arrives there enters the peer of the veth interface DETOUR_IFINDEX, which
 * counts it as received, but behind native XDP. So it is with drivers that take a program and do not run it.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define DETOUR_IFINDEX 4711

SEC("tc")
int detour(__attribute__((unused)) struct __sk_buff *skb)
{
	return bpf_redirect_peer(DETOUR_IFINDEX, 0);
}

char LICENSE[] SEC("license") = "GPL";
