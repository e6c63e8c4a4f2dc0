# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA: 100,000 mutated messages."""
# Tier: full
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402


def test(lab):
    vm.check(lab, "conform_fuzz_full", "--fuzz 100000 --seed 2", limit=6000)
