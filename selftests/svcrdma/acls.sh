#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Long access control lists: POSIX ones over NFSv3's side protocol, and the NFSv4
# view of them.
#
# Tier: ci

. "$(dirname "$0")/lib.sh"

dir=acls.$$

# N entries for users, as setfacl wants them.
entries() { seq -f 'u:%.0f:rw' -s, 10001 $((10000 + $1)); }
acl() { (cd "$MNT/$dir" && getfacl -n "$1"); }
acl_on_server() { server "cd $EXPORT_DIR/$dir && getfacl -n $1"; }
set_acl() { touch "$MNT/$dir/$1" && setfacl -m "$(entries "$1")" "$MNT/$dir/$1"; }
set_on_server() { server "cd $EXPORT_DIR/$dir && touch $1 && setfacl -m '$(entries "$1")' $1"; }
same_acl() {
	drop_caches
	[ "$(acl_on_server "$1" | grep -c '^user:1')" = "$1" ] && [ "$(acl "$1")" = "$(acl_on_server "$1")" ]
}

# Each entry is an ACE of its own at least; in XDR the count comes first.
count_aces() {
	local hex
	hex=$(getfattr --absolute-names --only-values -n system.nfs4_acl "$MNT/$dir/$1" | head -c 4 | od -An -tx1 | tr -d ' ')
	echo "$((16#$hex)) ACEs"
	[ $((16#$hex)) -ge "$1" ]
}

# A directory's two lists come in one answer, longer than a page.
set_both_on_server() {
	server "cd $EXPORT_DIR/$dir && mkdir both && setfacl -m '$(entries 200)' both && setfacl -d -m '$(entries 200)' both"
}
same_both() {
	drop_caches
	[ "$(acl both | grep -c 'user:1')" = 400 ] && [ "$(acl both)" = "$(acl_on_server both)" ]
}

trap 'umount -f "$MNT" 2>/dev/null; server "rm -rf $EXPORT_DIR/$dir"' EXIT
server "mkdir $EXPORT_DIR/$dir"

ktap_print_header
ktap_set_plan 17
check "v3: mount" mount_nfs 3
# More than a page of them is refused over any transport.
for count in 1 30 100 300; do
	check "v3: set an ACL of $count entries" set_acl $count
	check "v3: client and server see it" same_acl $count
done
set_both_on_server
check "v3: a directory's access and default lists of 200 entries" same_both
check "v3: unmount" umount_nfs
check "v4.2: mount" mount_nfs 4.2
for count in 3 31 101 401; do
	set_on_server $count
	check "v4.2: the client reads an ACL of $count entries" count_aces $count
done
check "v4.2: unmount" umount_nfs
ktap_finished
