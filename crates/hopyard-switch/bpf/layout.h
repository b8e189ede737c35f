/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the programs and their loader share. src/layout.rs says the same in Rust. Both sides assert
 * the same sizes and offsets, so neither can change alone.
 *
 * A change of meaning or shape needs a new LAYOUT_VERSION: a loader refuses maps of another one.
 */
#pragma once

#include <linux/types.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "addresses are kept as little-endian numbers"
#endif

#define LAYOUT_VERSION 6

/* Parties: the wire, the host itself, and the ports from FIRST_PORT on. */
#define SLOT_WIRE 0
#define SLOT_HOST 1
#define FIRST_PORT 2
#define MAX_SLOTS 4096
#define MAX_STATIONS 16384
#define MAX_ADDRESSES 16384
#define MAX_HOSTS 1024
/* Devices of a lower index have their slot in an array. */
#define LOW_DEVICES 32768
/* Places for the last slots found; a power of two. */
#define RECENT_SLOTS 4096

/* An Ethernet address as a number: the first octet is the lowest byte. */
#define GROUP_BIT 1ULL

enum drop {
	DROP_NO_PORT,    /* no record of the device: it is being added or removed */
	DROP_MALFORMED,  /* too short, or a header that contradicts itself */
	DROP_SOURCE,     /* a group address or zero as the source */
	DROP_VLAN,       /* tagged by the guest: the port alone says the VLAN */
	DROP_MAC,        /* a source address that is not the port's */
	DROP_IP,         /* an IP source that is not the port's */
	DROP_ARP,        /* an ARP message that lies about its sender */
	DROP_ND,         /* a neighbour discovery message that lies about its sender; a redirect or an advertisement of what is no router */
	DROP_DHCP,       /* a DHCP answer, from a port that is no server */
	DROP_CHECKSUM,   /* a deferred checksum, to be written elsewhere than into a transport header */
	DROP_PROTOCOL,   /* neither IP nor ARP from a port held to its addresses */
	DROP_RESERVED,   /* to 01:80:c2:00:00:0x, which no bridge forwards (IEEE 802.1Q, 8.6.3) */
	DROP_SELF,       /* to the port that it came from */
	DROP_ISOLATED,   /* between ports of which one is isolated */
	DROP_UNKNOWN,    /* to nobody known, and there is no uplink */
	DROP_BROADCAST,  /* a group frame beyond the port's limit */
	DROP_RATE_OUT,   /* beyond what its port may send */
	DROP_RATE_IN,    /* beyond what the receiving port may get */
	DROP_MTU,        /* longer than the receiver takes */
	DROP_DOWN,       /* the receiver is down or has no carrier */
	DROP_DEVICE,     /* a copy that the receiving device did not take */
	DROP_REASONS,
};

/* Room for the reasons, so that the counters of a party are whole cache lines. */
#define DROPS_ROOM 23

/* Of a party; one for each CPU. Packets as the kernel counts a device's: a GSO packet is one. */
struct counters {
	__u64 rx_packets; /* from the party */
	__u64 rx_bytes;
	__u64 tx_packets; /* to the party */
	__u64 tx_bytes;
	__u64 answered;   /* questions of the party that the switch answered itself */
	__u64 over_rate;  /* packets to the party beyond what its port may get: their senders' drops */
	__u64 too_big;    /* ICMP messages to the party: what it sent is longer than the receiver takes */
	__u64 told_to;    /* the time up to which these are paid for, ns (see mtu.h) */
	__u64 drops[DROPS_ROOM];
	__u64 last_ip;    /* the IPv4 address of the table that its port used last, with the port's life above it (see claims.h) */
};

#define STATE_FREE 0
#define STATE_BUSY 1  /* being made or removed: whoever finds it so takes it away */
#define STATE_READY 2

#define SWITCH_ANSWERS 1
#define SWITCH_UPGRADING 2 /* not every hook runs the new program yet: whoever finds it so goes on */
#define SWITCH_HOSTS 0x400 /* the host has addresses beside that of the uplink: map hosts */

