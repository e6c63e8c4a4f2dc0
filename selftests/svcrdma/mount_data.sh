#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mount with every NFS version, write and read files of awkward sizes; the
# checksums are taken on the server's own file system.
#
# Tier: quick
# Limit: 300

. "$(dirname "$0")/lib.sh"

sizes="0 1 511 4095 4096 4097 65535 262144 1048577"
dir=mount_data.$$

write_files() {
	local size
	for size in $sizes; do
		head -c "$size" /dev/urandom >"$source/$size"
		cp "$source/$size" "$MNT/$dir/$size" || return
	done
}

# shellcheck disable=SC2086
sums() { (cd "$1" && sha256sum $sizes); }

same_on_server() {
	[ "$(sums "$source")" = "$(server "cd $EXPORT_DIR/$dir && sha256sum $sizes")" ]
}

# Nothing of it may come from the client's cache.
same_on_client() {
	echo 3 >/proc/sys/vm/drop_caches
	[ "$(sums "$source")" = "$(sums "$MNT/$dir")" ]
}

source=$(mktemp -d)
trap 'umount -f "$MNT" 2>/dev/null; rm -rf "$source"; server "rm -rf $EXPORT_DIR/$dir"' EXIT

ktap_print_header
ktap_set_plan 20
for version in 3 4.0 4.1 4.2; do
	check "v$version: mount" mount_nfs "$version"
	mkdir "$MNT/$dir"
	check "v$version: write" write_files
	check "v$version: the server has what was written" same_on_server
	check "v$version: the client reads what was written" same_on_client
	rm -r "${MNT:?}/$dir"
	check "v$version: unmount" umount_nfs
done
ktap_finished
