# SPDX-License-Identifier: GPL-2.0
"""Does rpcrdma-conform notice? Each case has to fail against a peer that misbehaves."""
# Tier: full
# Sources: selftests/conform
# Machines: 1

import fnmatch
import json
import os
import re
import sys
import time
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conform"))
import vm  # noqa: E402

PORT = 20055
OUTCOMES = re.compile(r" ((?:OK|RPCERR|DROP|EV|EC|CLOSE|REFUSE|BROKEN|\|)+) ")
# Peers that do nothing wrong, and what they are asked: None is all. It has to pass.
RIGHT = {
    "proxy": None,
    "proxy-invalidate": "C3 C3.two C4 C05.* M129 M130 R7 R10 P22",
    # It announces nothing: what is longer than 1,024 bytes cannot be sent to it.
    "proxy-plain": "C04.bytes C14 M096 M115 M153a M153b M166 P03.* P10 P24.krb5.inline P25.krb5[ip].inline",
}
# What hooks that do nothing leave without a verdict.
HOOKS = "M142 M142b M146 M146b"
ANSWERED = "B5 B6 B8 M164 M165 M166 M167 M169b M170 M171 M171b"
CALLED = "B5 U12 U12b"
WINDOWS = "B7a B7b B7c"
# (mutant, cases, what one of is in the reason of each). A number behind a mutant is its N.
NARROW = [
    # One wrong answer to everything.
    ("deaf", "M043 M046 P01 M133 M139 M140 M141 M155b", "HANG"),
    ("versions", "M037 M043 M046 P01", "EV"),
    ("garbage", "P01 M043", "RPCERR"),
    ("stale", "M037 M043 M046 M090", "bytes that nothing explains"),
    ("other-xid", "M037 M043", "in answer to"),
    ("no-credit", "M037 M043", "grant of 0"),
    ("refuse", "M174 C5", "connect"),
    ("spill", "M100 M101 R13", "was written"),
    ("mute", "M120", "DROP"),
    # They begin with a call that says what is granted.
    ("fading", "M136 M136b M142b M146 M146b R37", "HANG"),
    # A right peer but for one thing: its header.
    ("wrong-xid", "M041a K1 M039 R1 P16.* R13", "in answer to"),
    ("greedy:400", "M157 R2", "BROKEN|CLOSE"),
    ("generous:400", "M157 R2 C51 C52", "BROKEN|CLOSE"),
    ("greedy:1000000", "M039 M040 M040b R1", "grant"),
    ("odd-versions", "M025 M026 M026b M027 M028 M030", "names versions"),
    ("own-version", "M025 M026 M026b M027 M028 M030", "with version"),
    ("closes", None, "CLOSE"),
    ("closes", "M062d", "bytes: CLOSE"),
    ("twice", "M041a K1 M039", "XID|behind the probe"),
    ("twice", "M148", "nobody asked for"),
    ("twice", "M151", "answered twice"),
    ("twice", "M149 M150 R3", "that no call had|answered twice"),
    ("lossy", "H1 M149 M150 M157 M158 R2 R3", "HANG"),
    ("lossy:2", "M151 M160", "HANG|answers to two"),
    ("lossy:5", "C14 C37 M068 U13 C51 C52", "HANG"),
    # Behind the calls that a session and a callback take.
    ("lossy:24", "B2 B3", "at once, as granted"),
    ("leaky", "C15 C50 H2.* H3.*", "BROKEN|HANG|CLOSE"),
    # ... its chunks
    ("unechoed", "M101 M102 R13 R28", "in answer to|not echoed"),
    ("full", "M101 M102 R6 M103 U8 R44.*small R44.*both R44.*readlink P09b U3 M187.18[34]*w",
     "Write chunk|the chunk was used|nothing explains|in place 2|in the Reply chunk"),
    ("unused", "R24 U6 R8 R13 R15 R25 U5 U7b U9 U1.read U1.read1 U1.readlink* C20 P17* R44.krb5.readlink",
     "inline|length, in a chunk|in another place|, false)"),
    ("backward", "R13 R14 R28 C08.fit C08.page M098 M098b P08 P16.v3s2* P18.v3s9* P25.krb5i.v3s3", "handle or offset"),
    ("pad", "R15", "bytes after the item"),
    ("pad", "C20 R8 R25 U5 U6 U9 U1.read1 U1.read3 P04.v* P24.rv* U10.w*", "was written"),
    ("beyond", "R7 R13 R16 M101 M102 M108 M110 M111 C08.* C09.fit* C09.zero P16.* P18.* P25 P25.krb5*.v3s* P22", "was written"),
    ("squeeze", "P19.short M097 M100 M100b M100c M106 M106b M107 M107b R36 C09.2 C09.3 C09.4 C09.5", "bytes in|CLOSE|BROKEN"),
    ("hasty", "C25 R7 R13 H1 P04.* P18.* P25", "not those of the file|others|expected|XID|left|nothing explains"),
    ("boundless", "M064 M065", ", accepted: EC"),
    ("late-read", "R11", "BROKEN|CLOSE|broke|closed"),
    # nfsd does not miss it at the end of a call.
    ("no-pad", "C21.[123567] C03.* P12.* P23.[123] U1.symlink U1.symlink4", "RPCERR|NFS status|the file has"),
    ("stale-read", "M086a M086c M086e M086g", "not those of the chunk|bytes stored of a chunk"),
    ("stale-read", "R34", "Success"),
    ("any-place", "M055", "RPCERR"),
    ("any-place", "M056a M085 R43.verifier", "accepted:|the file has"),
    ("any-place", "M053* M054* M081 U11", "accepted:|the file has|NFS status|RPCERR"),
    ("any-place", "R40", "the directory was made"),
    ("any-place", "R43", "the token was taken"),
    ("any-place", "R44.krb5i.*write", "the file has"),
    # ... what it takes for a list
    ("nonzero", "M043b M046b M047b H3.list", "accepted: EC|, None"),
    ("unended", "M016b M017b M019b M02[0-2]b", "accepted: EC|in answer to|not sent"),
    ("fickle", "M023", "cut at 76: EV"),
    ("inner-xid", "M042 M082", "with the XID of the RPC"),
    # ... keys and thresholds
    ("loose-key", "C3 C3.two", "invalidated, the call's"),
    ("unasked-key", "C3", "not both sides"),
    ("unasked-key", "C4", "BROKEN"),
    ("long-send", "C1 C5 C5b M114 C01.a C01.b R5 P30.over M174 M175 M175b M176* M177 C2 M179* M180*", "the threshold is"),
    # ... data
    ("spoil-write", "P10 P11.* P12.* P13 P13b P23.* P24.w* P24.krb5.inline P26 C16.* C21.* C37 C03.* C04.exact C04.bytes"
     " R10 R11 R12* R35 U10.r* U10.z* M023 M051 M058 M058b M063 M063b M066 M079 M112 P30.none P30.1024",
     "the file has|other data|or others|a part was stored"),
    ("spoil-write", "P20 P20.xattr U11b", "other entries|another value|the file has|RPCERR|NFS status"),
    ("spoil-write", "P14 P14.v4 P15 P15.v4 U1.symlink U1.symlink4 P24.krb5.symlink", "another target|or others"),
    ("spoil-write", "P26.krb5*.v* P26y.* P25.krb5i.symlink P25.krb5p.symlink", "RPCERR|the file has"),
    ("spoil-read", "C1 C01.* C05.alone* C05.first* C05.middle* C05.last* C08.* C14 C20 C25 C5 H1 M089 M098 M098b M102 M110 M111 M125"
     " M178 P03.1 P03.3 P03.1024 P04.* P05.short P07.* P16.* P17* P22 P24.r* P24.krb5.inline P24.krb5.edge P25 P30.*big"
     " R7 R8 R13 R14 R15 R17 R24 R26b R27 U1.read* U6 U7 U10.w*",
     "not those of the file|others|another target|items \\(length|other data"),
    ("stores", "M066 C04.bytes", "stored"),
    ("cut", "P18.* P09 P09b P21 P21b R17 P25 P22 C05.reply* M104 M041a K1", "expected"),
    ("cut", "P25.krb5[ip].v* P25.krb5[ip].readdir R44.krb5[ip].v?large P24.krb5.readdir P27.krb5*.null", "expected|left"),
    ("longer", "P19 P19.short P19.v4 P19.*xattr* M041a K1 P01 P18.* P16.* P25 P03.* R6 M183* M184* M185[bcd] M187.18[34]* K2", "nothing explains"),
    # ... calls that come again
    ("again-fails", "M161 M161b", "NFS status 5"),
    ("again-differs", "C32 M161c", "reply differs"),
    ("replay", "P27.again", "OK, accepted"),
    # ... other connections
    ("weary:3", "M145b", "Accepted(5"),
    ("weary:5", "C36 C57 M144", "Accepted(5"),
    ("weary:6", "M143 M145", "Accepted(5"),
    ("weary:11", "M143b", "Accepted(5"),
    ("crowded", "C56 M147", "connection 9"),
    ("scarred", "C36b C39 C39b M137b M133 M134 M135 M137 M138 M138b M142", "not those of the file"),
    ("open", "M131r M131a M131w M155c", "let key|key 0x|in answer to"),
    ("careless", "M131r M131a", "let key"),
    ("datagram", "M182", "OK, accepted"),
    ("roomy", "M153a M153b", "EC"),
    # ... callbacks
    ("callback-chunks", CALLED, "in answer to|header of a callback"),
    ("callback-long", CALLED, "a callback of|the threshold is"),
    ("callback-xid", CALLED, "XID"),
    ("callback-lost", CALLED, "no callback comes"),
    ("callback-unasked", "B9 B9b", "a call"),
    ("callback-flood", WINDOWS, "callbacks at once"),
    ("callback-stalls", "B7a", "no callback comes"),
    ("callback-single", "B4 B7b B7c", "at a time"),
    ("callback-late", "B2 B3 B5 B6 M162 M165 M169b U12 U12b", "late: "),
    ("callback-echo", "B2 B3 B4 B5 B6 C49 M162 M165 M169b U12 U12b", "unexplained: XID"),
    ("callback-blocks", f"{ANSWERED} {WINDOWS} B2 B3 B4 C49 M162 M172 U12 U12b", "DROP|HANG"),
    ("callback-closes", f"{ANSWERED} B3 B10 U12 U12b", "CLOSE"),
    ("callback-confused", "M162", "DROP"),
]
# What is left then fails against one of these.
BROAD = ["chunk", "yes", "close", "mute", "roomy", "open", "datagram", "deaf", "fragile"]
# These wait for seconds, for calls that a server has not answered yet.
WAITING = ["M142", "M142b"]
# Not the peer's fault, but that of hooks which do nothing, or of what comes before a case's matter.
VOID = ["nothing was under way", "did not wait", "the connection is still there"]
# Why cases come to no verdict that have one with a right peer.
IDLE = ("(late: ", "(the server has one callback", "(the server has fewer callbacks")
# A machine under load takes longer than these units for a right answer, but for scripted peers.
PATIENCE = {**dict.fromkeys((*RIGHT, "callback-late"), 5000), **dict.fromkeys(("mute", "deaf", "lossy", "fading", "scarred"), 300)}
# What --fuzz has to find, and in which words.
FUZZ = [
    ("pad", "ranges was written"),
    ("beyond", "ranges was written"),
    ("spoil-read", "not those of the file"),
    ("spoil-write", "the file has other data"),
    ("mute", "has to be answered"),
    ("chunk", "EC, accepted: EV"),
]
FUZZED = 3000
# Calls that get no answer, in a profile that says that this is known.
HUNG = ("lossy:5", "C37 C51", "HANG")
# What a peer answers to cases that the profile of this repository's transport narrows.
NARROWED = ("chunk", "EC, accepted: OK")


