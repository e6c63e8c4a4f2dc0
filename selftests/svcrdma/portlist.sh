#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Listeners through /proc/fs/nfsd/portlist: what is wrong fails with an errno, and
# changes nothing.
#
# Tier: quick

. "$(dirname "$0")/lib.sh"

OTHER=20051

unchanged() { [ "$(server 'sort /proc/fs/nfsd/portlist')" = "$before" ]; }
listeners() { server "grep -c '^$TRANSPORT $1\$' /proc/fs/nfsd/portlist"; }
both_families() { [ "$(listeners "$1")" = 2 ]; }
use() { NFS_PORT=$1 mount_nfs "$2" && ls "$MNT" && umount_nfs; }

restore() {
	umount -f "$MNT" 2>/dev/null
	nfsd_restore
}

trap restore EXIT
before=$(server 'sort /proc/fs/nfsd/portlist')
nfsd_save

ktap_print_header
ktap_set_plan 11
check "one line for IPv4, one for IPv6" both_families "$NFS_PORT"
check "unknown transport" fails_with "Protocol not supported" portlist "rdma-none $OTHER"
check "port 0" fails_with "Invalid argument" portlist "$TRANSPORT 0"
check "port 65536" fails_with "Invalid argument" portlist "$TRANSPORT 65536"
check "port in use" fails_with "Address already in use|Cannot assign requested address" \
	portlist "$TRANSPORT $NFS_PORT"
check "nothing has changed" unchanged
check "a second port" portlist "$TRANSPORT $OTHER"
check "for both families" both_families "$OTHER"
check "it serves NFSv3" use "$OTHER" 3
check "it serves NFSv4.2" use "$OTHER" 4.2
check "the first port still serves" use "$NFS_PORT" 4.2
ktap_finished
