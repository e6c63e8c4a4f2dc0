#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Extended attributes (NFSv4.2) with values from 1 byte to 64 KiB. They are on a
# tmpfs of their own, exported below the export: ext4 has no room for large ones.
#
# Tier: ci

. "$(dirname "$0")/lib.sh"

dir=xattrs.$$
scratch=$(mktemp -d)
sizes="1 2 3 4 100 3800 3900 4000 4095 4096 4097 8192 65535 65536"

# Letters that depend on the size and the place; setfattr takes a value as text.
value() { head -c "$1" < <(while :; do printf '%s' abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"$1"; done 2>/dev/null); }
sum() { value "$1" | sha256sum; }

# A command line has no room for the largest value: setfattr restores it from a file.
set_value() {
	{
		echo "# file: $MNT/$dir/file"
		echo "user.size$1=\"$(value "$1")\""
	} >"$scratch/restore" && setfattr --restore="$scratch/restore"
}
read_sum() { getfattr --absolute-names --only-values -n "user.size$1" "$MNT/$dir/file" | sha256sum; }
server_sum() { server "getfattr --absolute-names --only-values -n user.size$1 $EXPORT_DIR/$dir/file | sha256sum"; }
made_right() { [ "$(server_sum "$1")" = "$(sum "$1")" ]; }
read_right() { [ "$(read_sum "$1")" = "$(sum "$1")" ]; }
listed() { [ "$(getfattr --absolute-names "$MNT/$dir/file" | grep -c '^user.size')" = "$(wc -w <<<"$sizes")" ]; }
removed() {
	setfattr -x user.size65536 "$MNT/$dir/file" &&
		! server "getfattr -n user.size65536 $EXPORT_DIR/$dir/file" 2>/dev/null
}

leave() {
	umount -f "$MNT/$dir" 2>/dev/null
	umount -f "$MNT" 2>/dev/null
	server "exportfs -u '*:$EXPORT_DIR/$dir'; exportfs -f; umount $EXPORT_DIR/$dir; rmdir $EXPORT_DIR/$dir"
	rm -r "$scratch"
}

trap leave EXIT
server "mkdir $EXPORT_DIR/$dir && mount -t tmpfs -o size=64m,mode=1777 xattrs $EXPORT_DIR/$dir &&
	exportfs -o rw,no_root_squash,insecure,fsid=4242 '*:$EXPORT_DIR/$dir'" || skip_all "the server cannot export a tmpfs"

ktap_print_header
ktap_set_plan $((5 + 2 * $(wc -w <<<"$sizes")))
check "mount" mount_nfs 4.2
check "the file system below it" eval "touch $MNT/$dir/file && mountpoint $MNT/$dir"
for size in $sizes; do
	check "$size bytes: set" set_value "$size"
	check "$size bytes: the server has it" made_right "$size"
done
umount "$MNT/$dir"
umount_nfs
mount_nfs 4.2
for size in $sizes; do read_right "$size" || wrong="${wrong:-} $size"; done
check "the client reads them all" eval '[ -z "${wrong:-}" ] || ! echo "wrong:$wrong"'
check "all are listed" listed
check "the largest is removed" removed
ktap_finished
