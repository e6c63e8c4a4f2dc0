# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA again and again: memory faults, teardown, credits, and what the machines do meanwhile."""
# Tier: full
# Sources: selftests/conform
# Without: selftests/conform/src/fake
# Parts: 12

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402

# (cases, how often each)
PARTS = [
    ("M116..M122,R35", 100),
    ("M123..M132", 100),
    ("M133..M135,M137..M141,M145", 20),
    ("C36*,C39*", 20),
    ("M143,M143b,M144,C44,C57", 10),
    ("M149..M156,M158,R2,C37,C51,M068,H1", 20),
    # 100,000 calls.
    ("M157", 50),
    # 200,000 calls.
    ("C52", 20),
    # 10,000 READs.
    ("C25", 50),
    # 2,500 connections.
    ("C29", 100),
    # 10,000 calls on 112 connections.
    ("C06", 112),
    # These wait for seconds each.
    ("M142,M142b,M146,M146b,M147", 5),
]


def test(lab, part):
    cases, times = PARTS[part]
    vm.check(lab, f"conform_repeat.{part}", f"--only {cases} --repeat {times}", limit=3000)
