/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a port's frames claim about their sender, beyond the source address: IP sources of ports that
 * are held to theirs, ARP (RFC 826), neighbour discovery (RFC 4861) of all that may not lie. And what only some ports
 * may send: router advertisements (RFC 6105) and redirects of either IP, DHCP answers (RFC 7610), claims to the host's addresses.
 */
#pragma once

#include "common.h"
#include "kernel.h"
#include "maps.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ipv6.h>

#define CLAIMS_HOLD -1

/* Octets of Ethernet + IPv4 ARP. */
struct arp_message {
	__be16 hardware, protocol;
	__u8 hardware_len, protocol_len;
	__be16 operation;
	__u8 sender_mac[6], sender_ip[4], target_mac[6], target_ip[4];
} __attribute__((packed));

/*
 * With other lengths, the addresses would be elsewhere. The type of hardware is Ethernet or IEEE 802: Linux takes both from Ethernet
 * (`arp_process`).
 */
static __always_inline bool is_arp_of_ipv4(const struct arp_message *arp)
{
	return (arp->hardware == bpf_htons(1) || arp->hardware == bpf_htons(6)) && arp->protocol == bpf_htons(ETH_P_IP) &&
	       arp->hardware_len == 6 && arp->protocol_len == 4;
}

#define ARP_REQUEST 1
#define ARP_REPLY 2
#define ND_ROUTER_SOLICIT 133
#define ND_ROUTER_ADVERT 134
#define ND_SOLICIT 135
#define ND_ADVERT 136
#define ND_REDIRECT 137
#define ND_SOURCE_MAC 1
#define ND_TARGET_MAC 2
#define MLD2_REPORT 143
#define MLD_REPORT 131
#define MLD_DONE 132
#define ICMP_REDIRECT 5
#define ICMP_ROUTER_ADVERT 9
/* Longest chain of extension headers and longest list of options that is read; more is refused. */
#define MAX_HEADERS 8
#define MAX_OPTIONS 8
#define UDP_HEADER 8
#define DHCP_SERVER 67
#define DHCP_CLIENT 68
#define DHCPV6_CLIENT 546

struct claimant {
	struct __sk_buff *skb;
	__u64 mac;
	__u32 slot;
	__u16 vlan;
	__u16 flags;
	__u16 life;
};

static __always_inline bool is_held(const struct claimant *who)
{
	return who->flags & PORT_HELD;
}

/* May it speak for others? Not for the host and its gateways, nor as a server. */
static __always_inline bool is_free(const struct claimant *who)
{
	return who->flags & PORT_ANY_SOURCE && !is_held(who);
}

static __always_inline void ipv4_key(struct address_key *key, const __u8 *ip, __u16 vlan)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->ip[10] = 0xff;
	key->ip[11] = 0xff;
	__builtin_memcpy(key->ip + 12, ip, 4);
	key->vlan = vlan;
}

static __always_inline bool in_prefix(const struct claimant *who, const struct address_key *ip)
{
	const __u32 *word = (const void *)ip->ip;
	bool is_ipv4 = !word[0] && !word[1] && word[2] == bpf_htonl(0xffff);
	struct prefix_key key = {
		.length = PREFIX_WHOLE,
		.slot = is_ipv4 ? who->slot | PREFIX_IPV4 : who->slot,
	};

	__builtin_memcpy(key.ip, ip->ip, 16);
	return bpf_map_lookup_elem(&prefixes, &key);
}

/* The Ethernet address of which the identifier of an address below fe80:: is made (RFC 4291, appendix A); 0: of none. */
static __always_inline __u64 maker_of(const __u8 *ip)
{
	__u8 mac[6] = { ip[8] ^ 2, ip[9], ip[10], ip[13], ip[14], ip[15] };

	if (ip[0] != 0xfe || ip[1] != 0x80 || ip[2] | ip[3] | ip[4] | ip[5] | ip[6] | ip[7] || ip[11] != 0xff || ip[12] != 0xfe)
		return 0;
	return mac_from(mac);
}

