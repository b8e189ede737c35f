/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A flow, as src/flow.rs has it: both sides assert the same size, and a test the same hash. */
#pragma once

#include <linux/types.h>

/* As it leaves the kernel towards a queue. IPv4 as ::ffff:a.b.c.d. No ports (0) but of TCP, UDP and
 * SCTP, and none in fragments, of which only the first one has them. */
struct flow {
	__u32 source[4];
	__u32 destination[4];
	__be16 source_port;
	__be16 destination_port;
	__u8 protocol;
	__u8 zero[3];
};

_Static_assert(sizeof(struct flow) == 40, "struct flow");

static __always_inline __u32 rotate(__u32 word, int by)
{
	return word << by | word >> (32 - by);
}

/* MurmurHash3 (Appleby): one word, and the end. */
static __always_inline __u32 mix(__u32 hash, __u32 word)
{
	hash ^= rotate(word * 0xcc9e2d51, 15) * 0x1b873593;
	return rotate(hash, 13) * 5 + 0xe6546b64;
}

static __always_inline __u32 finish(__u32 hash)
{
	hash = (hash ^ hash >> 16) * 0x85ebca6b;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35;
	return hash ^ hash >> 16;
}

static __always_inline __u32 hash_end(const __u32 *address, __be16 port)
{
	__u32 hash = 0;

	for (int i = 0; i < 4; i++)
		hash = mix(hash, address[i]);
	return finish(mix(hash, port));
}

/* Both directions of a flow have the same hash, as with the kernel's own choice. */
static __always_inline __u32 hash_flow(const struct flow *flow)
{
	__u32 ends = hash_end(flow->source, flow->source_port) +
		     hash_end(flow->destination, flow->destination_port);

	return finish(mix(ends, flow->protocol));
}
