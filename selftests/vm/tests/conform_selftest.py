# SPDX-License-Identifier: GPL-2.0
"""Does rpcrdma-conform notice? Each case has to fail against a peer that misbehaves."""
# Tier: full
# Sources: selftests/conform
# Machines: 1

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402

PORT = 20055
# Every case against these, until it has failed: none may pass everywhere.
BROAD = ["chunk", "yes", "close", "mute", "roomy", "open", "datagram", "deaf", "fragile"]
# These wait for seconds, for calls that a server has not answered yet.
WAITING = ["M142", "M142b"]
# Not the peer's fault, but that of hooks which do nothing.
VOID = ["nothing was under way", "did not wait"]
# What one more must make these cases fail with, as their reason says.
NARROW = {
    "deaf": ("M043,M046,P01,M133", "HANG"),
    "versions": ("M037,M043,M046,P01", "EV"),
    "garbage": ("P01,M043,R6", "RPCERR"),
    "stale": ("M037,M043,M046,M090", "bytes that nothing explains"),
    "other-xid": ("M037,M043", "in answer to"),
    "no-credit": ("M037,M043", "grant of 0"),
    "proxy": ("M101,R28,M102", "answer to|not echoed"),
    "proxy-echo": ("M101,M102,R6,R44.krb5i.v3small,R44.krb5p.v4small", "Write chunk"),
    "proxy-unused": ("R24,U6,R7,R13", "inline"),
    "proxy-twice": ("M041a,K1,M039", "XID"),
    "proxy-long": ("M041a,K1,P01", "nothing explains"),
    "refuse": ("M174,C5", "connect"),
    "callback-chunks": ("B5,U12,U12b", "in answer to"),
    "callback-long": ("B5,U12,U12b", "callback of|threshold"),
    "callback-xid": ("B5,U12,U12b", "XID"),
    "callback-lost": ("B5,U12,U12b", "no callback comes"),
    "spill": ("M100,M106", "was written"),
}


def peer(lab, mutant, arguments):
    """Run cases against a mutant; {id: reason} of those that failed, and all ids."""
    where = vm.share(lab)
    hooks = " ".join(os.listdir(f"{vm.HERE}/hooks"))
    environment = lab.environment()
    address = environment["SERVER_ADDR"]
    # What a peer does wrong shows without any hook.
    script = f"""
        mkdir -p /tmp/hooks && for hook in {hooks}; do ln -sf /bin/true /tmp/hooks/$hook; done
        {where}/rpcrdma-conform --fake {mutant} --server {address} --port {PORT} >/tmp/fake.log 2>&1 &
        fake=$!
        for i in $(seq 100); do grep -q listening /tmp/fake.log && break; sleep 0.1; done
        timeout 1500 {where}/rpcrdma-conform --server {address} --port {PORT} --export {environment['EXPORT_DIR']} \
            --patience 300 {vm.GSS} --hooks /tmp/hooks --idle 1 --json /tmp/mutant.json {arguments} >/tmp/mutant.tap 2>&1
        kill $fake; wait $fake 2>/dev/null
        cat /tmp/mutant.json || cat /tmp/mutant.tap /tmp/fake.log >&2
    """
    result = lab.server.run(script, check=False, timeout=1600)
    assert result.out.strip(), f"{mutant}: {result.err}"
    report = json.loads(result.out)
    with open(f"{lab.directory}/mutant-{mutant}.json", "w", encoding="utf-8") as f:
        f.write(result.out)
    failed = {c["id"]: c["reason"] for c in report["cases"] if not c["passed"]}
    # What the peer answers as it should has to work: a case must fail for what it looks at.
    spoilt = {i: reason for i, reason in failed.items()
              if mutant not in ("refuse", "fragile") and ("a new connection after" in reason or "control connection" in reason)}
    assert not spoilt, f"{mutant}: {spoilt}"
    real = {i: reason for i, reason in failed.items() if not any(void in reason for void in VOID)}
    return real, [c["id"] for c in report["cases"]]


def test(lab):
    with vm.realm(lab):
        misbehave(lab)


def misbehave(lab):
    problems = []
    listed = lab.server.run(f"{vm.share(lab)}/rpcrdma-conform --list").out
    survivors = {line.split()[0] for line in listed.splitlines()}
    for mutant in BROAD:
        tried = survivors - (set(WAITING) if mutant in ("chunk", "yes", "close") else set())
        if not tried:
            continue
        failed, ids = peer(lab, mutant, f"--only {','.join(sorted(tried))}")
        assert set(ids) == tried, f"{mutant}: not run: {tried - set(ids)}"
        print(f"# {mutant}: {len(failed)} of {len(ids)} cases fail", file=sys.stderr, flush=True)
        survivors -= set(failed)
    if survivors:
        problems.append(f"no broken peer makes these fail: {' '.join(sorted(survivors))}")
    for mutant, (ids, words) in NARROW.items():
        failed, _ = peer(lab, mutant, f"--only {ids}")
        if not any(word in reason for reason in failed.values() for word in words.split("|")):
            problems.append(f"{mutant}: '{words}' is in no reason: {failed}")
    failed, _ = peer(lab, "callback", "--only B5,U12,U12b")
    if failed:
        problems.append(f"callback: what is right fails: {failed}")
    assert not problems, "\n".join(problems)
