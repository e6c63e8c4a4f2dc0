#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mount with every version and with several connections; nothing is left.
#
# Tier: quick

. "$(dirname "$0")/lib.sh"

mounted_as() { grep " $MNT nfs" /proc/mounts | grep -E "[ ,]vers=$1,.*proto=rdma,"; }
use() {
	local sum
	dd if=/dev/urandom of="$MNT/mounts.$$" bs=64k count=8 oflag=direct status=none &&
		sum=$(server "sha256sum <$EXPORT_DIR/mounts.$$") &&
		[ "$(dd if="$MNT/mounts.$$" bs=64k iflag=direct status=none | sha256sum)" = "$sum" ] &&
		rm "$MNT/mounts.$$"
}
connections_are() { connections && [ "$(connections)" -eq "$1" ]; }

trap 'umount -f "$MNT" 2>/dev/null; server "rm -f $EXPORT_DIR/mounts.$$"' EXIT

ktap_print_header
ktap_set_plan 31
before=$(resources)
for version in 3 4.0 4.1 4.2; do
	check "v$version: mount" mount_nfs "$version"
	check "v$version: that version over RDMA" mounted_as "$version"
	check "v$version: one connection" connections_are 1
	check "v$version: it works" use
	check "v$version: unmount" umount_nfs
done
for version in 3 4.2; do
	check "v$version, nconnect=4: mount" mount_nfs "$version" nconnect=4
	check "v$version, nconnect=4: it works" use
	check "v$version, nconnect=4: four connections" connections_are 4
	check "v$version, nconnect=4: it works again" use
	check "v$version, nconnect=4: unmount" umount_nfs
done
check "the server holds nothing more than before" back_to "$before"
ktap_finished
