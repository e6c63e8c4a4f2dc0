#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# 320 mounts: the server holds nothing more than before, and the memory
# in use does not grow with their number.
#
# Tier: full
# Limit: 1800

. "$(dirname "$0")/lib.sh"

MOUNTS=200
WARM_UP=120
# One page of each connection.
LIMIT_KIB=4

versions=(3 4.0 4.1 4.2)
mount_some() {
	local n
	for n in $(seq "$1"); do
		mount_nfs "${versions[n % 4]}" && dd if=/dev/zero of="$MNT/many_mounts.$$" bs=64k count=1 oflag=direct status=none &&
			umount_nfs || return
	done
}

# What cannot be had back, in KiB: caches aside, which are emptied first, and free pages that the CPUs keep
# for themselves ("count" in zoneinfo), which may be tens of megabytes.
memory_used() {
	server 'sync; echo 3 >/proc/sys/vm/drop_caches; sleep 2; echo 3 >/proc/sys/vm/drop_caches
		awk "/^MemTotal:/ { used = \$2 } /^(MemFree|Cached|Buffers|SReclaimable):/ { used -= \$2 }
			/^ +count:/ { used -= 4 * \$2 } END { print used }" /proc/meminfo /proc/zoneinfo'
}
# KiB by what the kernel has them for: kinds of memory, and slab caches.
memory_by_use() {
	server 'awk "/^(SUnreclaim|KernelStack|PageTables|Percpu|AnonPages|VmallocUsed):/ { print \$1, \$2 }" /proc/meminfo
		awk "/^ +count:/ { kept += 4 * \$2 } END { print \"kept-by-cpus\", kept }" /proc/zoneinfo
		awk "NR > 2 { print \$1, int(\$2 * \$4 / 1024) }" /proc/slabinfo'
}
# What has grown most, for whoever wants to know why.
growth() {
	join <(LC_ALL=C sort <<<"$1") <(LC_ALL=C sort <<<"$2") | awk '$3 > $2 { print $3 - $2, "KiB more:", $1 }' |
		sort -nr | head -n 12 | sed 's/^/# /'
}
no_slope() {
	echo "$1 KiB, $MOUNTS mounts later $2 KiB"
	[ $((($2 - $1) / MOUNTS)) -lt $LIMIT_KIB ]
}

trap 'umount -f "$MNT" 2>/dev/null; server "rm -f $EXPORT_DIR/many_mounts.$$"' EXIT
before=$(resources)

ktap_print_header
ktap_set_plan 4
check "$WARM_UP mounts" mount_some $WARM_UP
used=$(memory_used)
uses=$(memory_by_use)
check "$MOUNTS mounts" mount_some $MOUNTS
used_later=$(memory_used)
growth "$uses" "$(memory_by_use)"
check "the server holds nothing more than before" back_to "$before"
check "memory in use does not grow" no_slope "$used" "$used_later"
echo "# $(((used_later - used) * 1024 / MOUNTS)) bytes for each mount"
ktap_finished
