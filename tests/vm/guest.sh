#!/bin/sh
# The first process of the virtual machine: mounts, devices, daemons, then the command.
#
#   guest.sh OUTSIDE    OUTSIDE/command is what to run; OUTSIDE/exit-code gets how it ended
outside=$1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin

exec </dev/null >/dev/ttyS1 2>&1
touch "$outside/up"
mount -t tmpfs run /run
mount -t tmpfs shm /tmp
mkdir -p /dev/shm /dev/pts /run/lock /run/udev /run/netns
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
hostname plimsoll-vm
ip link set lo up
touch /run/plimsoll-vm

for module in dm_mod dm_delay dm_multipath dm_service_time dm_queue_length md_mod raid1 raid0 \
    iscsi_tcp scsi_dh_alua sd_mod sg loop ext4 veth dummy; do
    modprobe "$module" || echo "no module $module"
done
/usr/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add
udevadm settle --timeout=20

mkdir -p /etc/iscsi /etc/multipath/conf.d /run/lock/iscsi
echo "InitiatorName=iqn.2026-01.example.plimsoll:vm" > /etc/iscsi/initiatorname.iscsi
iscsid
sh "$outside/command"
code=$?
sync
echo $code > "$outside/exit-code"
sync
poweroff -f 2>/dev/null || busybox poweroff -f
