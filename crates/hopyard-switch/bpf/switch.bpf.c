// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The direct switch's programs. Three are each at a tcx hook or in its place a classifier of a clsact:
 *
 *   hopyard_port_in  ingress of a port: what its guest sends
 *   hopyard_up_in    ingress of the uplink: what the wire brings, and what the switch gives to the host
 *   hopyard_up_out   egress of the uplink: what the host sends, and what the switch gives to the wire
 *
 * One more is at the hook of a netkit:
 *
 *   hopyard_guest    where the guest sends, before the receive queue of the port: frames to one station
 *
 * The loader runs hopyard_device itself, once for each device.
 *
 * The way of a frame is in docs/switch.md.
 *
 * Functions off the way of most frames are not static: the kernel checks each of them once, and not in every state of each caller,
 * which took ten times as long.
 */
#include "answer.h"
#include "claims.h"
#include "common.h"
#include "flood.h"
#include "kernel.h"
#include "maps.h"
#include "mtu.h"
#include "rate.h"
#include "trace.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Gives a frame to a port whose device is there, from an ingress hook: straight into the guest's namespace if it can be. */
static __always_inline int hand_in(struct __sk_buff *skb, const struct station *to)
{
	if (!(to->port_flags & PORT_PEER) ||
	    (to->port_flags & PORT_FOLLOW && !peer_is_elsewhere(to->net_device)))
		return bpf_redirect(to->ifindex, 0);
	/* The type was decided by the host end's address; the guest's stack takes only its own. */
	if (to->flags & STATION_OWN)
		bpf_skb_change_type(skb, PACKET_HOST);
	return bpf_redirect_peer(to->ifindex, 0);
}

/* Where the program of a port runs. */
enum port_hook {
	PORT_INGRESS,
	GUEST_TRANSMIT, /* of a netkit: the kernel drops what is redirected into a namespace from there (skb_do_redirect) */
};

static __always_inline int give(struct __sk_buff *skb, const struct station *to, enum port_hook at)
{
	return at == PORT_INGRESS ? hand_in(skb, to) : bpf_redirect(to->ifindex, 0);
}

static __always_inline bool station_takes_frames(const struct station *to)
{
	return takes_frames(to->net_device, to->ifindex, true);
}

/* The host gets frames through the uplink's ingress, the wire by its carrier. */
static __always_inline bool uplink_takes_frames(const struct config *sw, __u32 to)
{
	return takes_frames(sw->net_device, sw->uplink, to == SLOT_WIRE);
}

static __always_inline int to_uplink(struct __sk_buff *skb, const struct config *sw,
				     __u32 from, __u32 to, __u16 vlan)
{
	__u32 len = skb->len;

	if (!fits(skb, sw->uplink, sw->uplink_len))
		return too_long(skb, from, to, sw->uplink, 0);
	if (!uplink_takes_frames(sw, to))
		return drop_to(skb, from, to, DROP_DOWN);
	if (!tag(skb, vlan))
		return drop_to(skb, from, to, DROP_DEVICE);
	count_tx(to, len);
	return bpf_redirect(sw->uplink, to == SLOT_HOST ? BPF_F_INGRESS : 0);
}

/* Drops both copies of a group frame that were to go to the uplink. */
static __always_inline int drop_at_uplink(struct __sk_buff *skb, __u32 slot, __u32 reason)
{
	drop_to(skb, slot, SLOT_HOST, reason);
	return drop_to(skb, slot, SLOT_WIRE, reason);
}

__noinline int flood_from_port(struct __sk_buff *skb, __u32 slot, __u16 vlan, __u16 flags)
{
	struct config *sw;

	flood_ports(skb, slot, vlan, flags);
	sw = the_switch();
	if (!sw || !sw->uplink)
		return VERDICT_DROP; /* the copies are all there is: not lost, not counted */
	if (!fits(skb, sw->uplink, sw->uplink_len))
		return drop_at_uplink(skb, slot, DROP_MTU);
	if (!tag(skb, vlan))
		return drop_at_uplink(skb, slot, DROP_DEVICE);
	if (!uplink_takes_frames(sw, SLOT_HOST))
		drop_to(skb, slot, SLOT_HOST, DROP_DOWN);
	else if (bpf_clone_redirect(skb, sw->uplink, BPF_F_INGRESS))
		drop_to(skb, slot, SLOT_HOST, DROP_DEVICE);
	else
		count_tx(SLOT_HOST, skb->len);
	if (!uplink_takes_frames(sw, SLOT_WIRE))
		return drop_to(skb, slot, SLOT_WIRE, DROP_DOWN);
	count_tx(SLOT_WIRE, skb->len);
	return bpf_redirect(sw->uplink, 0);
}

