#!/bin/sh
# An iSCSI target and its sessions on the loopback interface, for tests of paths without an array.
#
#   loopback.sh check           what is missing on this machine; 77 if anything is
#   loopback.sh up IMAGE MIB    a disk of MIB in the file IMAGE, four portals, a session with each
#   loopback.sh show            sessions, disks and multipath policies
#   loopback.sh down IMAGE      log out, remove the target, keep the file
#
# The target is made by tgt (tgtadm) or by LIO (targetcli), whichever is installed; the initiator is
# open-iscsi. Run it as root. The target takes connections from this machine alone.
set -eu

IQN=iqn.2026-01.example.plimsoll:loopback
PORTALS="127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4"
TARGET_NUMBER=7101
LACKS=77

say() { printf '%s\n' "$*"; }
fail() { say "loopback.sh: $*" >&2; exit 2; }

missing() {
    [ "$(id -u)" = 0 ] || say "root: run this as root"
    command -v iscsiadm >/dev/null || say "iscsiadm: install open-iscsi"
    command -v tgtadm >/dev/null || command -v targetcli >/dev/null ||
        say "tgtadm or targetcli: install tgt or targetcli-fb"
    if [ ! -d /sys/class/iscsi_transport/tcp ] && ! modprobe -q iscsi_tcp 2>/dev/null; then
        say "kernel: no iSCSI transport over TCP (module iscsi_tcp)"
    fi
}

need_all() {
    lacks=$(missing)
    [ -z "$lacks" ] || { say "$lacks" >&2; exit $LACKS; }
}

target_up() {
    image=$1
    if command -v tgtadm >/dev/null; then
        pgrep -x tgtd >/dev/null || tgtd
        tries=0
        until tgtadm --mode sys --op show >/dev/null 2>&1; do
            tries=$((tries + 1)); [ $tries -lt 50 ] || fail "tgtd does not answer"; sleep 0.1
        done
        tgtadm --lld iscsi --mode target --op new --tid $TARGET_NUMBER --targetname $IQN
        tgtadm --lld iscsi --mode logicalunit --op new --tid $TARGET_NUMBER --lun 1 \
            --backing-store "$image"
        for portal in $PORTALS; do
            tgtadm --lld iscsi --mode target --op bind --tid $TARGET_NUMBER \
                --initiator-address "$portal"
        done
    else
        targetcli /backstores/fileio create plimsoll "$image"
        targetcli /iscsi create $IQN
        targetcli "/iscsi/$IQN/tpg1/luns" create /backstores/fileio/plimsoll
        # In demo mode any initiator may log in; the portals are those of this machine alone.
        targetcli "/iscsi/$IQN/tpg1" set attribute authentication=0 generate_node_acls=1 \
            demo_mode_write_protect=0
        targetcli "/iscsi/$IQN/tpg1/portals" delete 0.0.0.0 3260 2>/dev/null || true
        for portal in $PORTALS; do
            targetcli "/iscsi/$IQN/tpg1/portals" create "$portal" 3260
        done
    fi
}

target_down() {
    if command -v tgtadm >/dev/null; then
        tgtadm --lld iscsi --mode target --op delete --force --tid $TARGET_NUMBER || true
    else
        targetcli /iscsi delete $IQN || true
        targetcli /backstores/fileio delete plimsoll || true
    fi
}

up() {
    image=$1 mib=$2
    need_all
    case $image in /*) ;; *) fail "$image is no absolute path" ;; esac
    [ ! -e "$image" ] || fail "$image is there already; name another file, or use it with down"
    truncate -s "${mib}M" "$image"
    trap 'down "$image"' INT TERM HUP
    target_up "$image" || { target_down; fail "the target could not be made"; }
    for portal in $PORTALS; do
        iscsiadm -m node -o new -T $IQN -p "$portal:3260" >/dev/null
        # A path that is gone fails after five seconds, not after two minutes.
        iscsiadm -m node -T $IQN -p "$portal:3260" -o update \
            -n node.session.timeo.replacement_timeout -v 5
        iscsiadm -m node -T $IQN -p "$portal:3260" --login
    done
    trap - INT TERM HUP
    show
}

show() {
    iscsiadm -m session 2>/dev/null | grep -F "$IQN" || say "no session with $IQN"
    lsblk -S -o NAME,TRAN,SERIAL,SIZE 2>/dev/null | grep -w iscsi || true
    if command -v multipathd >/dev/null && multipathd show maps format "%n %w %p" 2>/dev/null; then
        multipathd show paths format "%d %t %T %p"
    else
        say "multipath: not running, so each session is a disk of its own"
    fi
}

down() {
    iscsiadm -m node -T $IQN --logout 2>/dev/null || true
    iscsiadm -m node -T $IQN -o delete 2>/dev/null || true
    target_down
    say "the disk stays in $1"
}

case ${1-} in
check) need_all && say "everything is there" ;;
up) [ $# = 3 ] || fail "usage: loopback.sh up IMAGE MIB"; up "$2" "$3" ;;
show) show ;;
down) [ $# = 2 ] || fail "usage: loopback.sh down IMAGE"; down "$2" ;;
*) fail "usage: loopback.sh check | up IMAGE MIB | show | down IMAGE" ;;
esac
