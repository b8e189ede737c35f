# What tests of engines have in common: sourced by them, in the root of the engine.
#
# The host has 10.88.0.2 at `up0`, which leads to namespace `wire` (10.88.0.1).
set -euo pipefail
fail() { echo "$*" >&2; exit 1; }
# A line for what holds.
holds() { echo "  $*"; }
ping() { busybox ping "$@"; }

ip link set lo up
ip link add up0 type veth peer name far0
ip netns add wire
ip link set far0 netns wire
ip addr add 10.88.0.2/16 dev up0
ip link set up0 up
ip -n wire addr add 10.88.0.1/16 dev far0
ip -n wire link set far0 up
wire_reaches() { ip netns exec wire busybox ping -c 1 -W 2 "$1" >/dev/null || fail "the wire does not reach $1"; }
host_reaches() { ping -c 1 -W 2 "$1" >/dev/null || fail "the host does not reach $1"; }

# What containers run.
ROOTFS=/tmp/rootfs
mkdir -p $ROOTFS/{bin,dev,proc,sys,etc,tmp}
cp /bin/busybox $ROOTFS/bin/
for name in sh ip ping sleep true; do ln -s busybox $ROOTFS/bin/$name; done
echo 'root:x:0:0::/:/bin/sh' >$ROOTFS/etc/passwd

# Neither devices, nor records, nor a switch.
nothing_is_left() {
	local devices
	devices=$(ip -o link show type veth | grep ' hc' || true)
	[ -z "$devices" ] || fail "devices are left: $devices"
	for d in /run/hopyard-netavark /var/lib/cni/hopyard /sys/fs/bpf/hopyard; do
		[ ! -e $d ] || fail "$d is left: $(find $d)"
	done
}
