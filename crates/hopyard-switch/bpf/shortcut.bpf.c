// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The shortcut: what a TCP socket behind one port sends goes into the queue of the socket at the other end, behind
 * another port of the same switch, without becoming packets.
 *
 *   hopyard_joins    for sockets of a control group: takes those of connections between two ports into a map, and those
 *                    that send streams, or connect once more, out of it again
 *   hopyard_message  for each message of such a socket: by the shortcut, or by the stack as ever
 *   hopyard_guest    the loader runs it itself, once for each port: which device is at the other end of the pair?
 *
 * Why a connection cannot be another one, and why bytes stay in order, is in docs/shortcut.md.
 */
#include "shortcut_maps.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* How many messages go by until the other end is given up. */
#define TRIES 64

/* After so many messages in a row that the shortcut is of no use to, a socket leaves the map. */
#define STREAM 64

/* Is the port's device up, and is its other end? A device that is gone has another number at its address. */
static __always_inline bool is_running(const struct port *port)
{
	const struct net_device *dev = KERNEL(port->net_device, net_device);

	return dev->ifindex == port->device &&
	       (dev->state & (LINK_STARTED | LINK_NO_CARRIER)) == LINK_STARTED;
}

/* Is the port still the one that it was, and would frames pass it to any other without a further rule? */
static __always_inline bool may_talk(__u32 slot, __u64 life)
{
	const struct port *port = port_of(slot);

	return port && life && life_of(slot) == life && port->state == STATE_READY &&
	       !(port->flags & ~PORT_PLAIN) && is_running(port);
}

/* Is this the device at the other end of the port's pair? It may have moved since the loader looked. */
static __always_inline bool is_guests(const struct port *port, const struct guest_key *arrived)
{
	const struct net_device *guest = peer_of(port->net_device);

	return guest->ifindex == arrived->ifindex &&
	       guest->nd_net.net->net_cookie == arrived->netns;
}

/*
 * Is a socket in the namespace of the guest's end of this port? The end may have moved since: the socket's frames would no longer
 * reach the switch. A freed socket reads as garbage, which matches no namespace.
 */
static __always_inline bool is_at(__u64 sock, __u32 slot)
{
	const struct port *port = port_of(slot);

	return port && KERNEL(sock, sock)->__sk_common.skc_net.net ==
			       peer_of(port->net_device)->nd_net.net;
}

/* Addresses are written as in struct address_key. */
static __always_inline bool read_addresses(struct bpf_sock_ops *ops, struct end_key *key)
{
	__u32 *local = (__u32 *)key->local, *remote = (__u32 *)key->remote;

	if (ops->family == AF_INET) {
		local[2] = remote[2] = bpf_htonl(0xffff);
		local[3] = ops->local_ip4;
		remote[3] = ops->remote_ip4;
		/* The two ways must not share a load: the verifier wants fixed places in ops. */
		barrier();
		return true;
	}
	if (ops->family != AF_INET6)
		return false;
	local[0] = ops->local_ip6[0];
	local[1] = ops->local_ip6[1];
	local[2] = ops->local_ip6[2];
	local[3] = ops->local_ip6[3];
	remote[0] = ops->remote_ip6[0];
	remote[1] = ops->remote_ip6[1];
	remote[2] = ops->remote_ip6[2];
	remote[3] = ops->remote_ip6[3];
	return true;
}

/* Does the socket belong to a program that sends and receives in the usual way? */
static __always_inline bool is_plain_socket(const struct sock *sk)
{
	const struct tcp_sock *tp = KERNEL(sk, tcp_sock);

	if (BPF_CORE_READ_BITFIELD(sk, sk_kern_sock))
		return false;
	if (bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp)
		return false;
	return !tp->inet_conn.icsk_ulp_ops;
}

/* The source of the frame that completed the handshake. */
static __always_inline bool read_source(const struct sk_buff___arrived *skb, __u64 *mac)
{
	__u8 source[8] = {};

	if (skb->mac_header == NO_MAC_HEADER)
		return false;
	if (bpf_probe_read_kernel(source, 6, skb->head + skb->mac_header + 6))
		return false;
	*mac = mac_from(source);
	return true;
}

