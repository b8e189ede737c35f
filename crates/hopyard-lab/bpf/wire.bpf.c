/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One end of a wire that pauses. A frame passes at once as long as those before it are not ahead of the wire's rate by more than
 * two pauses: then nothing queues, and the wire costs the sender no more than this program. Frames that are ahead take a side way:
 * a pair of devices whose first end has a queueing discipline. There frames pass until they are worth a pause; then a frame that
 * stands for the pause goes ahead of the next one. The queueing discipline has it wait, and all that is behind it, and the pair's
 * other end takes it away and sends all others by the wire. So there is a timer for each pause, and not for each frame.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* In skb->cb[3] of the copy of a frame that is about to become a pause. Of other frames this is what upper layers left there. */
#define IS_PAUSE 0x68707761
/* In skb->cb[3] of a frame that is to take the side way, and of one that took it. */
#define IS_TO_WAIT 0x68707762
#define HAS_WAITED 0x68707763
/* In skb->tc_index: the direct switch has decided on the frame already, so that its programs let it pass. */
#define DECIDED 0x6879

/* The verifier wants an end. What is left over is for the next frame. */
#define MOST_PAUSES 64
/* After this time, ns, a frame that another CPU took off the side way has left that CPU's queue, and cannot be overtaken. */
#define SETTLED 200000

/* Bytes of frames that are worth a pause. */
const volatile __s64 batch_bytes = 0;
/* What a byte takes at the rate, ns / 2^20. */
const volatile __s64 byte_ns_scaled = 1;
/* By how much frames may be ahead of the rate, and what the queueing discipline saves up for pauses at most, ns. */
const volatile __s64 ahead_ns = 0;
const volatile __s64 saved_ns = 0;
/* Length of a frame that stands for a pause, and of the table in which the queueing discipline looks lengths up. */
const volatile __u32 pause_bytes = 0;
const volatile __u32 table_size = 1;
/* The wire's end, and the side way's first. */
const volatile __u32 wire_ifindex = 0;
const volatile __u32 side_ifindex = 0;

/* When all that passed at once would have left at the rate. */
__s64 until;
/* Frames that entered the side way, and that came out of it. */
__s64 entered;
__s64 came_out;
/* When the last one came out, and on which CPU. */
__s64 last_out;
__u32 last_cpu;
/* When the last pause came out, and what the queueing discipline had saved up then, ns: its timer is late. */
__s64 last_pause;
__s64 saved_then;
/* Bytes that passed the side way since the last pause; of frames that were taken for a pause as well, less than none. */
__s64 owed;

/*
 * A pause frame of flow control (IEEE 802.3, annex 31B) but for the address: every switch would have to pass by the one
 * that is due, and some send copies of it to all ports.
 */
static const __u8 header[ETH_HLEN] = {
	0x02, 0x68, 0x6f, 0x70, 0x00, 0x01, 0x02, 0x68, 0x6f, 0x70, 0x00, 0x02, ETH_P_PAUSE >> 8, ETH_P_PAUSE & 0xff,
};

/* What bytes take at the rate. */
static __always_inline __s64 time_of(__s64 bytes)
{
	return bytes * byte_ns_scaled >> 20;
}

/* What the queueing discipline has saved up for pauses, as it counts itself (net/sched/sch_tbf.c), ns. */
static __always_inline __s64 saved(__s64 now)
{
	__s64 ns = saved_then + now - last_pause;

	return ns < saved_ns ? ns : saved_ns;
}

/* Nobody is on the side way. */
static __always_inline int is_free(__s64 now)
{
	if (entered > came_out)
		return 0;
	return last_cpu == bpf_get_smp_processor_id() || now - last_out > SETTLED;
}

/* Counts a frame that passes at once; false if it has to wait. A frame may be of any length if those before it are paid for. */
static __always_inline int passes(__s64 now, __s64 bytes)
{
	for (int tries = 0; tries < 4; tries++) {
		__s64 seen = until;
		__s64 then = (seen > now ? seen : now) + time_of(bytes);

		if (seen > now && then - now > ahead_ns)
			return 0;
		if (__sync_val_compare_and_swap(&until, seen, then) == seen)
			break;
	}
	return 1;
}

/* Before the first frame on the side way go the pauses of those that passed at once, and as many as the queueing discipline lets pass. */
static __always_inline void begin_to_wait(__s64 now)
{
	__s64 before = last_out, ahead = until - now, ns;

	/* Another CPU's frame was the first. */
	if (__sync_val_compare_and_swap(&last_out, before, now) != before)
		return;
	ns = (ahead > 0 ? ahead : 0) + saved(now);
	owed = ns > 0 ? ((__u64)ns << 20) / (__u64)byte_ns_scaled : 0;
}

/* What leaves by the wire. */
SEC("classifier")
int hopyard_wire_out(struct __sk_buff *skb)
{
	__s64 now;

	if (skb->cb[3] == HAS_WAITED) {
		skb->cb[3] = 0;
		skb->tc_index = 0;
		return TC_ACT_UNSPEC;
	}
	now = bpf_ktime_get_ns();
	if (is_free(now)) {
		if (passes(now, skb->wire_len))
			return TC_ACT_UNSPEC;
		begin_to_wait(now);
	}
	skb->cb[3] = IS_TO_WAIT;
	return bpf_redirect(side_ifindex, 0);
}

/* A pause carries the number of frames that entered ahead of it. */
static __always_inline int become_pause(struct __sk_buff *skb)
{
	__s64 ahead_of_it = entered;

	skb->cb[3] = 0;
	if (bpf_skb_change_tail(skb, pause_bytes, 0) || bpf_skb_store_bytes(skb, 0, header, sizeof(header), 0) ||
	    bpf_skb_store_bytes(skb, sizeof(header), &ahead_of_it, sizeof(ahead_of_it), 0))
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
	refused = bpf_clone_redirect(skb, skb->ifindex, 0);
	skb->cb[3] = 0;
	if (refused)
		__sync_fetch_and_add(&owed, batch_bytes);
	return !refused;
}

/* What enters the side way. What the kernel itself sends there (MLD) is dropped. */
SEC("classifier")
int hopyard_side_in(struct __sk_buff *skb)
{
	__s64 len = skb->wire_len;

	if (skb->cb[3] == IS_PAUSE)
		return become_pause(skb);
	if (skb->cb[3] != IS_TO_WAIT)
		return TC_ACT_SHOT;
	skb->cb[3] = 0;
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
	__sync_fetch_and_add(&entered, 1);
	return TC_ACT_UNSPEC;
}

/* What comes out of it. The next pause tells how many frames were lost within it. */
SEC("classifier")
int hopyard_side_out(struct __sk_buff *skb)
{
	__s64 now = bpf_ktime_get_ns();

	last_out = now;
	last_cpu = bpf_get_smp_processor_id();
	if (skb->protocol == bpf_htons(ETH_P_PAUSE)) {
		__s64 ahead_of_it;

		saved_then = saved(now) - time_of(batch_bytes);
		last_pause = now;
		if (!bpf_skb_load_bytes(skb, sizeof(header), &ahead_of_it, sizeof(ahead_of_it)))
			came_out = ahead_of_it;
		return TC_ACT_SHOT;
	}
	/* After the last one, those that pass at once wait for what is still owed. */
	if (__sync_fetch_and_add(&came_out, 1) + 1 >= entered) {
		__s64 paid = last_pause - saved_then + time_of(owed);

		until = paid > now ? paid : now;
	}
	skb->cb[3] = HAS_WAITED;
	skb->tc_index = DECIDED;
	return bpf_redirect(wire_ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