def start(lab, where, mutant, arguments):
    """A shell script that runs the suite against a mutant; what it says is in /tmp/mutant.tap."""
    environment = lab.environment()
    address = environment["SERVER_ADDR"]
    return f"""
        {where}/rpcrdma-conform --fake {mutant} --server {address} --port {PORT} >/tmp/fake.log 2>&1 &
        fake=$!
        for i in $(seq 100); do grep -q listening /tmp/fake.log && break; sleep 0.1; done
        timeout 1500 {where}/rpcrdma-conform --server {address} --port {PORT} --export {environment['EXPORT_DIR']} \
            {arguments} >/tmp/mutant.tap 2>&1
        status=$?
        kill $fake; wait $fake 2>/dev/null
    """


def said(lab, where, mutant, arguments):
    """(exit status, output) of the suite against a mutant."""
    script = start(lab, where, mutant, arguments) + "cat /tmp/mutant.tap; exit $status"
    result = lab.server.run(script, check=False, timeout=1600)
    with open(f"{lab.directory}/said-{mutant}.tap", "a", encoding="utf-8") as f:
        f.write(result.out)
    print(f"# {mutant} {arguments}: status {result.status}", file=sys.stderr, flush=True)
    return result.status, result.out


def fuzz(lab, where, mutants):
    """What is wrong with --fuzz: it finds no fault where there is none, and each that is there."""
    problems = []
    for mutant, words in [("proxy", None), *FUZZ]:
        if mutants and mutant not in mutants:
            continue
        patience = PATIENCE.get(mutant, 1000)
        status, out = said(lab, where, mutant, f"--fuzz {FUZZED} --jobs 1 --patience {patience}")
        if status != (words is not None) or words and words not in out:
            problems.append(f"--fuzz against {mutant}: {words or 'nothing'} is not what it finds: {out}")
    # No server is there.
    address, export = lab.environment()["SERVER_ADDR"], lab.environment()["EXPORT_DIR"]
    result = lab.server.run(f"{where}/rpcrdma-conform --server {address} --port {PORT} --export {export} --fuzz 10",
                            check=False)
    if result.status != 2 or "ok" in result.out.split() or len(result.err.splitlines()) != 1:
        problems.append(f"--fuzz without a server: status {result.status}: {result.out}{result.err}")
    return problems