static __noinline int established(struct bpf_sock_ops *ops)
{
	const struct bpf_sock_ops_kern *kernel = cast_to_kern_ops(ops);
	const struct sk_buff___arrived *skb;
	const struct port *port;
	const struct station *from;
	const struct sock *sk;
	const struct shortcut *set = settings();
	const __u32 *slot;
	struct shortcut_counters *counts;
	struct guest_key arrived = {};
	struct end_key mine = {};
	struct bpf_sock *own = ops->sk;
	struct met met = {};
	struct end *end;
	__u64 mac, life, peer_life, address = 0;

	/* Without a frame it is not from a port (TCP_REPAIR). */
	if (!set || !set->on || !ops->is_fullsock || !own)
		return 0;
	if (bpf_core_read(&address, sizeof(address), &kernel->skb) || !address)
		return 0;
	skb = KERNEL(address, sk_buff___arrived);
	arrived.netns = bpf_get_netns_cookie(ops);
	arrived.ifindex = skb->skb_iif;
	slot = bpf_map_lookup_elem(&shortcut_guests, &arrived);
	if (!slot || !read_source(skb, &mac))
		return 0;
	mine.local_slot = *slot;
	life = life_of(mine.local_slot);
	port = port_of(mine.local_slot);
	if (!may_talk(mine.local_slot, life) || !port || !is_guests(port, &arrived))
		return 0;
	mac |= (__u64)port->vlan << 48;
	from = bpf_map_lookup_elem(&stations, &mac);
	if (!from || from->slot == mine.local_slot)
		return 0;
	mine.remote_slot = from->slot;
	peer_life = life_of(mine.remote_slot);
	if (!may_talk(mine.remote_slot, peer_life))
		return 0;
	if (bpf_core_read(&address, sizeof(address), &kernel->sk) || !address)
		return 0;
	sk = KERNEL(address, sock);
	if (!is_plain_socket(sk) || !read_addresses(ops, &mine))
		return 0;
	mine.local_seq = ops->snd_nxt;
	mine.remote_seq = ops->rcv_nxt;
	mine.local_port = ops->local_port;
	mine.remote_port = bpf_ntohl(ops->remote_port);

	/*
	 * A socket joins only once: it keeps its cookie when it connects elsewhere, so its former peer could still reach it. See connects().
	 */
	if (bpf_sk_storage_get(&shortcut_ends, own, 0, 0))
		return 0;
	end = bpf_sk_storage_get(&shortcut_ends, own, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!end)
		return 0;
	__builtin_memcpy(end->other.local, mine.remote, 16);
	__builtin_memcpy(end->other.remote, mine.local, 16);
	end->other.local_slot = mine.remote_slot;
	end->other.remote_slot = mine.local_slot;
	end->other.local_seq = mine.remote_seq;
	end->other.remote_seq = mine.local_seq;
	end->other.local_port = mine.remote_port;
	end->other.remote_port = mine.local_port;
	end->sock = address;
	end->life = life;
	end->peer_life = peer_life;
	end->written = ops->snd_nxt;
	met.cookie = bpf_get_socket_cookie(ops);
	met.sock = address;
	met.end = (__u64)end;
	if (bpf_sock_hash_update(ops, &shortcut_sockets, &met.cookie, BPF_NOEXIST)) {
		counts = counts_of(mine.local_slot);
		if (counts)
			counts->refused++;
		end->tries = TRIES;
		return 0;
	}
	bpf_map_update_elem(&shortcut_met, &mine, &met, BPF_ANY);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG);
	return 0;
}

/* A field of the other end. What was freed since reads as anything; nothing is redirected to it then. */
#define OF_PEER(end, field) \
	({ \
		typeof(((struct end *)0)->field) value = 0; \
		bpf_probe_read_kernel(&value, sizeof(value), \
				      (void *)((end)->peer_end + offsetof(struct end, field))); \
		value; \
	})

static __always_inline __u64 psock_of(__u64 sock)
{
	return (__u64)KERNEL(sock, sock)->sk_user_data & ~USER_DATA_FLAGS;
}

static __always_inline bool has_unread(__u64 sock)
{
	__u64 psock = psock_of(sock);
	__u64 queue = psock + bpf_core_field_offset(struct sk_psock, ingress_msg);

	return (__u64)KERNEL(psock, sk_psock)->ingress_msg.next != queue;
}

/*
 * May the other end be about to put something into the queue of this one, which has said that it is leaving? If it never
 * did, it reads that before it begins. Otherwise nobody may be in a call on its socket: each holds its psock, beside the map.
 */
