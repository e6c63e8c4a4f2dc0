#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the server needs for an idle connection: reported, not judged.
#
# Tier: ci
# Machines: 2

. "$(dirname "$0")/lib.sh"

CONNECTIONS=16

memory_used() {
	server 'sync; echo 3 >/proc/sys/vm/drop_caches; sleep 1; echo 3 >/proc/sys/vm/drop_caches
		awk "/^MemTotal:/ { used = \$2 } /^(MemFree|Cached|Buffers|SReclaimable):/ { used -= \$2 } END { print used }" /proc/meminfo'
}
# The client makes its connections as it needs them.
all_connected() { ls "$MNT" >/dev/null && [ "$(connections)" = $CONNECTIONS ]; }

trap 'umount -f "$MNT" 2>/dev/null' EXIT
# What the first connection of all brings is not of a connection.
mount_nfs 3 && umount_nfs
before=$(resources)

ktap_print_header
ktap_set_plan 4
first=$(memory_used)
check "mount with $CONNECTIONS connections" mount_nfs 3 nconnect=$CONNECTIONS
check "all are there" wait_for 20000 all_connected
second=$(memory_used)
check "unmount" umount_nfs
check "the server holds nothing more than before" back_to "$before"
third=$(memory_used)
echo "# idle connection: $(((second - first) / CONNECTIONS)) KiB, of which $(((third - first) / CONNECTIONS)) KiB stay afterwards (pools)"
ktap_finished
