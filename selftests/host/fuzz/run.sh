#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run one fuzz target on the committed corpus for some seconds.
#
# usage: run.sh parse|assembly|reply|private [SECONDS]
#        run.sh --keep parse|assembly|reply|private [SECONDS]
#
# With --keep the corpus in the tree is replaced by the smallest set of inputs
# that reaches as much as all that were found. A crash is left in the current
# directory, and ends with an error.
set -eu

keep=
if [ "${1-}" = --keep ]; then
	keep=1
	shift
fi
target=${1:?usage: run.sh [--keep] TARGET [SECONDS]}
seconds=${2:-60}
here=$(cd "$(dirname "$0")" && pwd)
hex=$here/corpus/$target.hex
here_was=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/corpus" "$work/small"
number=0
while read -r line; do
	number=$((number + 1))
	printf '%s' "$line" | xxd -r -p >"$work/corpus/$(printf %04d $number)"
done <"$hex"

# Naming the host as the target keeps the flags of .cargo/config.toml from build scripts.
host=$(rustc -vV | sed -n 's/^host: //p')
(cd "$here" && cargo build --release --target "$host" --bin "$target")
binary=${CARGO_TARGET_DIR:-$here/target}/$host/release/$target
cd "$here_was"
"$binary" -max_total_time="$seconds" -max_len=512 -timeout=5 "$work/corpus"

if [ -n "$keep" ]; then
	"$binary" -merge=1 "$work/small" "$work/corpus"
	for input in "$work"/small/*; do
		xxd -p "$input" | tr -d '\n'
		echo
	done | LC_ALL=C sort >"$hex"
	wc -l "$hex"
fi
