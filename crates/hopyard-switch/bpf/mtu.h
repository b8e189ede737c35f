/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A frame that is longer than its receiver takes: it is dropped, and its sender is told what would fit, by ICMP "fragmentation
 * needed" (RFC 1191) or ICMPv6 "packet too big" (RFC 4443, 3.2). The frame itself becomes the message. Nothing here runs for
 * a frame that fits.
 *
 * The switch has no address. The message comes from the address that the packet was sent to, of IP and of Ethernet: the
 * sender has a way there, so that no check of sources stops the message, and the address cannot be anybody else's.
 */
#pragma once

#include "answer.h"
#include "claims.h"
#include "common.h"
#include "kernel.h"
#include "maps.h"
#include "trace.h"

/* Of ICMP and ICMPv6; <linux/icmp.h> takes the C library. */
#define ICMP_ECHOREPLY 0
#define ICMP_DEST_UNREACH 3
#define ICMP_FRAG_NEEDED 4
#define ICMP_ECHO 8
#define ICMP_TIMESTAMP 13
#define ICMP_ADDRESSREPLY 18
#define ICMPV6_PKT_TOOBIG 2
#define ICMPV6_INFORMATION 0x80

/* To each party from each CPU; so many at once after a second without. */
#define TOO_BIG_PER_S 100

/* Octets of the packet that are quoted, in steps in which they are summed up: the message has at most 576 octets
 * (RFC 1812, 4.3.2.3) or 1280 (RFC 4443, 2.4 c). */
#define STEP 64
#define QUOTED4 (8 * STEP)
#define QUOTED6 (19 * STEP)
/* What the receiver has to know of the transport header (RFC 792). */
#define LEAST_TRANSPORT 8

#define IPV4_DF 0x4000
#define IPV4_OFFSET 0x1fff
/* Internetwork control, as the kernel marks its own. */
#define MESSAGE_TOS 0xc0
#define MESSAGE_TTL 64

struct icmp_head {
	__u8 kind, code;
	__be16 check;
	__be32 mtu;
};

struct message4 {
	struct ipv4_start ip;
	struct icmp_head icmp;
};

struct message6 {
	struct ipv6hdr ip;
	struct icmp_head icmp;
};

/* How the packet is quoted. */
struct quote {
	__u32 len;    /* octets; whole steps */
	__u32 header; /* of them before the transport header */
	__u32 check;  /* where a checksum that is still to be written goes, behind that; 0: there is none */
};

static __always_inline bool may_tell(__u32 slot)
{
	struct counters *c = counters_of(slot);
	__u64 now = bpf_ktime_get_ns();
	__u64 from;

	if (!c)
		return false;
	from = c->told_to > now ? c->told_to : now;
	if (from + NS_PER_S / TOO_BIG_PER_S > now + NS_PER_S)
		return false;
	c->told_to = from + NS_PER_S / TOO_BIG_PER_S;
	c->too_big++;
	return true;
}

/* Plans a quote; false where it would not tell enough. */
static __always_inline bool plan_quote(struct __sk_buff *skb, struct quote *quote, __u32 most, __u32 header,
				       __u8 protocol)
{
	struct deferred sum = deferred_of(skb);
	__u32 len = skb->len - ETH_HLEN;

	if (len > most)
		len = most;
	quote->len = len & -STEP;
	quote->header = header;
	quote->check = 0;
	if (sum.is) {
		/* In a tunnel it may lie behind the quote. */
		if (sum.start != ETH_HLEN + header || !((protocol == IPPROTO_TCP && sum.offset == 16) ||
							(protocol == IPPROTO_UDP && sum.offset == 6)))
			return false;
		quote->check = sum.offset;
	}
	return header + quote->check + LEAST_TRANSPORT <= quote->len;
}

/* Cuts the frame to the quote, and makes room before it for the headers of the message. */
static __always_inline bool make_room(struct __sk_buff *skb, const struct quote *quote, __u32 room)
{
	/* Also ends its being a GSO packet. */
	return !bpf_skb_change_tail(skb, ETH_HLEN + quote->len, 0) &&
	       !bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, 0);
}

/* The sum of the octets from `at` on, which are whole steps; negative: it cannot be had. */
__noinline __s64 sum_of(struct __sk_buff *skb, __u32 at, __u32 len)
{
	__u8 octets[STEP];
	__s64 sum = 0;
	int i;

	for (i = 0; i < QUOTED6 / STEP && len; i++) {
		if (bpf_skb_load_bytes(skb, at, octets, sizeof(octets)))
			return -1;
		sum = bpf_csum_diff(NULL, 0, (void *)octets, sizeof(octets), sum);
		at += STEP;
		len -= STEP;
	}
	return len ? -1 : sum;
}

