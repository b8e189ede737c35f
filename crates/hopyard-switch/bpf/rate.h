/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How fast frames pass a port, each way by itself: a token bucket that drops what is beyond (policing). Nothing here runs for a
 * port without a limit: the flags that lead here are tested together with others that are tested for every frame.
 */
#pragma once

#include "claims.h"
#include "common.h"
#include "maps.h"

/* Octets of the headers that each segment of a GSO packet will have; of a tunnel the outer ones alone. */
static __noinline __u32 headers_of(struct __sk_buff *skb)
{
	__u32 len = ETH_HLEN;
	__u8 first, protocol, words;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, len, &first, 1) ||
		    bpf_skb_load_bytes(skb, len + 9, &protocol, 1))
			return len;
		len += (first & 0x0f) * 4;
	} else {
		if (bpf_skb_load_bytes(skb, len + 6, &protocol, 1))
			return len;
		len += sizeof(struct ipv6hdr);
	}
	if (protocol == IPPROTO_UDP)
		return len + 8;
	if (protocol != IPPROTO_TCP || bpf_skb_load_bytes(skb, len + 12, &words, 1))
		return len;
	return len + (words >> 4) * 4;
}

/* Octets of the frames that a packet is or will be cut into, each from its addresses to the end of its contents. */
static __always_inline __u64 frames_len(struct __sk_buff *skb)
{
	__u32 size = skb->gso_size;
	__u32 len = skb->len;
	__u32 headers;

	if (!size)
		return len;
	headers = headers_of(skb);
	if (len <= headers + size)
		return len;
	return len + (__u64)headers * ((len - headers - 1) / size);
}

/* ARP and neighbour discovery may use up so much more: who floods a port must not keep others from finding it. */
#define RESERVE (1000000000ULL * RATE_UNITS_PER_NS)

static __noinline bool finds_neighbours(struct __sk_buff *skb)
{
	__u8 next, kind;

	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return true;
	return skb->protocol == bpf_htons(ETH_P_IPV6) && !bpf_skb_load_bytes(skb, ETH_HLEN + 6, &next, 1) &&
	       next == IPPROTO_ICMPV6 &&
	       !bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &kind, 1) &&
	       kind >= ND_ROUTER_SOLICIT && kind <= ND_REDIRECT;
}

/*
 * A token bucket as in may_flood, with one difference: a frame may pass while there is anything left, and what it costs beyond
 * that is owed. Else no packet longer than the bucket is deep could ever pass.
 */
static __noinline bool is_paid(struct __sk_buff *skb, struct bucket *bucket)
{
	__u64 now = bpf_ktime_get_ns() * RATE_UNITS_PER_NS;
	__u64 price, seen, from;
	int i;

	if (!bucket)
		return false;
	price = (frames_len(skb) * bucket->per_byte + (1 << (RATE_SHIFT - 1))) >> RATE_SHIFT;
	for (i = 0; i < 8; i++) {
		seen = *(volatile __u64 *)&bucket->paid_to;
		if (seen >= now + bucket->depth &&
		    (seen >= now + bucket->depth + RESERVE || !finds_neighbours(skb)))
			return false;
		from = seen > now ? seen : now;
		if (__sync_val_compare_and_swap(&bucket->paid_to, seen, from + price) == seen)
			return true;
	}
	/* Other CPUs take from it over and over: so it is in use, and its time need not be set. */
	__sync_fetch_and_add(&bucket->paid_to, price);
	return true;
}

/* May the guest behind a port with PORT_RATE_OUT send this? */
__noinline bool may_send(struct __sk_buff *skb, __u32 slot)
{
	struct limits *limits = bpf_map_lookup_elem(&rates, &slot);

	return is_paid(skb, limits ? &limits->out : NULL);
}

/* May the guest behind a port with PORT_RATE_IN get this? */
__noinline bool may_get(struct __sk_buff *skb, __u32 slot)
{
	struct limits *limits = bpf_map_lookup_elem(&rates, &slot);
	struct counters *c;

	if (is_paid(skb, limits ? &limits->in : NULL))
		return true;
	c = counters_of(slot);
	if (c)
		c->over_rate++;
	return false;
}
