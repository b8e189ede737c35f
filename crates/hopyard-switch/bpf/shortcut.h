/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the programs of the shortcut and their loader share. src/shortcut/layout.rs says the same in Rust. Both sides
 * assert the same sizes and offsets.
 */
#pragma once

#include "layout.h"

#define SHORTCUT_VERSION 1

/*
 * What a port may have and be joined: none of it keeps a TCP connection that stands from anything. With any other flag, also of a
 * later version, its connections go by frames.
 */
#define PORT_DECLARED 0x200
/* Its program is a classifier: for the loader. */
#define PORT_CLASSIFIER 0x800
#define PORT_PLAIN \
	(PORT_ANY_SOURCE | PORT_HELD | PORT_PEER | PORT_FOLLOW | PORT_ROUTER | PORT_DHCP | PORT_DECLARED | \
	 PORT_CLASSIFIER)

#define MAX_JOINED 65536
#define MAX_GUESTS MAX_SLOTS

struct shortcut {
	__u32 version;     /* SHORTCUT_VERSION */
	__u32 on;          /* 0: everything goes by frames */
	__u32 max_message; /* longer messages go by frames, bytes */
	__u32 accepted;    /* what joined sockets may lack, for the loader: a bit for each */
	__u64 cgroup;      /* its inode */
	__u64 lives;       /* the last of the numbers in shortcut_lives */
	char path[256];    /* of the control group, as it was given */
};

/* A device of a guest: what arrives by it came from the switch by the guest's port. */
struct guest_key {
	__u64 netns;   /* cookie */
	__u32 ifindex; /* there */
	__u32 unused;
};

/* What the loader asks of a port's device. */
struct guest_seen {
	__u64 netns;
	__u64 address; /* of the port's struct net_device */
	__u32 ifindex; /* of the other end */
	__u32 unused;
};

/* Of a slot; one for each CPU. */
struct shortcut_counters {
	__u64 joined;      /* connections whose first message found the other end */
	__u64 rx_messages; /* from the port's sockets to others */
	__u64 rx_bytes;
	__u64 tx_messages; /* from others to its sockets */
	__u64 tx_bytes;
	__u64 refused;     /* sockets that the kernel did not take */
};

AT(shortcut, cgroup, 16);
AT(shortcut, path, 32);
SIZE(shortcut, 288);
AT(guest_key, ifindex, 8);
SIZE(guest_key, 16);
AT(guest_seen, ifindex, 16);
SIZE(guest_seen, 24);
SIZE(shortcut_counters, 48);