/* The switch itself. */
struct config {
	__u32 version;    /* LAYOUT_VERSION */
	__u32 state;
	__u32 uplink;     /* ifindex; 0: none */
	__u32 uplink_len; /* frames up to this length surely fit the uplink, bytes */
	__u64 host_mac;
	__u64 netns;      /* inode of the network namespace that the devices are in */
	__u16 flags;
	__u16 changing;   /* the slot whose flags are being changed: whoever finds it so goes on; 0: none */
	__u32 slots;      /* one more than the highest slot in use */
	__u64 net_device; /* of the uplink: its struct net_device */
};

#define PORT_ISOLATED 1
#define PORT_ANY_SOURCE 2 /* --allow-spoof */
#define PORT_HELD 4       /* to its IP addresses */
#define PORT_PEER 8       /* frames may go straight into the namespace of the device's peer */
#define PORT_FOLLOW 0x400 /* and do so only while the peer is in another namespace: the program sees where it is */
#define PORT_ROUTER 16    /* may advertise itself as a router, and claim addresses of the host and its gateways */
#define PORT_DHCP 32      /* may answer DHCP */
#define PORT_RATE_IN 64   /* has a limit of what it gets */
#define PORT_RATE_OUT 128 /* has a limit of what it sends */

/* Group frames a second that a port may send, and how many seconds' worth at once. */
#define BROADCASTS_UNLIMITED 0xffffffff
#define BROADCAST_BURST_S 10

/* What hopyard_device tells, and is told. */
#define IS_PAIR 1
struct device_seen {
	__u64 address;
	__u32 peer; /* ifindex of the other end; 0: not a pair, or not to be seen */
	__u32 unused;
};

/* Time in `struct bucket` is in parts of a ns: a frame of 64 bytes takes 5 ns at 100 Gbit/s. */
#define RATE_UNITS_PER_NS 16
#define RATE_SHIFT 16

struct bucket {
	__u64 paid_to;  /* the time up to which the frames that passed are paid for */
	__u64 per_byte; /* the price of a byte, times 1 << RATE_SHIFT */
	__u64 depth;    /* how far ahead it may be paid for before frames are dropped */
	__u64 bits_per_s;
	__u64 burst_bytes;
	__u64 unused[3];
};

/* Of a port; each where its flags say so. */
struct limits {
	struct bucket in;  /* what it gets */
	struct bucket out; /* what it sends */
};

#define STATION_OWN 1 /* the guest's own address: its stack takes the frame itself */

struct port {
	__u64 mac;        /* the first that it was given: the guest's own, as a rule */
	__u32 ifindex;    /* 0: gets no broadcasts (yet, or any more) */
	__u32 device;     /* ifindex as well, from the first moment to the last */
	__u32 state;
	__u32 sure_len;   /* frames up to this length surely fit, bytes */
	__u16 vlan;       /* 0: untagged */
	__u16 flags;
	__u32 holdings;   /* how many struct holding may speak of it */
	__u32 broadcasts; /* group frames a second; BROADCASTS_UNLIMITED: any number */
	__u16 mac_flags;  /* of the station of `mac`; 0 of a port that an earlier version added */
	__u16 life;       /* another one than that of the port that had the slot before; 0 of one that an earlier version added */
	__u64 net_device; /* the device's struct net_device */
};

/* Who owns an Ethernet address. Key: the address, and the VLAN in the 16 bits above it. */
struct station {
	__u32 ifindex;
	__u32 slot;
	__u32 sure_len;
	__u16 port_flags;
	__u16 flags;
	__u64 net_device;
};

/*
 * An IP address; IPv4 as ::ffff:a.b.c.d. The slot of its owner is SLOT_HOST for the host's own addresses and SLOT_WIRE
 * for those of its gateways.
 */
struct address_key {
	__u8 ip[16];
	__u32 vlan;
};

struct address {
	__u64 mac;
	__u32 slot;
	__u32 port_flags;
};

