/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Dropping a frame: counting it, and telling whoever asks of it. Whether somebody asks is one test, of frames that are dropped
 * alone.
 */
#pragma once

#include "common.h"
#include "maps.h"

/* Is it a frame that is asked for: from the party, for it, or to its address? */
static __always_inline bool is_traced(struct __sk_buff *skb, const struct trace_wish *wish, __u32 from, __u32 to)
{
	__u8 mac[6];

	if (from == wish->slot || to == wish->slot)
		return true;
	return wish->mac && !bpf_skb_load_bytes(skb, 0, mac, sizeof(mac)) && mac_from(mac) == wish->mac;
}

/* `to`: the party that does not get it; NOBODY where that is not known, or where nobody would. */
static __noinline int tell(struct __sk_buff *skb, struct trace_wish *wish, __u32 from, __u32 to, __u32 reason)
{
	__u64 now = bpf_ktime_get_ns();
	struct dropped *frame;
	__u32 len = skb->len;

	/* Whoever asked and was killed does not ask for long. A frame that nobody asked for takes no room in the buffer. */
	if (now > wish->until || !is_traced(skb, wish, from, to))
		return 0;
	frame = bpf_ringbuf_reserve(&drops_told, sizeof(*frame), 0);
	if (!frame) {
		__sync_fetch_and_add(&wish->missed, 1);
		return 0;
	}
	if (len > TOLD_OCTETS)
		len = TOLD_OCTETS;
	frame->at = now;
	frame->from = from;
	frame->to = to;
	frame->reason = reason;
	frame->len = skb->len;
	frame->tag = skb->vlan_present ? (__u32)bpf_ntohs(skb->vlan_proto) << 16 | skb->vlan_tci : 0;
	frame->gso_size = skb->gso_size;
	frame->unused = 0;
	if (!len || bpf_skb_load_bytes(skb, 0, frame->octets, from_1_to(TOLD_OCTETS, len)))
		len = 0;
	frame->captured = len;
	bpf_ringbuf_submit(frame, 0);
	return 0;
}

/* Drops a frame, or a copy of it to one party. */
__noinline int drop_to(struct __sk_buff *skb, __u32 from, __u32 to, __u32 reason)
{
	struct trace_wish *wish;
	__u32 zero = 0;

	count_drops(from, reason, 1);
	wish = bpf_map_lookup_elem(&traced, &zero);
	if (wish && wish->until)
		tell(skb, wish, from, to, reason);
	return VERDICT_DROP;
}

/* Drops a frame that came from the party `from`. */
static __always_inline int drop(struct __sk_buff *skb, __u32 from, enum drop reason)
{
	return drop_to(skb, from, NOBODY, reason);
}
