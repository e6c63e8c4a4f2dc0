#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Large directories: READDIRPLUS (v3) and READDIR (v4) with replies of every size.
#
# Tier: ci

. "$(dirname "$0")/lib.sh"

ENTRIES=10000
dir=directories.$$

# Names of 1 to 200 characters, so that entries end anywhere in a page.
make_on_server() {
	server "mkdir $EXPORT_DIR/$dir && cd $EXPORT_DIR/$dir &&
		awk 'BEGIN {
			for (i = 0; i < 200; i++) tail = tail \"x\"
			for (i = 0; i < $ENTRIES; i++) print i substr(tail, 1, i * 7 % 190)
		}' | xargs touch"
}

listing() { (cd "$1" && find . -mindepth 1 -printf '%f %i %s %m %n\n' | LC_ALL=C sort | sha256sum); }
listing_on_server() {
	server "cd $EXPORT_DIR/$dir && find . -mindepth 1 -printf '%f %i %s %m %n\n' | LC_ALL=C sort | sha256sum"
}
same_listing() { [ "$(listing "$MNT/$dir")" = "$expected" ]; }

# How often the server has seen a procedure of NFSv3 and an operation of NFSv4.
READDIRPLUS3=17
READDIR4=26
calls() {
	server "awk '/^proc3 / { plus = \$($READDIRPLUS3 + 3) } /^proc4ops / { dir = \$($READDIR4 + 3) }
		END { print plus + dir }' /proc/net/rpc/nfsd"
}
several_calls() { echo "before $1, now $(calls)" && [ $(($(calls) - $1)) -ge 2 ]; }

# Those whose number has the version and a 7 in it: v3 and v4.2 share none.
remove_some() {
	local pattern="?${1#4.}?7x*"
	# shellcheck disable=SC2086
	(cd "$MNT/$dir" && rm -- $pattern) && [ -z "$(server "find $EXPORT_DIR/$dir -name '$pattern'")" ]
}

trap 'umount -f "$MNT" 2>/dev/null; server "rm -rf $EXPORT_DIR/$dir"' EXIT

ktap_print_header
ktap_set_plan 13
check "$ENTRIES entries made on the server" make_on_server
for version in 3 4.2; do
	expected=$(listing_on_server)
	before=$(calls)
	check "v$version: mount" mount_nfs "$version" rdirplus=force
	check "v$version: the client sees the names and attributes" same_listing
	check "v$version: it took several calls" several_calls "$before"
	check "v$version: a hundred are removed by the client" remove_some "$version"
	expected=$(listing_on_server)
	check "v$version: and it sees the others" same_listing
	check "v$version: unmount" umount_nfs
done
ktap_finished
