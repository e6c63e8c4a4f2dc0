#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connections that cannot be accepted for want of memory, in kernels that can refuse
# it (CONFIG_FAILSLAB): they leave nothing behind, and the client gets in later.
#
# Tier: quick
# Transport: rdma-rs

. "$(dirname "$0")/lib.sh"

FAULTS=/sys/kernel/debug/failslab
REFUSALS=10

# Also what nfsd's threads could wait for is refused. A connection takes a few hundred
# allocations, most of them for its Receives. (Without -x, kworkers that work for nfsd are found, too. They send for
# rxe, whose queue pair 1 fails for good without memory.)
short() {
	server "cd $FAULTS && echo Y >task-filter && echo N >ignore-gfp-wait && echo 0 >verbose && echo 1 >interval &&
		echo -1 >times && echo 2 >probability &&
		for thread in \$(pgrep -x nfsd); do echo 1 >/proc/\$thread/make-it-fail || exit; done"
}
ample() {
	server "cd $FAULTS && echo 0 >probability && echo Y >ignore-gfp-wait && echo N >task-filter
		for thread in \$(pgrep -x nfsd); do echo 0 >/proc/\$thread/make-it-fail; done"
}
many_refused() { [ "$(($(stat_of refused) - refused))" -ge $REFUSALS ]; }
# The client is refused several times in each attempt.
try() {
	local n
	for n in $(seq 20); do
		! many_refused || return 0
		mount_nfs 4.2 soft,timeo=50,retrans=1 && umount -f "$MNT"
	done
	return 1
}

server "[ -d $FAULTS ]" || skip_all "the server's kernel has no failslab"

trap 'ample 2>/dev/null; umount -f "$MNT" 2>/dev/null' EXIT
before=$(resources) refused=$(stat_of refused)

ktap_print_header
ktap_set_plan 5
check "little memory for nfsd" short
check "$REFUSALS connections are refused" try
check "enough memory again" ample
check "the client is served" eval 'mount_nfs 4.2 && umount_nfs'
check "nothing is left" back_to "$before"
ktap_finished