/* A sum as a number of 16 bits; modulo 65535, where sums of the internet are at home. */
static __always_inline __u32 folded(__s64 sum)
{
	return (__u16)~fold(sum);
}

/*
 * The skb says that a checksum is still to be written, and no program can take that back: whoever sends the message out will
 * sum up the quote from its transport header on, and write the complement into the quote. So that neither the quote nor
 * the checksum of the message changes then, the value there must be the one that will be written. With `rest`, the sum of
 * what else is summed up, that is the v with v = -(rest + v), which is -rest / 2. Modulo 65535, 2 has the inverse 0x8000.
 */
__noinline bool settle_checksum(struct __sk_buff *skb, __u32 at, __u32 len, __u32 header, __u32 check)
{
	__s64 sum = sum_of(skb, at, len);
	__u8 before[STEP] = {};
	__u32 rest;
	__u16 value;

	if (sum < 0 || header < 1 || header > sizeof(before) ||
	    bpf_skb_load_bytes(skb, at, before, from_1_to(STEP, header)))
		return false;
	at += header + check;
	if (bpf_skb_load_bytes(skb, at, &value, sizeof(value)))
		return false;
	rest = folded(sum) + 0xffff - folded(bpf_csum_diff(NULL, 0, (void *)before, sizeof(before), 0)) +
	       0xffff - value;
	value = (0xffff - rest % 0xffff) * 0x8000 % 0xffff;
	return !bpf_skb_store_bytes(skb, at, &value, sizeof(value), BPF_F_RECOMPUTE_CSUM);
}

/* The sum of the quote behind the headers of a message, negative where it cannot be had. */
static __always_inline __s64 sum_of_quote(struct __sk_buff *skb, const struct quote *quote, __u32 at)
{
	if (quote->check && !settle_checksum(skb, at, quote->len, quote->header, quote->check))
		return -1;
	return sum_of(skb, at, quote->len);
}

/* Does ICMP of this kind ask or answer? All else tells of an error, or is not known: never answered with an error. */
static __always_inline bool is_query4(__u8 kind)
{
	return kind == ICMP_ECHO || kind == ICMP_ECHOREPLY || (kind >= ICMP_TIMESTAMP && kind <= ICMP_ADDRESSREPLY);
}

/* One station, rather than none, many, or the sender itself. */
static __always_inline bool is_station4(const __u8 *ip)
{
	return ip[0] && ip[0] < 224 && ip[0] != 127;
}

/* May the sender of a packet be told? Only of one that must not be cut into fragments, and is what its frame has. */
static __always_inline bool is_answerable4(struct __sk_buff *skb, const struct ipv4_start *ip, __u32 header)
{
	__u8 kind;

	if (ip->version_ihl >> 4 != 4 || header < sizeof(*ip) ||
	    (ip->fragment & bpf_htons(IPV4_DF | IPV4_OFFSET)) != bpf_htons(IPV4_DF))
		return false;
	if (!skb->gso_size && bpf_ntohs(ip->len) != skb->len - ETH_HLEN)
		return false;
	if (!is_station4(ip->src) || !is_station4(ip->dst))
		return false;
	return ip->protocol != IPPROTO_ICMP ||
	       (!bpf_skb_load_bytes(skb, ETH_HLEN + header, &kind, sizeof(kind)) && is_query4(kind));
}

/* Has the frame become the message? */
__noinline bool tell4(struct __sk_buff *skb, __u32 from, __u32 mtu)
{
	struct message4 message;
	struct ipv4_start ip;
	struct quote quote;
	__u32 header;
	__s64 sum;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return false;
	header = (ip.version_ihl & 0x0f) * 4;
	if (!is_answerable4(skb, &ip, header) || !plan_quote(skb, &quote, QUOTED4, header, ip.protocol) ||
	    !may_tell(from) || !make_room(skb, &quote, sizeof(message)))
		return false;
	__builtin_memset(&message, 0, sizeof(message));
	message.ip.version_ihl = 0x45;
	message.ip.tos = MESSAGE_TOS;
	message.ip.len = bpf_htons(sizeof(message) + quote.len);
	message.ip.ttl = MESSAGE_TTL;
	message.ip.protocol = IPPROTO_ICMP;
	__builtin_memcpy(message.ip.src, ip.dst, 4);
	__builtin_memcpy(message.ip.dst, ip.src, 4);
	message.ip.check = fold(bpf_csum_diff(NULL, 0, (void *)&message.ip, sizeof(message.ip), 0));
	message.icmp.kind = ICMP_DEST_UNREACH;
	message.icmp.code = ICMP_FRAG_NEEDED;
	message.icmp.mtu = bpf_htonl(mtu);
	sum = sum_of_quote(skb, &quote, ETH_HLEN + sizeof(message));
	if (sum < 0)
		return false;
	message.icmp.check = fold(bpf_csum_diff(NULL, 0, (void *)&message.icmp, sizeof(message.icmp), sum));
	return !bpf_skb_store_bytes(skb, ETH_HLEN, &message, sizeof(message), BPF_F_RECOMPUTE_CSUM);
}

