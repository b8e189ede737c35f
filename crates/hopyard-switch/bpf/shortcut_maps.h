/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The maps of the shortcut, and what it looks at of the kernel's sockets beside kernel.h.
 */
#pragma once

#include "kernel.h"
#include "shortcut.h"

#define AF_INET 2
#define AF_INET6 10
#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8
#define NO_MAC_HEADER 0xffff

struct net {
	__u64 net_cookie;
} __attribute__((preserve_access_index));

/* struct sk_buff: kernel.h has what the switch looks at. */
struct sk_buff___arrived {
	int skb_iif;
	unsigned char *head;
	__u16 mac_header;
} __attribute__((preserve_access_index));

struct sock {
	struct {
		possible_net_t skc_net;
		struct {
			__s64 counter;
		} skc_cookie;
	} __sk_common;
	struct {
		struct {
			int counter;
		} rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
	void *sk_user_data;
	__u8 sk_kern_sock : 1;
} __attribute__((preserve_access_index));

/* What the kernel has for a socket in a map. */
struct sk_psock {
	struct list_head ingress_msg;
	struct {
		struct {
			int counter;
		} refs;
	} refcnt;
} __attribute__((preserve_access_index));

/* Bits of sk_user_data that are none of the address (SK_USER_DATA_PTRMASK). */
#define USER_DATA_FLAGS 7ULL

struct inet_connection_sock {
	const void *icsk_ulp_ops;
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 copied_seq;
	__u32 write_seq;
	bool is_mptcp;
} __attribute__((preserve_access_index));

struct bpf_sock_ops_kern {
	struct sock *sk;
	struct sk_buff *skb;
} __attribute__((preserve_access_index));

/* As cast_to_kern_ctx. */
static const struct bpf_sock_ops_kern *(*const cast_to_kern_ops)(struct bpf_sock_ops *) =
	(void *)0x6b65726e;

#define KERNEL(address, type) \
	((const struct type *)rdonly_cast((__u64)(address), bpf_core_type_id_kernel(struct type)))

/* Two of the switch's own (see maps.h). The loader pins all by their names, or none for its self-test. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SLOTS);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_STATIONS);
	__type(key, __u64);
	__type(value, struct station);
} stations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct shortcut);
} shortcut SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_GUESTS);
	__type(key, struct guest_key);
	__type(value, __u32); /* slot of the port */
} shortcut_guests SEC(".maps");

/* A number for each port that nothing else had: a slot may be another port's later, or the same with other rules. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} shortcut_lives SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_SLOTS);
	__type(key, __u32);
	__type(value, struct shortcut_counters);
} shortcut_counts SEC(".maps");

/* The sockets, by their cookies. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, MAX_JOINED);
	__type(key, __u64);
	__type(value, __u32);
} shortcut_sockets SEC(".maps");

/* One end of a connection, as both ends can know it: the ports by which its frames went, its addresses and first numbers. */
struct end_key {
	__u8 local[16];
	__u8 remote[16];
	__u32 local_slot;
	__u32 remote_slot;
	__u32 local_seq;
	__u32 remote_seq;
	__u16 local_port;
	__u16 remote_port;
	__u32 unused;
};

struct met {
	__u64 cookie;
	__u64 sock;
	__u64 end; /* address of its struct end */
};

/* Ends whose other end has not asked for them yet. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_JOINED);
	__type(key, struct end_key);
	__type(value, struct met);
} shortcut_met SEC(".maps");

/* A socket's own: the other end, its key until that was found. */
struct end {
	struct end_key other;
	__u64 sock;
	__u64 peer; /* cookie; 0: not found yet */
	__u64 peer_sock;
	__u64 peer_end;  /* address of the other's struct end */
	__u64 life;      /* of the ports, see shortcut_lives */
	__u64 peer_life;
	__u64 spoken;    /* how often it sent (upper half), and copied_seq when it did last */
	__u32 heard;     /* how often the other had sent when this one last gave bytes to the stack */
	__u32 by_stack;  /* some of those may not be read yet */
	__u32 tries;
	__u32 run;       /* messages in a row that were long, or that nobody answered */
	__u32 leaving;   /* takes nothing by the shortcut any more: read by the other end */
	__u32 redirected; /* some message went by it */
	__u32 written;    /* write_seq up to which the other end has read the stack's bytes */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct end);
} shortcut_ends SEC(".maps");

static __always_inline struct shortcut_counters *counts_of(__u32 slot)
{
	return bpf_map_lookup_elem(&shortcut_counts, &slot);
}

static __always_inline const struct shortcut *settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&shortcut, &zero);
}

static __always_inline const struct port *port_of(__u32 slot)
{
	return bpf_map_lookup_elem(&ports, &slot);
}

static __always_inline __u64 life_of(__u32 slot)
{
	const __u64 *life = bpf_map_lookup_elem(&shortcut_lives, &slot);

	return life ? *life : 0;
}
