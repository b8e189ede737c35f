#!/usr/bin/env bash
# podman 5 with the netavark driver. Prints a line for each thing that holds.  podman.sh GROUP
group=$1
. "$(dirname "$0")/host.sh"

cat >/etc/containers/containers.conf <<-END
	[network]
	network_backend = "netavark"
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	runtime = "runc"
END
printf '[storage]\ndriver = "vfs"\ngraphroot = "/var/lib/containers"\nrunroot = "/run/containers"\n' >/etc/containers/storage.conf
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
export PODMAN_IGNORE_CGROUPSV1_WARNING=1
run() { # NAME NETWORK OPTIONS…
	local name=$1 net=$2
	shift 2
	podman run -d --cgroup-parent "$group" --name "$name" --network "$net" --cap-add NET_RAW,NET_ADMIN "$@" --rootfs $ROOTFS:O sleep 1000 >/dev/null
}
inside() { podman exec "$@"; }
# The first answer may wait for ARP.
pings() { inside "$1" ping -c 1 -W 2 "$2" >/dev/null || fail "$1 does not reach $2"; }
silent() { ! inside "$1" ping -c 1 -W 1 "$2" >/dev/null 2>&1 || fail "$1 reaches $2"; }
refused() { # WORDS COMMAND…: podman refuses it, and says why
	local words=$1 said
	shift
	! said=$(podman "$@" 2>&1) || fail "podman $* is not refused"
	[[ $said == *"$words"* ]] || fail "podman $*: $said"
}
address() { inside "$1" ip -o -4 addr show eth0 | sed 's/.*inet \([0-9.]*\).*/\1/'; }
mac() { inside "$1" ip -o link show eth0 | sed 's/.*ether \([0-9a-f:]*\).*/\1/'; }
ports() { hopyard switch show --json | grep -c '"device": "hc' || true; }

NETWORK="--subnet 10.88.0.0/16 --gateway 10.88.0.1"
[[ $(podman info -f '{{.Plugins.Network}}') == *hopyard* ]] || fail "podman does not list the driver"
refused 'unknown option `isolatd` ("true")' network create -d hopyard $NETWORK -o parent=up0 -o isolatd=true guests
refused 'no device of this host' network create -d hopyard $NETWORK -o parent=nosuch guests
refused 'no way to the wire' network create -d hopyard $NETWORK guests
nothing_is_left
holds "wrong options are refused by name"
podman network create -d hopyard $NETWORK --ip-range 10.88.1.0/24 -o parent=up0 guests >/dev/null
podman network create -d hopyard $NETWORK --ip-range 10.88.2.0/24 -o parent=up0 -o isolate=true apart >/dev/null
run a guests
run b guests --ip 10.88.1.50 --mac-address 02:00:00:00:00:50
[ "$(address b) $(mac b)" = '10.88.1.50 02:00:00:00:00:50' ] || fail "b has $(address b) $(mac b)"
[[ $(podman inspect b) == *'"MacAddress": "02:00:00:00:00:50"'* ]] || fail "inspect does not show the address"
[[ $(inside b ip route) == *'default via 10.88.0.1 dev eth0'* ]] || fail "b has no default route: $(inside b ip route)"
holds "static IP and Ethernet address, default route"
A=$(address a)
pings a 10.88.1.50
pings b "$A"
pings a 10.88.0.1
pings a 10.88.0.2
wire_reaches 10.88.1.50
host_reaches 10.88.1.50
holds "containers, host and wire reach each other"
run c apart
run d apart
silent c "$(address d)"
silent c 10.88.1.50
silent a "$(address c)"
pings c 10.88.0.1
pings c 10.88.0.2
holds "isolation"
inside a ip addr add 10.88.1.77/16 dev eth0
! inside a ping -I 10.88.1.77 -c 1 -W 1 10.88.0.1 >/dev/null 2>&1 || fail "a lies about its IP address"
inside a ip addr del 10.88.1.77/16 dev eth0
inside a ip link set eth0 address 02:00:00:00:00:66
silent a 10.88.0.1
holds "spoofing is refused"
podman restart -t 0 b >/dev/null
[ "$(address b) $(mac b)" = '10.88.1.50 02:00:00:00:00:50' ] || fail "b has $(address b) $(mac b) after a restart"
pings b 10.88.0.1
podman restart -t 0 a >/dev/null
pings a 10.88.1.50
holds "restart"
podman network disconnect guests b
! inside b ip link show eth0 >/dev/null 2>&1 || fail "b is still connected"
podman network connect --ip 10.88.1.51 guests b
pings b 10.88.0.1
podman network reload b >/dev/null
pings b 10.88.0.1
holds "disconnect, connect and reload"
refused 'ports of the host are not mapped' run --rm --network guests -p 8080:80 --rootfs $ROOTFS:O true
refused 'unknown option `foo` ("1") of a container' run --rm --network guests:foo=1 --rootfs $ROOTFS:O true
[ "$(ports)" = 4 ] || fail "a refused container has left a port: $(hopyard switch show)"
holds "mapped ports are refused"
podman network create -d hopyard --subnet 10.89.0.0/24 --internal alone >/dev/null
run e alone
run f alone
pings e "$(address f)"
[[ $(inside e ip route) != *default* ]] || fail "an internal network has a default route"
podman rm -f -t 0 e f >/dev/null
podman network rm alone >/dev/null
holds "an internal network"
# podman killed at any time: whatever it has made goes when the container is removed, or with the next container.
for ms in 40 80 120 160 200 240 280 320 360 400; do
	setsid podman run -d --cgroup-parent "$group" --name "k$ms" --network guests --rootfs $ROOTFS:O sleep 1000 >/dev/null 2>&1 &
	killed=$!
	sleep "0.$(printf %03d $ms)"
	kill -KILL $killed 2>/dev/null || true
	wait $killed 2>/dev/null || true
done
for ms in 40 80 120 160 200 240 280 320 360 400; do podman rm -f -t 0 "k$ms" >/dev/null 2>&1 || true; done
pings b 10.88.0.1
KILLED=$(ports)
holds "podman killed while it starts containers: $((KILLED - 4)) of 10 ports left to the end of their namespaces"
podman rm -f -t 0 a b >/dev/null
podman network rm -f guests >/dev/null
# A podman that was killed may leave a namespace that no container has: it ends here, and the next command takes its port away.
used=$(podman inspect -f '{{.NetworkSettings.SandboxKey}}' c d)
for ns in /run/netns/netns-*; do [[ $used == *"$ns"* ]] || ip netns del "$(basename "$ns")"; done
podman rm -f -t 0 c d >/dev/null
podman network rm apart >/dev/null
nothing_is_left
holds "network rm leaves nothing"
