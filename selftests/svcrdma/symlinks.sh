#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Symbolic links with targets of a sample of lengths from 1 to 4095 bytes;
# symlinks_all.sh has all of them.
#
# Tier: ci

# The lengths, in awk: around what fits an inline call or reply, and every 97th.
sample=${sample:-'n <= 8 || n >= 4085 || n >= 3850 && n % 10 == 0 || n > 1000 && n < 1040 || n % 97 == 0'}
. "$(dirname "$0")/lib.sh"

dir=symlinks.$$
list=$(mktemp)

# "LENGTH TARGET" lines; a target is of characters that depend on its length.
targets() {
	awk "BEGIN {
		for (n = 1; n <= 4095; n++) {
			if (!($sample)) continue
			target = \"\"
			for (i = 0; i < 26; i++) unit[i] = sprintf(\"%c\", 97 + (i + n) % 26)
			word = \"\"
			for (i = 0; i < 26; i++) word = word unit[i]
			while (length(target) < n) target = target word
			print n, substr(target, 1, n)
		}
	}"
}
make_links() {
	python3 -c '
import os, sys
for line in open(sys.argv[2]):
    name, target = line.split()
    os.symlink(target, f"{sys.argv[1]}/{name}")' "$1" "$list"
}
links() { (cd "$1" && find . -type l -printf '%f %l\n' | LC_ALL=C sort -n | sha256sum); }
links_on_server() { server "cd $EXPORT_DIR/$dir && find . -type l -printf '%f %l\n' | LC_ALL=C sort -n | sha256sum"; }
expected() { LC_ALL=C sort -n "$list" | sha256sum; }

made_right() { [ "$(links_on_server)" = "$(expected)" ]; }
read_right() {
	drop_caches
	[ "$(links "$MNT/$dir")" = "$(expected)" ]
}

trap 'umount -f "$MNT" 2>/dev/null; rm -f "$list"; server "rm -rf $EXPORT_DIR/$dir"' EXIT
targets >"$list"
count=$(wc -l <"$list")

ktap_print_header
ktap_set_plan 10
for version in 3 4.2; do
	check "v$version: mount" mount_nfs "$version"
	mkdir "$MNT/$dir"
	check "v$version: make $count links" make_links "$MNT/$dir"
	check "v$version: the server has them" made_right
	check "v$version: the client reads them" read_right
	server "rm -r $EXPORT_DIR/$dir"
	check "v$version: unmount" umount_nfs
done
ktap_finished
