#!/bin/bash
# podman with the plugin, by CNI, in a private host. Prints a line for each thing that holds.  podman.sh PLUGIN GROUP
#
# Runs in mount, network and PID namespaces of its own, as `unshare -m -n -p -f --kill-child --mount-proc` makes them.
# Status 77: this podman has no CNI backend.
set -euo pipefail
plugin=$1
# Control group that whoever started this removes.
group=$2
fail() { echo "$*" >&2; exit 1; }

mount --make-rprivate /
W=/run/podman-test
# A sysfs that shows this network namespace, with the control groups of the machine.
mkdir -p /mnt
mount -t tmpfs tmpfs /mnt
mkdir /mnt/cg
mount --rbind /sys/fs/cgroup /mnt/cg
mount -t sysfs sysfs /sys
mount --rbind /mnt/cg /sys/fs/cgroup
for d in /run /var/lib /etc/containers /etc/cni; do [ -d $d ] && mount -t tmpfs tmpfs $d; done
mkdir -p $W/plugins $W/root/{bin,dev,proc,sys,etc,tmp} /etc/containers /etc/cni/net.d /run/lock /var/lib/cni
ip link set lo up
ip link add up0 type veth peer name far0
ip netns add wire
ip link set far0 netns wire
ip addr add 10.88.0.2/16 dev up0
ip link set up0 up
ip -n wire addr add 10.88.0.1/16 dev far0
ip -n wire link set far0 up
cp "$plugin" $W/plugins/hopyard
cp "$(command -v busybox)" $W/root/bin/
for name in sh ip ping sleep arping true; do ln -s busybox $W/root/bin/$name; done
echo 'root:x:0:0::/:/bin/sh' >$W/root/etc/passwd
cat >/etc/containers/containers.conf <<-END
	[network]
	network_backend = "cni"
	cni_plugin_dirs = ["/usr/lib/cni", "$W/plugins"]
	network_config_dir = "/etc/cni/net.d"
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	runtime = "runc"
END
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/graph"\nrunroot = "%s/run"\n' $W $W >/etc/containers/storage.conf
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
list() { # NAME KEYS
	cat >/etc/cni/net.d/"$1".conflist <<-END
		{
		  "cniVersion": "1.0.0",
		  "name": "$1",
		  "plugins": [
		    {
		      "type": "hopyard",
		      "master": "up0",
		      $2
		      "ipam": {
		        "type": "host-local",
		        "ranges": [[{ "subnet": "10.88.0.0/16", "rangeStart": "10.88.$3.1", "rangeEnd": "10.88.$3.99" }]],
		        "routes": [{ "dst": "0.0.0.0/0", "gw": "10.88.0.1" }]
		      }
		    }
		  ]
		}
	END
}
list front '' 1
list apart '"portIsolation": true,' 2
P="podman --cgroup-manager cgroupfs"
run() { # NAME NETWORK OPTIONS…
	name=$1 net=$2
	shift 2
	$P run -d --cgroup-parent "$group" --name "$name" --network "$net" --cap-add NET_RAW,NET_ADMIN "$@" --rootfs $W/root:O sleep 1000 >/dev/null
}
inside() { $P exec "$@"; }
# The first answer may wait for ARP.
pings() { inside "$1" ping -c 1 -W 2 "$2" >/dev/null; }
silent() { ! inside "$1" ping -c 1 -W 1 "$2" >/dev/null 2>&1 || fail "$1 reaches $2"; }

if ! said=$($P network ls 2>&1); then
	[[ $said == *CNI* || $said == *cni* ]] || fail "$said"
	echo "this podman has no CNI backend: $said" >&2
	exit 77
fi
run a front
run b front --ip 10.88.1.50 --mac-address 02:00:00:00:00:50
inside b ip -o addr show eth0 | grep -q '10.88.1.50/16' || fail "b has not its address"
inside b ip link show eth0 | grep -q '02:00:00:00:00:50' || fail "b has not its Ethernet address"
echo "static address"
pings a 10.88.1.50
pings a 10.88.0.1
pings a 10.88.0.2
echo "containers reach each other, host and wire"
run c apart
run d apart
D=$(inside d ip -o -4 addr show eth0 | sed 's/.*inet \([0-9.]*\).*/\1/')
silent c "$D"
silent c 10.88.1.50
pings c 10.88.0.1
echo "isolation"
inside a ip addr add 10.88.1.77/16 dev eth0
! inside a ping -I 10.88.1.77 -c 1 -W 1 10.88.0.1 >/dev/null 2>&1 || fail "a lies about its address"
inside a ip link set eth0 address 02:00:00:00:00:66
silent a 10.88.0.1
echo "spoofing"
$P network disconnect front b
! inside b ip link show eth0 >/dev/null 2>&1 || fail "b is still connected"
$P network connect front b
pings b 10.88.0.1 || fail "b does not come back"
echo "disconnect and connect"
list mapped '"capabilities": { "portMappings": true },' 3
said=$(run e mapped -p 8080:80 2>&1) && fail "a port of the host is mapped"
[[ $said == *'unsupported capability `portMappings`'* ]] || fail "$said"
$P rm -f -t 0 e >/dev/null
$P network rm -f mapped >/dev/null
echo "ports of the host are not mapped"
$P network rm -f -t 0 front >/dev/null
$P rm -f -t 0 c d >/dev/null
$P network rm -f apart >/dev/null
[ -z "$(ip -o link show type veth | grep ' hc' || true)" ] || fail "devices are left"
[ ! -e /var/lib/cni/hopyard ] || fail "records are left: $(ls -R /var/lib/cni/hopyard)"
[ ! -e /sys/fs/bpf/hopyard ] || fail "a switch is left"
ls /var/lib/cni/networks/*/10.* 2>/dev/null && fail "addresses are left"
echo "nothing is left"
