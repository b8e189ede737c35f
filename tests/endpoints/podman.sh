#!/bin/bash
# Path as-is between two containers of podman, by `podman exec`, in a private host.  podman.sh DIRECTORY_OF_PROGRAMS GROUP OUT
#
# Runs in mount, network and PID namespaces of its own, as `unshare -m -n -p -f --kill-child --mount-proc` makes them. Prints the
# run's report.
set -euo pipefail
programs=$1 group=$2 out=$3
mount --make-rprivate /
mkdir -p /mnt
mount -t tmpfs tmpfs /mnt
mkdir /mnt/cg
mount --rbind /sys/fs/cgroup /mnt/cg
mount -t sysfs sysfs /sys
mount --rbind /mnt/cg /sys/fs/cgroup
for d in /run /var/lib /etc/containers; do [ -d $d ] && mount -t tmpfs tmpfs $d; done
W=/run/podman-test
mkdir -p $W/root/{bin,dev,proc,sys,etc,tmp,usr,lib,lib64} /etc/containers /run/lock
cp "$(command -v busybox)" $W/root/bin/
for name in sh sleep env; do ln -s busybox $W/root/bin/$name; done
echo 'root:x:0:0::/:/bin/sh' >$W/root/etc/passwd
printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n' >/etc/containers/containers.conf
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/graph"\nrunroot = "%s/run"\n' $W $W >/etc/containers/storage.conf
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
ip link set lo up
ip netns add a
ip netns add b
ip link add eth0 netns a type veth peer name eth0 netns b
for end in a:1 b:2; do
	ip -n ${end%:*} addr add 192.0.2.${end#*:}/24 dev eth0
	ip -n ${end%:*} link set eth0 up
	ip -n ${end%:*} link set lo up
	podman run -d --cgroup-parent "$group" --name ${end%:*} --network ns:/run/netns/${end%:*} \
		-v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro -v "$programs:/hopyard:ro" \
		--rootfs $W/root:O sleep 1000 >/dev/null
done
before=$(podman top a pid comm; podman top b pid comm)
"$programs/hopyard" run --paths as-is --client 'podman exec -i --env PATH=/hopyard:/bin a' --server 'podman exec -i --env PATH=/hopyard:/bin b' \
	--loads tcp_rr,tcp_stream --set congestion=reno --window 200ms --warm-up 50ms --blocks 2..2 --json --out "$out"
for _ in $(seq 50); do
	after=$(podman top a pid comm; podman top b pid comm)
	[ "$before" != "$after" ] || break
	sleep 0.1
done
[ "$before" = "$after" ] || { echo "left in the containers: $after" >&2; exit 1; }
podman rm -f -t 0 a b >/dev/null
