# SPDX-License-Identifier: GPL-2.0
"""A server and a client (or one machine that is both), booted and connected."""

import concurrent.futures
import fcntl
import glob
import os
import shutil
import sys
import tempfile
import time

from . import images, klog, machine

TOP = images.TOP
# Hang detectors, for the stock kernel: 20 times what a busy machine needs.
BOOT_LIMIT = 600
SETUP_LIMIT = 600
NFS_PORT = 20049


PREFIX = f"{tempfile.gettempdir()}/svcrdma-vm-"


def make_work():
    """A folder for one run (in /tmp: paths of sockets must be short), and the lock that says it is in use.

    Those of runs that were killed are removed on the way.
    """
    for leftover in glob.glob(f"{PREFIX}*/lock"):
        with open(leftover, encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(os.path.dirname(leftover), ignore_errors=True)
    work = tempfile.mkdtemp(prefix=os.path.basename(PREFIX))
    lock = open(f"{work}/lock.new", "w", encoding="ascii")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(f"{work}/lock.new", f"{work}/lock")
    return work, lock


def say(text):
    print(f"  [{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Lab:
    """Use as "with Lab(...) as lab": no machine survives the block.

    machines   2: server and client; 1: both in one
    kernel     "stock" or "debug": the server's. A client of its own has the stock kernel: the debug kernel is slow,
               and what it looks for is on the server
    driver     RDMA driver: "rxe" or "siw"
    module     our svcrdma_rs.ko, installed on the server; None: nothing of ours
    parameters of the module, as modprobe has them
    transport  name of the listener's transport: "rdma-rs", or "rdma"
    tests      folder with installed selftests, /host/tests in the guests
    cpus       processors of the server (the client has one: emulation gets slower with each)
    data       image for the client, read-only: its third disk, /dev/vdc
    """

    def __init__(self, directory, *, machines=2, kernel="stock", driver="rxe", module=None, parameters="",
                 transport="rdma-rs", tests=None, filesystem="ext4", memory="2G", cmdline="", cpus=2, data=None):
        self.directory = os.path.realpath(directory)
        self.kernel = images.Kernel(kernel)
        self.client_kernel = images.Kernel("stock")
        self.driver = driver
        self.module = module
        self.parameters = parameters
        self.transport = transport
        self.filesystem = filesystem
        self.memory = memory
        self.cmdline = cmdline
        self.cpus = cpus
        self.data = data
        self.two = machines == 2
        self.shares = {"tests": tests} if tests else {}
        self.allow = klog.load_allow(transport)
        self.server = self.client = None
        self.unit = 0.001

    @property
    def all(self):
        return [self.server, self.client] if self.two else [self.server]

    def __enter__(self):
        os.makedirs(self.directory, exist_ok=True)
        self.work, self.lock = make_work()
        try:
            self._make()
            self.boot()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_):
        self._leave()

    def _leave(self):
        for one in (self.server, self.client):
            if one:
                one.kill()
                self._keep_logs(one)
        shutil.rmtree(self.work, ignore_errors=True)
        self.lock.close()

    def _keep_logs(self, one):
        for name in os.listdir(self.work):
            if name.startswith(f"{one.name}.") and name.endswith(".log"):
                shutil.copy(f"{self.work}/{name}", f"{self.directory}/{name}")

    def _make(self):
        root = images.output(f"{TOP}/scripts/vm-images", "root")
        images.make_initramfs(f"{self.work}/initramfs-server", self.kernel, f"{root}/busybox")
        images.make_modules(f"{self.work}/modules-server", self.kernel, self.module)
        images.make_scratch(f"{self.work}/export")
        kvm = machine.kvm_works(self.kernel, self.work)
        if kvm:
            say("KVM works here: using it")
        common = {"slowness": self.kernel.slowness, "memory": self.memory, "kvm": kvm, "cmdline": self.cmdline,
                  "shares": self.shares}
        wire = f"{self.work}/wire"
        disks = [f"ro:{root}/root.erofs", f"ro:{self.work}/modules-server", f"{self.work}/export"]
        if not self.two:
            self.server = self.client = machine.Machine("server", self.work, self.kernel, disks=disks, cpus=self.cpus,
                                                        **common)
            return
        images.make_initramfs(f"{self.work}/initramfs-client", self.client_kernel, f"{root}/busybox")
        images.make_modules(f"{self.work}/modules-client", self.client_kernel)
        self.server = machine.Machine("server", self.work, self.kernel, disks=disks, network=f"connect:{wire}",
                                      mac="52:54:00:00:00:01", cpus=self.cpus, **common)
        disks = [disks[0], f"ro:{self.work}/modules-client"] + ([f"ro:{self.data}"] if self.data else [])
        # QEMU 10 leaves the side that accepts with a blocking socket: all of it waits when the other
        # does not read. So that is the client: it can be stopped, and the server must live on.
        self.client = machine.Machine("client", self.work, self.client_kernel, disks=disks, network=f"listen:{wire}",
                                      mac="52:54:00:00:00:02", cpus=1, **common)

    def boot(self):
        """Boot all machines and set up network, RDMA and the server."""
        start = time.monotonic()
        for one in self.all:
            one.start()
        for one in self.all:
            one.wait_ready(BOOT_LIMIT * self.kernel.slowness)
        if self.two:
            self.server.channel.peer = self.client.channel
            self.client.channel.peer = self.server.channel
        with concurrent.futures.ThreadPoolExecutor() as pool:
            jobs = [pool.submit(self._set_up_server)]
            if self.two:
                jobs.append(pool.submit(self._set_up_client))
            for job in jobs:
                job.result()
        self._calibrate()
        say(f"{' and '.join(m.name for m in self.all)} up after {time.monotonic() - start:.0f} s "
            f"(unit {self.unit * 1000:.1f} ms)")

    def _set_up_server(self):
        if self.parameters:
            self.server.run(f"echo 'options svcrdma_rs {self.parameters}' >/etc/modprobe.d/svcrdma_rs-lab.conf")
        self.server.run(["net-up", "1", self.driver], SETUP_LIMIT)
        self.server.run(["serve", "start", self.filesystem], SETUP_LIMIT)
        self.listen()

    def _set_up_client(self):
        self.client.run(["net-up", "2", self.driver], SETUP_LIMIT)
        self.client.run(["client-up"], SETUP_LIMIT)

    def restart_client(self):
        """Power-cycle the client; the server stays."""
        assert self.two
        # QEMU 10 goes on with the rest of a frame that did not fit into the socket before the peer was gone, and
        # never completes it: the server's NIC would be stuck. Without a cable the client reads all and keeps nothing.
        self.client.plug(False)
        time.sleep(0.3)
        self.client.kill()
        self.client.start()
        self.client.wait_ready(BOOT_LIMIT * self.kernel.slowness)
        self.server.channel.peer = self.client.channel
        self.client.channel.peer = self.server.channel
        self._set_up_client()

    def reboot(self):
        """Power-cycle everything (after a crash or a hang)."""
        for one in self.all:
            one.kill()
        images.make_scratch(f"{self.work}/export")
        self.boot()

    def listen(self):
        """Load the transport and make its listener."""
        self.server.run(["modprobe", "svcrdma_rs" if self.transport == "rdma-rs" else "rpcrdma"], SETUP_LIMIT)
        self.server.run(f"echo '{self.transport} {NFS_PORT}' > /proc/fs/nfsd/portlist", SETUP_LIMIT)

    def _calibrate(self):
        """The unit of all deadlines: a NULL call's median round trip, at least 1 ms."""
        result = self.server.run(["/run/guest/null-rtt"], SETUP_LIMIT)
        self.unit = max(0.001, float(result.out))

    def environment(self):
        """What the tests are told: see selftests/svcrdma/lib.sh."""
        return {
            "TRANSPORT": self.transport,
            "NFS_PORT": str(NFS_PORT),
            "SERVER_ADDR": "192.0.2.1",
            "SERVER_ADDR6": "2001:db8::1",
            "SERVER_EXEC": "/run/guest/peer-exec" if self.two else "bash -c",
            "EXPORT_DIR": "/srv/export",
            "MACHINES": "2" if self.two else "1",
            "RDMA_DRIVER": self.driver,
            "REALM": "/run/guest/realm",
            "UNIT_US": str(round(self.unit * 1e6)),
        }

    def marks(self):
        """Where each kernel log ends now."""
        return {one.name: (one.boots, len(one.log())) for one in self.all}

    def trouble(self, marks=None):
        """Reports in the kernel logs (since those marks) that the allow-list does not name, as text."""
        found = []
        for one in self.all:
            boots, offset = (marks or {}).get(one.name, (one.boots, 0))
            text = one.log()
            for report in klog.trouble(text[offset if boots == one.boots else 0 :], self.allow):
                found.append(f"kernel log of {one.name}: {report.kind}\n{report}")
        return found
