#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What a call costs, counted: RDMA work requests for a WRITE of 1 MiB, pages that
# nfsd's threads have to be given again, and allocations in the steady state, as
# the server's kernel reports them (kmem:*).
#
# Tier: ci
# Machines: 2
# Transport: rdma-rs
# Driver: rxe

. "$(dirname "$0")/lib.sh"

MIB=16
TRACE=/sys/kernel/tracing
KMEM="kmalloc kmem_cache_alloc mm_page_alloc"

write_file() { dd if=/dev/zero of="$MNT/costs" bs=1M count=$MIB oflag=direct conv=notrunc status=none; }
# Many calls at a time, each as large as can be: pools grow as far as what is under way at once needs, and
# what is in them as far as the largest call.
warm_up() {
	local n
	for n in $(seq 16); do
		dd if=/dev/zero of="$MNT/costs" bs=1M count=4 seek=$((n * 4)) oflag=direct conv=notrunc status=none &&
			dd if="$MNT/costs" of=/dev/null bs=1M count=4 skip=$((n * 4)) iflag=direct status=none &
	done
	wait
}
read_file() {
	dd if="$MNT/costs" of=/dev/null bs=1M iflag=direct status=none &&
		dd if="$MNT/costs" of=/dev/null bs=4k count=64 iflag=direct status=none
}
work() { write_file && read_file; }

# Segments of the client's Read chunks: one event each.
segments_on() { echo >$TRACE/trace && echo 1 >$TRACE/events/rpcrdma/xprtrdma_chunk_read/enable; }
segments() { grep -c xprtrdma_chunk_read: $TRACE/trace; }

# What rxe registers and invalidates on the server.
probes_on() {
	server "cd $TRACE && echo >trace && echo 'p:svcrdma_reg rdma_rxe:rxe_reg_fast_mr' >kprobe_events &&
		echo 'p:svcrdma_inv rdma_rxe:rxe_invalidate_mr' >>kprobe_events && echo 1 >events/kprobes/enable"
}
# NULL of NFS version 3, by the port: rpcbind may not know it, as after nfsd_start.
null_over_tcp() {
	local reply
	exec 4<>"/dev/tcp/$SERVER_ADDR/2049" &&
		printf '\x80\0\0\x28\0\0\0\x7\0\0\0\0\0\0\0\x2\0\x1\x86\xa3\0\0\0\x3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >&4 &&
		reply=$(head -c 28 <&4 | od -An -v -tx1 | tr -d ' \n')
	exec 4<&-
	[ "$reply" = 80000018000000070000000100000000000000000000000000000000 ]
}

# sunrpc fills the gaps in a thread's pages in bulk, which no event tells: all entries are looked at instead.
# A call and a reply of 1 MiB have fewer than 320.
refills_on() {
	local n entries=
	for n in 0 1 2 3 4; do
		entries+=" e$n=+$((n * 512))(%r8):x64[64]"
	done
	server "cd $TRACE && echo >trace && echo 'p:svcrdma_refill alloc_pages_bulk_noprof n=%cx:u64$entries' >kprobe_events &&
		echo 'comm == \"nfsd\"' >events/kprobes/svcrdma_refill/filter && echo 1 >events/kprobes/enable"
}
# Calls of that kind, and empty entries among those they have to fill.
refilled() {
	server "awk '/svcrdma_refill:/ {
			calls++; match(\$0, /n=[0-9]+/); left = substr(\$0, RSTART + 2, RLENGTH - 2)
			n = split(\$0, entry, /[{,}]/)
			for (i = 2; i <= n && left > 0; i++)
				if (entry[i] ~ /^0x/) { left--; empty += entry[i] == \"0x0\" }
		} END { print calls + 0, empty + 0 }' $TRACE/trace"
}
probed() { server "grep -c '$1:' $TRACE/trace"; }
probes_off() { server "cd $TRACE && echo 0 >events/kprobes/enable; echo >kprobe_events"; }

# Pages in the module's pool; those of the last calls come back by and by.
pooled() { server "sed -n 's/^pages_pooled //p' /sys/kernel/debug/svcrdma_rs/objects"; }
pool_has() { [ "$(pooled)" = "$1" ]; }

