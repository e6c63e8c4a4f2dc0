#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Our module beside rpcrdma and in its place (drop_in=1), loaded in either order.
#
# Tier: quick
# Transport: rdma-rs

. "$(dirname "$0")/lib.sh"

conf=/etc/modprobe.d/svcrdma-rs-test.conf

unload_all() {
	server 'for module in svcrdma_rs rpcrdma; do [ ! -e /sys/module/$module ] || rmmod $module || exit; done'
}
load() { server "modprobe $*"; }
classes() { server "grep -c '^$1 ' /proc/sys/sunrpc/transports"; }
has_class() { [ "$(classes "$1")" = 1 ]; }

# How many of our lines the kernel log has.
log_lines() { server 'dmesg | grep -c "svcrdma_rs: "'; }
one_line_more() {
	server 'dmesg | grep "svcrdma_rs: " | tail -n 3'
	[ "$(log_lines)" -eq $(("$1" + 1)) ]
}
says_remedy() { server 'dmesg | grep "svcrdma_rs: " | tail -n 1' | grep rpcrdma; }

# Who has the listener: the module's references tell.
references() { server "cat /sys/module/$1/refcnt"; }
holds_listener() { [ "$(references svcrdma_rs)" -ge 1 ]; }
listens_nowhere() { [ "$(references svcrdma_rs)" -eq 0 ]; }

use() { NFS_PORT=20050 mount_nfs 4.2 && ls "$MNT" && umount_nfs; }

restore() {
	umount -f "$MNT" 2>/dev/null
	server "rm -f $conf; echo 0 >/proc/fs/nfsd/threads"
	unload_all
	load svcrdma_rs
	[ "$MACHINES" = 2 ] || modprobe rpcrdma
	nfsd_restore
}

trap restore EXIT
nfsd_save
nfsd_stop

ktap_print_header
ktap_set_plan 23

check "neither is loaded" unload_all
check "rpcrdma first" load rpcrdma
lines=$(log_lines)
# EEXIST of a module's own is made EBUSY by newer kernels: it would mean to modprobe
# that the module is loaded.
check "then drop_in=1 is refused: the name is taken" fails_with "File exists|Device or resource busy" \
	load svcrdma_rs drop_in=1
check "one line in the log" one_line_more "$lines"
check "and it names rpcrdma" says_remedy
check "the C class is still there" has_class rdma
check "beside rpcrdma it loads" load svcrdma_rs
check "under its own name" has_class rdma-rs
check "both unload" unload_all

check "the other order: ours first" load svcrdma_rs
check "then rpcrdma" load rpcrdma
check "two classes" eval 'has_class rdma && has_class rdma-rs'
check "both unload" unload_all

check "drop_in is yes or no" fails_with "Invalid argument" load svcrdma_rs drop_in=2
check "drop_in=1 first" load svcrdma_rs drop_in=1
check "which can be read" [ "$(server cat /sys/module/svcrdma_rs/parameters/drop_in)" = Y ]
check "then rpcrdma loads" load rpcrdma
check "there is one class rdma" has_class rdma
portlist "rdma 20050" >/dev/null
nfsd_start_threads() { server "echo ${nfsd_threads:?} >/proc/fs/nfsd/threads"; }
check "a listener rdma is ours" holds_listener
nfsd_start_threads
nfsd_end_grace 2>/dev/null
check "and a client uses it" use
server 'echo 0 >/proc/fs/nfsd/threads'
check "nothing holds the module any more" wait_for 60000 listens_nowhere
unload_all

# What an installation sets up, since rdma-core loads rpcrdma as soon as there is
# an RDMA device.
server "printf '%s\n' 'options svcrdma_rs drop_in=1' 'softdep rpcrdma pre: svcrdma_rs' >$conf"
check "with a softdep, rpcrdma brings ours first" load rpcrdma
check "and rdma is ours" eval 'portlist "rdma 20050" && holds_listener'
ktap_finished
