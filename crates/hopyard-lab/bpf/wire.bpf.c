/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The two ends of a wire that pauses. Frames pass until they are worth a pause at the wire's rate; then a frame that
 * stands for the pause goes ahead of the next one. The queueing discipline has it wait, and all that is behind it, and the other
 * end takes it away. So there is a timer for each pause, and not for each frame.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* In skb->cb[3] of the copy of a frame that is about to become a pause. Of other frames this is what upper layers left there. */
#define IS_PAUSE 0x68707761
/* In skb->tc_index: the direct switch has decided on the frame already, so that its programs let it pass. */
#define DECIDED 0x6879

/* The verifier wants an end. What is left over is for the next frame. */
#define MOST_PAUSES 64

/* Bytes of frames that are worth a pause. */
const volatile __s64 batch_bytes = 0;
/* Length of a frame that stands for a pause, and of the table in which the queueing discipline looks lengths up. */
const volatile __u32 pause_bytes = 0;
const volatile __u32 table_size = 1;

/* Bytes that passed since the last pause; of frames that were taken for a pause as well, less than none. */
__s64 owed;

/*
 * A pause frame of flow control (IEEE 802.3, annex 31B) but for the address: every switch would have to pass by the one
 * that is due, and some send copies of it to all ports.
 */
static const __u8 header[ETH_HLEN] = {
	0x02, 0x68, 0x6f, 0x70, 0x00, 0x01, 0x02, 0x68, 0x6f, 0x70, 0x00, 0x02, ETH_P_PAUSE >> 8, ETH_P_PAUSE & 0xff,
};

static __always_inline int become_pause(struct __sk_buff *skb)
{
	skb->cb[3] = 0;
	skb->tc_index = 0;
	if (bpf_skb_change_tail(skb, pause_bytes, 0) || bpf_skb_store_bytes(skb, 0, header, sizeof(header), 0))
		return TC_ACT_SHOT;
	return TC_ACT_UNSPEC;
}

/* A frame whose length is that of a pause gets a byte more, which receivers cut off as they do with Ethernet's padding. */
static __always_inline void tell_from_pause(struct __sk_buff *skb)
{
	if (skb->gso_segs > 1 || bpf_skb_change_tail(skb, skb->len + 1, 0))
		__sync_fetch_and_add(&owed, -batch_bytes);
}

/* Puts a pause ahead of a frame: false where the queue has no room for it. */
static __always_inline int pause(struct __sk_buff *skb)
{
	int refused;

	__sync_fetch_and_add(&owed, -batch_bytes);
	skb->cb[3] = IS_PAUSE;
	skb->tc_index = DECIDED;
	refused = bpf_clone_redirect(skb, skb->ifindex, 0);
	skb->cb[3] = 0;
	skb->tc_index = 0;
	if (refused)
		__sync_fetch_and_add(&owed, batch_bytes);
	return !refused;
}

SEC("classifier")
int hopyard_wire_out(struct __sk_buff *skb)
{
	__s64 len = skb->wire_len;

	if (skb->cb[3] == IS_PAUSE)
		return become_pause(skb);
	if (skb->len % table_size == pause_bytes)
		tell_from_pause(skb);
	__sync_fetch_and_add(&owed, len);
	/* A packet that is yet to be cut into frames may be worth more than one. */
	for (int pauses = 0; pauses < MOST_PAUSES && owed >= batch_bytes; pauses++) {
		if (!pause(skb)) {
			/* The frame is dropped, and did not pass. */
			__sync_fetch_and_add(&owed, -len);
			return TC_ACT_SHOT;
		}
	}
	return TC_ACT_UNSPEC;
}

SEC("classifier")
int hopyard_wire_in(struct __sk_buff *skb)
{
	return skb->protocol == bpf_htons(ETH_P_PAUSE) ? TC_ACT_STOLEN : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