def profiles(lab, where, mutants):
    """What is wrong with profiles: one that names silence, and one that narrows cases."""
    problems = []
    mutant, ids, word = HUNG
    if not mutants or mutant in mutants:
        entry = f"[[differs]]\nids = {json.dumps(ids.split())}\nseen = [{json.dumps(word)}, \"answer\"]\nreason = \"known\"\n"
        lab.server.run(f"cat >/tmp/hung.toml <<'EOF'\n{entry}EOF")
        _, out = said(lab, where, mutant, f"--patience 300 --profile /tmp/hung.toml --only {ids.replace(' ', ',')}")
        if out.count("no profile excuses that") != len(ids.split()) or "[[differs]]" in out or "# TODO" in out:
            problems.append(f"a profile excuses {word}: {out}")
    mutant, words = NARROWED
    if not mutants or mutant in mutants:
        with open(f"{vm.HERE}/profiles/svcrdma_rs.toml", "rb") as f:
            entries = [entry for entry in tomllib.load(f)["narrow"] if entry["accepts"] == ["OK"]]
        # C14 begins with a call that this peer refuses, too.
        narrowed = [i for entry in entries for i in entry["ids"] if i != "C14"]
        profile = f"--profile {where}/svcrdma_rs.toml"
        _, out = said(lab, where, mutant, f"{profile} --only {','.join(narrowed)}")
        if out.count(words) != len(narrowed):
            problems.append(f"narrowed to OK, but not each fails with {words}: {out}")
    return problems


