#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Unmount by force while reads and writes are in flight: the client can mount
# again, and the server holds nothing of it.
#
# Tier: ci

. "$(dirname "$0")/lib.sh"

ROUNDS=3
jobs=()
dir=unmount_load.$$

# Until they are killed.
again() { while :; do "$@"; done &>/dev/null; }
load_begin() {
	local n
	jobs=()
	for n in 1 2 3 4; do
		again dd if=/dev/zero of="$MNT/$dir/$n" bs=256k count=16 oflag=direct conv=notrunc &
		jobs+=($!)
		again dd if="$MNT/$dir/data" of=/dev/null bs=256k iflag=direct &
		jobs+=($!)
	done
	disown -a
}
load_end() {
	kill -9 "${jobs[@]}" 2>/dev/null
	pkill -9 -x dd
	wait_for 60000 no_dd
}
no_dd() { ! pgrep -x dd >/dev/null; }

io_bytes() { server "awk '/^io / { print \$2 + \$3 }' /proc/net/rpc/nfsd"; }
io_moves() { [ "$(io_bytes)" -gt "$1" ]; }
force_unmount() { umount -f -l "$MNT"; }
works() { mount_nfs "$1" && echo "$1" >"$MNT/$dir/check" && [ "$(server "cat $EXPORT_DIR/$dir/check")" = "$1" ] && umount_nfs; }

trap 'load_end; umount -f -l "$MNT" 2>/dev/null; server "rm -rf $EXPORT_DIR/$dir"' EXIT
server "mkdir $EXPORT_DIR/$dir && head -c 8M /dev/urandom >$EXPORT_DIR/$dir/data"
before=$(resources)

ktap_print_header
ktap_set_plan $((ROUNDS * 2 * 5))
for version in 3 4.2; do
	for round in $(seq $ROUNDS); do
		check "v$version, round $round: mount" mount_nfs "$version" nconnect="$round"
		bytes=$(io_bytes)
		load_begin
		check "v$version, round $round: data flows" wait_for 60000 io_moves "$((bytes + (1 << 20)))"
		check "v$version, round $round: unmount by force" force_unmount
		load_end
		check "v$version, round $round: the server holds nothing more than before" back_to "$before"
		check "v$version, round $round: it serves a new mount" works "$version"
	done
done
ktap_finished