/* An IPv4 address and the life of the port that used it; 0, which matches nothing, for a port that an earlier version added. */
static __always_inline __u64 ip_in_life(__u16 life, __u32 ip)
{
	return life ? (__u64)life << 32 | ip : 0;
}

/*
 * Notes for is_plain that the table gives an IPv4 address to the sender. That stays true as long as the port lives. A CPU may write
 * its note after the port is gone: then the life in it is not that of the slot's next port.
 */
static __always_inline void note_ip(const struct claimant *who, const struct address_key *key)
{
	const __u32 *word = (const void *)key->ip;
	struct counters *mine = counters_of(who->slot);

	if (mine && !word[0] && !word[1] && word[2] == bpf_htonl(0xffff))
		mine->last_ip = ip_in_life(who->life, word[3]);
}

/* Is the address the sender's, or, unless it is held to its own, nobody's that the table knows? */
static __noinline bool may_claim(const struct claimant *who, const struct address_key *key)
{
	const struct address *address = bpf_map_lookup_elem(&addresses, key);
	const struct station *made_of;
	__u64 maker;

	if (address && address->slot == who->slot) {
		note_ip(who, key);
		return true;
	}
	/* First: a port that may send from any Ethernet address would otherwise have the link-local address of a gateway. */
	if (address && address->slot < FIRST_PORT && !(who->flags & PORT_ROUTER))
		return false;
	maker = maker_of(key->ip);
	if (maker && maker == who->mac)
		return true;
	made_of = maker ? station_of(maker, who->vlan) : NULL;
	if ((address && address->slot >= FIRST_PORT) || (made_of && made_of->slot != who->slot))
		return is_free(who);
	return !is_held(who) || in_prefix(who, key);
}

static __always_inline bool is_zero4(const __u8 *ip)
{
	return !(ip[0] | ip[1] | ip[2] | ip[3]);
}

static __always_inline bool may_claim4(const struct claimant *who, const __u8 *ip)
{
	struct address_key key;

	ipv4_key(&key, ip, who->vlan);
	return may_claim(who, &key);
}

static __always_inline bool is_zero6(const __u8 *ip)
{
	const __u32 *word = (const void *)ip;

	return !(word[0] | word[1] | word[2] | word[3]);
}

static __always_inline bool may_claim6(const struct claimant *who, const __u8 *ip)
{
	struct address_key key;

	__builtin_memcpy(key.ip, ip, 16);
	key.vlan = who->vlan;
	return may_claim(who, &key);
}

static __noinline int check_arp(const struct claimant *who)
{
	struct arp_message arp;
	const __u8 *claimed;

	if (bpf_skb_load_bytes(who->skb, ETH_HLEN, &arp, sizeof(arp)) || !is_arp_of_ipv4(&arp))
		return is_free(who) ? CLAIMS_HOLD : DROP_MALFORMED;
	if (mac_from(arp.sender_mac) != who->mac && !is_free(who))
		return DROP_ARP;
	/* Who tries an address out keeps anybody else from having it (RFC 5227, 2.1.1). */
	claimed = is_zero4(arp.sender_ip) ? arp.target_ip : arp.sender_ip;
	if (!may_claim4(who, claimed))
		return DROP_ARP;
	return CLAIMS_HOLD;
}

struct ipv4_start {
	__u8 version_ihl, tos;
	__be16 len, id, fragment;
	__u8 ttl, protocol;
	__be16 check;
	__u8 src[4], dst[4];
};

/* Where the contents of an IP packet begin, and what they are. */
struct upper {
	__u32 at;
	__u8 protocol;
	__u8 fragment;
	__u8 later_fragment;
};

/*
 * Is the header of a UDP datagram within its packet? A first fragment has all headers (RFC 8200, 4.5): otherwise the second one
 * could bring the ports.
 */
static __always_inline bool has_udp_header(const struct upper *up, __u32 end)
{
	return up->protocol != IPPROTO_UDP || up->later_fragment || up->at + UDP_HEADER <= end;
}

