#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Kerberos: with krb5 data travel in Read and Write chunks as ever; with krb5i and
# krb5p nothing is taken out of the wrapped body (RFC 8166, section 8.2.2.3), so
# long calls and replies travel as a whole. Both sides count what they did.
#
# Tier: ci
# Machines: 2
# Limit: 600

. "$(dirname "$0")/lib.sh"

sizes="1 5000 70000 1048576"
bytes=$((1 + 5000 + 70000 + 1048576))
# Those that no message without chunks has room for.
long=3
long_bytes=$((bytes - 1))
dir=krb5.$$

# The client's own counters, and ours.
counters() {
	awk -v mount="$MNT" '
		$1 == "device" { found = $5 == mount }
		found && $1 == "xprt:" { read += $13; write += $14; reply += $15; nomsg += $23 }
		END { print "client_read " read "\nclient_write " write "\nclient_reply " reply "\nclient_nomsg " nomsg }
	' /proc/self/mountstats
	! ours || server 'cat /sys/kernel/debug/svcrdma_rs/stats'
}

# moved NAME: by how much, between "before" and "after".
value() { sed -n "s/^$1 //p" <<<"$2"; }
moved() { echo $(($(value "$1" "$after") - $(value "$1" "$before"))); }

# expect NAME OPERATOR NUMBER [NAME OPERATOR NUMBER]...: what has moved.
expect() {
	local wrong=0
	while [ $# -gt 0 ]; do
		echo "$1 moved by $(moved "$1"), expected $2 $3"
		test "$(moved "$1")" "$2" "$3" || wrong=1
		shift 3
	done
	return $wrong
}

expect_ours() {
	local description=$1
	shift
	if ours; then
		check "$description" expect "$@"
	else
		ktap_test_skip "$description: needs our counters"
	fi
}

# copy FROM TO OPTION...: each file in one call, past the client's cache.
copy() {
	local from=$1 to=$2 size
	shift 2
	for size in $sizes; do
		dd if="$from/$size" of="$to/$size" bs=1M status=none "$@" || return
	done
}

copy_buffered() { cp -r "$source/." "$MNT/$dir/buffered"; }

# shellcheck disable=SC2086
sums() { (cd "$1" && sha256sum $sizes); }
same() { [ "$(sums "$source")" = "$(sums "$1")" ]; }
same_on_server() { [ "$(sums "$source")" = "$(server "cd $EXPORT_DIR/$dir/$1 && sha256sum $sizes")" ]; }
same_on_client() {
	drop_caches
	same "$MNT/$dir/buffered"
}

flavor_is() {
	awk -v mount="$MNT" '$2 == mount { print $4 }' /proc/mounts | tr , '\n' | grep -x "sec=$1"
}

leave() {
	umount -f "$MNT" 2>/dev/null
	rm -rf "$source" "$back"
	server "rm -rf $EXPORT_DIR/$dir"
	[ -z "$REALM" ] || $REALM down
}

source=$(mktemp -d)
back=$(mktemp -d)
trap leave EXIT
if [ -n "$REALM" ]; then
	output=$($REALM up 2>&1) || {
		printf '%s\n' "$output" | sed 's/^/# /'
		ktap_exit_fail_msg "cannot make a realm"
	}
elif output=$(mount_nfs 3 sec=krb5 2>&1); then
	umount_nfs
else
	skip_all "these machines have no Kerberos realm: $output"
fi
for size in $sizes; do
	head -c "$size" /dev/urandom >"$source/$size"
done
server "mkdir -m 777 $EXPORT_DIR/$dir"
baseline=$(resources)

ktap_print_header
ktap_set_plan 79
for version in 3 4.2; do
	for flavor in krb5 krb5i krb5p; do
		name="v$version $flavor"
		check "$name: mount" mount_nfs "$version" "sec=$flavor"
		check "$name: it is what was asked for" flavor_is "$flavor"
		rm -rf "${MNT:?}/$dir"/*
		mkdir -p "$MNT/$dir/direct" "$MNT/$dir/buffered"

		before=$(counters)
		check "$name: write" copy "$source" "$MNT/$dir/direct" oflag=direct
		after=$(counters)
		check "$name: the server has what was written" same_on_server direct
		if [ $flavor = krb5 ]; then
			check "$name: the client wrote from Read chunks" expect client_read -ge $long client_nomsg -eq 0
			expect_ours "$name: Read chunks had the data alone" calls_read -eq $long read_bytes -eq $long_bytes
		else
			# The client counts a call again that had to wait for memory regions.
			check "$name: the client wrote by long calls" expect client_nomsg -ge $long
			expect_ours "$name: calls were read as a whole" calls_read -eq $long read_bytes -gt $long_bytes
		fi

		before=$(counters)
		check "$name: read" copy "$MNT/$dir/direct" "$back" iflag=direct
		after=$(counters)
		check "$name: the client has what was written" same "$back"
		if [ $flavor = krb5 ]; then
			check "$name: the client offered Write chunks" expect client_write -ge $long
			# Each READ asks for 1 MiB, so that there is a Write chunk for the one byte, too.
			expect_ours "$name: Write chunks had the data alone" replies_chunk -eq 0 write_bytes -eq $bytes
		else
			check "$name: the client offered no Write chunk" expect client_write -eq 0 client_reply -ge $long
			expect_ours "$name: replies went as a whole" replies_chunk -eq $long write_bytes -gt $long_bytes
		fi

		check "$name: write through the cache" copy_buffered
		check "$name: read back what that wrote" same_on_client
		check "$name: unmount" umount_nfs
	done
done
check "the server holds nothing more than before" back_to "$baseline"
ktap_finished
