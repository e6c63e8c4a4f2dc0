#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Break rust/proto in many small ways and see that the host tests notice.

Each mutant is one changed expression in a copy of the tree. A mutant that the
tests do not notice is printed and must be in ACCEPTED, with the reason why no
test can tell it from the original. Takes about half an hour on two cores; not
part of `make test`.

usage: mutate.py [--list] [--every N] [SUBSTRING ...]

--every takes each N-th mutant; with words, only mutants whose name contains
one of them are taken.
"""

import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# (pattern, replacement); the first group that matters is replaced where it stands.
RULES = [
    (r" <= ", " < "),
    (r" >= ", " > "),
    (r" < ", " <= "),
    (r" > ", " >= "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r"saturating_add", "saturating_sub"),
    (r"saturating_sub", "saturating_add"),
    (r"checked_sub", "checked_add"),
    (r"\.min\(", ".max("),
    (r"\.max\(", ".min("),
    (r"div_ceil", "div_euclid"),
    (r"div_euclid", "div_ceil"),
    (r"& 3\b", "& 1"),
    (r"& 1023\b", "& 511"),
    (r">> 10\b", ">> 9"),
    (r"(?<=\bif )(?!let )([^{]+)(?= \{$)", r"false && (\1)"),
    (r"(?<=\bif )(?!let )([^{]+)(?= \{$)", r"true || (\1)"),
    (r"(?<=[(\[, =])0(?=[;,)\]])", "1"),
    (r"(?<=[(\[, =])1(?=[;,)\]])", "2"),
    (r"(?<== )(\d+)(?=;$)", lambda m: str(int(m.group(1)) + 1)),
    (r"!self\.several", "self.several"),
    (r"!known", "known"),
    (r"\bfalse\b", "true"),
    (r"\btrue\b", "false"),
    (r"Answer::Silent,$", "Answer::ErrChunk(fixed),"),
    (r"\.filter\((\|chunk\|) chunk\.len != 0\)", r".filter(\1 chunk.len > 1)"),
    (r"rotate_right", "rotate_left"),
    (r"to_be_bytes", "to_le_bytes"),
    (r"from_be_bytes", "from_le_bytes"),
    (r"^(\s+)(self|chunk|demand|list|out|old|\*\w+|left|end|reduced|at)\b([^{]*[^=!<>]=[^=>][^{]*);$",
     r"\1let _ = || { \2\3; };"),
    (r"^(\s+)(census\.admit|chunk\.admit)(.*)\?;$", r"\1let _ = \2\3;"),
]

# Tests that take more than a second.
SLOW = ["exhaustive", "property", "memory"]

# Mutants that change nothing a caller can see.
ACCEPTED = {
    "encode.rs: let mut bytes = [0; LEN]; => let mut bytes = [1; LEN];":
        "each byte is overwritten",
    "read_chunks.rs: let mut end: u64 = 0; => let mut end: u64 = 1;":
        "the first position is 40 at least",
    "payloads.rs: if off & 3 != 0 || new.end() > u64::from(u32::MAX) {"
    " => if off & 3 != 0 || new.end() >= u64::from(u32::MAX) {":
        "the end is a multiple of four",
    "payloads.rs: for payload in self.table.iter_mut().filter(|payload| payload.len > 0) {"
    " => for payload in self.table.iter_mut().filter(|payload| payload.len >= 0) {":
        "an empty payload has no place",
}


def mutants():
    """Yield (name, file, text) for each mutant."""
    files = [ROOT / "rust/proto.rs", *sorted((ROOT / "rust/proto").glob("*.rs"))]
    for path in files:
        lines = path.read_text().split("\n")
        for number, line in enumerate(lines):
            code = line.split("//")[0].rstrip()
            if not code or re.match(r"\s*(#|use |mod |pub\(crate\) use )", code):
                continue
            for pattern, replacement in RULES:
                for match in re.finditer(pattern, code):
                    changed = code[:match.start()] + match.expand(
                        replacement if isinstance(replacement, str) else replacement(match)
                    ) + code[match.end():]
                    if changed == code:
                        continue
                    text = "\n".join([*lines[:number], changed, *lines[number + 1:]])
                    name = f"{path.name}: {code.strip()} => {changed.strip()}"
                    yield name, path.relative_to(ROOT), text


def bounded(seconds):
    """Keep a mutant that never ends from filling the memory, and end it."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def test(tree, seconds, *args, show=False):
    """Run the tests for some time; True if they pass, None if it does not compile."""
    env = dict(os.environ, CARGO_TARGET_DIR=str(tree / "target"), RUST_BACKTRACE="0",
               CARGO_PROFILE_TEST_OPT_LEVEL="1", CARGO_PROFILE_TEST_DEBUG="0")
    command = ["cargo", "test", "-q", "--offline"]
    built = subprocess.run([*command, "--no-run"], cwd=tree / "selftests/host", env=env,
                           capture_output=True)
    if built.returncode != 0:
        if show:
            print(built.stderr.decode())
        return None
    ran = subprocess.run([*command, "--", *args], cwd=tree / "selftests/host", env=env,
                         capture_output=True, preexec_fn=lambda: bounded(seconds))
    if show and ran.returncode != 0:
        print(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
    return ran.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    todo = [m for m in mutants() if not args.words or any(word in m[0] for word in args.words)]
    todo = todo[::args.every]
    if args.list:
        print("\n".join(name for name, _, _ in todo))
        return 0

    survived = broken = accepted = 0
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name)
        shutil.copytree(ROOT / "rust", tree / "rust")
        shutil.copytree(HERE, tree / "selftests/host", ignore=shutil.ignore_patterns("target"))
        if not test(tree, 300, show=True):
            print("the tests fail as they are")
            return 1
        for number, (mutant, path, text) in enumerate(todo):
            if sys.stderr.isatty():
                print(f"{number}/{len(todo)}", end="\r", file=sys.stderr)
            original = (tree / path).read_text()
            (tree / path).write_text(text)
            # The fast tests notice most.
            passed = test(tree, 5, *(arg for slow in SLOW for arg in ("--skip", slow)))
            if passed:
                passed = test(tree, 60)
            (tree / path).write_text(original)
            if passed is None:
                broken += 1
            elif passed and mutant in ACCEPTED:
                accepted += 1
            elif passed:
                survived += 1
                print(f"[{number}/{len(todo)}] not noticed: {mutant}", flush=True)
    print(f"{len(todo)} mutants, {broken} do not compile, {survived} not noticed,"
          f" {accepted} accepted")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
