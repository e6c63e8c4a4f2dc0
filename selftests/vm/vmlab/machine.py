# SPDX-License-Identifier: GPL-2.0
"""One test machine: a QEMU process with disks, a network, a log and a control channel."""

import json
import os
import signal
import socket
import subprocess
import time

from . import channel as channels

QEMU = "qemu-system-x86_64"


def kvm_works(kernel, directory):
    """Whether a guest really starts with KVM (having /dev/kvm does not say so).

    A guest that fails to run does not end QEMU; the answer holds until the host
    is booted again, so it is kept for that long.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        memo = f"{os.environ['SVCRDMA_CACHE']}/kvm-{f.read().strip()}"
    if os.path.exists(memo):
        with open(memo, encoding="ascii") as f:
            return f.read() == "yes"
    log = f"{directory}/kvm-probe.log"
    argv = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-accel", "kvm", "-cpu", "max",
            "-m", "256", "-kernel", kernel.vmlinuz, "-append", "console=ttyS0 panic=-1", "-serial", f"file:{log}"]
    try:
        subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=10, check=False)
        # Without a root it ends in a panic: then it has come all the way.
        with open(log, encoding="utf-8", errors="replace") as f:
            works = "Kernel panic" in f.read()
    except (subprocess.TimeoutExpired, FileNotFoundError):
        works = False
    with open(memo, "w", encoding="ascii") as f:
        f.write("yes" if works else "no")
    return works


class Machine:
    """A machine that is not running yet; start() boots it.

    slowness: how much longer commands may take than with the stock kernel alone.
    disks: paths of disk images, those of read-only ones with "ro:" before.
    shares: folders of the host by name, seen by the guest as /host/NAME.
    network: None, "listen:PATH" or "connect:PATH" of the wire's UNIX socket.
    """

    def __init__(self, name, directory, kernel, *, slowness, disks, shares=None, network=None, mac=None, memory="2G",
                 cpus=2, kvm=False, cmdline="", cpu="max", accel=None):
        self.name = name
        self.directory = directory
        self.kernel = kernel
        self.slowness = slowness
        self.disks = disks
        self.shares = shares or {}
        self.network = network
        self.mac = mac
        self.memory = memory
        self.cpus = cpus
        self.accel = accel or ("kvm" if kvm else "tcg,thread=multi")
        self.cpu = "host" if kvm else cpu
        self.cmdline = cmdline
        self.process = None
        self.channel = None
        self.boots = 0

    @property
    def log_path(self):
        """The kernel log of the current boot."""
        return f"{self.directory}/{self.name}.{self.boots}.log"

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def arguments(self, control):
        # no5lvl: identify_cpu() clears the CPU's abilities for a moment, and an interrupt just then would find
        # addresses of five-level paging wild (KASAN).
        append = (f"console=ttyS0 panic=-1 rdinit=/init net.ifnames=0 loglevel=7 printk.time=1 log_buf_len=4M "
                  f"svcrdma.name={self.name} rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60 mitigations=off "
                  f"no5lvl {self.kernel.cmdline} {self.cmdline}")
        argv = [QEMU, "-name", self.name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-machine", "q35", "-accel", self.accel, "-cpu", self.cpu, "-smp", str(self.cpus), "-m", self.memory,
                "-kernel", self.kernel.vmlinuz, "-initrd", f"{self.directory}/initramfs-{self.name}", "-append", append,
                *self.kernel.devices, "-serial", f"file:{self.log_path}", "-device", "virtio-rng-pci",
                "-qmp", f"unix:{self.directory}/{self.name}.qmp,server=on,wait=off",
                "-device", "virtio-serial-pci", "-chardev", f"socket,id=control,path={control}",
                "-device", "virtserialport,chardev=control,name=svcrdma"]
        for number, disk in enumerate(self.disks):
            path = disk.removeprefix("ro:")
            readonly = "readonly=on,file.locking=off" if path != disk else "cache=unsafe,discard=unmap"
            argv += ["-drive", f"if=none,id=disk{number},format=raw,file={path},{readonly}",
                     "-device", f"virtio-blk-pci,drive=disk{number}"]
        for tag, folder in self.shares.items():
            argv += ["-virtfs", f"local,path={folder},mount_tag={tag},security_model=none,readonly=on,multidevs=remap"]
        if self.network:
            mode, path = self.network.split(":", 1)
            side = "server=on" if mode == "listen" else "server=off,reconnect-ms=100"
            # With mergeable buffers, packets are in pages of a page pool. rxe drops what is queued for a queue pair
            # that fails under that queue pair's spinlock, giving such a page back runs softirqs, and if these
            # receive the next packet for the same queue pair, that CPU waits for itself, for ever (Linux 7.3).
            argv += ["-netdev", f"stream,id=wire,{side},addr.type=unix,addr.path={path}",
                     "-device", f"virtio-net-pci,netdev=wire,mac={self.mac},host_mtu=9000,mrg_rxbuf=off"]
        return argv

    def start(self):
        assert self.process is None
        self.boots += 1
        control = f"{self.directory}/{self.name}.control"
        for leftover in (control, self.network.split(":", 1)[1] if (self.network or "").startswith("listen:") else None):
            if leftover and os.path.exists(leftover):
                os.unlink(leftover)
        self.channel = channels.Channel(control, self.name)
        with open(f"{self.directory}/{self.name}.qemu.log", "ab") as log:
            self.process = subprocess.Popen(self.arguments(control), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_ready(self, timeout):
        """Wait until the agent answers."""
        deadline = time.monotonic() + timeout
        while not self.channel.ready.wait(0.1):
            if self.process.poll() is not None:
                with open(f"{self.directory}/{self.name}.qemu.log", encoding="utf-8", errors="replace") as f:
                    raise channels.Closed(f"{self.name}: QEMU has ended during boot: {f.read().strip()} "
                                          f"(kernel log: {self.log_path})")
            if time.monotonic() > deadline:
                raise channels.Timeout(f"{self.name}: not up after {timeout:.0f} s (kernel log: {self.log_path})")

    def run(self, argv, timeout=120, **keywords):
        """Run a command: see Channel.run. The time is for the stock kernel."""
        return self.channel.run(argv, timeout * self.slowness, **keywords)

    def alive(self):
        return self.process is not None and self.process.poll() is None and not self.channel.closed

    def plug(self, there):
        """Plug the network cable in, or pull it. Frames are lost then; the other machine's are taken all the same."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(f"{self.directory}/{self.name}.qmp")
            with monitor.makefile("rw", encoding="ascii") as talk:
                talk.readline()  # the greeting
                for command in ({"execute": "qmp_capabilities"},
                                {"execute": "set_link", "arguments": {"name": "wire", "up": there}}):
                    talk.write(json.dumps(command) + "\n")
                    talk.flush()
                    while "event" in (answer := json.loads(talk.readline())):
                        pass
                    assert "return" in answer, answer

    def kill(self):
        """Take the power away."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None
        if self.channel is not None:
            self.channel.close()
