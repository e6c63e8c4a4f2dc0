#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's RDMA device goes while a file is being written, and comes back:
# nothing of the server is left on it, and the client carries on.
#
# Tier: ci
# Machines: 2
# Transport: rdma-rs

. "$(dirname "$0")/lib.sh"

file=device_removed.$$
status=$(mktemp -u)
case $RDMA_DRIVER in rxe | siw) ;; *) skip_all "the device cannot be removed and made again" ;; esac
read -r device netdev < <(server 'rdma link show' | sed -n 's:^link \([^/ ]*\)/.* netdev \([^ ]*\).*:\1 \2:p')
[ "$netdev" ] || skip_all "there is no software device"

remove() { server "rdma link delete $device"; }
restore() { server "rdma link show | grep -q ' netdev $netdev' || rdma link add $device type $RDMA_DRIVER netdev $netdev"; }
nothing_left() { [ "$(server "sed -nE '/^(connections|endpoints|mappings|receive_contexts|memory_regions) /p' /sys/kernel/debug/svcrdma_rs/objects" | grep -vc ' 0$')" = 0 ]; }
written() { server "[ \$(stat -c %s $EXPORT_DIR/$file 2>/dev/null || echo 0) -gt $1 ]"; }
content() { seq -f '%1022.0f' 16384; }
same_on_server() { server "sha256sum <$EXPORT_DIR/$file" | cmp - <(content | sha256sum); }

write_file() {
	# 16 MiB, in calls of their own.
	content | dd of="$MNT/$file" bs=64k iflag=fullblock oflag=direct status=none
	echo $? >"$status"
}
ended() { [ -s "$status" ]; }
ended_well() { wait_for 120000 ended && [ "$(cat "$status")" = 0 ]; }

leave() {
	restore
	[ -z "${writer:-}" ] || kill "$writer" 2>/dev/null
	umount -f -l "$MNT" 2>/dev/null
	rm -f "$status"
	server "rm -f $EXPORT_DIR/$file"
}
trap leave EXIT
before=$(resources)

ktap_print_header
ktap_set_plan 15
for version in 3 4.2; do
	check "v$version: mount" mount_nfs $version
	write_file &
	writer=$!
	check "v$version: writing" wait_for 60000 written 262144
	check "v$version: the device goes" remove
	check "v$version: nothing is left on it" nothing_left
	check "v$version: the device comes back" restore
	check "v$version: the writer ends well" ended_well
	check "v$version: the server has all of it" same_on_server
	umount_nfs
	rm -f "$status"
	server "rm -f $EXPORT_DIR/$file"
done
check "the server holds nothing more than before" back_to "$before"
ktap_finished
