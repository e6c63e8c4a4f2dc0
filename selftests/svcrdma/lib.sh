# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests share. A test runs on the NFS client and is told where its
# server is by these variables (the harness in selftests/vm sets them; by hand,
# export them before run_kselftest.sh):
#
#   SERVER_ADDR    the server's address on the RDMA network
#   SERVER_ADDR6   its IPv6 address, or empty
#   SERVER_EXEC    a command that takes ONE argument, a shell command line, and
#                  runs it as root on the server, without standard input, with
#                  its output and exit status: "ssh -n server", or "bash -c" when
#                  client and server are one machine
#   EXPORT_DIR     the exported folder on the server: NFSv4 path "/", NFSv3 path
#                  EXPORT_DIR; root squashing must be off
#   TRANSPORT      name of the transport under test on the server: rdma-rs, or
#                  rdma for the C transport (or for drop-in mode)
#   NFS_PORT       port of its listener
#   MACHINES       2, or 1 when client and server are one machine
#   RDMA_DRIVER    rxe, siw or the name of a real device's driver
#   REALM          a command that makes a Kerberos realm ("$REALM up") and takes it
#                  away ("$REALM down"); empty where the machines have one, or none
#   UNIT_US        microseconds of a NULL call's round trip (at least 1000): the
#                  unit of every deadline
#
# A test declares itself in comment lines of its head:
#
#   # Tier: quick|ci|full     when it runs
#   # Machines: 2             only where server and client are two machines
#   # Transport: rdma-rs      only against this transport
#   # Driver: rxe             only on this RDMA driver
#   # Limit: SECONDS          hang detector, for a unit of 1 ms; 300 if not given

SERVER_ADDR=${SERVER_ADDR:-127.0.0.1}
SERVER_ADDR6=${SERVER_ADDR6:-}
SERVER_EXEC=${SERVER_EXEC:-bash -c}
EXPORT_DIR=${EXPORT_DIR:-/srv/export}
TRANSPORT=${TRANSPORT:-rdma-rs}
NFS_PORT=${NFS_PORT:-20049}
MACHINES=${MACHINES:-1}
RDMA_DRIVER=${RDMA_DRIVER:-rxe}
REALM=${REALM:-}
UNIT_US=${UNIT_US:-1000}
MNT=${MNT:-/mnt/nfs}

# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/../kselftest/ktap_helpers.sh"

# server COMMAND LINE: run it on the server.
server() {
	# SERVER_EXEC is words.
	# shellcheck disable=SC2086
	$SERVER_EXEC "$*"
}

# mount_nfs VERSION [OPTIONS] [ADDRESS]: mount the export on $MNT over RDMA.
mount_nfs() {
	local version=$1 options=${2:-} address=${3:-$SERVER_ADDR} path=/ proto=rdma
	case $address in *:*) address=[$address] proto=rdma6 ;; esac
	[ "$version" != 3 ] || path=$EXPORT_DIR
	mkdir -p "$MNT"
	mount -t nfs -o "vers=$version,proto=$proto,port=$NFS_PORT,retry=0${options:+,$options}" "$address:$path" "$MNT"
}

umount_nfs() { umount "$MNT"; }

# Nothing that is read afterwards comes from the client's cache.
drop_caches() { echo 3 >/proc/sys/vm/drop_caches; }

# ours: whether the transport under test is our module.
ours() { [ "$TRANSPORT" = rdma-rs ] || [ -n "${DROP_IN:-}" ]; }

# stat_of NAME: one of our counters.
stat_of() { server "sed -n 's/^$1 //p' /sys/kernel/debug/svcrdma_rs/stats"; }

# resources: what the server's RDMA devices and our module hold, pools aside. A device that was made again has
# another index.
resources() {
	server 'rdma resource show | sed "s/^[0-9]*: //"; grep -hv "_pooled " /sys/kernel/debug/svcrdma_rs/objects 2>/dev/null || :'
}
resources_are() { [ "$(resources)" = "$1" ]; }

# back_to BASELINE [UNITS]: wait until the server holds what "resources" said
# then; tells the difference if that does not come.
back_to() {
	wait_for "${2:-60000}" resources_are "$1" && return
	diff <(echo "$1") <(resources)
	return 1
}

# connections: how many connections (not listeners) the server has.
connections() {
	local ends
	ends=$(server 'rdma resource show qp' | grep -c 'type RC state RTS')
	echo $((ends * MACHINES / 2))
}

# nfsd_save, then nfsd_stop and nfsd_start: stop the server's threads and with them
# all listeners; make them again as they were. The grace period for clients that
# were there is not cut short by this: see nfsd_end_grace.
nfsd_save() {
	nfsd_threads=$(server 'cat /proc/fs/nfsd/threads')
	nfsd_ports=$(server 'LC_ALL=C sort -u /proc/fs/nfsd/portlist')
}
nfsd_stop() { server 'echo 0 >/proc/fs/nfsd/threads'; }
nfsd_start() {
	server "while read -r port; do echo \"\$port\" >/proc/fs/nfsd/portlist || exit; done <<-END
		$nfsd_ports
	END
	echo $nfsd_threads >/proc/fs/nfsd/threads"
}
# It may have ended already, which the files answer with an error.
nfsd_end_grace() {
	server 'for file in /proc/fs/nfsd/v4_end_grace /proc/fs/lockd/nlm_end_grace; do echo Y >$file; done 2>/dev/null; :'
}

# nfsd_restore: for traps; whatever the test has left, as it was at nfsd_save.
nfsd_restore() {
	[ -n "${nfsd_threads:-}" ] || return 0
	nfsd_stop 2>/dev/null
	nfsd_start
	nfsd_end_grace
}

# portlist LINE: write it there; the message of the error if it fails.
portlist() { server "echo '$1' >/proc/fs/nfsd/portlist" 2>&1; }

# wait_for UNITS COMMAND...: until the command succeeds; fails after that many units.
wait_for() {
	local end=$((${EPOCHREALTIME/./} + $1 * UNIT_US))
	shift
	until "$@"; do
		[ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# check DESCRIPTION COMMAND...: one KTAP result; the command's output is shown
# when it fails.
check() {
	local description=$1 output
	shift
	if output=$("$@" 2>&1); then
		ktap_test_pass "$description"
	else
		printf '%s\n' "$output" | sed 's/^/# /'
		ktap_test_fail "$description"
	fi
}

# fails_with TEXT COMMAND...: the command fails and says that.
fails_with() {
	local text=$1 output
	shift
	! output=$("$@" 2>&1) || { echo "no failure" && return 1; }
	printf '%s\n' "$output"
	[[ $output =~ $text ]]
}

# Skip the whole test.
skip_all() {
	ktap_skip_all "$*"
	exit "$KSFT_SKIP"
}
