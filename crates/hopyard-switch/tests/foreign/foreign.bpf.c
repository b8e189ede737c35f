// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Programs of somebody else, at the hooks of a switch's devices. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Ends the chain: the frame goes on to the stack. */
SEC("classifier")
int foreign_pass(struct __sk_buff *skb)
{
	(void)skb;
	return 0; /* TCX_PASS */
}

SEC("classifier")
int foreign_drop(struct __sk_buff *skb)
{
	(void)skb;
	return 2; /* TCX_DROP */
}

SEC("xdp")
int foreign_xdp(struct xdp_md *frame)
{
	(void)frame;
	return XDP_DROP;
}
