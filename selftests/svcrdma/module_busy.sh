#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The module cannot be unloaded while a listener or a connection exists, and is
# loaded by the first listener that wants it.
#
# Tier: quick
# Transport: rdma-rs

. "$(dirname "$0")/lib.sh"

unload() { server 'rmmod svcrdma_rs'; }
loaded() { server '[ -e /sys/module/svcrdma_rs ]'; }
references() { server 'cat /sys/module/svcrdma_rs/refcnt'; }
used_by() { references && [ "$(references)" = "$1" ]; }
more_than() { references && [ "$(references)" -gt "$1" ]; }
alias_known() { server 'modprobe -n -v svcrdma-rs; modinfo -F alias svcrdma_rs' | grep -x svcrdma-rs; }
use() { echo text >"$MNT/busy.$$" && rm "$MNT/busy.$$"; }

restore() {
	umount -f "$MNT" 2>/dev/null
	nfsd_restore
}

trap restore EXIT
nfsd_save

ktap_print_header
ktap_set_plan 14
check "two listeners hold it" used_by 2
check "unloading it is refused" fails_with "in use" unload
check "mount" mount_nfs 4.2
check "the connection holds it too" more_than 2
check "unloading it is refused" fails_with "in use" unload
check "the connection still works" use
check "unmount" umount_nfs
check "only the listeners hold it" wait_for 60000 used_by 2
nfsd_stop
check "without listeners, nothing holds it" wait_for 60000 used_by 0
check "it unloads" unload
check "it declares its alias" alias_known
check "a listener" portlist "$TRANSPORT $NFS_PORT"
check "has loaded it" loaded
nfsd_restore
check "a client uses it" eval 'mount_nfs 4.2 && use && umount_nfs'
ktap_finished
