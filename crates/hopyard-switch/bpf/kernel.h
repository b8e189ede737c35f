/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a frame's buffer says to the kernel alone (struct sk_buff): whether its checksum is still to be written, and
 * where. Its sender chose the place if it was a socket with PACKET_VNET_HDR or a tap with IFF_VNET_HDR.
 */
#pragma once

#include "common.h"

#include <bpf/bpf_core_read.h>

struct sk_buff {
	__u8 ip_summed : 2;
	__u16 csum_start;
	__u16 csum_offset;
	__u16 mac_header;
} __attribute__((preserve_access_index));

#define CHECKSUM_PARTIAL 3

/*
 * bpf_cast_to_kern_ctx (Linux 6.2), which the kernel turns into a move. The loader puts the function's number in place of
 * this one (src/programs.rs).
 */
static const struct sk_buff *(*const cast_to_kern_ctx)(struct __sk_buff *) = (void *)0x6b65726e;

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
