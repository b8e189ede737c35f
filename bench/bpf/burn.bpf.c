/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Spends a given time on every packet and lets it pass. How much it really was, the kernel's own account of
 * the program says (run_time_ns over run_cnt).
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* What a program at a tcx hook answers for the next one, or the stack, to go on (Linux 6.6). */
#define VERDICT_NEXT -1

/* The verifier wants an end; a turn reads the clock once, some 20 ns, so these are 80 µs. */
#define MAX_TURNS 4096

const volatile __u64 burn_ns = 0;

SEC("classifier")
int hopyard_burn(struct __sk_buff *skb __attribute__((unused)))
{
	__u64 began = bpf_ktime_get_ns();

	for (int turn = 0; turn < MAX_TURNS; turn++) {
		if (bpf_ktime_get_ns() - began >= burn_ns)
			break;
	}
	return VERDICT_NEXT;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