local_reader() { server "grep -q ' reader local\$' /sys/kernel/debug/svcrdma_rs/connections"; }

kmem_on() {
	server "cd $TRACE && echo 0 >tracing_on && echo 1 >options/sym-offset && echo 65536 >buffer_size_kb &&
		echo >trace && for event in $KMEM; do
			echo stacktrace >events/kmem/\$event/trigger && echo 1 >events/kmem/\$event/enable || exit
		done && echo 1 >tracing_on"
}
kmem_off() {
	server "cd $TRACE && for event in $KMEM; do
			echo '!stacktrace' >events/kmem/\$event/trigger; echo 0 >events/kmem/\$event/enable
		done; echo 0 >options/sym-offset; echo 1408 >buffer_size_kb; echo 1 >tracing_on"
}
traced() { server "grep -q ' kmalloc: ' $TRACE/trace && ! grep -q 'LOST.*EVENTS' $TRACE/trace"; }
# A stack trace ends where the next event begins. The third of an event's flags is "." if it is not of an
# interrupt, which may come while the module runs and has nothing to do with it.
by_module() {
	server "awk '/^ *[^ ]+-[0-9]+ / { event = \$0; seen = event !~ /\] ..[.]/ }
		/\[svcrdma_rs\]/ && !seen++ { print event; print }' $TRACE/trace"
}
none_by_module() { by_module | head -40 | tee /dev/stderr | grep -q . && return 1 || return 0; }

cleanup() {
	echo 0 >$TRACE/events/rpcrdma/xprtrdma_chunk_read/enable
	probes_off 2>/dev/null
	kmem_off 2>/dev/null
	rm -f "$MNT/costs"
	umount -f "$MNT" 2>/dev/null
}
trap cleanup EXIT

mount_nfs 3 rsize=1048576,wsize=1048576
warm_up
warm_up
segments_on
probes_on

ktap_print_header
ktap_set_plan 15

reads=$(stat_of read_wrs) bytes=$(stat_of read_bytes)
check "$MIB WRITEs of 1 MiB" write_file
reads=$(($(stat_of read_wrs) - reads)) bytes=$(($(stat_of read_bytes) - bytes))
offered=$(segments) registered=$(probed svcrdma_reg) invalidated=$(probed svcrdma_inv)
probes_off
echo "# $offered segments: $reads RDMA Reads, $registered registrations, $invalidated invalidations"
check "all of their data came by RDMA Read" [ "$bytes" = $((MIB << 20)) ]
if local_reader; then
	check "with at most 9 RDMA Reads each" [ "$reads" -le $((9 * MIB)) ]
else
	check "with at most a request for each segment and two for each registration" \
		[ "$registered" -gt 0 -a $((reads + registered + invalidated)) -le $((offered + 2 * registered)) ]
fi

refills_on
check "a call over TCP" null_over_tcp
read -r calls empty < <(refilled)
check "uses up pages of nfsd's thread" [ "$empty" -gt 0 ]
server "echo >$TRACE/trace"
check "the same WRITEs again" write_file
read -r calls empty < <(refilled)
check "use up none" [ "$empty" = 0 ]
# nfsd puts pages of the page cache in place of the thread's, and frees these.
server "echo >$TRACE/trace"
check "READs, large and small" read_file
read -r calls empty < <(refilled)
probes_off
data=$(($(stat -c %s "$MNT/costs") / 4096 + 64))
echo "# $calls READs have used up $empty pages, $data of them for data"
check "use up what nfsd frees" [ "$empty" -le "$data" ]

pages=$(stat_of pages_allocated) pool=$(pooled)
kmem_on
check "WRITEs and READs" work
server "echo 0 >$TRACE/tracing_on"
check "no page was taken from the allocator" [ "$(stat_of pages_allocated)" = "$pages" ]
check "the pool has as many as before" wait_for 1000 pool_has "$pool"
check "the server's allocations were all traced" traced
if server 'grep -qs Y /sys/module/svcrdma_rs/parameters/dma_bounce'; then
	ktap_test_skip "none was made by the module: bounced mappings have pages of their own"
else
	check "none was made by the module" none_by_module
fi
kmem_off
check "unmount" umount_nfs
ktap_finished
