# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the scripts of this folder share: where the checkout and the cache are,
# progress lines, locking, and building a cached thing exactly once.

set -euo pipefail

# The checkout, and the folder of everything that is slow to make. The cache is
# shared by all checkouts of one user; what is in it is keyed by content.
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
CACHE=${SVCRDMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/svcrdma-rs}
SVCRDMA_CACHE=$CACHE
export HOME TOP CACHE SVCRDMA_CACHE

# The one thing that is pinned: which kernel series from trixie-backports.
KERNEL_SERIES=7.3
export KERNEL_SERIES

# Progress goes to stderr: stdout of most scripts is a path.
say() { printf '  [%s] %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

die() {
	printf 'error: %s\n' "$1" >&2
	shift
	[ $# -eq 0 ] || printf '       %s\n' "$@" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -E "$@"
	else
		die "this step needs root, and there is no sudo"
	fi
}

# content_key FILE_OR_STRING...: 12 hex digits over the content of each file
# and the text of each string.
content_key() {
	local x
	for x; do
		if [ -f "$x" ]; then cat "$x"; else printf '%s\n' "$x"; fi
	done | sha256sum | cut -c1-12
}

# cached DIR COMMAND...: make DIR by running "COMMAND... TEMPORARY_DIR", once,
# whoever asks. DIR appears complete or not at all.
cached() {
	local dir=$1 tmp lock
	shift
	[ -d "$dir" ] && return 0
	mkdir -p "$(dirname "$dir")" "$CACHE/lock"
	lock=$CACHE/lock/$(basename "$dir")
	(
		flock -n 9 || { say "waiting for another run to make $(basename "$dir")"; flock 9; }
		[ -d "$dir" ] && exit 0
		tmp=$dir.tmp
		as_root rm -rf "$tmp"
		mkdir -p "$tmp"
		# Not "cmd || ...": that would switch off errexit inside the command.
		trap 'as_root rm -rf "$tmp"' EXIT
		"$@" "$tmp"
		trap - EXIT
		mv "$tmp" "$dir"
	) 9>"$lock"
}
