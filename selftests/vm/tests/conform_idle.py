# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA: a connection that is idle for longer than nfsd's age limit of 6 to 12 minutes."""
# Tier: full
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402


def test(lab):
    vm.check(lab, "conform_idle", "--only M148 --idle 800")
