// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Hands the frames of one device to another. Loaded once for each device, so that what it counts is that device's alone.
 *
 *   hopyard_xdp       by XDP, out of the device in `out`
 *   hopyard_xdp_pass  what a veth has to run before its other end may be given frames by XDP (veth_xdp_xmit)
 *   hopyard_device    of an end of a netkit pair: out of the device `to`
 *   hopyard_neighbour the same of packets without Ethernet header: the kernel looks for the neighbour behind `to`
 *   hopyard_behind    of an uplink: into the namespace at the other end of `to`, all of it or what is for one host
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct passed {
	__u64 packets;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct passed);
} passed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} out SEC(".maps");

/* A device by its index. */
const volatile __u32 to;

/* Addresses of the host behind it; none takes all frames. */
const volatile __u32 host_v4;
const volatile __u32 host_v6[4];

/* What the kernel does without this program: TCX_NEXT of newer headers. */
#define NEXT (-1)

/* Places of the destination in IPv4 and IPv6 headers. */
#define TO_V4 16
#define TO_V6 24

static __always_inline void count(__u64 bytes)
{
	__u32 zero = 0;
	struct passed *sum = bpf_map_lookup_elem(&passed, &zero);

	if (!sum)
		return;
	sum->packets++;
	sum->bytes += bytes;
}

SEC("xdp.frags")
int hopyard_xdp(struct xdp_md *ctx)
{
	__u64 bytes = bpf_xdp_get_buff_len(ctx);
	long verdict = bpf_redirect_map(&out, 0, XDP_DROP);

	if (verdict == XDP_REDIRECT)
		count(bytes);
	return verdict;
}

SEC("xdp.frags")
int hopyard_xdp_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

SEC("classifier")
int hopyard_device(struct __sk_buff *skb)
{
	count(skb->len);
	return bpf_redirect(to, 0);
}

SEC("classifier")
int hopyard_neighbour(struct __sk_buff *skb)
{
	count(skb->len);
	return bpf_redirect_neigh(to, (void *)0, 0, 0);
}

static __always_inline int is_for_host(struct __sk_buff *skb)
{
	__u32 v6[4], v4;

	if (!host_v4)
		return 1;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return !bpf_skb_load_bytes(skb, ETH_HLEN + TO_V4, &v4, sizeof(v4)) && v4 == host_v4;
	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return 0;
	return !bpf_skb_load_bytes(skb, ETH_HLEN + TO_V6, v6, sizeof(v6)) && v6[0] == host_v6[0] &&
	       v6[1] == host_v6[1] && v6[2] == host_v6[2] && v6[3] == host_v6[3];
}

SEC("classifier")
int hopyard_behind(struct __sk_buff *skb)
{
	if (!is_for_host(skb))
		return NEXT;
	count(skb->len);
	/* Its Ethernet address is not that of the uplink. */
	bpf_skb_change_type(skb, PACKET_HOST);
	return bpf_redirect_peer(to, 0);
}
