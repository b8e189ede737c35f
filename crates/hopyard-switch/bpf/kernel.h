/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the kernel knows and does not show to programs. Of a frame (struct sk_buff): whether its checksum is still to be
 * written, and where. Its sender chose the place if it was a socket with PACKET_VNET_HDR or a tap with IFF_VNET_HDR. Of a
 * device (struct net_device): whether it takes frames.
 */
#pragma once

#include "common.h"

#include <bpf/bpf_core_read.h>

struct net;

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	unsigned long state;
	__u32 ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

/* Stands for whatever begins with a pointer. */
struct list_head {
	struct list_head *next;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
	__u8 ip_summed : 2;
	__u16 csum_start;
	__u16 csum_offset;
	__u16 mac_header;
} __attribute__((preserve_access_index));

#define CHECKSUM_PARTIAL 3

/*
 * bpf_cast_to_kern_ctx and bpf_rdonly_cast (Linux 6.2), which the kernel turns into moves. The loader puts the functions'
 * numbers in place of these (src/kernel_function.rs).
 */
static const struct sk_buff *(*const cast_to_kern_ctx)(struct __sk_buff *) = (void *)0x6b65726e;
static const void *(*const rdonly_cast)(__u64 address, __u32 type) = (void *)0x6b65726f;

struct deferred {
	bool is;
	__u32 start;  /* summed from here on, octets into the frame */
	__u32 offset; /* written so many octets behind */
};

static __always_inline bool is_deferred(const struct sk_buff *skb)
{
	return BPF_CORE_READ_BITFIELD(skb, ip_summed) == CHECKSUM_PARTIAL;
}

/* csum_start counts from the buffer's beginning, as mac_header does. */
static __always_inline __u32 summed_from(const struct sk_buff *skb)
{
	return (__u16)(skb->csum_start - skb->mac_header);
}

static __always_inline struct deferred deferred_of(struct __sk_buff *ctx)
{
	const struct sk_buff *skb = cast_to_kern_ctx(ctx);
	struct deferred sum = {};

	if (is_deferred(skb)) {
		sum.is = true;
		sum.start = summed_from(skb);
		sum.offset = skb->csum_offset;
	}
	return sum;
}

/* Is the checksum written already, or to be written at this place? */
static __always_inline bool is_deferred_at(struct __sk_buff *ctx, __u32 start, __u32 offset)
{
	const struct sk_buff *skb = cast_to_kern_ctx(ctx);

	return !is_deferred(skb) || (summed_from(skb) == start && skb->csum_offset == offset);
}

/* Bits of a device's state (enum netdev_state_t). A veth's or netkit's end has no carrier while either end is down, a tap
 * has none while no program has it open. */
#define LINK_STARTED 1
#define LINK_NO_CARRIER 4

/* Where the private part of a device begins (netdev_priv). */
#define NETDEV_ALIGN 32
#define private_part_of(device) \
	((device) + ((bpf_core_type_size(struct net_device) + NETDEV_ALIGN - 1) & -NETDEV_ALIGN))

/* The other end of a pair: what the private part of a veth or netkit begins with (struct veth_priv, struct netkit). */
static __always_inline const struct net_device *peer_of(__u64 address)
{
	const struct list_head *private_part =
		rdonly_cast(private_part_of(address), bpf_core_type_id_kernel(struct list_head));

	return rdonly_cast((__u64)private_part->next, bpf_core_type_id_kernel(struct net_device));
}

/*
 * Is the other end of a pair in another namespace than this one? Only then can a frame be handed over, or the kernel drops
 * it. The device must be there (see takes_frames).
 */
static __always_inline bool peer_is_elsewhere(__u64 address)
{
	const struct net_device *dev =
		rdonly_cast(address, bpf_core_type_id_kernel(struct net_device));

	return peer_of(address)->nd_net.net != dev->nd_net.net;
}

/*
 * Is a device up, and has it a carrier where that matters? The kernel drops redirected frames to it otherwise, after the
 * program has ended. The address of the device was learned when it came to the switch. Another number there means that
 * the device is gone, or in another namespace: whoever has the number by now is no port. A load from an address that is not
 * mapped gives 0.
 */
static __always_inline bool takes_frames(__u64 address, __u32 ifindex, bool needs_carrier)
{
	const struct net_device *dev =
		rdonly_cast(address, bpf_core_type_id_kernel(struct net_device));
	unsigned long no = needs_carrier ? LINK_NO_CARRIER : 0;

	if (dev->ifindex != ifindex)
		return false;
	return (dev->state & (LINK_STARTED | no)) == LINK_STARTED;
}
