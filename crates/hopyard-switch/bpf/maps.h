/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#pragma once

#include "common.h"

/* All maps are pinned by name in the directory of their switch, so that an upgrade finds them. */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SLOTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

/*
 * The slot of a device of an index below LOW_DEVICES, 0 if it is no port. It is looked up for every frame:
 * in an array that takes a few ns, in a hash 25.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOW_DEVICES);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u32);
} slots_low SEC(".maps");

/* The slot of any other device. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SLOTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_STATIONS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u64);
	__type(value, struct station);
} stations SEC(".maps");

/*
 * The slot that was last found for an address, by the end of the address. Whether the port has that address is in its record
 * alone, so this may be wrong or empty. An array is read in line; a hash takes three calls, of which each return is slow where
 * the kernel guards against guessed branches (retbleed, SRSO).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RECENT_SLOTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u32);
} recent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_ADDRESSES);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct address_key);
	__type(value, struct address);
} addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_SLOTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

/*
 * The device of a slot, for the loader: a port is whole while it is here. The kernel itself takes an
 * entry away when its device goes, so that another device that comes by the same number is not mistaken
 * for it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, MAX_SLOTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
} devices SEC(".maps");

/* The prefixes of the ports that are held to some. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_ADDRESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct prefix_key);
	__type(value, __u32);
} prefixes SEC(".maps");

/* When each slot has paid for the group frames that it sent, ns (see may_flood). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SLOTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u64);
} paid SEC(".maps");

/* Limits of what ports send and get (see rate.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SLOTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct limits);
} rates SEC(".maps");

/* Frames on their way to many ports, by a number that nobody else knows. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct flood);
} floods SEC(".maps");

/* Whose drops somebody wants to be told of (see trace.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct trace_wish);
} traced SEC(".maps");

/* Room for MOST_TOLD frames. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 17);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} drops_told SEC(".maps");

/* What a slot has, for the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_STATIONS + 2 * MAX_ADDRESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct holding_key);
	__type(value, struct holding);
} holdings SEC(".maps");

/* Addresses of the host beside that of the uplink (a macvlan, a bridge, VRRP), in every VLAN. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_HOSTS);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u64);
	__type(value, __u32);
} hosts SEC(".maps");

/* The name that the uplink had when it became that, for the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct device_name);
} uplink_name SEC(".maps");

static __always_inline struct config *the_switch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&config, &zero);
}

static __always_inline bool is_hosts(const struct config *sw, __u64 mac)
{
	return mac == sw->host_mac ||
	       (sw->flags & SWITCH_HOSTS && bpf_map_lookup_elem(&hosts, &mac));
}

/* The slot of a device; 0, which is never a port's, if it is no port. */
static __always_inline __u32 slot_of(__u32 ifindex)
{
	__u32 *slot;

	if (ifindex < LOW_DEVICES) {
		slot = bpf_map_lookup_elem(&slots_low, &ifindex);
		/* Two calls, not one with either map: only a call with one map is compiled in line. */
		barrier();
		return slot ? *slot : 0;
	}
	slot = bpf_map_lookup_elem(&slots, &ifindex);
	return slot ? *slot : 0;
}

static __always_inline struct counters *counters_of(__u32 slot)
{
	return bpf_map_lookup_elem(&counters, &slot);
}

static __always_inline void count_rx(__u32 slot, __u32 bytes)
{
	struct counters *c = counters_of(slot);

	if (c) {
		c->rx_packets++;
		c->rx_bytes += bytes;
	}
}

static __always_inline void count_tx(__u32 slot, __u32 bytes)
{
	struct counters *c = counters_of(slot);

	if (c) {
		c->tx_packets++;
		c->tx_bytes += bytes;
	}
}

static __always_inline void count_drops(__u32 slot, __u32 reason, __u64 frames)
{
	struct counters *c = counters_of(slot);

	if (c && reason < DROP_REASONS)
		c->drops[reason] += frames;
}

static __always_inline __u64 station_key(__u64 mac, __u16 vlan)
{
	return mac | (__u64)vlan << 48;
}

static __always_inline struct station *station_of(__u64 mac, __u16 vlan)
{
	__u64 key = station_key(mac, vlan);

	return bpf_map_lookup_elem(&stations, &key);
}

/* Addresses that are given one after another have places of their own: the last octet, and half of the one before. */
static __always_inline __u32 place_of(__u64 mac)
{
	return (mac >> 40 & 0xff) | (mac >> 24 & 0xf00);
}

/* Finds who owns an address, as `station_of` does, for the frames of a stream without its hash. */
static __always_inline bool find_station(__u64 mac, __u16 vlan, struct station *to)
{
	__u32 place = place_of(mac);
	__u32 *last = bpf_map_lookup_elem(&recent, &place);
	__u32 slot = last ? *last : 0;
	struct port *port = bpf_map_lookup_elem(&ports, &slot);
	struct station *found;

	if (port && port->mac == mac && port->vlan == vlan && port->state == STATE_READY && port->mac_flags & STATION_OWN) {
		to->ifindex = port->ifindex;
		to->slot = slot;
		to->sure_len = port->sure_len;
		to->port_flags = port->flags;
		to->flags = STATION_OWN;
		to->net_device = port->net_device;
		return true;
	}
	found = station_of(mac, vlan);
	if (!found)
		return false;
	*to = *found;
	/* Not again and again: other CPUs read it. Of several addresses of a guest, the record has the first. */
	if (last && to->flags & STATION_OWN && *last != to->slot)
		*last = to->slot;
	return true;
}
