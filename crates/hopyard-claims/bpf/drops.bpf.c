/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Counts the packets with a certain mark that the kernel threw away, by the place in its code, and whether that was for want of a device
 * or a queue that is ready (SKB_DROP_REASON_DEV_READY, include/net/dropreason-core.h: since Linux 5.18). */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile __u32 mark;

struct sk_buff {
	__u32 mark;
} __attribute__((preserve_access_index));

/* The running kernel's number counts. */
enum skb_drop_reason {
	SKB_DROP_REASON_DEV_READY = 1,
};

struct where {
	__u64 place;
	__u64 not_ready;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct where);
	__type(value, __u64);
} places SEC(".maps");

SEC("tp_btf/kfree_skb")
int count_drop(__u64 *ctx)
{
	const struct sk_buff *skb = (void *)ctx[0];
	__u64 not_ready = bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_DEV_READY);
	struct where where = {
		.place = ctx[1],
		.not_ready = ctx[2] == not_ready,
	};
	__u64 none = 0;
	__u64 *count;

	if (skb->mark != mark)
		return 0;
	bpf_map_update_elem(&places, &where, &none, BPF_NOEXIST);
	count = bpf_map_lookup_elem(&places, &where);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}
