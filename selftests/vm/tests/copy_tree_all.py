# SPDX-License-Identifier: GPL-2.0
"""The kernel's whole Documentation and include copied to the server and back over v4.2: copy_tree.sh on that tree."""

# Tier: full
# Limit: 3600

import subprocess

from vmlab import images


def test(lab):
    source = images.output(f"{images.TOP}/scripts/kernel-tree", "src")
    tree = subprocess.run(["tar", "-C", source, "-czf", "-", "Documentation", "include"],
                          check=True, capture_output=True).stdout
    lab.client.run("mkdir -p /root/tree && tar -C /root/tree -xzf -", timeout=600, stdin=tree)
    try:
        lab.client.run("/host/tests/svcrdma/copy_tree.sh", timeout=3600,
                       env=lab.environment() | {"TREE": "/root/tree", "VERSIONS": "4.2"})
    finally:
        lab.client.run("rm -rf /root/tree")
