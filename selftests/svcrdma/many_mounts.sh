#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# 260 mounts: the server holds nothing more than before, and the memory
# in use does not grow with their number.
#
# Tier: full
# Limit: 1800

. "$(dirname "$0")/lib.sh"

MOUNTS=70
WARM_UP=50
# A connection has about a megabyte, one page of each would be 4 KiB.
LIMIT_KIB=8

versions=(3 4.0 4.1 4.2)
mount_some() {
	local n
	for n in $(seq "$1"); do
		mount_nfs "${versions[n % 4]}" && dd if=/dev/zero of="$MNT/many_mounts.$$" bs=64k count=1 oflag=direct status=none &&
			umount_nfs || return
	done
}

# What cannot be had back, in KiB: caches aside, which are emptied first.
memory_used() {
	server 'sync; echo 3 >/proc/sys/vm/drop_caches; sleep 2; echo 3 >/proc/sys/vm/drop_caches
		awk "/^MemTotal:/ { used = \$2 } /^(MemFree|Cached|Buffers|SReclaimable):/ { used -= \$2 } END { print used }" /proc/meminfo'
}
# KiB by what the kernel has them for: kinds of memory, and slab caches.
memory_by_use() {
	server 'awk "/^(SUnreclaim|KernelStack|PageTables|Percpu|AnonPages|VmallocUsed):/ { print \$1, \$2 }" /proc/meminfo
		awk "NR > 2 { print \$1, int(\$2 * \$4 / 1024) }" /proc/slabinfo'
}
# What has grown most, for whoever wants to know why.
growth() {
	join <(LC_ALL=C sort <<<"$1") <(LC_ALL=C sort <<<"$2") | awk '$3 > $2 { print $3 - $2, "KiB more:", $1 }' |
		sort -nr | head -n 12 | sed 's/^/# /'
}
# A leak shows in each interval; what the kernel keeps for itself comes and goes.
no_slope() {
	local least=
	while [ $# -gt 1 ]; do
		echo "$1 KiB, $MOUNTS mounts later $2 KiB"
		[ -n "$least" ] && [ $(($2 - $1)) -ge "$least" ] || least=$(($2 - $1))
		shift
	done
	[ $((least / MOUNTS)) -lt $LIMIT_KIB ]
}

trap 'umount -f "$MNT" 2>/dev/null; server "rm -f $EXPORT_DIR/many_mounts.$$"' EXIT
before=$(resources)

ktap_print_header
ktap_set_plan 6
check "$WARM_UP mounts" mount_some $WARM_UP
used=("$(memory_used)")
uses=$(memory_by_use)
for interval in 1 2 3; do
	check "$MOUNTS mounts, for the ${interval}. time" mount_some $MOUNTS
	used+=("$(memory_used)")
done
echo "# KiB in use: ${used[*]}"
growth "$uses" "$(memory_by_use)"
check "the server holds nothing more than before" back_to "$before"
check "memory in use does not grow" no_slope "${used[@]}"
ktap_finished
