/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counts how often the kernel copies packets or their heads that leave by a device of one network namespace, and for whom.
 *
 * A copy takes memory, which the slab allocator announces (include/trace/events/kmem.h). The call chain says which
 * function of net/core/skbuff.c asked for it, and who had called that one. No function has to be patched for that, as
 * fentry would. Of which packet the copy is, the allocator does not know: of the one that this CPU gives to a device next, unless it
 * takes up another one before (include/trace/events/net.h). Nothing else of the network runs on the CPU in between.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define COPIERS 4
#define CALLERS 3
/* This program, the tracepoint's and the allocator's own frames come first. */
#define FRAMES 16

struct span {
	__u64 start;
	__u64 end;
};

/* Where the functions that copy are. */
const volatile struct span copiers[COPIERS];

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

struct copied {
	__u64 copier;
	/* From the inside outwards. */
	__u64 callers[CALLERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct copied);
	__type(value, __u64);
} copies SEC(".maps");

/* Inode number of the network namespace whose packets count. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} watched SEC(".maps");

/* Copies of the packet that a CPU has in hand: a power of two, of which a packet takes two at the most. */
#define IN_HAND 8

struct in_hand {
	__u64 count;
	struct copied copies[IN_HAND];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct in_hand);
} in_hand SEC(".maps");

/* Copies for which there was no room in the map. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static __always_inline void lose(void)
{
	__u32 zero = 0;
	__u64 *times = bpf_map_lookup_elem(&lost, &zero);

	if (times)
		(*times)++;
}

static __always_inline void add(const struct copied *key)
{
	__u64 *times = bpf_map_lookup_elem(&copies, key);
	__u64 once = 1;

	if (times) {
		(*times)++;
		return;
	}
	if (!bpf_map_update_elem(&copies, key, &once, BPF_NOEXIST))
		return;
	/* Perhaps another CPU was quicker. Each CPU has a count of its own below a key. */
	times = bpf_map_lookup_elem(&copies, key);
	if (times)
		(*times)++;
	else
		lose();
}

static __always_inline struct in_hand *in_hand_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&in_hand, &zero);
}

static __always_inline void hold(const struct copied *key)
{
	struct in_hand *held = in_hand_here();

	if (!held)
		return;
	/* What is no packet's for a device (messages of netlink) may come before: the last ones count. */
	held->copies[held->count++ & (IN_HAND - 1)] = *key;
}

static __always_inline int count(void *ctx)
{
	__u64 frames[FRAMES + CALLERS] = {};
	struct copied key;

	if (bpf_get_stack(ctx, frames, sizeof(frames), 0) < 0)
		return 0;
	for (int at = 0; at < FRAMES; at++) {
		for (__u64 copier = 0; copier < COPIERS; copier++) {
			if (frames[at] < copiers[copier].start || frames[at] >= copiers[copier].end)
				continue;
			key.copier = copier;
			for (int caller = 0; caller < CALLERS; caller++)
				key.callers[caller] = frames[at + 1 + caller];
			hold(&key);
			return 0;
		}
	}
	return 0;
}

SEC("raw_tp/kmem_cache_alloc")
int kmem_cache_alloc(void *ctx)
{
	return count(ctx);
}

SEC("raw_tp/kmalloc")
int kmalloc(void *ctx)
{
	return count(ctx);
}

/* The packet goes to a device. */
SEC("raw_tp/net_dev_queue")
int net_dev_queue(struct bpf_raw_tracepoint_args *ctx)
{
	const struct sk_buff *skb = (const void *)ctx->args[0];
	struct in_hand *held = in_hand_here();
	__u32 *netns, zero = 0;

	if (!held || !held->count)
		return 0;
	netns = bpf_map_lookup_elem(&watched, &zero);
	if (netns && *netns == BPF_CORE_READ(skb, dev, nd_net.net, ns.inum)) {
		for (__u64 at = 0; at < IN_HAND; at++)
			if (at < held->count)
				add(&held->copies[at]);
	}
	held->count = 0;
	return 0;
}

/* Another packet is taken up. */
SEC("raw_tp/netif_receive_skb")
int netif_receive_skb(void *ctx __attribute__((unused)))
{
	struct in_hand *held = in_hand_here();

	if (held)
		held->count = 0;
	return 0;
}
