# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA: 100,000 mutated messages."""
# Tier: full
# Sources: selftests/conform
# Without: selftests/conform/src/fake
# Parts: 20

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402

MESSAGES = 5000


def test(lab, part):
    vm.check(lab, f"conform_fuzz_full.{part}",
             f"--fuzz {MESSAGES} --fuzz-from {part * MESSAGES} --seed 2", limit=600 + MESSAGES / 20)