static __always_inline bool is_answerable6(struct __sk_buff *skb, const struct ipv6hdr *ip, struct upper *up)
{
	struct claimant who = { .skb = skb };
	__u32 end = skb->gso_size ? skb->len : end_of(skb, ip);
	__u8 kind;

	if (ip->version != 6 || end != skb->len || !find_upper(&who, ip->nexthdr, end, up) || up->later_fragment)
		return false;
	if (is_zero6(ip->saddr.in6_u.u6_addr8) || ip->saddr.in6_u.u6_addr8[0] == 0xff ||
	    ip->daddr.in6_u.u6_addr8[0] == 0xff)
		return false;
	/* RFC 4443, 2.4 e. */
	return up->protocol != IPPROTO_ICMPV6 || (!bpf_skb_load_bytes(skb, up->at, &kind, sizeof(kind)) &&
						  kind & ICMPV6_INFORMATION && kind != ND_REDIRECT);
}

/* The same of IPv6. */
__noinline bool tell6(struct __sk_buff *skb, __u32 from, __u32 mtu)
{
	struct {
		__be32 len, next;
	} pseudo = { 0, bpf_htonl(IPPROTO_ICMPV6) };
	struct message6 message;
	struct ipv6hdr ip;
	struct quote quote;
	struct upper up;
	__s64 sum;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || !is_answerable6(skb, &ip, &up) ||
	    !plan_quote(skb, &quote, QUOTED6, up.at - ETH_HLEN, up.protocol) || !may_tell(from) ||
	    !make_room(skb, &quote, sizeof(message)))
		return false;
	__builtin_memset(&message, 0, sizeof(message));
	message.ip.version = 6;
	message.ip.payload_len = bpf_htons(sizeof(message.icmp) + quote.len);
	message.ip.nexthdr = IPPROTO_ICMPV6;
	message.ip.hop_limit = MESSAGE_TTL;
	message.ip.saddr = ip.daddr;
	message.ip.daddr = ip.saddr;
	message.icmp.kind = ICMPV6_PKT_TOOBIG;
	message.icmp.mtu = bpf_htonl(mtu);
	sum = sum_of_quote(skb, &quote, ETH_HLEN + sizeof(message));
	if (sum < 0)
		return false;
	pseudo.len = bpf_htonl(sizeof(message.icmp) + quote.len);
	sum = bpf_csum_diff(NULL, 0, (void *)&pseudo, sizeof(pseudo), sum);
	sum = bpf_csum_diff(NULL, 0, (void *)&message.ip.saddr, 32, sum);
	message.icmp.check = fold(bpf_csum_diff(NULL, 0, (void *)&message.icmp, sizeof(message.icmp), sum));
	return !bpf_skb_store_bytes(skb, ETH_HLEN, &message, sizeof(message), BPF_F_RECOMPUTE_CSUM);
}

/*
 * Drops a frame of the party `from` that `ifindex`, the device of the party `to`, does not take, and tells the sender, who is
 * in `vlan` if it is at the uplink.
 */
__noinline int too_long(struct __sk_buff *skb, __u32 from, __u32 to, __u32 ifindex, __u16 vlan)
{
	struct mac_pair macs;
	__u32 mtu = 0;

	drop_to(skb, from, to, DROP_MTU);
	if (!read_macs(skb, &macs) || is_group(macs.src) || macs.proto != skb->protocol ||
	    bpf_check_mtu(skb, ifindex, &mtu, 0, BPF_MTU_CHK_SEGS) <= 0 || mtu > 0xffff)
		return VERDICT_DROP;
	if (macs.proto == bpf_htons(ETH_P_IP)) {
		if (!tell4(skb, from, mtu))
			return VERDICT_DROP;
	} else if (macs.proto != bpf_htons(ETH_P_IPV6) || !tell6(skb, from, mtu)) {
		return VERDICT_DROP;
	}
	if (!turn_round(skb, macs.src, macs.dst))
		return VERDICT_DROP;
	if (from >= FIRST_PORT)
		return bpf_redirect(skb->ifindex, 0);
	if (!tag(skb, vlan))
		return VERDICT_DROP;
	return bpf_redirect(skb->ifindex, from == SLOT_HOST ? BPF_F_INGRESS : 0);
}
