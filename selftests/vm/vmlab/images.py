# SPDX-License-Identifier: GPL-2.0
"""What a machine boots from, made for one run: initramfs, modules image, scratch disk."""

import glob
import hashlib
import os
import shutil
import subprocess

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
GUEST = os.path.join(TOP, "selftests", "vm", "guest")

# Loaded by the initramfs, with what they depend on.
EARLY_MODULES = ["virtio_blk", "erofs", "overlay"]


def output(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def content_hash(places, without=None):
    """A short hash of all source files at and below these places, the same in every checkout.

    Not of those whose path begins with `without`.
    """
    total = hashlib.sha256()
    paths = [path for place in places for path in [place, *glob.glob(f"{place}/**", recursive=True)]]
    for path in sorted(set(paths)):
        # Products of builds and of the interpreter.
        product = path.endswith("_generated.rs") or "/__pycache__/" in path or "/target/" in path
        excepted = without and path.startswith(without)
        if os.path.isfile(path) and not product and not excepted:
            with open(path, "rb") as f:
                total.update(os.path.relpath(path, TOP).encode() + b"\0" + f.read())
    return total.hexdigest()[:12]


class Kernel:
    """A kernel to boot: its release, vmlinuz, modules, extra command line and devices."""

    def __init__(self, name):
        self.name = name
        if name == "stock":
            image = output(f"{TOP}/scripts/kernel-tree", "image")
            modules = output(f"{TOP}/scripts/vm-images", "modules")
            self.release = os.listdir(f"{image}/usr/lib/modules")[0]
            self.vmlinuz = f"{image}/usr/lib/modules/{self.release}/vmlinuz"
            self.cmdline = ""
            self.slowness = 1
            self.devices = []
        elif name == "debug":
            image = output(f"{TOP}/scripts/debug-kernel")
            modules = f"{image}/modules"
            self.release = os.listdir(f"{modules}/lib/modules")[0]
            self.vmlinuz = f"{image}/arch/x86/boot/bzImage"
            self.cmdline = "nokaslr kunit.enable=1 kunit.autorun=1"
            self.slowness = 5
            # For the module's unit tests; virtio's own devices do without.
            self.devices = ["-device", "intel-iommu,intremap=off"]
        else:
            raise ValueError(f"no such kernel: {name} (stock, debug)")
        self.modules = modules

    def module_files(self, names):
        """Paths of modules and of what they need, in loading order."""
        files = []
        for name in names:
            lines = output("modprobe", "-d", self.modules, "-S", self.release, "--show-depends", name)
            for line in lines.splitlines():
                words = line.split()
                if words[0] == "insmod" and words[1] not in files:
                    files.append(words[1])
        return files


def cpio(entries):
    """A newc archive of (name, mode, content)."""
    archive = bytearray()

    def add(name, mode, content, inode):
        path = name.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        archive.extend(b"070701" + b"".join(b"%08X" % f for f in fields) + path)
        archive.extend(b"\0" * (-len(archive) % 4))
        archive.extend(content)
        archive.extend(b"\0" * (-len(archive) % 4))

    for inode, (name, mode, content) in enumerate(entries, 1):
        add(name, mode, content, inode)
    add("TRAILER!!!", 0, b"", 0)
    return bytes(archive)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def make_initramfs(path, kernel, busybox):
    entries = [(d, 0o40755, b"") for d in ("bin", "dev", "proc", "sys", "modules", "guest")]
    entries.append(("bin/busybox", 0o100755, read(busybox)))
    entries.append(("init", 0o100755, read(f"{GUEST}/init")))
    names = []
    for file in kernel.module_files(EARLY_MODULES):
        names.append(os.path.basename(file))
        entries.append((f"modules/{names[-1]}", 0o100644, read(file)))
    entries.append(("modules/list", 0o100644, "".join(f"{n}\n" for n in names).encode()))
    for name in sorted(os.listdir(GUEST)):
        file = f"{GUEST}/{name}"
        if name.endswith(".c"):
            program = f"{path}.{name[:-2]}"
            subprocess.run(["gcc", "-Wall", "-O2", "-static", "-s", "-o", program, file], check=True)
            entries.append((f"guest/{name[:-2]}", 0o100755, read(program)))
            os.unlink(program)
        elif name != "init" and os.path.isfile(file):
            entries.append((f"guest/{name}", 0o100000 | (os.stat(file).st_mode & 0o777), read(file)))
    with open(path, "wb") as f:
        f.write(cpio(entries))


def make_modules(path, kernel, extra=None):
    """The kernel's modules as an image; extra is installed as an update of them."""
    tree = f"{path}.tree"
    if extra:
        updates = f"{tree}/lib/modules/{kernel.release}/updates"
        subprocess.run(["cp", "-a", "--reflink=auto", kernel.modules, tree], check=True)
        os.makedirs(updates, exist_ok=True)
        shutil.copy(extra, updates)
        subprocess.run(["depmod", "-b", tree, kernel.release], check=True)
    source = f"{tree if extra else kernel.modules}/lib/modules"
    subprocess.run(["mkfs.erofs", "--quiet", path, source], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree, ignore_errors=True)


def make_scratch(path, size="8G"):
    with open(path, "wb"):
        pass
    subprocess.run(["truncate", "-s", size, path], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard", "-L", "export", path], check=True)