/* The destination port of a UDP datagram; 0 of any other packet and of fragments that do not tell. */
static __always_inline __u16 udp_port(const struct claimant *who, const struct upper *up)
{
	__be16 port;

	if (up->protocol != IPPROTO_UDP || up->later_fragment ||
	    bpf_skb_load_bytes(who->skb, up->at + 2, &port, sizeof(port)))
		return 0;
	return bpf_ntohs(port);
}

/*
 * A checksum that is still to be written must be summed over a transport packet and go into its header where the
 * protocol has it, or belong to a packet within a tunnel: the sender chose the place, and what is written there has
 * been checked by then.
 */
static __always_inline bool is_deferred_well(const struct deferred *sum, const struct upper *up)
{
	if (up->later_fragment)
		return sum->start >= up->at;
	if (sum->start != up->at)
		return sum->start >= up->at + 8 && up->protocol != IPPROTO_ICMPV6;
	switch (up->protocol) {
	case IPPROTO_TCP:
		return sum->offset == 16;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_DCCP:
		return sum->offset == 6;
	case IPPROTO_SCTP:
		return sum->offset == 8;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return sum->offset == 2;
	}
	return false;
}

/* Does it tell others of a router: a redirect (RFC 792) or a router's advertisement (RFC 1256)? Of fragments, the first one has the type. */
static __always_inline bool tells_of_routers(const struct claimant *who, const struct upper *up)
{
	__u8 type;

	if (up->protocol != IPPROTO_ICMP || up->later_fragment || bpf_skb_load_bytes(who->skb, up->at, &type, sizeof(type)))
		return false;
	return type == ICMP_REDIRECT || type == ICMP_ROUTER_ADVERT;
}

static __noinline int check_ipv4(const struct claimant *who)
{
	struct deferred sum = deferred_of(who->skb);
	struct ipv4_start ip;
	struct upper up;
	__u32 header;
	__u16 port;

	if (bpf_skb_load_bytes(who->skb, ETH_HLEN, &ip, sizeof(ip)))
		return is_held(who) ? DROP_MALFORMED : sum.is ? DROP_CHECKSUM : CLAIMS_HOLD;
	header = (ip.version_ihl & 0x0f) * 4;
	/* Nobody takes such a packet. */
	if (ip.version_ihl >> 4 != 4 || header < sizeof(ip))
		return is_held(who) ? DROP_MALFORMED : sum.is ? DROP_CHECKSUM : CLAIMS_HOLD;
	up.at = ETH_HLEN + header;
	up.protocol = ip.protocol;
	up.fragment = !!(ip.fragment & bpf_htons(0x3fff));
	up.later_fragment = !!(ip.fragment & bpf_htons(0x1fff));
	if (sum.is && !is_deferred_well(&sum, &up))
		return DROP_CHECKSUM;
	port = udp_port(who, &up);
	if (is_held(who)) {
		/* Who has no address yet may ask a DHCP server for one. */
		if (is_zero4(ip.src) ? up.fragment || port != DHCP_SERVER : !may_claim4(who, ip.src))
			return DROP_IP;
	}
	if (port == DHCP_CLIENT && !(who->flags & PORT_DHCP))
		return DROP_DHCP;
	if (tells_of_routers(who, &up) && !(who->flags & PORT_ROUTER))
		return DROP_ND;
	return CLAIMS_HOLD;
}

/* Every link-layer address among a message's options must be the sender's. */
static __always_inline int check_nd_options(const struct claimant *who, __u32 at, __u32 end)
{
	struct {
		__u8 kind, len;
		__u8 mac[6];
	} option;
	int i;

	for (i = 0; i < MAX_OPTIONS && at + sizeof(option) <= end; i++) {
		if (bpf_skb_load_bytes(who->skb, at, &option, sizeof(option)))
			return DROP_MALFORMED;
		if (!option.len)
			return DROP_MALFORMED;
		if ((option.kind == ND_SOURCE_MAC || option.kind == ND_TARGET_MAC) &&
		    (option.len != 1 || mac_from(option.mac) != who->mac))
			return DROP_ND;
		at += (__u32)option.len * 8;
	}
	return at == end ? CLAIMS_HOLD : DROP_ND;
}

