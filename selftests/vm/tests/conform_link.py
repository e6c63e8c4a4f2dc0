# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA: the link goes down under load. A warning of rxe (rxe_completer) was seen; why is not known."""
# Tier: full
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402


def test(lab):
    vm.check(lab, "conform_link", "--only M136,M136b")