static __always_inline bool may_be_sent_to(const struct end *end)
{
	__u64 psock;

	if (!OF_PEER(end, redirected))
		return false;
	/* It may be gone, and another at its place. */
	if ((__u64)KERNEL(end->peer_sock, sock)->__sk_common.skc_cookie.counter != end->peer)
		return false;
	psock = psock_of(end->peer_sock);
	return psock && KERNEL(psock, sk_psock)->refcnt.refs.counter != 1;
}

/* Takes back what the other end would find this one by; false: it has found it, or the place was another's since. */
static __always_inline bool take_back(const struct end *end)
{
	struct end_key mine = {};

	__builtin_memcpy(mine.local, end->other.remote, 16);
	__builtin_memcpy(mine.remote, end->other.local, 16);
	mine.local_slot = end->other.remote_slot;
	mine.remote_slot = end->other.local_slot;
	mine.local_seq = end->other.remote_seq;
	mine.remote_seq = end->other.local_seq;
	mine.local_port = end->other.remote_port;
	mine.remote_port = end->other.local_port;
	return !bpf_map_delete_elem(&shortcut_met, &mine);
}

/*
 * A socket in the map pays for each message, also where that goes by the stack. So one that sends a stream leaves, for good.
 * The kernel throws away what is in the queue of a socket that leaves: it has to be read, and nothing may come any more.
 * With the socket's lock, at an acknowledgement.
 */
static __noinline int leave(struct bpf_sock_ops *ops)
{
	struct bpf_sock *own = ops->sk;
	struct end *end;
	__u64 cookie;

	if (!own || !ops->is_fullsock)
		return 0;
	end = bpf_sk_storage_get(&shortcut_ends, own, 0, 0);
	if (!end || end->run < STREAM)
		return 0;
	if (!end->peer) {
		if (end->tries < TRIES || !take_back(end))
			return 0;
	} else {
		/* With a full barrier. */
		__sync_lock_test_and_set(&end->leaving, 1);
		if (may_be_sent_to(end))
			return 0;
	}
	if (has_unread(end->sock))
		return 0;
	cookie = bpf_get_socket_cookie(ops);
	bpf_map_delete_elem(&shortcut_sockets, &cookie);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_RTT_CB_FLAG);
	return 0;
}

/*
 * A disconnected socket (AF_UNSPEC) that connects again would stay in the map until it is closed: take it out. This discards unread
 * data of the shortcut, which belongs to the old connection.
 */
static __noinline int connects(struct bpf_sock_ops *ops)
{
	struct bpf_sock *own = ops->sk;
	__u64 cookie;

	if (!own || !ops->is_fullsock || !bpf_sk_storage_get(&shortcut_ends, own, 0, 0))
		return 0;
	cookie = bpf_get_socket_cookie(ops);
	bpf_map_delete_elem(&shortcut_sockets, &cookie);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_RTT_CB_FLAG);
	return 0;
}

SEC("sockops")
int hopyard_joins(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB)
		connects(ops);
	else if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ||
	    ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		established(ops);
	else if (ops->op == BPF_SOCK_OPS_RTT_CB)
		leave(ops);
	return 1;
}

/* Has the other end come to the map? */
static __noinline bool find_other(struct end *end)
{
	struct shortcut_counters *counts;
	struct met *met, found;

	if (!end || end->tries >= TRIES)
		return false;
	end->tries++;
	met = bpf_map_lookup_elem(&shortcut_met, &end->other);
	if (!met)
		return false;
	found = *met;
	/* It may have taken that back, to leave. */
	if (bpf_map_delete_elem(&shortcut_met, &end->other))
		return false;
	end->peer_sock = found.sock;
	end->peer_end = found.end;
	end->peer = found.cookie;
	end->heard = OF_PEER(end, spoken) >> 32;
	counts = counts_of(end->other.remote_slot);
	if (counts)
		counts->joined++;
	return true;
}

/*
 * A reader takes the queue of the shortcut before that of the stack, so a message must not overtake what its sender gave
 * to the stack before. That is sure once the reader's program has all of it *and sent something after that*: merely to have
 * read it is not enough, as the reader may still be in the call (MSG_WAITALL, SO_RCVLOWAT), which looks at the stack's
 * queue alone until it ends. So streams that nobody answers stay with the stack.
 *
 * A call that began before the connection was established (sendto with MSG_FASTOPEN, a send that waited for the handshake) gives
 * its bytes to the stack without running this program. write_seq shows them.
 */
