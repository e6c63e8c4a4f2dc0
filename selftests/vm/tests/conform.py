# SPDX-License-Identifier: GPL-2.0
"""Raw RPC-over-RDMA: all deterministic cases of rpcrdma-conform but those of conform_link."""
# Tier: ci
# Sources: selftests/conform
# Without: selftests/conform/src/fake

import os
import shlex
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402


def test(lab):
    options = os.environ.get("CONFORM_OPTIONS", "")
    # Who names cases means them.
    if not any(option.split("=")[0] == "--only" for option in shlex.split(options)):
        options = f"--except M136,M136b {options}"
    with vm.realm(lab):
        vm.check(lab, "conform", f"{vm.GSS} {options}")
