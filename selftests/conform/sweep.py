# SPDX-License-Identifier: GPL-2.0
"""Running the sweep of rpcrdma-conform in test machines; for the tests in selftests/vm/tests."""

import re

import vm

LARGEST = 4 << 20


def check(lab, name, arguments, limit=1500):
    """Run it, then compare on the server's own file system what the file has with what it has to have."""
    expected = "/tmp/sweep.expected"
    try:
        result, _ = vm.run(lab, name, f"--sweep --expected {expected} {arguments}", limit)
        found = re.search(r"^# file (\S+)$", result.out, re.MULTILINE)
        bad = [line for line in result.out.splitlines() if line.startswith("not ok")]
        assert result and found, f"status {result.status} {'; '.join(bad)}\n{result.out}{result.err}"
        stored = f"{lab.environment()['EXPORT_DIR']}/{found[1]}"
        sums = [one.run(f"stat -c %s {path} && sha256sum <{path}", timeout=600).out
                for one, path in ((lab.server, stored), (lab.client, expected))]
        assert sums[0] == sums[1], f"on the server and as it has to be:\n{''.join(sums)}"
        print(result.out.splitlines()[-1], sums[0].split()[1][:12], flush=True)
    finally:
        lab.client.run(f"rm -f {expected}")
        lab.server.run(f"rm -f {lab.environment()['EXPORT_DIR']}/sweep.*")


def restart(lab, max_block=None):
    """nfsd anew, with RPCs of up to max_block bytes."""
    lab.server.run(["serve", "stop"], 600)
    lab.server.run(["serve", "start", lab.filesystem], 600, env={"MAX_BLOCK": str(max_block)} if max_block else {})
    lab.listen()


def check_large(lab, name):
    """1, 2 and 4 MiB in one RPC."""
    try:
        restart(lab, LARGEST)
        check(lab, name, "--large")
    finally:
        restart(lab)