/* May this port use a source address other than the first of its own? */
__noinline bool owns_source(__u32 slot, __u16 vlan, __u16 flags, __u64 src)
{
	struct station *owner = station_of(src, vlan);
	struct config *sw;

	if (owner)
		return owner->slot == slot;
	if (!(flags & PORT_ANY_SOURCE))
		return false;
	sw = the_switch();
	return sw && !is_hosts(sw, src);
}

/*
 * Is the frame of the type by which the receiver's stack will take it? A netkit leaves that to what its guest told the kernel, by a raw
 * socket for example (`netkit_xmit`); other devices read it from the frame (`eth_type_trans`), where a length is no type.
 */
static __always_inline bool is_as_told(const struct __sk_buff *skb, __be16 proto)
{
	if (skb->protocol == proto)
		return true;
	return bpf_ntohs(proto) < ETH_P_802_3_MIN && bpf_ntohs(skb->protocol) < ETH_P_802_3_MIN;
}

/* A frame that a guest sends. The device of the skb is the port's, at both hooks. */
static __always_inline int from_guest(struct __sk_buff *skb, enum port_hook at)
{
	__u32 ifindex = skb->ifindex;
	__u32 slot = slot_of(ifindex);
	struct counters *mine;
	struct station *self, to;
	struct mac_pair macs;
	struct config *sw;
	struct port *port;
	bool whole, is_own;
	int refused;

	if (!slot)
		return drop(skb, SLOT_WIRE, DROP_NO_PORT);
	port = bpf_map_lookup_elem(&ports, &slot);
	mine = counters_of(slot);
	if (!port || !mine)
		return drop(skb, SLOT_WIRE, DROP_NO_PORT);
	whole = read_macs(skb, &macs);
	if (whole && is_group(macs.dst) && skb->tc_index == CONTINUED && flood_on(skb))
		return VERDICT_DROP; /* the copies are all there is: not lost, not counted */
	mine->rx_packets++;
	mine->rx_bytes += skb->len;

	if (!whole || !is_as_told(skb, macs.proto))
		return drop(skb, slot, DROP_MALFORMED);
	is_own = macs.src == port->mac;
	if (!is_own && (is_group(macs.src) || !macs.src))
		return drop(skb, slot, DROP_SOURCE);
	/* Before the outer tag goes: taking it away would put the inner one in its place, unseen. */
	if (is_tag(macs.proto) || is_old_tag(macs.proto))
		return drop(skb, slot, DROP_VLAN);
	if (skb->vlan_present) {
		/* VLAN 0 is a priority alone; anything else is not this port's to say. */
		if (skb->vlan_tci & VLAN_VID_MASK)
			return drop(skb, slot, DROP_VLAN);
		if (bpf_skb_vlan_pop(skb))
			return drop(skb, slot, DROP_MALFORMED);
	}
	if (!is_own && !owns_source(slot, port->vlan, port->flags, macs.src))
		return drop(skb, slot, DROP_MAC);
	if (is_group(macs.dst) && (is_reserved(macs.dst) || is_of_switches(macs.dst)))
		return drop(skb, slot, DROP_RESERVED);
	if (!is_plain(skb, port, mine, macs.proto)) {
		refused = check_claims(skb, slot, macs.src, macs.proto);
		if (refused != CLAIMS_HOLD)
			return drop(skb, slot, refused);
	}
	if (port->flags & PORT_RATE_OUT && !may_send(skb, slot))
		return drop(skb, slot, DROP_RATE_OUT);
	if (is_group(macs.dst)) {
		if (answer(skb, slot, port->vlan, macs.src, macs.proto)) {
			/* Not by the queue: a device that is just up may drop what comes there. */
			self = station_of(macs.src, port->vlan);
			return self && self->slot == slot ? hand_in(skb, self) : bpf_redirect(ifindex, 0);
		}
		if (!may_flood(slot, port->broadcasts))
			return drop(skb, slot, DROP_BROADCAST);
		return flood_from_port(skb, slot, port->vlan, port->flags);
	}

	if (find_station(macs.dst, port->vlan, &to)) {
		if (to.slot == slot)
			return drop(skb, slot, DROP_SELF);
		/* One test of both, for most ports have neither. */
		if ((to.port_flags | port->flags) & (PORT_ISOLATED | PORT_RATE_IN)) {
			if ((to.port_flags | port->flags) & PORT_ISOLATED)
				return drop_to(skb, slot, to.slot, DROP_ISOLATED);
			if (to.port_flags & PORT_RATE_IN && !may_get(skb, to.slot))
				return drop_to(skb, slot, to.slot, DROP_RATE_IN);
		}
		if (!fits(skb, to.ifindex, to.sure_len))
			return too_long(skb, slot, to.slot, to.ifindex, 0);
		if (!station_takes_frames(&to))
			return drop_to(skb, slot, to.slot, DROP_DOWN);
		count_tx(to.slot, skb->len);
		return give(skb, &to, at);
	}
	sw = the_switch();
	if (!sw || !sw->uplink)
		return drop(skb, slot, DROP_UNKNOWN);
	return to_uplink(skb, sw, slot, is_hosts(sw, macs.dst) ? SLOT_HOST : SLOT_WIRE,
			 port->vlan);
}

