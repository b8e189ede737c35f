#!/usr/bin/env bash
# Two containers whose devices are netkits, by the CNI plugin: they reach each other, what they send does not come to their ports,
# and nothing of them stays. Says how many frames came.  netkit.sh
set -euo pipefail
conf='{"cniVersion": "1.0.0", "name": "nk", "type": "hopyard", "device": "netkit",
	"ipam": {"type": "host-local", "ranges": [[{"subnet": "198.51.100.0/24"}]]}}'
call() { # COMMAND CONTAINER
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/$2 CNI_IFNAME=eth0 CNI_PATH=/usr/lib/cni hopyard-cni <<<"$conf"
}
ports() { ip -o link show type netkit | awk -F '[ :@]+' '{ print $2 }'; }
received() {
	local sum=0 port
	for port in $(ports); do sum=$((sum + $(cat /sys/class/net/$port/statistics/rx_packets))); done
	echo $sum
}
for container in nk-a nk-b; do
	ip netns add $container
	call ADD $container >/dev/null
done
[ "$(ports | wc -l)" = 2 ] || { ip -o link show; exit 1; }
b=$(ip -n nk-b -4 -o addr show eth0 | awk '{ sub("/.*", "", $4); print $4 }')
reach() { ip netns exec nk-a busybox ping -c $1 -W 5 "$b" >/dev/null; }
reach 1
before=$(received)
reach 10
came=$(($(received) - before))
[ $came -lt 5 ] || { echo "$came of 20 frames came to the ports"; exit 1; }
for container in nk-a nk-b; do
	call DEL $container
	ip netns del $container
done
[ -z "$(ports)" ] || { ip -o link show; exit 1; }
echo "$came of 20 frames between two netkits came to the queues of their ports"