/* `tries`: the source is unspecified, so that a solicitation tries its target out. */
static __noinline int check_nd(const struct claimant *who, __u32 at, __u32 end, __u8 kind,
			       bool tries)
{
	__u32 fixed = kind == ND_ROUTER_SOLICIT ? 8 :
		      kind == ND_ROUTER_ADVERT  ? 16 :
		      kind == ND_REDIRECT	? 40 :
						  24;
	__u8 target[16];

	if (!(who->flags & PORT_ROUTER) && (kind == ND_ROUTER_ADVERT || kind == ND_REDIRECT))
		return DROP_ND;
	if (at + fixed > end)
		return DROP_MALFORMED;
	/* Who tries an address out keeps anybody else from having it (RFC 4862, 5.4.3). */
	if (kind == ND_ADVERT || (kind == ND_SOLICIT && tries)) {
		if (bpf_skb_load_bytes(who->skb, at + 8, target, sizeof(target)))
			return DROP_MALFORMED;
		if (!may_claim6(who, target))
			return DROP_ND;
	}
	/* A redirect speaks of the address of somebody else: only its sender is checked. */
	if (kind == ND_REDIRECT || is_free(who))
		return CLAIMS_HOLD;
	return check_nd_options(who, at + fixed, end);
}

/*
 * Where the packet ends, which may be before its frame does: what follows it is nobody's header. Zero
 * if it would end behind the frame. A length of zero leaves it to an option (RFC 2675; BIG TCP).
 */
static __always_inline __u32 end_of(const struct __sk_buff *skb, const struct ipv6hdr *ip)
{
	__u32 end = ETH_HLEN + sizeof(*ip) + bpf_ntohs(ip->payload_len);

	if (!ip->payload_len && ip->nexthdr == IPPROTO_HOPOPTS)
		return skb->len;
	return end <= skb->len ? end : 0;
}

/*
 * Finds the header above the extension headers; false when they do not end within the packet. A first
 * fragment has all of them (RFC 7112): the second one could end them differently.
 */
static __always_inline bool find_upper(const struct claimant *who, __u8 next, __u32 end,
				       struct upper *up)
{
	__u8 head[4];
	int i;

	up->at = ETH_HLEN + sizeof(struct ipv6hdr);
	up->fragment = 0;
	up->later_fragment = 0;
	for (i = 0; i < MAX_HEADERS; i++) {
		up->protocol = next;
		/* Nothing can be read behind the header of a later fragment. */
		if (up->later_fragment)
			return true;
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
		    next != IPPROTO_FRAGMENT && next != IPPROTO_AH && next != IPPROTO_MH)
			return up->at <= end;
		if (up->at + 8 > end || bpf_skb_load_bytes(who->skb, up->at, head, sizeof(head)))
			return false;
		if (next == IPPROTO_FRAGMENT) {
			up->fragment = 1;
			up->later_fragment = head[2] || head[3] & 0xf8;
			up->at += 8;
		} else if (next == IPPROTO_AH) {
			up->at += ((__u32)head[1] + 2) * 4;
		} else {
			up->at += ((__u32)head[1] + 1) * 8;
		}
		next = head[0];
	}
	return false;
}

/* May a packet with the unspecified source carry this? Only what asks for an address does. */
static __always_inline bool is_start_up(__u8 kind)
{
	return kind == ND_SOLICIT || kind == ND_ROUTER_SOLICIT || kind == MLD2_REPORT ||
	       kind == MLD_REPORT || kind == MLD_DONE;
}

