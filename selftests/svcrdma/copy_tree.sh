#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Copy a tree of files to the server and back, with checksums on both sides. The
# tree is that in $TREE, or a few hundred files of the kernel's documentation and
# headers (copy_tree_all.py has all of them).
#
# Tier: ci
# Limit: 900

. "$(dirname "$0")/lib.sh"

tree=${TREE:-}
versions=${VERSIONS:-3 4.2}
dir=copy_tree.$$
scratch=$(mktemp -d)

sums='find . -type f -print0 | LC_ALL=C sort -z | xargs -0 b2sum | b2sum'
# Four at a time, so that neither machine waits for the other.
copy() {
	mkdir -p "$2" && cd "$1" && find . -type d -print0 | (cd "$2" && xargs -0 mkdir -p) &&
		find . ! -type d -print0 | xargs -0 -P 4 -n 200 bash -o pipefail -c 'tar -cf - "$@" | tar -C "$0" -xf -' "$2"
}
same_on_server() { [ "$(server "cd $EXPORT_DIR/$dir && $sums")" = "$expected" ]; }
same_back() { [ "$(cd "$scratch/back" && eval "$sums")" = "$expected" ]; }

trap 'umount -f "$MNT" 2>/dev/null; rm -rf "$scratch"; server "rm -rf $EXPORT_DIR/$dir"' EXIT
if [ -z "$tree" ]; then
	tree=$scratch/tree
	mkdir "$tree"
	tar -C "$tree" -xf "$(dirname "$0")/tree.tar" || skip_all "there is no tree"
fi
expected=$(cd "$tree" && eval "$sums")

ktap_print_header
ktap_set_plan $((6 * $(wc -w <<<"$versions")))
echo "# $(find "$tree" -type f | wc -l) files, $(du -sk "$tree" | cut -f1) KiB"
for version in $versions; do
	check "v$version: mount" mount_nfs "$version"
	check "v$version: copy to the server" copy "$tree" "$MNT/$dir"
	check "v$version: the server has what was copied" same_on_server
	drop_caches
	check "v$version: copy back" copy "$MNT/$dir" "$scratch/back"
	check "v$version: it is what was copied" same_back
	rm -rf "$scratch/back"
	server "rm -r $EXPORT_DIR/$dir"
	check "v$version: unmount" umount_nfs
done
ktap_finished
