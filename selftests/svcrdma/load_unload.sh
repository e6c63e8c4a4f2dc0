#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Load and unload the module: the class is there, once, and nothing is left.
#
# Tier: quick
# Transport: rdma-rs

. "$(dirname "$0")/lib.sh"

TIMES=50

load() { server 'modprobe svcrdma_rs'; }
unload() { server 'rmmod svcrdma_rs'; }
load_again() { server "insmod \$(modinfo -n svcrdma_rs)"; }

# The kernel's list of server transports: "NAME MAX_PAYLOAD".
class_count() { server "grep -c '^$TRANSPORT ' /proc/sys/sunrpc/transports"; }
class_there() { [ "$(class_count)" = 1 ]; }
class_gone() { [ "$(class_count)" = 0 ] && server '[ ! -e /sys/kernel/debug/svcrdma_rs ]'; }

# Nothing is connected: only pools may have something.
no_objects() {
	server "awk '\$2 != 0 && \$1 !~ /_pooled\$/ { print; bad = 1 } END { exit bad || !NR }' \
		/sys/kernel/debug/svcrdma_rs/objects"
}

many_times() {
	server "for i in \$(seq $TIMES); do rmmod svcrdma_rs && modprobe svcrdma_rs || { echo \"at \$i\"; exit 1; }; done"
}

trap nfsd_restore EXIT
nfsd_save
nfsd_stop

ktap_print_header
ktap_set_plan 9
check "unload" unload
check "the class is gone" class_gone
check "load" load
check "the class is there" class_there
check "nothing exists" no_objects
check "a second load is refused" fails_with "File exists" load_again
check "the class is there once" class_there
check "unload and load $TIMES times" many_times
check "nothing exists" no_objects
ktap_finished
