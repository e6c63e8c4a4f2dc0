# SPDX-License-Identifier: GPL-2.0
"""The client loses its power with reads and writes in flight: the server notices, and holds nothing of it.

Of a connection on which nothing is in flight a server learns nothing: nfsd ages it, which takes 6 to 12 minutes. So the
cable is pulled first, until a moment is met at which the server has something to send or to fetch.
"""

# Tier: ci
# Machines: 2
# Limit: 900

import time

LOAD = """
mount -t nfs -o vers={version},proto=rdma,port=$NFS_PORT $SERVER_ADDR:{path} /mnt/nfs && mkdir -p /mnt/nfs/killed && cd /mnt/nfs/killed || exit
for n in $(seq 16); do
    (while dd if=/dev/zero of=$n bs=256k count=4 oflag=direct conv=notrunc; do
        dd if=$n of=/dev/null bs=256k iflag=direct; done) >/dev/null 2>&1 &
done
sleep infinity
"""


def held(lab):
    """What the server's RDMA devices and our module hold, pools aside."""
    return lab.server.run("rdma resource show; "
                          "grep -hv '_pooled ' /sys/kernel/debug/svcrdma_rs/objects 2>/dev/null || :").out


def connections(lab):
    """What a connection that stays is doing."""
    return lab.server.run("rdma resource show qp -d; cat /sys/kernel/debug/svcrdma_rs/connections 2>/dev/null; "
                          "cat /proc/net/rpc/nfsd; ps -eo stat,wchan:40,comm | grep -v '^[SI] *-' || :").out


def moved(lab):
    """Bytes that nfsd has read and written."""
    return int(lab.server.run("awk '/^io / { print $2 + $3 }' /proc/net/rpc/nfsd").out)


def wait_for(lab, units, condition, what):
    deadline = time.monotonic() + units * lab.unit
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.5)


def slots(lab):
    """Send Queue slots that our module has in use; None with another transport."""
    text = lab.server.run("sed -n 's/^sq_slots //p' /sys/kernel/debug/svcrdma_rs/objects 2>/dev/null || :").out
    return int(text) if text.strip() else None


def leave_while_busy(lab):
    """Pull the client's cable at a moment when the server waits for it."""
    deadline = time.monotonic() + 60000 * lab.unit
    while True:
        lab.client.plug(False)
        # What had arrived is worked off in the meantime. Nothing fails as early as that.
        if all(waits_for_peer(lab) for _ in range(2)):
            return
        lab.client.plug(True)
        assert time.monotonic() < deadline, "the server is never busy"
        time.sleep(0.2)


def waits_for_peer(lab):
    """Whether work requests of our module are in flight a moment from now; with another transport nobody can say."""
    time.sleep(0.3)
    return slots(lab) != 0


def test(lab):
    before = held(lab)
    try:
        for version, path in (("3", "/srv/export"), ("4.2", "/")):
            start = moved(lab)
            lab.client.channel.start(LOAD.format(version=version, path=path), env=lab.environment())
            wait_for(lab, 120000, lambda: moved(lab) > start + (4 << 20), lambda: f"v{version}: no data flows")
            leave_while_busy(lab)
            lab.restart_client()
            wait_for(lab, 300000, lambda: held(lab) == before,
                     lambda: f"v{version}: the server still holds:\n{held(lab)}{connections(lab)}before:\n{before}")
            # And it serves the client that is back.
            lab.client.run(f"mkdir -p /mnt/nfs && mount -t nfs -o vers={version},proto=rdma,port=$NFS_PORT "
                           f"$SERVER_ADDR:{path} /mnt/nfs && ls /mnt/nfs/killed && umount /mnt/nfs",
                           env=lab.environment())
    finally:
        lab.server.run("rm -rf /srv/export/killed")