def peer(lab, where, mutant, ids):
    """Run cases against a mutant; {id: reason} of those that failed."""
    hooks = " ".join(os.listdir(f"{vm.HERE}/hooks"))
    name = mutant.split(":", maxsplit=1)[0]
    arguments = (f"--patience {PATIENCE.get(name, 1000)} {vm.GSS} --hooks /tmp/hooks --idle 1 --json /tmp/mutant.json "
                 f"--only {','.join(ids)}")
    # What a peer does wrong shows without any hook.
    script = f"""
        mkdir -p /tmp/hooks && for hook in {hooks}; do ln -sf /bin/true /tmp/hooks/$hook; done
        rm -f /tmp/mutant.json
        {start(lab, where, mutant, arguments)}
        test -s /tmp/mutant.json && cat /tmp/mutant.json || cat /tmp/mutant.tap /tmp/fake.log >&2
    """
    begin = time.monotonic()
    result = lab.server.run(script, check=False, timeout=1600)
    assert result.out.strip(), f"{mutant}: {result.err}"
    report = json.loads(result.out)
    with open(f"{lab.directory}/mutant-{mutant}.json", "w", encoding="utf-8") as f:
        f.write(result.out)
    missing = set(ids) - {c["id"] for c in report["cases"] + report["skipped"]}
    assert not missing, f"{mutant}: not run: {missing}"
    failed = {c["id"]: c["reason"] for c in report["cases"] if not c["passed"]}
    failed |= {c["id"]: c["reason"] for c in report["skipped"] if c["reason"].startswith(IDLE)}
    # What the peer answers as it should has to work: a case must fail for what it looks at.
    spoilt = {i: reason for i, reason in failed.items()
              if mutant not in ("refuse", "fragile") and ("a new connection after" in reason or "control connection" in reason)}
    assert not spoilt, f"{mutant}: {spoilt}"
    print(f"# {mutant}: {len(failed)} of {len(ids)} cases fail, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return failed


def verdict(reason):
    """Whether it is about what the case looks at."""
    return not reason.startswith("setup: ") and not any(void in reason for void in VOID)


def expand(patterns, known):
    """The ids that are meant, in the order of the cases."""
    wanted = patterns.replace(",", " ").split()
    for pattern in wanted:
        assert fnmatch.filter(known, pattern), f"{pattern} is no case"
    return [name for name in known if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)]


