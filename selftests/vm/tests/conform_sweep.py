# SPDX-License-Identifier: GPL-2.0
"""WRITEs from Read chunks of 1 to 16 segments at each place in a page, and of 1 to 4 MiB."""
# Tier: ci
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import sweep  # noqa: E402


def test(lab):
    sweep.check(lab, "sweep", "--sample 4096")
    sweep.check_large(lab, "sweep_large")
