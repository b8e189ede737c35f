/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Spends a given time on packets and lets them pass: at a device on every packet, at a control group on packets of one
 * length alone. How much it really was, the kernel's own account of the first program says (run_time_ns over
 * run_cnt); the second one keeps its own, since it also sees packets on which it spends nothing.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* What a program at a tcx hook answers for the next one, or the stack, to go on (Linux 6.6). */
#define VERDICT_NEXT -1

/* The verifier wants an end; a turn reads the clock once, some 20 ns, so these are 80 µs. */
#define MAX_TURNS 4096

/* What a program at a control group answers for the packet to be sent. */
#define ALLOW 1

const volatile __u64 burn_ns = 0;
/* Bytes of the packets that are slowed, from the IP header on. */
const volatile __u32 slow_length = 0;

struct burnt {
	__u64 packets;
	__u64 ns;
} burnt;

static __always_inline __u64 burn(void)
{
	__u64 began = bpf_ktime_get_ns();
	__u64 spent = 0;

	for (int turn = 0; turn < MAX_TURNS; turn++) {
		spent = bpf_ktime_get_ns() - began;
		if (spent >= burn_ns)
			break;
	}
	return spent;
}

SEC("classifier")
int hopyard_burn(struct __sk_buff *skb __attribute__((unused)))
{
	burn();
	return VERDICT_NEXT;
}

SEC("cgroup_skb/egress")
int hopyard_slow(struct __sk_buff *skb)
{
	if (skb->len == slow_length) {
		__sync_fetch_and_add(&burnt.ns, burn());
		__sync_fetch_and_add(&burnt.packets, 1);
	}
	return ALLOW;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
