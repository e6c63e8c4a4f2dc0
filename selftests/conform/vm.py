# SPDX-License-Identifier: GPL-2.0
"""Running rpcrdma-conform in test machines; for the tests in selftests/vm/tests."""

import base64
import contextlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
import tomllib

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(f"{HERE}/../..")
TARGET = f"{TOP}/build/conform"
OBJECTS = "/sys/kernel/debug/svcrdma_rs/objects"
# What the realm calls the server.
GSS = "--gss nfs@server"
PROFILES = {"rdma-rs": "svcrdma_rs", "rdma": "linux-c"}


def build():
    """The program, built in the build root that the harness runs in."""
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", f"{HERE}/Cargo.toml"],
                   check=True, env={**os.environ, "CARGO_TARGET_DIR": TARGET})
    return f"{TARGET}/release/rpcrdma-conform"


def share(lab):
    """Put program, profiles and hooks where the guests see them."""
    folder = f"{lab.shares['tests']}/conform"
    os.makedirs(f"{folder}/hooks", exist_ok=True)
    shutil.copy(build(), folder)
    for name in os.listdir(f"{HERE}/profiles"):
        shutil.copy(f"{HERE}/profiles/{name}", folder)
    for name in hooks(lab):
        shutil.copy(f"{HERE}/hooks/{name}", f"{folder}/hooks")
    return "/host/tests/conform"


def hooks(lab):
    """Those that work here: link and device are shared if there is one machine, not every kernel refuses memory."""
    short = lab.server.run("test -d /sys/kernel/debug/failslab", check=False)
    return [name for name in os.listdir(f"{HERE}/hooks")
            if (lab.two or not name.startswith(("link-", "device-"))) and (short or not name.startswith("memory-"))]


def objects(lab):
    """The module's own count of what exists; nothing of another's."""
    text = lab.server.run(f"cat {OBJECTS} 2>/dev/null || true").out
    counts = dict(line.split(None, 1) for line in text.splitlines() if len(line.split()) == 2)
    assert counts or lab.transport != "rdma-rs", f"{OBJECTS} has no counts"
    return counts


def wait_idle(lab, before):
    """What has not come back to where it was, after waiting for it."""
    for _ in range(100):
        now = objects(lab)
        # Pools may keep what they have, and what an earlier client left may go meanwhile.
        left = {k: (v, now.get(k)) for k, v in before.items() if k not in now or int(now[k]) > int(v)}
        left = {k: v for k, v in left.items() if "pool" not in k}
        if not left:
            return {}
        time.sleep(0.2)
    return left


@contextlib.contextmanager
def realm(lab):
    """Kerberos, and a ticket for the suite."""
    try:
        lab.client.run("/run/guest/realm up", timeout=600 * lab.kernel.slowness, env=lab.environment())
        yield
    finally:
        lab.client.run("/run/guest/realm down", timeout=600 * lab.kernel.slowness, env=lab.environment())


def check_profile(transport):
    """Of this repository's transport no profile may say that it sends or writes what nothing explains."""
    with open(f"{HERE}/profiles/{PROFILES[transport]}.toml", "rb") as f:
        entries = tomllib.load(f).get("differs", [])
    admitted = [i for entry in entries if entry.get("unexplained") for i in entry["ids"]]
    assert transport != "rdma-rs" or not admitted, f"unexplained bytes are excused in {admitted}"


def run(lab, name, arguments="", limit=1500):
    """Run the suite on the client; (status, TAP, report). Output and evidence stay in the lab's directory."""
    where = share(lab)
    before = objects(lab)
    environment = {**lab.environment(), "FILESYSTEM": lab.filesystem}
    command = (f"{where}/rpcrdma-conform --server {environment['SERVER_ADDR']} --port {environment['NFS_PORT']} "
               f"--export {environment['EXPORT_DIR']} {arguments}")
    if "--sweep" not in arguments:
        command += f" --json /tmp/{name}.json"
    if "--fuzz" not in arguments:
        check_profile(lab.transport)
        command += f" --profile {where}/{PROFILES[lab.transport]}.toml"
    if "--fuzz" not in arguments and "--sweep" not in arguments:
        command += f" --hooks {where}/hooks --corpus /tmp/{name}.seeds"
    with open(f"{lab.directory}/{name}.tap", "wb") as tap:

        def on_output(data):
            tap.write(data)
            tap.flush()

        result = lab.client.run(command, check=False, timeout=limit, env=environment, on_output=on_output)
    seeds = lab.client.run(f"cd /tmp/{name}.seeds && tar -cz . | base64 -w 0", check=False).out
    if seeds:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(seeds))) as archive:
            archive.extractall(f"{lab.directory}/seeds", filter="data")
    text = lab.client.run(f"cat /tmp/{name}.json", check=False).out
    report = json.loads(text) if text else None
    if report:
        with open(f"{lab.directory}/{name}.json", "w", encoding="utf-8") as f:
            f.write(text)
        if "cases" in report:
            write_table(f"{lab.directory}/{name}.md", report)
    left = wait_idle(lab, before)
    assert not left, f"objects that did not go away (before, now): {left}"
    return result, report


def lacking(lab, arguments):
    """Cases that cannot be run here, by name, so that a hook that is lost shows; None: those with Kerberos."""
    # The export gives no layouts.
    cases = {"P21", "P21b"}
    if lab.kernel.name == "stock":
        cases.add("R37")
    if not lab.two:
        cases |= {"M136", "M136b", "M146b"}
    if "--idle" not in arguments:
        cases.add("M148")
    if "--gss" not in arguments:
        cases.add(None)
    return cases


def check_skipped(lab, report, arguments):
    """What was chosen and not run is what cannot be run here."""
    skipped = {None if case["reason"] == "needs --gss" else case["id"] for case in report["skipped"]
               if not case["reason"].startswith("profile: ")}
    chosen = skipped | {case["id"] for case in report["cases"]}
    expected = lacking(lab, arguments) & chosen
    assert skipped == expected, f"skipped: {report['skipped']}, expected here: {sorted(map(str, expected))}"


def write_table(path, report):
    with open(path, "w", encoding="utf-8") as f:
        f.write("| Case | RFC | Sent | Accepted | Seen | |\n|---|---|---|---|---|---|\n")
        for case in report["cases"]:
            verdict = "" if case["passed"] else case["reason"].replace("|", "/").replace("\n", " ")
            accepted = case["accepted"].replace("|", ", ")
            f.write(f"| {case['id']} | {case['section']} | {case['sends']} | {accepted} | {case['seen']} | {verdict} |\n")


def check(lab, name, arguments="", limit=1500):
    """Run it; unlisted divergences are a failure."""
    result, report = run(lab, name, arguments, limit)
    bad = [line for line in result.out.splitlines() if line.startswith("not ok") and "# TODO" not in line]
    if bad or not result:
        details = [line for line in result.out.splitlines() if not line.startswith("ok")]
        raise AssertionError(f"{len(bad)} cases differ from the RFCs, status {result.status}\n" + "\n".join(details)
                             + "\n" + result.err)
    if "cases" in report:
        check_skipped(lab, report, arguments)
    # Such a case has shown nothing, and these servers do grant them.
    empty = [line for line in result.out.splitlines() if "grants no backchannel" in line]
    assert not empty, "no callbacks came:\n" + "\n".join(empty)
    return report
