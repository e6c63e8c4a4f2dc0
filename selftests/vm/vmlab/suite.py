# SPDX-License-Identifier: GPL-2.0
"""The tests that machines run, and running one of them.

Two kinds: kselftests (selftests/svcrdma/*.sh, run on the client by the kernel's
own runner), and tests that need the harness itself, such as taking a machine's
power away (selftests/vm/tests/*.py with a function test(lab) that raises on
failure, or Skip). Both declare themselves in comment lines of their head; see
selftests/svcrdma/lib.sh. What takes very long is in so many "Parts: N", each a
test of its own with a function test(lab, part), so that a run can be taken up.
"""

import hashlib
import importlib.util
import os
import re
import time
import traceback

from . import channel, images

SELFTESTS = os.path.join(images.TOP, "selftests")
TIERS = ["quick", "ci", "full"]
DECLARATION = re.compile(r"^# (Tier|Machines|Transport|Driver|Limit|Sources|Without|Parts): *(\S+)")
DEFAULT_LIMIT = 300


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


class Outcome:
    """PASS, FAIL or SKIP, why, and what the test printed."""

    def __init__(self, result, reason="", text="", broken=False):
        self.result = result
        self.reason = reason
        self.text = text
        self.broken = broken  # the machines cannot be used any more


class Test:
    def __init__(self, path, part=None):
        self.path = path
        self.part = part
        self.family = os.path.splitext(os.path.basename(path))[0]
        self.name = self.family if part is None else f"{self.family}.{part}"
        with open(path, encoding="utf-8") as f:
            self.content = f.read()
        declared = {}
        for line in self.content.splitlines():
            if match := DECLARATION.match(line):
                declared[match[1]] = match[2]
        self.tier = declared.get("Tier", "ci")
        if self.tier not in TIERS:
            raise ValueError(f"{path}: no such tier: {self.tier}")
        self.machines = int(declared["Machines"]) if "Machines" in declared else None
        self.transport = declared.get("Transport")
        self.driver = declared.get("Driver")
        self.limit = int(declared.get("Limit", DEFAULT_LIMIT))
        self.sources = declared.get("Sources")  # a folder with more that the test is made of
        self.parts = int(declared.get("Parts", 0))
        self.without = declared.get("Without")  # how the paths of those sources begin that have no part in it

    def digest(self):
        """A short hash of what the test is made of."""
        total = hashlib.sha256(self.content.encode())
        if self.path.endswith(".sh"):
            with open(f"{SELFTESTS}/svcrdma/lib.sh", "rb") as f:
                total.update(f.read())
        if self.sources:
            without = self.without and f"{images.TOP}/{self.without}"
            total.update(images.content_hash([f"{images.TOP}/{self.sources}"], without).encode())
        return total.hexdigest()[:12]

    def why_not(self, lab):
        """Why it does not run in this laboratory, or None."""
        if self.machines and self.machines != (2 if lab.two else 1):
            return f"needs {self.machines} machine{'s' if self.machines > 1 else ''}"
        if self.transport and self.transport != lab.transport:
            return f"is for the transport {self.transport}"
        if self.driver and self.driver != lab.driver:
            return f"is for the RDMA driver {self.driver}"
        return None

    def seconds(self, lab):
        """Its hang detector here (a limit is in units: 1000 a second on a fast machine)."""
        return self.limit * lab.unit / 0.001 * lab.kernel.slowness


class Kselftest(Test):
    def run(self, lab, on_output):
        argv = ["/host/tests/run_kselftest.sh", "-t", f"svcrdma:{os.path.basename(self.path)}"]
        done = lab.client.channel.run(argv, self.seconds(lab), env=lab.environment(), check=False,
                                      on_output=on_output)
        text = done.out + done.err
        found = re.findall(r"^(ok|not ok) \d+ selftests: svcrdma: \S+ *(?:# *(.*))?$", text, re.MULTILINE)
        if len(found) != 1:
            return Outcome("FAIL", "the runner did not report a result", text)
        verdict, directive = found[0]
        if verdict == "ok" and directive.startswith("SKIP"):
            reasons = re.findall(r"# SKIP (.*)", text)
            return Outcome("SKIP", reasons[0].strip() if reasons else "", text)
        return Outcome("PASS" if verdict == "ok" else "FAIL", directive, text)


class HarnessTest(Test):
    def run(self, lab, on_output):
        spec = importlib.util.spec_from_file_location(f"vmtest_{self.name}", self.path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            module.test(lab, *(() if self.part is None else (self.part,)))
        except Skip as skip:
            return Outcome("SKIP", str(skip))
        except (AssertionError, channel.Failed) as error:
            text = "".join(traceback.format_exception(error))
            on_output(text.encode())
            return Outcome("FAIL", str(error).split("\n", 1)[0], text)
        return Outcome("PASS")


def load():
    """All tests, by name."""
    tests = {}
    folder = f"{SELFTESTS}/svcrdma"
    for name in sorted(os.listdir(folder)):
        if name.endswith(".sh") and os.access(f"{folder}/{name}", os.X_OK):
            test = Kselftest(f"{folder}/{name}")
            tests[test.name] = test
    folder = f"{SELFTESTS}/vm/tests"
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".py"):
            whole = HarnessTest(f"{folder}/{name}")
            for test in [HarnessTest(whole.path, part) for part in range(whole.parts)] or [whole]:
                if test.name in tests:
                    raise ValueError(f"two tests are called {test.name}")
                tests[test.name] = test
    return tests


def named(tests, name):
    """The test of that name, or all parts of it."""
    return [t for t in tests.values() if name in (t.name, t.family)]


def of_tier(tests, tier):
    """Those of a tier: each tier has all of the one below."""
    return [t for t in tests.values() if TIERS.index(t.tier) <= TIERS.index(tier)]


def run(test, lab, on_output):
    """Run one test; any report in a kernel log meanwhile makes it fail."""
    reason = test.why_not(lab)
    if reason:
        return Outcome("SKIP", reason), 0.0
    marks = lab.marks()
    begin = time.monotonic()
    try:
        outcome = test.run(lab, on_output)
    except channel.Timeout as error:
        outcome = Outcome("FAIL", str(error).split("\n", 1)[0], broken=True)
    except channel.Closed as error:
        outcome = Outcome("FAIL", str(error).split("\n", 1)[0], broken=True)
    seconds = time.monotonic() - begin
    if outcome.broken:
        time.sleep(1)  # what the kernel still has to say
    trouble = lab.trouble(marks)
    if trouble:
        outcome = Outcome("FAIL", "; ".join(t.split("\n", 1)[0] for t in trouble),
                          outcome.text + "\n" + "\n\n".join(trouble), broken=True)
    elif not all(one.alive() for one in lab.all):
        outcome.broken = True
    return outcome, seconds