SEC("classifier")
int hopyard_port_in(struct __sk_buff *skb)
{
	return from_guest(skb, PORT_INGRESS);
}

/*
 * Broadcasts go on to hopyard_port_in: it drops the original when all ports have their copies, and a drop here would be an error to
 * the sender (NET_XMIT_DROP). So do frames with a tag in them, which the kernel takes out when it receives them.
 */
SEC("classifier")
int hopyard_guest(struct __sk_buff *skb)
{
	struct mac_pair macs;

	if (!read_macs(skb, &macs) || is_group(macs.dst) || is_tag(macs.proto))
		return VERDICT_NEXT;
	return from_guest(skb, GUEST_TRANSMIT);
}

/* A frame that the switch has decided on already passes by, without its mark. */
static __always_inline bool was_decided(struct __sk_buff *skb)
{
	if (skb->tc_index != DECIDED)
		return false;
	skb->tc_index = 0;
	return true;
}

/*
 * The VLAN of a frame at the uplink; an uplink without offload has the tag in the frame still.
 * Negative: a service tag or a tag within a tag, which are no port's.
 */
static __always_inline int vlan_at_uplink(struct __sk_buff *skb, __be16 proto)
{
	__be16 tag[2];

	if (skb->vlan_present) {
		if (skb->vlan_proto != bpf_htons(ETH_P_8021Q) || is_tag(proto))
			return -1;
		return skb->vlan_tci & VLAN_VID_MASK;
	}
	if (!is_tag(proto))
		return 0;
	/* A raw socket may say another type of the skb than its frame has: then no tag can be taken. */
	if (skb->protocol != proto)
		return -1;
	if (proto != bpf_htons(ETH_P_8021Q) || bpf_skb_load_bytes(skb, ETH_HLEN, tag, sizeof(tag)) ||
	    is_tag(tag[1]))
		return -1;
	return bpf_ntohs(tag[0]) & VLAN_VID_MASK;
}

static __always_inline bool is_tagged(const struct __sk_buff *skb, __be16 proto)
{
	return skb->vlan_present || is_tag(proto);
}

/* A group frame at the uplink: copies without the tag to the ports, the frame itself goes on. */
__noinline int flood_from_uplink(struct __sk_buff *skb, __u32 origin, __u16 vlan, bool tagged)
{
	__be16 tci;

	if (!tagged)
		return flood_ports(skb, origin, vlan, 0);
	/* With its priority, which is not the switch's to change. */
	if (skb->vlan_present)
		tci = bpf_htons(skb->vlan_tci);
	else if (bpf_skb_load_bytes(skb, ETH_HLEN, &tci, sizeof(tci)))
		return 0;
	if (bpf_skb_vlan_pop(skb))
		return 0;
	flood_ports(skb, origin, vlan, 0);
	/* Into the skb's own field, which cannot fail: the frame has no tag now. */
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), bpf_ntohs(tci));
	return 0;
}

/* Makes a frame at the uplink fit for a port, and counts it: VERDICT_NEXT. Else counts the drop, and says what becomes of it. */
static __always_inline int for_port(struct __sk_buff *skb, const struct station *to, __u32 origin,
				    __u16 vlan, __be16 proto)
{
	if (is_tagged(skb, proto) && bpf_skb_vlan_pop(skb))
		return drop_to(skb, origin, to->slot, DROP_MALFORMED);
	if (to->port_flags & PORT_RATE_IN && !may_get(skb, to->slot))
		return drop_to(skb, origin, to->slot, DROP_RATE_IN);
	if (!fits(skb, to->ifindex, to->sure_len))
		return too_long(skb, origin, to->slot, to->ifindex, vlan);
	if (!station_takes_frames(to))
		return drop_to(skb, origin, to->slot, DROP_DOWN);
	count_tx(to->slot, skb->len);
	return VERDICT_NEXT;
}

