/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Copies of a group frame, one to each port of a VLAN.
 *
 * A copy to a veth waits in the queue of this CPU (netdev_max_backlog: 1,000 packets unless somebody changed it), which
 * is not served before the program ends. So it makes no more than COPIES_AT_ONCE, and one more that comes back to the
 * hook of an ingress through the same queue, behind them: there the rest is gone on with.
 */
#pragma once

#include "common.h"
#include "kernel.h"
#include "maps.h"
#include "rate.h"
#include "trace.h"

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stddef.h>

#define COPIES_AT_ONCE 32

/*
 * In skb->tc_index: a frame that comes back, its number in skb->mark. A guest may be able to set tc_index, and somewhere
 * perhaps mark, but it does not know the number of such a frame.
 */
#define CONTINUED 0x687a

/*
 * A token bucket, as the time up to which the port's frames are paid for: each frame puts it off by its price, and it
 * may lie no further ahead than what can be had at once.
 */
__noinline bool may_flood(__u32 slot, __u32 per_second)
{
	__u64 *paid_to = bpf_map_lookup_elem(&paid, &slot);
	__u64 now, seen, price;
	int i;

	if (per_second == BROADCASTS_UNLIMITED)
		return true;
	if (!per_second || !paid_to)
		return false;
	now = bpf_ktime_get_ns();
	price = NS_PER_S / per_second;
	for (i = 0; i < 8; i++) {
		seen = *(volatile __u64 *)paid_to;
		__u64 from = seen > now ? seen : now;

		if (from + price > now + BROADCAST_BURST_S * NS_PER_S)
			return false;
		if (__sync_val_compare_and_swap(paid_to, seen, from + price) == seen)
			return true;
	}
	return false; /* other CPUs send for the same port at once, over and over */
}

/* What one pass of a flood needs. */
struct pass {
	struct __sk_buff *skb;
	struct flood *flood;
	__u32 first; /* ports that were looked at before */
	__u32 left;  /* copies that it may make still */
};

static long flood_one(__u32 n, void *context)
{
	struct pass *pass = context;
	struct flood *flood = pass->flood;
	__u32 slot = flood->start + pass->first + n;
	struct port *to;

	slot = FIRST_PORT + (slot < flood->total ? slot : slot - flood->total);
	to = bpf_map_lookup_elem(&ports, &slot);
	if (!to || !to->ifindex || slot == flood->origin || to->vlan != flood->vlan)
		return 0;
	if (flood->flags & FLOOD_TO_ROUTERS && !(to->flags & PORT_ROUTER))
		return 0;
	/* Only between ports, and one of them is enough. */
	if (flood->origin >= FIRST_PORT && (to->flags | flood->flags) & PORT_ISOLATED) {
		drop_to(pass->skb, flood->origin, slot, DROP_ISOLATED);
		return 0;
	}
	if (to->flags & PORT_RATE_IN && !may_get(pass->skb, slot)) {
		drop_to(pass->skb, flood->origin, slot, DROP_RATE_IN);
		return 0;
	}
	if (!fits(pass->skb, to->ifindex, to->sure_len)) {
		drop_to(pass->skb, flood->origin, slot, DROP_MTU);
		return 0;
	}
	if (!takes_frames(to->net_device, to->ifindex, true)) {
		drop_to(pass->skb, flood->origin, slot, DROP_DOWN);
		return 0;
	}
	pass->left--;
	if (bpf_clone_redirect(pass->skb, to->ifindex, 0))
		drop_to(pass->skb, flood->origin, slot, DROP_DEVICE);
	else
		count_tx(slot, pass->skb->len);
	return !pass->left;
}

/* Has a copy of the frame come back to the ingress of its device, to go on there. */
static __always_inline void come_back(struct __sk_buff *skb, const struct flood *flood)
{
	__u32 number = bpf_get_prandom_u32();
	__u16 index = skb->tc_index;

	if (bpf_map_update_elem(&floods, &number, flood, BPF_NOEXIST)) {
		drop(skb, flood->origin, DROP_DEVICE);
		return;
	}
	skb->tc_index = CONTINUED;
	skb->mark = number;
	if (bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS)) {
		bpf_map_delete_elem(&floods, &number);
		drop(skb, flood->origin, DROP_DEVICE);
	}
	skb->tc_index = index;
	skb->mark = flood->mark;
}

static __noinline int flood_some(struct __sk_buff *skb, struct flood *flood)
{
	struct pass pass = {
		.skb = skb,
		.flood = flood,
		.first = flood->done,
		.left = COPIES_AT_ONCE,
	};
	long looked = bpf_loop(flood->total - flood->done, flood_one, &pass, 0);

	if (looked <= 0)
		return 0;
	flood->done += looked;
	if (flood->done < flood->total)
		come_back(skb, flood);
	return 0;
}

/*
 * Groups of routers alone: 224.0.0.2 and ff02::2 (all routers), 224.0.0.22 (RFC 3376, 4.2.14) and ff02::16 (RFC 3810, 5.2.14), to which
 * each host tells which groups it has joined. Other hosts have no use for that (RFC 4541, 2.1.1). Each shares its Ethernet address with
 * other groups, as 239.0.0.2.
 */
static __always_inline bool is_of_routers(struct __sk_buff *skb, const struct mac_pair *macs)
{
	__u32 last = macs->dst >> 40;
	__be32 ip[4];

	switch (macs->dst) {
	case 0x0200005e0001ULL:
	case 0x1600005e0001ULL:
		return macs->proto == bpf_htons(ETH_P_IP) &&
		       !bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, daddr), ip, 4) &&
		       ip[0] == bpf_htonl(0xe0000000 | last);
	case 0x020000003333ULL:
	case 0x160000003333ULL:
		return macs->proto == bpf_htons(ETH_P_IPV6) &&
		       !bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, daddr), ip, 16) &&
		       ip[0] == bpf_htonl(0xff020000) && !ip[1] && !ip[2] && ip[3] == bpf_htonl(last);
	}
	return false;
}

__noinline int flood_ports(struct __sk_buff *skb, __u32 origin, __u16 vlan, __u16 flags)
{
	struct flood flood = {
		.origin = origin,
		.mark = skb->mark,
		.vlan = vlan,
		.flags = flags,
	};
	struct config *sw = the_switch();
	struct mac_pair macs;
	__u32 slots;

	if (!sw)
		return 0;
	if (read_macs(skb, &macs) && is_of_routers(skb, &macs))
		flood.flags |= FLOOD_TO_ROUTERS;
	/* Once: it shrinks when ports go. A flood goes on with what it began with. */
	slots = *(volatile __u32 *)&sw->slots;
	if (slots <= FIRST_PORT)
		return 0;
	flood.total = slots - FIRST_PORT;
	flood.start = bpf_get_prandom_u32() % flood.total;
	return flood_some(skb, &flood);
}

/* Goes on with a frame that came back; false if it only looks like one. */
__noinline bool flood_on(struct __sk_buff *skb)
{
	struct flood flood, *found;
	__u32 number = skb->mark;

	found = bpf_map_lookup_elem(&floods, &number);
	if (!found)
		return false;
	flood = *found;
	bpf_map_delete_elem(&floods, &number);
	skb->tc_index = 0;
	skb->mark = flood.mark;
	flood_some(skb, &flood);
	return true;
}
