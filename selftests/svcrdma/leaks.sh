#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Memory that nothing refers to any more after connections have come and gone, as
# the server's kernel sees it (kmemleak).
#
# Tier: quick
# Machines: 2

. "$(dirname "$0")/lib.sh"

ROUNDS=3

kmemleak() { server "echo $1 >/sys/kernel/debug/kmemleak"; }
mount_some() {
	local round version
	for round in $(seq $ROUNDS); do
		for version in 3 4.0 4.1 4.2; do
			mount_nfs $version &&
				dd if=/dev/zero of="$MNT/leaks.$$" bs=300k count=2 oflag=direct status=none &&
				dd if="$MNT/leaks.$$" of=/dev/null bs=300k iflag=direct status=none &&
				umount_nfs || return
		done
	done
}
# Memory is judged when it is five seconds old; each scan finds what it finds.
no_leaks() {
	sleep 10
	kmemleak scan && kmemleak scan && server '! grep . /sys/kernel/debug/kmemleak'
}

server '[ -e /sys/kernel/debug/kmemleak ]' || skip_all "the server's kernel has no kmemleak"

trap 'umount -f "$MNT" 2>/dev/null; server "rm -f $EXPORT_DIR/leaks.$$"' EXIT
before=$(resources)

ktap_print_header
ktap_set_plan 3
kmemleak clear
check "$((4 * ROUNDS)) mounts" mount_some
check "the server holds nothing more than before" back_to "$before"
check "no memory is left without a reference" no_leaks
ktap_finished