/* Is this the address of a port or of the host? The wire has no business with it as a source. */
static __always_inline bool is_party(const struct config *sw, __u64 mac, __u16 vlan)
{
	return is_hosts(sw, mac) || station_of(mac, vlan);
}

SEC("classifier")
int hopyard_up_in(struct __sk_buff *skb)
{
	struct station to;
	struct mac_pair macs;
	struct config *sw;
	int vlan, verdict;

	if (was_decided(skb))
		return VERDICT_NEXT;
	if (skb->tc_index == CONTINUED && flood_on(skb))
		return VERDICT_DROP;
	/* Whatever is odd is the host's affair: it sees all that it would see without the switch. */
	if (!read_macs(skb, &macs) || is_group(macs.src) || is_reserved(macs.dst))
		return VERDICT_NEXT;
	vlan = vlan_at_uplink(skb, macs.proto);
	if (vlan < 0)
		return VERDICT_NEXT;
	if (is_group(macs.dst)) {
		sw = the_switch();
		if (!sw)
			return VERDICT_NEXT;
		count_rx(SLOT_WIRE, skb->len);
		/* An echo or a lie is dropped for the ports alone. */
		if (is_party(sw, macs.src, vlan)) {
			drop(skb, SLOT_WIRE, DROP_MAC);
			return VERDICT_NEXT;
		}
		if (answer(skb, SLOT_WIRE, vlan, macs.src, macs.proto)) {
			skb->tc_index = DECIDED;
			return bpf_redirect(sw->uplink, 0);
		}
		flood_from_uplink(skb, SLOT_WIRE, vlan, is_tagged(skb, macs.proto));
		return VERDICT_NEXT;
	}
	if (!find_station(macs.dst, vlan, &to))
		return VERDICT_NEXT;
	count_rx(SLOT_WIRE, skb->len);
	sw = the_switch();
	if (!sw || is_party(sw, macs.src, vlan))
		return drop(skb, SLOT_WIRE, DROP_MAC);
	verdict = for_port(skb, &to, SLOT_WIRE, vlan, macs.proto);
	return verdict == VERDICT_NEXT ? hand_in(skb, &to) : verdict;
}

SEC("classifier")
int hopyard_up_out(struct __sk_buff *skb)
{
	struct station to;
	struct mac_pair macs;
	struct config *sw;
	int vlan, verdict;

	if (was_decided(skb))
		return VERDICT_NEXT;
	if (!read_macs(skb, &macs) || is_reserved(macs.dst))
		return VERDICT_NEXT;
	vlan = vlan_at_uplink(skb, macs.proto);
	if (vlan < 0)
		return VERDICT_NEXT;
	if (is_group(macs.dst)) {
		sw = the_switch();
		count_rx(SLOT_HOST, skb->len);
		if (sw && answer(skb, SLOT_HOST, vlan, macs.src, macs.proto)) {
			skb->tc_index = DECIDED;
			return bpf_redirect(sw->uplink, BPF_F_INGRESS);
		}
		flood_from_uplink(skb, SLOT_HOST, vlan, is_tagged(skb, macs.proto));
		return VERDICT_NEXT;
	}
	if (!find_station(macs.dst, vlan, &to))
		return VERDICT_NEXT;
	count_rx(SLOT_HOST, skb->len);
	verdict = for_port(skb, &to, SLOT_HOST, vlan, macs.proto);
	if (verdict != VERDICT_NEXT)
		return verdict;
	/* No redirect into the peer from an egress hook. */
	return bpf_redirect(to.ifindex, 0);
}

/*
 * Tells the loader where the kernel has the device that it names (struct net_device), in the frame. Where the frame begins
 * with IS_PAIR, the device is an end of a pair, and the index of the other end comes behind.
 */
SEC("classifier")
int hopyard_device(struct __sk_buff *ctx)
{
	const struct sk_buff *skb = cast_to_kern_ctx(ctx);
	struct device_seen seen = {};
	__u8 kind;

	/* Read as a number: the verifier lets no pointer be taken apart. */
	if (bpf_skb_load_bytes(ctx, 0, &kind, sizeof(kind)) ||
	    bpf_core_read(&seen.address, sizeof(seen.address), &skb->dev))
		return VERDICT_DROP;
	/* The private part of other devices may begin with anything. */
	if (kind == IS_PAIR)
		seen.peer = peer_of(seen.address)->ifindex;
	return bpf_skb_store_bytes(ctx, 0, &seen, sizeof(seen), 0) ? VERDICT_DROP : 0;
}
