# SPDX-License-Identifier: GPL-2.0
"""RDMA Reads and Writes that fail are counted, wherever in their chain."""
# Tier: ci
# Sources: selftests/conform
# Without: selftests/conform/src/fake
# Transport: rdma-rs

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402

# (counter, cases, each of which has one failure)
COUNTED = [
    ("read_errors", "M116,M121.0,M121.1,M121.2"),
    ("send_errors", "M123,M123b"),
]


def count(lab, name):
    text = lab.server.run("cat /sys/kernel/debug/svcrdma_rs/stats").out
    return int(dict(line.split() for line in text.splitlines())[name])


def test(lab):
    for name, cases in COUNTED:
        before = count(lab, name)
        vm.check(lab, f"conform_errors.{name}", f"--only {cases}")
        counted, wanted = count(lab, name) - before, len(cases.split(","))
        assert counted == wanted, f"{name}: {counted} counted, {wanted} have failed"
