#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nfsd's ways to the file system: through its page cache (0), without keeping the
# pages there (1), and directly (2), each for READ and for WRITE.
#
# Tier: ci

. "$(dirname "$0")/lib.sh"

program=$(dirname "$0")/sizes
reference=$(mktemp)
file=io_modes.$$
sample=977

modes="$(server 'cd /sys/kernel/debug/nfsd 2>/dev/null && echo $(cat io_cache_read) $(cat io_cache_write)')"
[ "$modes" ] || skip_all "this nfsd has no I/O modes"
set_mode() { server "echo $2 >/sys/kernel/debug/nfsd/io_cache_$1"; }

leave() {
	umount -f "$MNT" 2>/dev/null
	rm -f "$reference"
	set_mode read "${modes% *}"
	set_mode write "${modes#* }"
	server "rm -f $EXPORT_DIR/$file"
}
trap leave EXIT
"$program" write "$reference" $sample || skip_all "cannot write the reference"

write_all() { rm -f "$MNT/$file" && "$program" write "$MNT/$file" $sample; }
same_on_server() { [ "$(sha256sum <"$reference")" = "$(server "sha256sum <$EXPORT_DIR/$file")" ]; }
read_all() { drop_caches && "$program" read "$MNT/$file" $sample; }

ktap_print_header
ktap_set_plan 28
for version in 3 4.2; do
	check "v$version: mount" mount_nfs $version
	for mode in 0 1 2; do
		check "v$version: write mode $mode" set_mode write $mode
		check "v$version: write mode $mode: write" write_all
		check "v$version: write mode $mode: the server has what was written" same_on_server
	done
	# Direct reads keep a page array that does not begin at a page.
	for mode in 0 1 2; do
		set_mode read $mode
		check "v$version: read mode $mode: read" read_all
	done
	check "v$version: unmount" umount_nfs
done
ktap_finished
