#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nfsd stops and starts again under a client: what the client has open goes on
# working, and nothing that it wrote is lost.
#
# Tier: ci
# Limit: 600

. "$(dirname "$0")/lib.sh"

file=nfsd_restart.$$
scratch=$(mktemp -d)
mkfifo "$scratch/orders"

# A process that has the file open for the whole time and appends a part to it for
# each line that it is told. No other process may have it open: each waits for
# the server when it ends.
text() { seq -f "$1: %1000.0f" 40; }
writer() {
	exec 3>"$MNT/$file"
	while read -r part; do
		text "$part" >&3 && sync "$MNT/$file" && echo "$part" >>"$scratch/done"
	done
}
written() { grep -qx "$1" "$scratch/done"; }
not_written() { ! written "$1"; }
write_part() { echo "$1" >&4 && wait_for 120000 written "$1"; }

same_on_server() { server "cat $EXPORT_DIR/$file" | cmp - <(for part in 1 2 3; do text $part; done); }
restart() { nfsd_stop && nfsd_start; }
no_connections() { [ "$(connections)" = 0 ]; }

leave() {
	nfsd_restore
	kill "$writer" 2>/dev/null
	umount -f -l "$MNT" 2>/dev/null
	rm -rf "$scratch"
	server "rm -f $EXPORT_DIR/$file"
}

trap leave EXIT
nfsd_save
before=$(resources)

ktap_print_header
ktap_set_plan 23
for version in 3 4.2; do
	: >"$scratch/done"
	check "v$version: mount" mount_nfs "$version"
	writer <"$scratch/orders" &
	writer=$!
	exec 4>"$scratch/orders"
	check "v$version: write" write_part 1
	check "v$version: restart nfsd" restart
	check "v$version: write on through the open file" write_part 2
	check "v$version: stop nfsd" nfsd_stop
	check "v$version: no connection is left" wait_for 60000 no_connections
	echo 3 >&4
	sleep 1
	check "v$version: a write waits" not_written 3
	check "v$version: start nfsd" nfsd_start
	check "v$version: the write that waited has ended well" wait_for 120000 written 3
	exec 4>&-
	wait $writer
	check "v$version: the server has all of it" same_on_server
	check "v$version: unmount" umount_nfs
done
check "the server holds nothing more than before" back_to "$before"
ktap_finished
