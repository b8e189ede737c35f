#!/usr/bin/env bash
# containerd (`ctr run --cni`) with the CNI plugin. Prints a line for each thing that holds.  containerd.sh GROUP
group=$1
. "$(dirname "$0")/host.sh"

cat >/etc/cni/net.d/guests.conflist <<-END
	{
	  "cniVersion": "1.0.0",
	  "name": "guests",
	  "plugins": [
	    {
	      "type": "hopyard",
	      "master": "up0",
	      "ipam": {
	        "type": "host-local",
	        "ranges": [[{ "subnet": "10.88.0.0/16", "rangeStart": "10.88.1.1", "rangeEnd": "10.88.1.99" }]],
	        "routes": [{ "dst": "0.0.0.0/0", "gw": "10.88.0.1" }]
	      }
	    }
	  ]
	}
END
[ -e /opt/cni/bin/host-local ] || ln -s /usr/lib/cni/host-local /opt/cni/bin/
cat >/run/containerd.toml <<-END
	version = 2
	root = "/var/lib/containerd"
	state = "/run/containerd"
	disabled_plugins = ["io.containerd.grpc.v1.cri"]
END
containerd --config /run/containerd.toml >/tmp/containerd.log 2>&1 &
daemon=$!
tries=0
until ctr version >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "containerd does not answer: $(tail -n 5 /tmp/containerd.log)"
	sleep 0.1
done
inside() { # CONTAINER COMMAND…
	local name=$1
	shift
	ctr task exec --exec-id "x$RANDOM$RANDOM" "$name" /bin/busybox "$@"
}
# In the foreground of a job: ctr takes the container off its network when it has ended.
run() {
	ctr run --rm --cni --cgroup "/$group/$1" --cap-add CAP_NET_ADMIN --rootfs $ROOTFS "$1" /bin/sleep 1000 &
	local tries=0
	until [[ $(inside "$1" ip -4 -o addr show eth0 2>/dev/null) == *10.88.1.* ]]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || fail "container $1 has no address"
		sleep 0.1
	done
}
address() { inside "$1" ip -o -4 addr show eth0 | sed 's/.*inet \([0-9.]*\).*/\1/'; }
pings() { inside "$1" ping -c 1 -W 2 "$2" >/dev/null || fail "$1 does not reach $2"; }

run a
first=$!
run b
second=$!
B=$(address b)
pings a "$B"
pings b "$(address a)"
pings a 10.88.0.1
pings a 10.88.0.2
wire_reaches "$B"
host_reaches "$B"
holds "containers, host and wire reach each other"
inside a ip addr add 10.88.1.177/16 dev eth0
! inside a ping -I 10.88.1.177 -c 1 -W 1 10.88.0.1 >/dev/null 2>&1 || fail "a lies about its IP address"
inside a ip link set eth0 address 02:00:00:00:00:66
! inside a ping -c 1 -W 1 10.88.0.1 >/dev/null 2>&1 || fail "a lies about its Ethernet address"
holds "spoofing is refused"
for name in a b; do ctr task kill -s KILL $name; done
wait $first $second || true
nothing_is_left
reserved=$(find /var/lib/cni/networks -name '10.*')
[ -z "$reserved" ] || fail "addresses are left: $reserved"
kill $daemon
wait $daemon || true
holds "nothing is left"
