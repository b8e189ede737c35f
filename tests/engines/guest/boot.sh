#!/usr/bin/env bash
# What a guest does after each boot: tells of its switch, then applies the other file, during which the power is cut. The first
# boot starts a container and ends with `systemctl reboot`. Everything is told to the second serial line.  boot.sh
set -uo pipefail
exec >/dev/ttyS1 2>&1
NAME=lan
FILE=/etc/hopyard/switch/$NAME.toml
HERE=$(dirname "$0")
boots=$(($(cat /var/lib/boots 2>/dev/null || echo 0) + 1))
echo $boots >/var/lib/boots
sync
fail() { echo "failed: $*"; exit 1; }

echo "boot $boots of $(cat /proc/sys/kernel/random/boot_id) with $(cmp -s "$FILE" "$HERE/a.toml" && echo a || echo b)"
systemctl is-active --quiet hopyard-switch@$NAME || fail "the unit: $(systemctl status --no-pager hopyard-switch@$NAME)"
# Without the ports of containers, whose Ethernet addresses are new at each start.
echo "switch {"
hopyard switch export $NAME | awk 'BEGIN { RS = ""; ORS = "\n\n" } !/not made from a file/'
echo "}"
for n in 0 1; do
	ip netns add g$n
	ip link set g$n netns g$n
	ip -n g$n addr add 192.0.2.$((n + 1))/24 dev g$n
	ip -n g$n link set g$n up
done
ip netns exec g0 busybox ping -c 3 -W 2 192.0.2.2 >/dev/null || fail "ports do not reach each other"
if [ $boots = 1 ]; then
	podman network create -d hopyard --subnet 192.0.2.0/24 --ip-range 192.0.2.128/26 -o switch=$NAME guests >/dev/null || fail "network"
	podman run -d --name web --restart always --stop-timeout 0 --cap-add NET_RAW --network guests --ip 192.0.2.150 \
		--rootfs /opt/rootfs sleep 100000 >/dev/null || fail "container"
else
	[ "$(podman inspect -f '{{.State.Running}}' web)" = true ] || fail "the container does not run: $(systemctl status --no-pager podman-restart)"
	# Monotonic µs: the switch was there when the first container started.
	before=$(systemctl show -P ActiveEnterTimestampMonotonic hopyard-switch@$NAME)
	after=$(systemctl show -P ExecMainStartTimestampMonotonic podman-restart)
	[ "$before" -le "$after" ] || fail "containers start before their switch: $before, $after"
fi
if [ $boots = 1 ]; then
	netkit=$(bash "$HERE/netkit.sh" 2>&1) || fail "netkit: $netkit"
	echo "netkit: $netkit"
fi
podman exec web ping -c 3 -W 2 192.0.2.1 >/dev/null || fail "the container does not reach a port"
hopyard switch show $NAME | grep -q 192.0.2.150 || fail "the container is no port: $(hopyard switch show $NAME)"
echo "ready $boots"
if [ $boots = 1 ]; then
	systemctl reboot
	exit
fi
if cmp -s "$FILE" "$HERE/a.toml"; then next=b; else next=a; fi
cp "$HERE/$next.toml" "$FILE.new"
sync
mv "$FILE.new" "$FILE"
sync
echo "applying $next"
hopyard switch apply "$FILE"
echo "applied: $?"
