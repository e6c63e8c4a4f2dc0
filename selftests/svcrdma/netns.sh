#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A second nfsd in a network namespace of its own, beside the first one and on the
# same port, and a mount from inside. All of it on the server machine; RDMA
# devices are shared between namespaces.
#
# Tier: ci
# Driver: rxe

. "$(dirname "$0")/lib.sh"

ns=svcrdma-test
folder=$EXPORT_DIR/netns.$$

# Commands in the namespace; its own nfsd file system is at /proc/fs/nfsd, as
# usual, in a mount namespace that lives as long as one process does.
inside() { server "nsenter -t \$(cat /run/$ns.pid) -m -n bash -c '$1'"; }

set_up() {
	server "
		mkdir -p $folder && echo inside >$folder/text &&
		ip netns add $ns &&
		ip -n $ns link set lo up &&
		ip -n $ns link add dummy1 mtu 9000 type dummy &&
		ip -n $ns address add 198.51.100.1/24 dev dummy1 &&
		ip -n $ns link set dummy1 up &&
		{ ip netns exec $ns unshare -m sleep infinity </dev/null &>/dev/null & echo \$! >/run/$ns.pid; } &&
		sleep 1 &&
		nsenter -t \$(cat /run/$ns.pid) -m -n rdma link add rxe1 type rxe netdev dummy1"
}
start_nfsd() {
	inside "mount -t nfsd nfsd /proc/fs/nfsd && mount -t tmpfs run /run && mkdir /run/rpc_pipefs &&
		mount -t tmpfs nfs /var/lib/nfs && mkdir -p /var/lib/nfs/sm /var/lib/nfs/v4recovery &&
		touch /var/lib/nfs/etab /var/lib/nfs/rmtab &&
		{ rpcbind -w; rpc.mountd; } &&
		exportfs -o rw,no_root_squash,insecure,fsid=0 \"*:$folder\" &&
		echo 10 >/proc/fs/nfsd/nfsv4gracetime && echo 10 >/proc/fs/nfsd/nfsv4leasetime &&
		echo \"$TRANSPORT $NFS_PORT\" >/proc/fs/nfsd/portlist && echo 2 >/proc/fs/nfsd/threads"
}
stop_nfsd() { inside "echo 0 >/proc/fs/nfsd/threads"; }
has_listener() { inside "grep \"$TRANSPORT $NFS_PORT\" /proc/fs/nfsd/portlist"; }
use_inside() {
	inside "mkdir -p /run/mnt && mount -t nfs -o vers=$1,nolock,retry=0,proto=rdma,port=$NFS_PORT 198.51.100.1:$2 /run/mnt &&
		cat /run/mnt/text && echo $1 >/run/mnt/$1 && umount /run/mnt" | grep -x inside &&
		[ "$(server "cat $folder/$1")" = "$1" ]
}
use_outside() { mount_nfs 4.2 && ls "$MNT" && umount_nfs; }
tear_down() {
	server "
		rdma link delete rxe1
		[ ! -e /run/$ns.pid ] || kill \$(ip netns pids $ns)
		rm -f /run/$ns.pid
		ip netns delete $ns
		rm -rf $folder"
}

trap 'tear_down &>/dev/null; umount -f "$MNT" 2>/dev/null' EXIT
server 'rdma system' | grep -q 'netns shared' || skip_all "RDMA devices are not shared between network namespaces"
before=$(resources)

ktap_print_header
ktap_set_plan 11
check "a namespace with an RDMA device" set_up
check "an nfsd of its own" start_nfsd
check "it has its listeners on the same port" has_listener
check "v3 works inside" use_inside 3 "$folder"
check "v4.2 works inside" use_inside 4.2 /
check "the first nfsd works as before" use_outside
check "the second nfsd stops" stop_nfsd
check "it cannot be mounted any more" eval '! use_inside 3 "$folder"'
check "the first nfsd works as before" use_outside
check "the namespace is taken down" tear_down
check "the server holds nothing more than before" back_to "$before"
ktap_finished
