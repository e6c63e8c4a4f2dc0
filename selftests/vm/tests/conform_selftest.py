# SPDX-License-Identifier: GPL-2.0
"""Does rpcrdma-conform notice? Each case has to fail against a peer that misbehaves."""
# Tier: full
# Machines: 1

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402

PORT = 20055
# Every case against these: between them no case may pass everywhere.
BROAD = ["chunk", "yes", "close", "mute"]
# What one more must make these cases fail with, as their reason says.
NARROW = {
    "deaf": ("M0*", "HANG"),
    "versions": ("M037,M043,M046,P01", "EV"),
    "garbage": ("P01,M043,R6", "RPCERR"),
    "stale": ("M037,M043,M046,M090", "bytes that nothing explains"),
    "other-xid": ("M037,M043", "in answer to"),
    "no-credit": ("M037,M043", "grant of 0"),
    "proxy": ("M101,R28,M102", "answer to|not echoed"),
    "proxy-echo": ("M101,M102,R6", "Write chunk"),
    "proxy-unused": ("R24,U6,R7,R13", "inline"),
    "proxy-twice": ("M041a,K1,M039", "XID"),
    "proxy-long": ("M041a,K1,P01", "nothing explains"),
    "refuse": ("M174,C5", "connect"),
    "spill": ("M046b,M093", "was written"),
}


def peer(lab, mutant, arguments):
    """Run cases against a mutant; {id: reason} of those that failed, and all ids."""
    where = vm.share(lab)
    environment = lab.environment()
    address = environment["SERVER_ADDR"]
    script = f"""
        {where}/rpcrdma-conform --fake {mutant} --server {address} --port {PORT} >/tmp/fake.log 2>&1 &
        fake=$!
        for i in $(seq 100); do grep -q listening /tmp/fake.log && break; sleep 0.1; done
        timeout 1500 {where}/rpcrdma-conform --server {address} --port {PORT} --export {environment['EXPORT_DIR']} \
            --patience 60 --json /tmp/mutant.json {arguments} >/tmp/mutant.tap 2>&1
        kill $fake; wait $fake 2>/dev/null
        cat /tmp/mutant.json || cat /tmp/mutant.tap /tmp/fake.log >&2
    """
    result = lab.server.run(script, check=False, timeout=1600)
    assert result.out.strip(), f"{mutant}: {result.err}"
    report = json.loads(result.out)
    with open(f"{lab.directory}/mutant-{mutant}.json", "w", encoding="utf-8") as f:
        f.write(result.out)
    return {c["id"]: c["reason"] for c in report["cases"] if not c["passed"]}, [c["id"] for c in report["cases"]]


def test(lab):
    problems = []
    survivors = None
    for mutant in BROAD:
        arguments = f"--only {','.join(sorted(survivors))}" if survivors is not None else ""
        failed, ids = peer(lab, mutant, arguments)
        assert failed, f"{mutant}: nothing failed"
        survivors = (set(ids) if survivors is None else survivors) - set(failed)
        if not survivors:
            break
    if survivors:
        problems.append(f"no broken peer makes these fail: {' '.join(sorted(survivors))}")
    for mutant, (ids, words) in NARROW.items():
        failed, _ = peer(lab, mutant, f"--only {ids}")
        if not any(word in reason for reason in failed.values() for word in words.split("|")):
            problems.append(f"{mutant}: '{words}' is in no reason: {failed}")
    assert not problems, "\n".join(problems)
