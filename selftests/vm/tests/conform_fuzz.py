# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA: 5,000 mutated messages of a fixed seed (CONFORM_FUZZ=N: more)."""
# Tier: ci
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402


def test(lab):
    count = int(os.environ.get("CONFORM_FUZZ", "5000"))
    seed = int(os.environ.get("CONFORM_SEED", "1"))
    vm.check(lab, "conform_fuzz", f"--fuzz {count} --seed {seed}", limit=600 + count / 20)