static __noinline int check_ipv6(const struct claimant *who)
{
	struct deferred sum = deferred_of(who->skb);
	struct ipv6hdr ip;
	struct upper up;
	__u8 kind = 0;
	__u32 end;

	if (bpf_skb_load_bytes(who->skb, ETH_HLEN, &ip, sizeof(ip)) || ip.version != 6)
		return DROP_MALFORMED;
	end = end_of(who->skb, &ip);
	if (!end || !find_upper(who, ip.nexthdr, end, &up) || !has_udp_header(&up, end))
		return DROP_MALFORMED;
	if (sum.is && !is_deferred_well(&sum, &up))
		return DROP_CHECKSUM;
	if (up.protocol == IPPROTO_ICMPV6 && !up.later_fragment &&
	    (up.at >= end || bpf_skb_load_bytes(who->skb, up.at, &kind, 1)))
		return DROP_MALFORMED;
	if (is_held(who) && !may_claim6(who, ip.saddr.in6_u.u6_addr8) &&
	    !(is_zero6(ip.saddr.in6_u.u6_addr8) && is_start_up(kind)))
		return DROP_IP;
	if (udp_port(who, &up) == DHCPV6_CLIENT && !(who->flags & PORT_DHCP))
		return DROP_DHCP;
	if (kind < ND_ROUTER_SOLICIT || kind > ND_REDIRECT)
		return CLAIMS_HOLD;
	/* Neighbour discovery in fragments is void (RFC 6980); a lie may hide there. */
	if (up.fragment)
		return DROP_ND;
	/* Who is asked learns the asker's address from the source (RFC 4861, 7.2.3). */
	if (!is_held(who) && !may_claim6(who, ip.saddr.in6_u.u6_addr8))
		return DROP_ND;
	return check_nd(who, up.at, end, kind, is_zero6(ip.saddr.in6_u.u6_addr8));
}

/* CLAIMS_HOLD, or the reason to drop the frame that a port sent. */
__noinline int check_claims(struct __sk_buff *skb, __u32 slot, __u64 mac, __be16 proto)
{
	const struct port *port = bpf_map_lookup_elem(&ports, &slot);
	struct claimant who = {
		.skb = skb,
		.mac = mac,
		.slot = slot,
	};
	struct deferred sum;

	if (!port)
		return DROP_NO_PORT;
	who.vlan = port->vlan;
	who.flags = port->flags;
	who.life = port->life;
	if (proto == bpf_htons(ETH_P_IP))
		return check_ipv4(&who);
	if (proto == bpf_htons(ETH_P_IPV6))
		return check_ipv6(&who);
	sum = deferred_of(skb);
	/* Of another protocol only the Ethernet header is known, of ARP all. */
	if (sum.is && (sum.start < ETH_HLEN || proto == bpf_htons(ETH_P_ARP)))
		return DROP_CHECKSUM;
	if (proto == bpf_htons(ETH_P_ARP))
		return check_arp(&who);
	return is_held(&who) ? DROP_PROTOCOL : CLAIMS_HOLD;
}

/* Is this the address that was found to be the port's own the last time? */
static __always_inline bool is_last_ip(const struct port *port, const struct counters *mine, const struct ipv4_start *ip)
{
	__u64 now = ip_in_life(port->life, *(const __u32 *)ip->src);

	return now && mine->last_ip == now && port->state == STATE_READY;
}

/*
 * Is it a TCP or UDP packet from an IP address that its port may use, with nothing to look into? That is told by a few octets, without a
 * call: most frames are such.
 */
static __always_inline bool is_plain(struct __sk_buff *skb, const struct port *port, const struct counters *mine, __be16 proto)
{
	const void *data = (const void *)(long)skb->data;
	const void *end = (const void *)(long)skb->data_end;
	const struct ipv4_start *ip = data + ETH_HLEN;
	const __be16 *ports = (const void *)(ip + 1);
	__u32 wanted;

	if (proto != bpf_htons(ETH_P_IP) || (const void *)(ports + 2) > end || ip->version_ihl != 0x45)
		return false;
	if (port->flags & PORT_HELD && !is_last_ip(port, mine, ip))
		return false;
	if (ip->protocol == IPPROTO_TCP)
		wanted = 16;
	else if (ip->protocol == IPPROTO_UDP && ports[1] != bpf_htons(DHCP_CLIENT) &&
		 !(ip->fragment & bpf_htons(0x1fff)))
		wanted = 6;
	else
		return false;
	return is_deferred_at(skb, ETH_HLEN + sizeof(*ip), wanted);
}
