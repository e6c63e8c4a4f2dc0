# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA: memory faults 100 times, teardown, which has 12 and more rounds in each case, 20 times."""
# Tier: full
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402

FAULTS = "M116..M132,R35"
ROUNDS = "M133..M135,M137..M141,M143..M145,M149..M158,C25,C29,C36,C39"
# These wait for seconds each.
MACHINE = "M142,M142b,M146,M146b,M147"


def test(lab):
    vm.check(lab, "conform_faults", f"--only {FAULTS} --repeat 100", limit=3000)
    vm.check(lab, "conform_rounds", f"--only {ROUNDS} --repeat 20", limit=3000)
    vm.check(lab, "conform_machine", f"--only {MACHINE} --repeat 5", limit=3000)
