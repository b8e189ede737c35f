#!/bin/bash
# A Slurm of Debian's packages on this machine: munged, slurmctld and so many slurmd, each node with a network and a host name of
# its own.  cluster.sh DIRECTORY NODES
#
# It is started as the first process of a PID namespace, with its own mounts, network and host name (tests/slurm.rs):
#   unshare --mount --pid --fork --kill-child --mount-proc --net --uts bash cluster.sh …
# so that the end of that one process ends all of it. Prints `ready` when all nodes are idle.
set -euo pipefail
here=$1 nodes=$2
export SLURM_CONF=$here/slurm.conf
mount --make-rprivate /

hostname ctl
ip link set lo up
ip link add br0 type bridge
ip link set br0 up
ip addr add 198.18.0.100/24 dev br0
{
	echo "127.0.0.1 localhost"
	echo "198.18.0.100 ctl"
	for i in $(seq "$nodes"); do echo "198.18.0.$i node$i"; done
} >"$here/hosts"
mount --bind "$here/hosts" /etc/hosts

# One munged for all nodes: its socket is a file, which network namespaces share.
install -d -m 755 "$here/munge"
(umask 077 && head -c 128 /dev/urandom >"$here/munge/key")
munged --key-file="$here/munge/key" --socket="$here/munge/socket" --pid-file="$here/munge/pid" \
	--log-file="$here/munge/log" --seed-file="$here/munge/seed"

# slurmd starts its cgroup plugin whatever ProctrackType says, and finds no systemd's tree here. `v1` needs no mount.
echo 'CgroupPlugin=cgroup/v1' >"$here/cgroup.conf"
cat >"$SLURM_CONF" <<C
ClusterName=test
SlurmctldHost=ctl(198.18.0.100)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge/socket
CredType=cred/munge
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool.%n
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.%n.pid
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
MessageTimeout=5
KillWait=2
MailProg=/bin/true
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
for i in $(seq "$nodes"); do
	# More CPUs than there are: the scheduler counts them, nobody is pinned.
	echo "NodeName=node$i NodeAddr=198.18.0.$i CPUs=8 State=UNKNOWN"
done >>"$SLURM_CONF"
mkdir "$here/state"

# The process that holds a node's namespaces; its slurmd comes and goes beside it.
for i in $(seq "$nodes"); do
	mkdir "$here/spool.node$i"
	unshare --net --uts sh -c "hostname node$i && ip link set lo up && touch $here/node$i.made && exec sleep infinity" &
	echo $! >"$here/node$i.pid"
done
for i in $(seq "$nodes"); do
	pid=$(cat "$here/node$i.pid")
	until [ -e "$here/node$i.made" ]; do sleep 0.02; done
	ip link add "v$i" type veth peer name eth0 netns "$pid"
	ip link set "v$i" master br0 up
	nsenter -t "$pid" -n sh -c "ip addr add 198.18.0.$i/24 dev eth0 && ip link set eth0 up"
done
slurmctld
for i in $(seq "$nodes"); do
	nsenter -t "$(cat "$here/node$i.pid")" -n -u slurmd -N "node$i"
done
until [ "$(sinfo -h -t idle -o %D)" = "$nodes" ]; do sleep 0.1; done
echo ready
# The first process of a PID namespace waits for orphans, which a shell does between its commands.
while :; do sleep 0.2; done
