#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# fio writes and verifies: random and sequential, depth 1 and 32, direct and
# buffered. fio_verify_long.sh does more of it.
#
# Tier: ci
# Limit: 600

megabytes=${megabytes:-2}
. "$(dirname "$0")/lib.sh"

dir=fio.$$

job() {
	local pattern=$1 depth=$2 direct=$3 block=$4
	fio --name=job --directory="$MNT/$dir" --rw="$pattern" --iodepth="$depth" --direct="$direct" --bs="$block" \
		--ioengine="$([ "$depth" = 1 ] && echo psync || echo libaio)" --size="${megabytes}m" \
		--verify=crc32c --verify_fatal=1 --do_verify=1 --unlink=1 --fallocate=none --invalidate=1 \
		--randrepeat=0 --output-format=terse --minimal
}

trap 'umount -f "$MNT" 2>/dev/null; server "rm -rf $EXPORT_DIR/$dir"' EXIT
command -v fio >/dev/null || skip_all "there is no fio here"

ktap_print_header
ktap_set_plan 20
for version in 3 4.2; do
	check "v$version: mount" mount_nfs "$version"
	mkdir "$MNT/$dir"
	for pattern in write randwrite; do
		for depth in 1 32; do
			check "v$version: $pattern, depth $depth, direct" job $pattern $depth 1 16k
			check "v$version: $pattern, depth $depth, buffered" job $pattern $depth 0 64k
		done
	done
	rmdir "$MNT/$dir"
	check "v$version: unmount" umount_nfs
done
ktap_finished
