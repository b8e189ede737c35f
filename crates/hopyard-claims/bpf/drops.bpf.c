/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Counts the packets with a certain mark that the kernel threw away, by the place in its code. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile __u32 mark;

struct sk_buff {
	__u32 mark;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, __u64);
} places SEC(".maps");

SEC("tp_btf/kfree_skb")
int count_drop(__u64 *ctx)
{
	const struct sk_buff *skb = (void *)ctx[0];
	__u64 place = ctx[1];
	__u64 none = 0;
	__u64 *count;

	if (skb->mark != mark)
		return 0;
	bpf_map_update_elem(&places, &place, &none, BPF_NOEXIST);
	count = bpf_map_lookup_elem(&places, &place);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}