def test(lab):
    with vm.realm(lab):
        misbehave(lab)


def misbehave(lab):
    where = vm.share(lab)
    listed = lab.server.run(f"{where}/rpcrdma-conform --list").out
    accepted = {line.split()[0]: OUTCOMES.search(line).group(1) for line in listed.splitlines()}
    # Only these, if wanted.
    chosen = expand(os.environ.get("CONFORM_ONLY", "*"), accepted)
    mutants = os.environ.get("CONFORM_MUTANT", "").split()

    def choose(mutant, patterns):
        if mutants and mutant not in mutants:
            return []
        # None: all that have to be answered with ERR_CHUNK.
        ids = expand(patterns, accepted) if patterns else [i for i, accept in accepted.items() if accept == "EC"]
        return [i for i in ids if i in chosen]

    # These take no ids. CONFORM_ONLY="" has nothing but them.
    others = not os.environ.get("CONFORM_ONLY")
    problems = fuzz(lab, where, mutants) + profiles(lab, where, mutants) if others else []
    for mutant, patterns in RIGHT.items():
        ids = choose(mutant, patterns or "*")
        ids = [i for i in ids if i not in HOOKS.split()]
        failed = peer(lab, where, mutant, ids) if ids else {}
        problems += [f"{mutant}: what is right fails: {i}: {reason}" for i, reason in failed.items()]
    survivors = set(chosen)
    seen = {}
    for mutant in dict.fromkeys(mutant for mutant, _, _ in NARROW):
        lists = [(choose(mutant, patterns), words.split("|")) for m, patterns, words in NARROW if m == mutant]
        ids = list(dict.fromkeys(i for some, _ in lists for i in some))
        failed = peer(lab, where, mutant, ids) if ids else {}
        for some, words in lists:
            for i in some:
                reason = failed.get(i, "it passes")
                if verdict(reason) and any(word.replace("\\", "") in reason for word in words):
                    seen.setdefault(i, []).append(mutant)
                else:
                    problems.append(f"{mutant}: {' or '.join(words)} is not why {i} fails: {reason}")
    survivors -= set(seen)
    for mutant in BROAD:
        tried = sorted(survivors - (set(WAITING) if mutant in ("chunk", "yes", "close") else set()))
        if not tried or mutants and mutant not in mutants:
            continue
        failed = peer(lab, where, mutant, tried)
        survivors -= {i for i, reason in failed.items() if verdict(reason)}
    if survivors and not mutants:
        problems.append(f"no broken peer makes these fail at what they look at: {' '.join(sorted(survivors))}")
    assert not problems, "\n".join(problems)
