#!/usr/bin/env bash
# Debian 13 as a guest of QEMU, with systemd and the unit of the package: the same switch after a reboot, before containers, and
# after power cuts while `hopyard switch apply` runs. Two containers with netkits reach each other. Prints a line for each thing that holds.  reboot.sh PROGRAMS ROOT WORK
#
# Needs a kernel and an initramfs in ROOT, which is not changed. WORK gets a disk of some 2 GB. CUTS="0 3" says after which steps of
# `apply` the power is cut.
set -euo pipefail
programs=$1 root=$2 work=$3
here=$(realpath "$(dirname "$0")")
cuts=${CUTS:-0 1 2 4 6 8}
# How long a boot may take until the guest is ready, seconds; the slowest seen took 70.
BOOT=300
fail() {
	echo "$*" >&2
	tail -n 30 "$work/told" "$work/told.now" "$work/console" "$work/qemu" >&2 || true
	exit 1
}
holds() { echo "  $*"; }

# The root with what the test adds, by an overlay that ends with this mount namespace.
mount --make-rprivate /
mkdir "$work/upper" "$work/overlay" "$work/disk"
mount -t overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/overlay" overlay "$work/disk"
disk=$work/disk
kernel=$(echo "$disk"/boot/vmlinuz-*) initrd=$(echo "$disk"/boot/initrd.img-*)
[ -f "$kernel" ] && [ -f "$initrd" ] || fail "$root has no kernel with an initramfs: make a new root"
cp "$kernel" "$work/kernel"
cp "$initrd" "$work/initrd"
install -D -m 755 "$programs/hopyard" "$disk/usr/bin/hopyard"
install -D -m 755 "$programs/hopyard-cni" "$disk/usr/bin/hopyard-cni"
install -D -m 755 "$programs/netavark-hopyard" "$disk/usr/local/lib/netavark/hopyard"
install -D -m 644 "$here/../../contrib/systemd/hopyard-switch@.service" "$disk/usr/lib/systemd/system/hopyard-switch@.service"
install -D -m 644 "$here/guest/a.toml" "$disk/etc/hopyard/switch/lan.toml"
mkdir -p "$disk"/opt/{tests,rootfs} "$disk"/etc/systemd/{network,system.conf.d,system/hopyard-switch@lan.service.d}
cp "$here"/guest/* "$disk/opt/tests/"
# The control group of the shortcut, as docs/switch-apply.md tells.
printf '[Unit]\nWants=machine.slice\nAfter=machine.slice\n' >"$disk/etc/systemd/system/hopyard-switch@lan.service.d/slice.conf"
printf '[Manager]\nDefaultTimeoutStopSec=5s\n' >"$disk/etc/systemd/system.conf.d/test.conf"
cat >"$disk/etc/systemd/system/hopyard-test.service" <<-END
	[Unit]
	After=hopyard-switch@lan.service podman-restart.service
	[Service]
	ExecStart=/bin/bash /opt/tests/boot.sh
	TimeoutStartSec=infinity
	[Install]
	WantedBy=multi-user.target
END
number=0
for pair in up0:far0 up1:far1 p0:g0 p1:g1 p2:g2; do
	number=$((number + 1))
	printf '[NetDev]\nName=%s\nKind=veth\nMACAddress=02:00:00:00:%02x:01\n[Peer]\nName=%s\nMACAddress=02:00:00:00:%02x:02\n' \
		${pair%:*} $number ${pair#*:} $number >"$disk/etc/systemd/network/10-$number.netdev"
done
printf '[Match]\nName=up* far* p* g*\n[Network]\nLinkLocalAddressing=no\n' >"$disk/etc/systemd/network/10-all.network"
printf '[Match]\nName=up0\n[Network]\nLinkLocalAddressing=no\nAddress=192.0.2.250/24\n' >"$disk/etc/systemd/network/05-up0.network"
mkdir -p "$disk"/opt/rootfs/{bin,dev,proc,sys,etc,tmp}
cp "$disk/bin/busybox" "$disk/opt/rootfs/bin/"
for name in sh ip ping sleep; do ln -s busybox "$disk/opt/rootfs/bin/$name"; done
echo 'root:x:0:0::/:/bin/sh' >"$disk/opt/rootfs/etc/passwd"
cat >"$disk/etc/containers/containers.conf" <<-END
	[network]
	network_backend = "netavark"
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	runtime = "runc"
END
printf '[storage]\ndriver = "vfs"\ngraphroot = "/var/lib/containers"\nrunroot = "/run/containers"\n' >"$disk/etc/containers/storage.conf"
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$disk/etc/containers/policy.json"
echo guest >"$disk/etc/hostname"
echo '/dev/vda / ext4 defaults 0 1' >"$disk/etc/fstab"
for unit in hopyard-switch@lan hopyard-test podman-restart systemd-networkd; do
	chroot "$disk" systemctl enable $unit.service >/dev/null 2>&1 || fail "cannot enable $unit"
done
for unit in apt-daily.timer apt-daily-upgrade.timer systemd-networkd-wait-online.service containerd.service getty.target; do
	chroot "$disk" systemctl mask $unit >/dev/null 2>&1 || fail "cannot mask $unit"
done
mke2fs -q -t ext4 -d "$disk" "$work/image" 3G >"$work/log" 2>&1 || fail "$(cat "$work/log")"

# KVM inside virtual machines boots few guests, and some of them only once: ACCEL=kvm is for hosts of metal.
accel=${ACCEL:-tcg}
start() {
	# What the guest told before stays: QEMU truncates the files of serial lines.
	cat "$work/told.now" >>"$work/told" 2>/dev/null || true
	: >"$work/told.now"
	qemu-system-x86_64 -M q35 -accel $accel -cpu max,cx16=off -smp 2 -m 1024 -nodefaults -no-user-config -display none \
		-kernel "$work/kernel" -initrd "$work/initrd" -append "root=/dev/vda rw console=ttyS0 systemd.show_status=false" \
		-drive "file=$work/image,if=virtio,format=raw,cache=writeback" -device virtio-rng-pci \
		-serial "file:$work/console" -serial "file:$work/told.now" </dev/null 2>>"$work/qemu" &
	guest=$!
}
cut() {
	kill -KILL $guest 2>/dev/null || true
	wait $guest 2>/dev/null || true
	guest=
}
trap '[ -z "${guest:-}" ] || kill -KILL $guest 2>/dev/null' EXIT
# Waits for COUNT lines that match.
await() { # SECONDS PATTERN [COUNT]
	local tries=0
	until [ "$(grep -ac "$2" "$work/told.now")" -ge "${3:-1}" ]; do
		! grep -aq '^failed: ' "$work/told.now" || fail "$(grep -a -A 20 '^failed: ' "$work/told.now")"
		kill -0 $guest 2>/dev/null || fail "QEMU ended"
		tries=$((tries + 1))
		[ $tries -lt $(($1 * 100)) ] || fail "the guest does not say \`$2\` within $1 s"
		sleep 0.01
	done
}
# The switch that the guest told of last, and how the guest called its file.
told() { tr -d '\r' <"$work/told.now" | awk '/^switch {/ { text = ""; on = 1; next } /^}/ { on = 0 } on { text = text $0 "\n" } END { printf "%s", text }'; }
which() { tr -d '\r' <"$work/told.now" | awk '/^boot / { with = $NF } END { print with }'; }

began=$SECONDS
start
await $BOOT '^ready 1'
holds "$(tr -d '\r' <"$work/told.now" | sed -n 's/^netkit: //p') (Linux ${kernel##*/vmlinuz-})"
first=$(told)
await $BOOT '^ready 2'
[ "$(tr -d '\r' <"$work/told.now" | awk '/^boot / { print $4 }' | sort -u | wc -l)" = 2 ] || fail "the guest did not boot again"
[ "$first" = "$(told)" ] || fail "after a reboot the switch is another one: $(diff <(echo "$first") <(told))"
holds "after \`systemctl reboot\` the same switch and ports, before the container, which is a port again ($((SECONDS - began)) s for two boots, $accel)"
declare -A of=([a]=$first)
boots=2
for steps in $cuts; do
	await 60 '^applying'
	[ "$steps" = 0 ] || await 60 '^lan: ' "$steps"
	cut
	late=$(grep -ac '^applied' "$work/told.now" || true)
	boots=$((boots + 1))
	start
	await $BOOT "^ready $boots"
	file=$(which)
	[ "${of[$file]:=$(told)}" = "$(told)" ] || fail "after a power cut the switch is another one: $(diff <(echo "${of[$file]}") <(told))"
	holds "power cut after $steps steps of apply$([ "$late" = 0 ] || echo ', which had ended'): the next boot has the whole switch (file $file)"
done
cut
[ "${of[a]}" != "${of[b]:-}" ] || fail "both files give the same switch"