static __always_inline bool is_all_read(struct end *end)
{
	__u32 written = KERNEL(end->sock, tcp_sock)->write_seq;
	__u64 spoken;

	if (!end->by_stack && written == end->written)
		return true;
	spoken = OF_PEER(end, spoken);
	if (!end->by_stack) {
		end->by_stack = 1;
		end->heard = spoken >> 32;
		return false;
	}
	if ((__u32)(spoken >> 32) == end->heard || (__u32)spoken != written)
		return false;
	end->by_stack = 0;
	end->written = written;
	return true;
}

static __always_inline bool has_upper_protocol(const struct end *end)
{
	return KERNEL(end->sock, tcp_sock)->inet_conn.icsk_ulp_ops ||
	       KERNEL(end->peer_sock, tcp_sock)->inet_conn.icsk_ulp_ops;
}

/* The kernel sets no limit to the queue of the shortcut. The stack has one, and makes the sender wait. */
static __always_inline bool has_room(const struct end *end, __u32 size)
{
	const struct sock *peer = KERNEL(end->peer_sock, sock);

	return peer->sk_backlog.rmem_alloc.counter + size <= (__u32)peer->sk_rcvbuf / 2;
}

static __always_inline bool may_redirect(struct end *end, __u32 size)
{
	const struct shortcut *set = settings();

	return set && set->on && (end->peer || find_other(end)) && size <= set->max_message &&
	       is_all_read(end) && has_room(end, size) && !has_upper_protocol(end) &&
	       may_talk(end->other.remote_slot, end->life) &&
	       may_talk(end->other.local_slot, end->peer_life) &&
	       is_at(end->sock, end->other.remote_slot) &&
	       is_at(end->peer_sock, end->other.local_slot);
}

/* Does the other end still take what comes by the shortcut? With a full barrier: see may_be_sent_to. */
static __always_inline bool is_taken(struct end *end)
{
	__sync_lock_test_and_set(&end->redirected, 1);
	return !OF_PEER(end, leaving);
}

/* Counts messages of a stream: long ones, or such as nobody answers. */
static __always_inline void went_by_stack(struct end *end, __u32 size)
{
	const struct shortcut *set = settings();
	__u32 heard = end->peer ? OF_PEER(end, spoken) >> 32 : end->heard;
	bool is_long = set && size > set->max_message;

	end->run = is_long || heard == end->heard ? end->run + 1 : 0;
	end->heard = heard;
	end->by_stack = 1;
}

SEC("sk_msg")
int hopyard_message(struct sk_msg_md *msg)
{
	struct shortcut_counters *from, *to;
	struct bpf_sock *sk = msg->sk;
	__u32 size = msg->size;
	__u32 mine, other;
	struct end *end;

	if (!sk)
		return SK_PASS;
	/* Shut down, reset, or disconnected: the stack reports the error. A redirect would bypass that check. */
	if (sk->state != TCP_ESTABLISHED && sk->state != TCP_CLOSE_WAIT)
		return SK_PASS;
	end = bpf_sk_storage_get(&shortcut_ends, sk, 0, 0);
	if (!end)
		return SK_PASS;
	end->spoken = ((end->spoken >> 32) + 1) << 32 | KERNEL(end->sock, tcp_sock)->copied_seq;
	/* The other end is not in the map any more once it was closed; the stack tells the sender so. */
	if (!may_redirect(end, size) || !is_taken(end) ||
	    bpf_msg_redirect_hash(msg, &shortcut_sockets, &end->peer, BPF_F_INGRESS) != SK_PASS) {
		went_by_stack(end, size);
		return SK_PASS;
	}
	end->run = 0;
	mine = end->other.remote_slot;
	other = end->other.local_slot;
	from = counts_of(mine);
	to = counts_of(other);
	if (from) {
		from->rx_messages++;
		from->rx_bytes += size;
	}
	if (to) {
		to->tx_messages++;
		to->tx_bytes += size;
	}
	return SK_PASS;
}

/* The other end of a pair. It is what it seems where it leads back. */
SEC("classifier")
int hopyard_guest(struct __sk_buff *ctx)
{
	__u64 device = (__u64)cast_to_kern_ctx(ctx)->dev;
	const struct net_device *peer = peer_of(device);
	struct guest_seen seen = {};

	if ((__u64)peer_of((__u64)peer) != device)
		return VERDICT_DROP;
	seen.address = device;
	seen.ifindex = peer->ifindex;
	seen.netns = peer->nd_net.net->net_cookie;
	return bpf_skb_store_bytes(ctx, 0, &seen, sizeof(seen), 0) ? VERDICT_DROP : 0;
}
