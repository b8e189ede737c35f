#!/usr/bin/env bash
# Makes another root the root of this mount namespace, and runs the test of an engine in it.  enter.sh PROGRAMS ROOT GROUP ENGINE
#
# Runs in mount, network and PID namespaces of its own. A chroot would not do: a container's mount namespace keeps the root of the
# machine above its own, and `podman exec` ends up there.
set -euo pipefail
programs=$1 root=$2 group=$3 engine=$4
tests=$(realpath "$(dirname "$0")")

mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
# A sysfs that shows this network namespace, with the control groups of the machine.
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
for d in run tmp mnt opt var/lib etc/containers etc/cni usr/local; do
	mkdir -p "$root/$d"
	mount -t tmpfs -o mode=755 tmpfs "$root/$d"
done
mkdir -p "$root"/{run/lock,etc/cni/net.d,opt/cni/bin,opt/tests,usr/local/bin,usr/local/lib/netavark}
cp "$tests"/*.sh "$root/opt/tests/"
cp "$programs/hopyard" "$root/usr/local/bin/"
install -m 755 "$programs/netavark-hopyard" "$root/usr/local/lib/netavark/hopyard"
install -m 755 "$programs/hopyard-cni" "$root/opt/cni/bin/hopyard"
cd "$root"
pivot_root . mnt
cd /
umount -l /mnt
exec env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash "/opt/tests/$engine.sh" "$group"
