#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The module's unit tests, which ran when it was loaded: in kernels with KUnit.
#
# Tier: quick
# Transport: rdma-rs

. "$(dirname "$0")/lib.sh"

# One line for each test of each suite: "ok 1 name", or "not ok".
results() { server 'cat /sys/kernel/debug/kunit/svcrdma_rs*/results' | sed -n 's/^ \+\(\(not \)\?ok \)/\1/p'; }

server '[ -d /sys/kernel/debug/kunit ]' || skip_all "the server's kernel has no KUnit"

ktap_print_header
mapfile -t lines < <(results)
ktap_set_plan $((${#lines[@]} + 1))
check "there are results" [ "${#lines[@]}" -gt 0 ]
for line in "${lines[@]}"; do
	check "${line##* }" [ "${line%% *}" = ok ]
done
ktap_finished
