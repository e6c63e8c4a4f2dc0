#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A sample of transfer sizes to 1 MiB at odd offsets; sizes_all.sh has all of them.
#
# Tier: quick

sample=${sample:-331}
. "$(dirname "$0")/lib.sh"

program=$(dirname "$0")/sizes
reference=$(mktemp)
file=sizes.$$
tracing=/sys/kernel/tracing
count=$("$program" count "$sample")

# The server's own words: the lengths of the READs or WRITEs that it did.
trace_on() {
	server "cd $tracing && echo 16384 >buffer_size_kb && echo >trace && echo 1 >events/nfsd/nfsd_$1_io_done/enable"
}
trace_off() {
	server "cd $tracing && echo 0 >events/nfsd/nfsd_$1_io_done/enable"
}
served() {
	local lengths
	lengths=$(server "grep -o 'nfsd_$1_io_done:.* len=[0-9]*' $tracing/trace | grep -o '[0-9]*\$' | LC_ALL=C sort -u | wc -l")
	echo "$lengths lengths, $count expected"
	[ "$lengths" -eq "$count" ]
}

same_on_server() { [ "$(sha256sum <"$reference")" = "$(server "sha256sum <$EXPORT_DIR/$file")" ]; }

# Where the kernel lets us choose: READ replies with pages of the file itself, or
# with pages that the file was read into.
splice() {
	server "[ -e /sys/kernel/debug/nfsd/disable-splice-read ] && echo $1 >/sys/kernel/debug/nfsd/disable-splice-read"
}
read_all() { "$program" read "$MNT/$file" "$sample"; }

leave() {
	umount -f "$MNT" 2>/dev/null
	rm -f "$reference"
	trace_off read
	trace_off write
	server "rm -f $EXPORT_DIR/$file; echo 1408 >$tracing/buffer_size_kb; echo >$tracing/trace"
	splice 0
}

trap leave EXIT
"$program" write "$reference" "$sample" || skip_all "cannot write the reference"

ktap_print_header
ktap_set_plan 16
for version in 3 4.2; do
	check "v$version: mount" mount_nfs "$version"
	trace_on write
	check "v$version: write $count sizes" "$program" write "$MNT/$file" "$sample"
	trace_off write
	check "v$version: each was one WRITE" served write
	check "v$version: the server has what was written" same_on_server
	trace_on read
	check "v$version: read $count sizes" read_all
	trace_off read
	check "v$version: each was one READ" served read
	if splice 1; then
		check "v$version: read them with splice reads off" read_all
		splice 0
	else
		ktap_test_skip "v$version: read them with splice reads off"
	fi
	check "v$version: unmount" umount_nfs
done
ktap_finished
