# SPDX-License-Identifier: GPL-2.0
"""Finding trouble in a kernel log, except what the allow-list names."""

import os
import re

ALLOW = os.path.join(os.path.dirname(__file__), "..", "klog-allow")

TIMESTAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])? ?")

# What begins a report: a name for it, and the expression.
TRIGGERS = [
    ("KASAN", r"\bBUG: KASAN\b"),
    ("KMEMLEAK", r"kmemleak: \d+ new suspected memory leaks"),
    ("SLAB", r"\bBUG \S+ .*(Tainted|Not tainted).*:|\bBUG .*: (Poison|Redzone|Object|Freelist|Objects remaining)"),
    ("WARNING", r"^WARNING: (?!CPU.*(possible|suspicious|inconsistent)).* at |^------------\[ cut here \]-+$"),
    ("LOCKDEP", r"WARNING: (possible|suspicious|inconsistent|bad unlock|held lock|lock held|nested lock|Nested lock|HARDIRQ|SOFTIRQ)"
                r"|possible (circular|recursive|irq lock)|suspicious RCU usage|INFO: trying to register non-static key"
                r"|BUG: (key|MAX_LOCKDEP|Invalid wait context)|\[ BUG: "),
    ("UBSAN", r"^UBSAN:"),
    ("DMA_API", r"\bDMA-API: (?!preallocated|debugging )"),
    ("REFCOUNT", r"refcount_t: "),
    ("ODEBUG", r"^ODEBUG: "),
    ("HUNG", r"INFO: task .* blocked for more than|blocked in I/O wait for more than|soft lockup|hard LOCKUP"),
    ("RCU", r"rcu.*(detected stalls|self-detected stall|detected expedited stalls)"),
    ("OOPS", r"\bOops\b|general protection fault|unable to handle|kernel NULL pointer|stack segment|"
             r"double fault|invalid opcode|divide error|Kernel panic|^RIP: 0010.*\bexc_"),
    ("PANIC", r"rust_kernel: panicked|^.*: panicked at "),
    ("OOM", r"invoked oom-killer|Out of memory"),
    ("BUG", r"\bBUG: |kernel BUG at|^BUG\b"),
    ("ALLOC", r"page allocation failure"),
]
TRIGGERS = [(kind, re.compile(expression)) for kind, expression in TRIGGERS]

END = re.compile(r"---\[ end trace|^={20,}$|^</TASK>")
FUNCTION = re.compile(r"\b([A-Za-z_][\w.]*)\+0x[0-9a-f]+")
REPORT_LINES = 60


class Report:
    def __init__(self, kind, lines):
        self.kind = kind
        self.lines = lines

    def functions(self):
        return {name.split(".")[0] for line in self.lines for name in FUNCTION.findall(line)}

    def __str__(self):
        return "\n".join(self.lines)


def load_allow(transport, path=ALLOW):
    """The allow-list for tests of a transport: set of (kind, function)."""
    entries = set()
    with open(path, encoding="ascii") as f:
        for line in f:
            words = line.split("#")[0].split()
            if len(words) not in (0, 2, 3):
                raise ValueError(f"{path}: a line is KIND FUNCTION [TRANSPORT], not {line!r}")
            if words and words[2:] in ([], [transport]):
                entries.add(tuple(words[:2]))
    return entries


def reports(text):
    """All reports in a piece of kernel log."""
    lines = [TIMESTAMP.sub("", line.rstrip("\r")) for line in text.split("\n")]
    found = []
    skip_to = 0
    for number, line in enumerate(lines):
        if number < skip_to:
            continue
        for kind, expression in TRIGGERS:
            if expression.search(line):
                end = min(len(lines), number + REPORT_LINES)
                for last in range(number + 1, end):
                    if END.search(lines[last]) and last > number + 2:
                        end = last + 1
                        break
                body = lines[number:end]
                if line.startswith("------------[ cut here") and len(body) > 1:
                    kind = next((k for k, e in TRIGGERS if k != "WARNING" and e.search("\n".join(body[1:3]))), kind)
                found.append(Report(kind, body))
                skip_to = end
                break
    return found


def trouble(text, allow):
    """The reports that the allow-list does not name."""
    return [r for r in reports(text) if not any((r.kind, function) in allow for function in r.functions())]
