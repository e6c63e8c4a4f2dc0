#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What an administrator uses to get a listener called rdma: rpc.nfsd --rdma,
# nfs.conf, nfsdctl. Ours takes that name with drop_in=1.
#
# Tier: ci

. "$(dirname "$0")/lib.sh"

NAME=rdma
CONF=/etc/nfs.conf.d/svcrdma-test.conf
OTHER=20052

listed() { server 'nfsdctl listener' | grep -Fx "$NAME:$1"; }
listens() { listed "0.0.0.0:$1" && listed "[::]:$1"; }
use() {
	NFS_PORT=$1 mount_nfs "$2" "" "${3:-}" && echo "$1 $2" >"$MNT/drop_in.$$" &&
		[ "$(server "cat $EXPORT_DIR/drop_in.$$")" = "$1 $2" ] && rm "$MNT/drop_in.$$" && umount_nfs
}
refused() { ! NFS_PORT=$1 mount_nfs 3 soft,timeo=20,retrans=1 "$2"; }
accepts() { if [ "$TRANSPORT" = rdma-rs ]; then stat_of accepts; else echo 0; fi; }

# With the ports: /etc/services need not know their name.
configure() {
	server "mkdir -p ${CONF%/*} && printf '%s\n' '[nfsd]' 'threads=${nfsd_threads:?}' 'vers4.0=y' \
		'lease-time=10' 'grace-time=10' $1 >$CONF"
}

reload() {
	server 'rmmod svcrdma_rs; [ ! -e /sys/module/rpcrdma ] || rmmod rpcrdma' &&
		server "modprobe svcrdma_rs $*"
}

leave() {
	umount -f "$MNT" 2>/dev/null
	server "rm -f $CONF $EXPORT_DIR/drop_in.$$"
	nfsd_stop
	[ "$TRANSPORT" != rdma-rs ] || wait_for 60000 reload
	nfsd_restore
}

trap leave EXIT
nfsd_save
nfsd_stop
if [ "$TRANSPORT" = rdma-rs ]; then
	wait_for 60000 reload drop_in=1 || skip_all "the module cannot be loaded with drop_in=1"
fi
before=$(accepts)

ktap_print_header
ktap_set_plan 20

check "rpc.nfsd --rdma" server "rpc.nfsd --rdma=20049 ${nfsd_threads:?}"
nfsd_end_grace
check "it listens on 20049" listens 20049
check "v4.2 works" use 20049 4.2
check "v3 works" use 20049 3
nfsd_stop

configure "rdma=y rdma-port=20049"
check "rpc.nfsd with rdma=y" server 'rpc.nfsd'
nfsd_end_grace
check "it listens on 20049" listens 20049
check "v4.2 works" use 20049 4.2
nfsd_stop

check "nfsdctl: listeners for all addresses" server "nfsdctl listener +tcp:0.0.0.0:2049 \
	+$NAME:0.0.0.0:$OTHER '+$NAME:[::]:$OTHER'"
check "nfsdctl: threads" server "nfsdctl threads ${nfsd_threads:?}"
nfsd_end_grace
check "it listens on $OTHER" listens $OTHER
check "v4.2 works" use $OTHER 4.2
check "listeners cannot be changed while threads run" fails_with "busy" \
	server "nfsdctl listener '-$NAME:0.0.0.0:$OTHER'"
nfsd_stop

check "nfsdctl: a listener for one address" server "nfsdctl listener +tcp:0.0.0.0:2049 +$NAME:$SERVER_ADDR:20049"
check "and for one IPv6 address" server "nfsdctl listener '+$NAME:[$SERVER_ADDR6]:$OTHER'"
check "nfsdctl: threads" server "nfsdctl threads ${nfsd_threads:?}"
nfsd_end_grace
check "it listens there" eval 'listed "$SERVER_ADDR:20049" && listed "[$SERVER_ADDR6]:$OTHER" && ! listens 20049'
check "v4.2 works" use 20049 4.2
check "over IPv6, too" use $OTHER 4.2 "$SERVER_ADDR6"
check "not on the port of the other family" refused $OTHER "$SERVER_ADDR"

if [ "$TRANSPORT" = rdma-rs ]; then
	check "all of it was ours" [ "$(accepts)" -ge $((before + 6)) ]
else
	ktap_test_skip "all of it was ours"
fi
ktap_finished
