# SPDX-License-Identifier: GPL-2.0
"""WRITEs from Read chunks: each number of segments at each place in a page."""
# Tier: full
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import sweep  # noqa: E402


def test(lab):
    sweep.check(lab, "sweep_all", "--seed 2", limit=3000)
