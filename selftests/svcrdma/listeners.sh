#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The wildcard listeners serve IPv4 and IPv6, every version.
#
# Tier: quick

. "$(dirname "$0")/lib.sh"

listed() { server 'nfsdctl listener' | grep -Fx "$TRANSPORT:$1:$NFS_PORT"; }
mounted_with() { grep " $MNT nfs" /proc/mounts | grep -E "[ ,]proto=$1,port=$NFS_PORT,"; }
use() { echo "$1" >"$MNT/listeners.$$" && [ "$(server "cat $EXPORT_DIR/listeners.$$")" = "$1" ] && rm "$MNT/listeners.$$"; }

trap 'umount -f "$MNT" 2>/dev/null' EXIT
[ -n "$SERVER_ADDR6" ] || skip_all "the server has no IPv6 address"

ktap_print_header
ktap_set_plan 18
check "the listener for IPv4" listed 0.0.0.0
check "the listener for IPv6" listed "[::]"
for version in 3 4.2; do
	check "v$version: mount over IPv4" mount_nfs "$version"
	check "v$version: it is RDMA over IPv4" mounted_with rdma
	check "v$version: it works" use "$version"
	check "v$version: unmount" umount_nfs
	check "v$version: mount over IPv6" mount_nfs "$version" "" "$SERVER_ADDR6"
	check "v$version: it is RDMA over IPv6" mounted_with rdma6
	check "v$version: it works" use "$version over IPv6"
	check "v$version: unmount" umount_nfs
done
ktap_finished