/*
 * An IP prefix that a port may use. Several ports may have the same. Key of a trie: `length` counts the bits of slot and
 * address that are compared.
 */
struct prefix_key {
	__u32 length;
	__u32 slot;
	__u8 ip[16];
};

/* IPv4 prefixes are apart: ::/0 must not contain them. */
#define PREFIX_IPV4 0x80000000
#define PREFIX_WHOLE (8 * (sizeof(__u32) + 16))

/* What is left to do of a frame that goes to many ports (see flood.h). */
struct flood {
	__u32 origin; /* slot */
	__u32 start;  /* which port was the first: any, so that no port is always the last */
	__u32 done;   /* ports that were looked at */
	__u32 total;
	__u32 mark;   /* the frame's own */
	__u16 vlan;
	__u16 flags;  /* of the origin, and FLOOD_TO_ROUTERS */
};

/* The frame is for ports with PORT_ROUTER alone. No port has this flag. */
#define FLOOD_TO_ROUTERS 0x8000

/* That a slot has a station or an address, so that they are found without a look at everybody's. */
struct holding_key {
	__u32 slot;
	__u32 number;
};

#define HOLDS_STATION 0
#define HOLDS_ADDRESS 1
#define HOLDS_PREFIX 2

struct holding {
	struct address_key address;
	__u32 kind;
	__u64 station;
	__u64 prefix; /* bits of the address */
};

/* Whose drops are told of: what comes from a party or should go to it. */
struct trace_wish {
	__u64 until; /* CLOCK_MONOTONIC, ns; 0: nobody asks */
	__u64 mac;   /* frames to this address as well; 0: none */
	__u32 slot;
	__u32 missed; /* frames that there was no room for */
};

#define NOBODY 0xffffffff
/* Of a frame's beginning: Ethernet, IPv6 with an extension header, TCP with options. */
#define TOLD_OCTETS 128
/* So many are surely told of, however slow the reader. */
#define MOST_TOLD 500

/* A frame that was dropped. */
struct dropped {
	__u64 at;   /* CLOCK_MONOTONIC, ns */
	__u32 from; /* slot */
	__u32 to;   /* slot of the party that does not get it; NOBODY: not known */
	__u32 reason;
	__u32 len;
	__u32 tag;      /* one that is beside the frame: its type in the upper half, its contents in the lower; 0: none */
	__u32 gso_size; /* 0: no GSO packet */
	__u32 captured; /* octets that are there */
	__u32 unused;
	__u8 octets[TOLD_OCTETS];
};

struct device_name {
	char name[16]; /* IFNAMSIZ */
};

#define AT(type, field, offset) \
	_Static_assert(__builtin_offsetof(struct type, field) == offset, #type "." #field)
#define SIZE(type, size) _Static_assert(sizeof(struct type) == size, #type)

AT(config, host_mac, 16);
AT(config, changing, 34);
AT(config, slots, 36);
AT(config, net_device, 40);
SIZE(config, 48);
AT(port, device, 12);
AT(port, vlan, 24);
AT(port, broadcasts, 32);
AT(port, mac_flags, 36);
AT(port, life, 38);
AT(port, net_device, 40);
SIZE(port, 48);
AT(station, port_flags, 12);
AT(station, net_device, 16);
SIZE(station, 24);
AT(address_key, vlan, 16);
SIZE(address_key, 20);
AT(address, slot, 8);
SIZE(address, 16);
AT(port, holdings, 28);
SIZE(holding_key, 8);
AT(holding, station, 24);
SIZE(holding, 40);
AT(prefix_key, ip, 8);
SIZE(prefix_key, 24);
SIZE(flood, 24);
AT(counters, drops, 64);
AT(counters, last_ip, 248);
SIZE(counters, 256);
_Static_assert(DROP_REASONS <= DROPS_ROOM, "reasons");
AT(bucket, burst_bytes, 32);
SIZE(bucket, 64);
SIZE(limits, 128);
AT(trace_wish, slot, 16);
SIZE(trace_wish, 24);
AT(dropped, octets, 40);
SIZE(dropped, 168);
