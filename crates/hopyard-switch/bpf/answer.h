/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Answers to "who has this address?" from the table, so that the question goes to nobody else:
 * ARP (RFC 826) and neighbour solicitation (RFC 4861, 7.2). The frame itself becomes the answer.
 */
#pragma once

#include "claims.h"
#include "common.h"
#include "maps.h"

#include <linux/ipv6.h>

/* ICMPv6 neighbour solicitation or advertisement with one link-layer address option. */
struct nd_message {
	__u8 kind, code;
	__be16 check;
	__be32 flags;
	__u8 target[16];
	__u8 option, option_len;
	__u8 mac[6];
};

#define ND_SOLICITED_OVERRIDE bpf_htonl(0x60000000)
#define ND_ROUTER bpf_htonl(0x80000000)

static __always_inline void put_mac(__u8 *to, __u64 mac)
{
	__builtin_memcpy(to, &mac, 6);
}

/* Who the asker may know of: not itself, and nobody from whom isolation keeps it. */
static __always_inline const struct address *known(const struct address_key *key, __u32 slot)
{
	const struct address *address = bpf_map_lookup_elem(&addresses, key);
	const struct port *asker;

	/* The host and its gateways answer for themselves. */
	if (!address || address->slot == slot || address->slot < FIRST_PORT)
		return NULL;
	if (slot < FIRST_PORT)
		return address;
	asker = bpf_map_lookup_elem(&ports, &slot);
	if (!asker || (asker->flags | address->port_flags) & PORT_ISOLATED)
		return NULL;
	return address;
}

static __always_inline bool turn_round(struct __sk_buff *skb, __u64 asker, __u64 owner)
{
	__u8 macs[12];

	put_mac(macs, asker);
	put_mac(macs + 6, owner);
	return !bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0);
}

static __noinline bool answer_arp(struct __sk_buff *skb, __u32 slot, __u16 vlan, __u64 asker)
{
	const struct address *owner;
	struct arp_message arp;
	struct address_key key;
	__u8 asked[4];
	__u64 mac;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &arp, sizeof(arp)))
		return false;
	/* A probe or an announcement is for everybody to hear. */
	if (!is_arp_of_ipv4(&arp) || arp.operation != bpf_htons(ARP_REQUEST) || is_zero4(arp.sender_ip) ||
	    !__builtin_memcmp(arp.sender_ip, arp.target_ip, 4))
		return false;
	ipv4_key(&key, arp.target_ip, vlan);
	owner = known(&key, slot);
	if (!owner)
		return false;
	mac = owner->mac;
	__builtin_memcpy(asked, arp.target_ip, 4);
	arp.operation = bpf_htons(ARP_REPLY);
	__builtin_memcpy(arp.target_mac, arp.sender_mac, 6);
	__builtin_memcpy(arp.target_ip, arp.sender_ip, 4);
	put_mac(arp.sender_mac, mac);
	__builtin_memcpy(arp.sender_ip, asked, 4);
	return !bpf_skb_store_bytes(skb, ETH_HLEN, &arp, sizeof(arp), 0) &&
	       turn_round(skb, asker, mac);
}

static __always_inline __sum16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static __noinline bool answer_nd(struct __sk_buff *skb, __u32 slot, __u16 vlan, __u64 asker)
{
	struct {
		struct ipv6hdr ip;
		struct nd_message nd;
	} packet;
	struct {
		__be32 len, next;
	} pseudo = { bpf_htonl(sizeof(packet.nd)), bpf_htonl(IPPROTO_ICMPV6) };
	const struct address *owner;
	struct address_key key;
	__s64 sum;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &packet, sizeof(packet)))
		return false;
	/* One without its sender's address tries an address out: for everybody to hear. */
	if (packet.ip.version != 6 || packet.ip.nexthdr != IPPROTO_ICMPV6 || packet.ip.hop_limit != 255 ||
	    packet.ip.payload_len != bpf_htons(sizeof(packet.nd)) ||
	    packet.nd.kind != ND_SOLICIT || packet.nd.code || packet.nd.option != ND_SOURCE_MAC ||
	    packet.nd.option_len != 1 || is_zero6(packet.ip.saddr.in6_u.u6_addr8))
		return false;
	__builtin_memcpy(key.ip, packet.nd.target, 16);
	key.vlan = vlan;
	owner = known(&key, slot);
	if (!owner)
		return false;
	packet.ip.daddr = packet.ip.saddr;
	__builtin_memcpy(&packet.ip.saddr, packet.nd.target, 16);
	packet.nd.kind = ND_ADVERT;
	packet.nd.code = 0;
	packet.nd.flags = ND_SOLICITED_OVERRIDE | (owner->port_flags & PORT_ROUTER ? ND_ROUTER : 0);
	packet.nd.option = ND_TARGET_MAC;
	put_mac(packet.nd.mac, owner->mac);
	packet.nd.check = 0;
	sum = bpf_csum_diff(NULL, 0, (void *)&packet.ip.saddr, 32, 0);
	sum = bpf_csum_diff(NULL, 0, (void *)&pseudo, sizeof(pseudo), sum);
	sum = bpf_csum_diff(NULL, 0, (void *)&packet.nd, sizeof(packet.nd), sum);
	if (sum < 0)
		return false;
	packet.nd.check = fold(sum);
	return !bpf_skb_store_bytes(skb, ETH_HLEN, &packet, sizeof(packet), 0) &&
	       turn_round(skb, asker, owner->mac);
}

/* Has the frame been turned into the answer to itself? */
__noinline bool answer(struct __sk_buff *skb, __u32 slot, __u16 vlan, __u64 asker,
			      __be16 proto)
{
	struct config *sw = the_switch();
	struct counters *c;
	bool done;

	if (!sw || !(sw->flags & SWITCH_ANSWERS))
		return false;
	if (proto == bpf_htons(ETH_P_ARP))
		done = answer_arp(skb, slot, vlan, asker);
	else if (proto == bpf_htons(ETH_P_IPV6))
		done = answer_nd(skb, slot, vlan, asker);
	else
		return false;
	c = counters_of(slot);
	if (done && c)
		c->answered++;
	return done;
}
