/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

/* What a program may answer at a tcx hook (enum tcx_action_base, Linux 6.6) and, by the same numbers, as a classifier
 * (TC_ACT_UNSPEC, TC_ACT_SHOT). */
#define VERDICT_NEXT -1 /* go on to the next program, then the stack */
#define VERDICT_DROP 2

#define VLAN_VID_MASK 0x0fff
#define NS_PER_S 1000000000ULL

/*
 * Frames that the switch itself sends through the uplink carry this in skb->tc_index, which nothing
 * else uses and which both hooks of the uplink clear: "from a port, decided already".
 */
#define DECIDED 0x6879

struct mac_pair {
	__u64 dst;
	__u64 src;
	__be16 proto;
};

/* In a frame, where loads need no alignment. */
/*
 * A number from 1 to `most`, a power of two, as every verifier understands it. That of Linux 6.12 does not when the compiler
 * makes one comparison of both bounds: it compares a copy, and then a read may be of 0 octets, or of 4 GiB.
 */
#define from_1_to(most, number) \
	({ \
		__u32 less = (number) - 1; \
		barrier_var(less); \
		(less & ((most) - 1)) + 1; \
	})

static __always_inline __u64 mac_at(const void *p)
{
	return *(const __u32 *)p | (__u64) * (const __u16 *)(p + 4) << 32;
}

/* Anywhere. */
static __always_inline __u64 mac_from(const __u8 *p)
{
	__u64 mac = 0;

	__builtin_memcpy(&mac, p, 6);
	return mac;
}

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* 0x9100 to 0x9300: a tag for some switches, since before there was a type for a service's. */
static __always_inline bool is_old_tag(__be16 proto)
{
	return (proto & bpf_htons(0xfcff)) == bpf_htons(0x9000) && proto != bpf_htons(0x9000);
}

/* 01:80:c2:00:00:00 to 0f: between neighbours only (STP, LLDP, pause, LACP). */
static __always_inline bool is_reserved(__u64 mac)
{
	return (mac & 0xf0ffffffffffULL) == 0x0000c28001ULL;
}

/*
 * What switches tell each other across bridges, and some believe of anybody: 01:80:c2:00:00:20 to 2f (MVRP, GARP), 01:00:0c:cc:cc:cc
 * and cd (one maker's: CDP, VTP, DTP, a spanning tree for each VLAN).
 */
static __always_inline bool is_of_switches(__u64 mac)
{
	return (mac & 0xf0ffffffffffULL) == 0x200000c28001ULL || (mac & 0xfeffffffffffULL) == 0xcccccc0c0001ULL;
}

static __always_inline bool is_group(__u64 mac)
{
	return mac & GROUP_BIT;
}

/* Reads the addresses and the type; false for a frame too short to have them. */
static __always_inline bool read_macs(const struct __sk_buff *skb, struct mac_pair *macs)
{
	const void *data = (const void *)(long)skb->data;
	const void *end = (const void *)(long)skb->data_end;
	const struct ethhdr *eth = data;

	if (data + sizeof(*eth) > end)
		return false;
	macs->dst = mac_at(eth->h_dest);
	macs->src = mac_at(eth->h_source);
	macs->proto = eth->h_proto;
	return true;
}

/* The uplink is a trunk: what comes from a VLAN's port has its tag there. */
static __always_inline bool tag(struct __sk_buff *skb, __u16 vlan)
{
	skb->tc_index = DECIDED;
	return !vlan || !bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), vlan);
}

/* Does the frame fit the device? `sure` spares the question to the device. */
static __always_inline bool fits(struct __sk_buff *skb, __u32 ifindex, __u32 sure)
{
	__u32 mtu = 0;

	if (skb->len <= sure)
		return true;
	/* Negative: the kernel cannot tell; the device will. */
	return bpf_check_mtu(skb, ifindex, &mtu, 0, BPF_MTU_CHK_SEGS) <= 0;
}
