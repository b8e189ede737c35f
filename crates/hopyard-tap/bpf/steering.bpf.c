/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which queue of a tap or tun gets a frame (TUNSETSTEERINGEBPF). The kernel takes the low 16 bits of the
 * answer modulo the number of attached queues (tun_ebpf_select_queue).
 *
 * The packet is read and not skb->hash, which is 0 for what sockets of this host send over UDP.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "flow.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MAX_PINS 65536
#define MAX_TAGS 2
#define IP_OFFSET 0x1fff
#define IP_MF 0x2000
#define NEXTHDR_FRAGMENT 44

/* Bytes before the IP header, without VLAN tags: 14 on a tap, 0 on a tun. */
const volatile __u32 link_header;
/* How many of the first queues get frames by hash; 0 is all. */
const volatile __u32 queues;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PINS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct flow);
	__type(value, __u32);
} pins SEC(".maps");

/* The Ethernet type behind tags that are in the frame, and where what follows it begins. */
static __always_inline __be16 find_network(const struct __sk_buff *skb, __u32 *at)
{
	__be16 proto = 0;
	__u8 version = 0;

	*at = link_header;
	if (!link_header) {
		if (bpf_skb_load_bytes(skb, 0, &version, sizeof(version)))
			return 0;
		return bpf_htons(version >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP);
	}
	for (int tags = 0; tags <= MAX_TAGS; tags++) {
		if (bpf_skb_load_bytes(skb, *at - 2, &proto, sizeof(proto)))
			return 0;
		if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
			return proto;
		*at += 4;
	}
	return proto;
}

static __always_inline void read_ports(const struct __sk_buff *skb, __u32 at, struct flow *flow)
{
	__be16 ports[2];

	if (flow->protocol != IPPROTO_TCP && flow->protocol != IPPROTO_UDP &&
	    flow->protocol != IPPROTO_SCTP)
		return;
	if (bpf_skb_load_bytes(skb, at, ports, sizeof(ports)))
		return;
	flow->source_port = ports[0];
	flow->destination_port = ports[1];
}

static __always_inline bool read_v4(const struct __sk_buff *skb, __u32 at, struct flow *flow)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
		return false;
	flow->source[2] = flow->destination[2] = bpf_htonl(0xffff);
	flow->source[3] = ip.saddr;
	flow->destination[3] = ip.daddr;
	flow->protocol = ip.protocol;
	if (!(ip.frag_off & bpf_htons(IP_MF | IP_OFFSET)))
		read_ports(skb, at + ip.ihl * 4, flow);
	return true;
}

static __always_inline bool read_v6(const struct __sk_buff *skb, __u32 at, struct flow *flow)
{
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
		return false;
	__builtin_memcpy(flow->source, &ip.saddr, sizeof(flow->source));
	__builtin_memcpy(flow->destination, &ip.daddr, sizeof(flow->destination));
	flow->protocol = ip.nexthdr;
	if (flow->protocol == NEXTHDR_FRAGMENT) {
		/* Its first byte is the protocol of what was cut. */
		return !bpf_skb_load_bytes(skb, at + sizeof(ip), &flow->protocol, 1);
	}
	read_ports(skb, at + sizeof(ip), flow);
	return true;
}

static __always_inline bool read_flow(const struct __sk_buff *skb, struct flow *flow)
{
	__u32 at;
	__be16 proto = find_network(skb, &at);

	if (proto == bpf_htons(ETH_P_IP))
		return read_v4(skb, at, flow);
	if (proto == bpf_htons(ETH_P_IPV6))
		return read_v6(skb, at, flow);
	return false;
}

/* All that is not IP goes to queue 0, in the order it came. */
static __always_inline __u32 by_hash(const struct flow *flow)
{
	__u32 hash = hash_flow(flow);

	hash = (hash ^ hash >> 16) & 0xffff;
	return queues ? hash % queues : hash;
}

SEC("socket")
int hopyard_hash(struct __sk_buff *skb)
{
	struct flow flow = {};

	return read_flow(skb, &flow) ? by_hash(&flow) : 0;
}

SEC("socket")
int hopyard_cpu(struct __sk_buff *skb)
{
	(void)skb;
	return bpf_get_smp_processor_id();
}

SEC("socket")
int hopyard_pinned(struct __sk_buff *skb)
{
	struct flow flow = {};
	const __u32 *queue;

	if (!read_flow(skb, &flow))
		return 0;
	queue = bpf_map_lookup_elem(&pins, &flow);
	return queue ? *queue : by_hash(&flow);
}
