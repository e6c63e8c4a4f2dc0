#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The backchannel: up from the first mount, no session is bound anew, and a
# delegation is recalled through it.
#
# Tier: quick

. "$(dirname "$0")/lib.sh"

BIND_CONN_TO_SESSION=41

# How often the server has seen an operation of NFSv4: "proc4ops COUNT OP0 OP1 ...".
op_count() { server "awk '/^proc4ops / { print \$($1 + 3) }' /proc/net/rpc/nfsd"; }
op_count_is() { op_count "$1" && [ "$(op_count "$1")" = "$2" ]; }

states() { server 'grep -h "callback state:" /proc/fs/nfsd/clients/*/info'; }
callback_up() { states && states | grep -q "UP$" && ! states | grep -qv "UP$"; }
has_delegation() { server 'cat /proc/fs/nfsd/clients/*/states' | grep "type: deleg.*filename: .*$file"; }
no_delegation() { ! has_delegation; }
called_back() { [ "$(stat_of backchannel_calls)" -gt "$1" ] && [ "$(stat_of backchannel_replies)" -gt "$2" ]; }

# A write on the server's own file system waits for the recall, at worst for
# lease-break-time: then the backchannel did nothing.
write_on_server() {
	local begin=$SECONDS
	server "echo more >>$EXPORT_DIR/$file"
	echo "took $((SECONDS - begin)) s"
	[ $((SECONDS - begin)) -lt "$(server cat /proc/sys/fs/lease-break-time)" ]
}
sees_both() { [ "$(cat "$MNT/$file")" = $'text\nmore' ]; }

# Clients of earlier tests may linger; nfsd forgets them with its threads.
trap 'exec 3<&-; umount -f "$MNT" 2>/dev/null; nfsd_restore; server "rm -f $EXPORT_DIR/callback.$$.*"' EXIT
nfsd_save
nfsd_stop
nfsd_start
nfsd_end_grace

ktap_print_header
ktap_set_plan 16
for version in 4.1 4.2; do
	# A file of its own: what has just been recalled is not delegated again.
	file=callback.$$.$version
	binds=$(op_count $BIND_CONN_TO_SESSION)
	server "echo text >$EXPORT_DIR/$file"
	! ours || calls=$(stat_of backchannel_calls) replies=$(stat_of backchannel_replies)
	check "v$version: mount" mount_nfs "$version"
	check "v$version: the callback state is UP" wait_for 20000 callback_up
	exec 3<"$MNT/$file"
	cat <&3 >/dev/null
	check "v$version: the open file has a delegation" has_delegation
	check "v$version: a write on the server recalls it" write_on_server
	check "v$version: it is gone" wait_for 20000 no_delegation
	exec 3<&-
	check "v$version: the client sees what was written" sees_both
	check "v$version: no connection was bound to a session" op_count_is $BIND_CONN_TO_SESSION "$binds"
	if ours; then
		check "v$version: our backchannel carried calls and replies" called_back "$calls" "$replies"
	else
		ktap_test_skip "v$version: our backchannel carried calls and replies"
	fi
	umount_nfs
done
ktap_finished
