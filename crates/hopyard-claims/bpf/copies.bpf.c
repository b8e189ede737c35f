/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counts how often the kernel copies packets or their heads, and for whom.
 *
 * A copy takes memory, which the slab allocator announces (include/trace/events/kmem.h). The call chain says which
 * function of net/core/skbuff.c asked for it, and who had called that one. No function has to be patched for that, as
 * fentry would.
 */
#include <linux/bpf.h>

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

/* Copies for which there was no room in the map. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static __always_inline void add(const struct copied *key)
{
	__u64 *times = bpf_map_lookup_elem(&copies, key);
	__u64 once = 1;
	__u32 zero = 0;

	if (times) {
		(*times)++;
		return;
	}
	if (!bpf_map_update_elem(&copies, key, &once, BPF_NOEXIST))
		return;
	times = bpf_map_lookup_elem(&lost, &zero);
	if (times)
		(*times)++;
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
			add(&key);
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
