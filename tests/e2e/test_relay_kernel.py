# SPDX-License-Identifier: Apache-2.0
# Clients in the kernel through two relays, by the listen map: NVMe over Fabrics and NFS, between hosts without a route to each other.
from lab import CM_TIMER, each, needs
from lab.proc import wait_for
from test_carrier import both
from test_proxy import RELAY, apart
from test_relay_set import by_rdma, stayed

PORTS = (4420, 20049)
NQN = "nqn.2024-01.lab:disk"
NVMET = "/sys/kernel/config/nvmet"
RETRIES = 20  # of a CM timer: connections are idle while a host computes


def storage(lab):
    """Loads the kernel's clients and servers, and takes the hosts' routes."""
    for h in (lab.a, lab.b):
        h.modules()
    apart(lab)


def target_up(lab):
    """An NVMe target on host B: a RAM disk of 32 MiB."""
    lab.b.run(f"""set -e; mkdir -p /sys/kernel/config; mount -t configfs none /sys/kernel/config 2>/dev/null || true; cd {NVMET}
        mkdir subsystems/{NQN}; echo 1 >subsystems/{NQN}/attr_allow_any_host; mkdir subsystems/{NQN}/namespaces/1 ports/1
        printf /dev/ram0 >subsystems/{NQN}/namespaces/1/device_path; echo 1 >subsystems/{NQN}/namespaces/1/enable; cd ports/1
        printf rdma >addr_trtype; printf ipv4 >addr_adrfam; printf {lab.b.ip4} >addr_traddr; printf 4420 >addr_trsvcid
        ln -s {NVMET}/subsystems/{NQN} subsystems/{NQN}""")


def target_down(lab):
    lab.b.run(f"""cd {NVMET}; rm ports/1/subsystems/{NQN}; rmdir ports/1; echo 0 >subsystems/{NQN}/namespaces/1/enable
        rmdir subsystems/{NQN}/namespaces/1 subsystems/{NQN}; true""")


def disk_up(lab, to=RELAY[4]):
    """Connects host A to its relay's port, or to another address; returns the disk."""
    lab.a.run(f"printf transport=rdma,traddr={to},trsvcid=4420,nqn={NQN},nr_io_queues=2,queue_size=32 >/dev/nvme-fabrics", timeout=60)
    wait_for("a disk at host A", lambda: lab.a.run("ls /dev/nvme0n1 /dev/nvme1n1 2>/dev/null; true").out.strip(), 20, 0.5)
    return lab.a.run("ls /dev/nvme?n1").out.strip()


def disk_down(lab):
    lab.a.run("for d in /sys/class/nvme/nvme*/delete_controller; do echo 1 >$d; done; true", timeout=30)


def nvme(lab, relay, kib):
    """badblocks over `kib` KiB of the disk, then ext4 with a file on it."""
    target_up(lab)
    try:
        disk = disk_up(lab)
        assert len(relay.ask("links")["links"]) >= 2  # the admin queue, and one of I/O for each CPU
        r = lab.a.run(f"badblocks -w -s -b 1024 -c 16 -t 0x5a -t random {disk} {kib - 1} 2>&1", timeout=240)
        assert "0/0/0 errors" in r.out and "errors)" in r.out, r
        lab.a.run(f"""set -e; mkfs.ext4 -q -F {disk}; mkdir -p /mnt; mount -t ext4 {disk} /mnt; dd if=/dev/urandom of=/tmp/t/f bs=64k count={kib // 64} 2>/dev/null
            cp /tmp/t/f /mnt/f; for i in 1 2 3 4 5 6 7 8; do echo $i >/mnt/small$i; done; umount /mnt; echo 3 >/proc/sys/vm/drop_caches""", timeout=120)
        r = lab.a.run(f"""e2fsck -f -n {disk} && mount -t ext4 {disk} /mnt && cat /mnt/small? | tr -d '\\n' && echo && sha256sum </mnt/f && sha256sum </tmp/t/f
            umount /mnt; rm /tmp/t/f""", timeout=120)
        lines = r.out.splitlines()
        assert "12345678" in lines and lines[-1] == lines[-2] and len(lines[-1]) > 64, r
        # The server's side has the same bytes.
        assert lab.b.run("e2fsck -f -n /dev/ram0 2>&1", timeout=60).ok
    finally:
        disk_down(lab)
        target_down(lab)


def fio(lab, file, mib, more="", check=True):
    """fio at host A: `mib` MiB in random blocks of 4 to 64 KiB with a CRC-32C in each, all read again and checked."""
    r = lab.a.run(f"""{lab.a.fio()} --name=v --filename={file} --size={mib}M --bsrange=4k-64k --rw=randwrite --ioengine=libaio --iodepth=8 --direct=1
        --verify=crc32c --verify_fatal=1 --randseed=7 --thread --output-format=normal {more} 2>&1""".replace("\n", " "), timeout=240, check=check)
    assert not check or ("err= 0" in r.out and "READ: " in r.out), r
    return r


def fio_verify(lab, mib):
    """fio --verify on the disk, and on a file of ext4 on it, which is mounted again and read once more."""
    target_up(lab)
    try:
        disk = disk_up(lab)
        r = fio(lab, disk, mib)
        lab.log(r.out)
        fio(lab, disk, mib, "--verify_only")
        lab.b.run("dd if=/dev/urandom of=/dev/ram0 bs=4k count=1 seek=3 oflag=direct 2>/dev/null")
        wrong = fio(lab, disk, mib, "--verify_only", check=False)
        assert wrong.code and "verify" in wrong.out and "err=84" in wrong.out, wrong  # EILSEQ
        lab.a.run(f"mkfs.ext4 -q -F {disk} && mkdir -p /mnt && mount -t ext4 {disk} /mnt", timeout=120)
        fio(lab, "/mnt/f", mib)
        lab.a.run(f"umount /mnt; echo 3 >/proc/sys/vm/drop_caches; e2fsck -f -n {disk} && mount -t ext4 {disk} /mnt", timeout=120)
        fio(lab, "/mnt/f", mib, "--verify_only")
        lab.a.run("umount /mnt", timeout=60)
    finally:
        lab.a.run("umount /mnt 2>/dev/null; true", timeout=60)
        disk_down(lab)
        target_down(lab)


# --- NFS -----------------------------------------------------------------------------------------
FOREVER = 2000000000  # s since 1970
EXPORT = 0x2412  # FSID, NOSUBTREECHECK, ASYNC, INSECURE_PORT


def nfs_up(lab, client="10.2.0.1"):
    """nfsd of host B on RDMA port 20049. What mountd would tell the kernel is written into its caches; the client is the relay, or another address."""
    rpc = "/proc/net/rpc"
    lab.b.run(f"""set -e; mkdir -p /export; mount -t tmpfs none /export; mount -t nfsd none /proc/fs/nfsd
        echo 10 >/proc/fs/nfsd/nfsv4gracetime 2>/dev/null || true
        printf 'nfsd {client} {FOREVER} *\\n' >{rpc}/auth.unix.ip/channel
        printf '* /export {FOREVER} {EXPORT} 0 0 0\\n' >{rpc}/nfsd.export/channel
        printf '* 1 \\\\x00000000 {FOREVER} /export\\n' >{rpc}/nfsd.fh/channel
        echo -2 -3 +4 +4.1 +4.2 >/proc/fs/nfsd/versions || true
        echo 'rdma 20049' >/proc/fs/nfsd/portlist; echo 4 >/proc/fs/nfsd/threads; cat /proc/fs/nfsd/portlist""", timeout=60)


def nfs_down(lab):
    lab.b.run("echo 0 >/proc/fs/nfsd/threads; echo >/proc/net/rpc/nfsd.export/flush; umount /proc/fs/nfsd; umount /export; true", timeout=60)


def mount(lab, to=RELAY[4]):
    lab.a.run(f"mkdir -p /mnt; mount -t nfs4 -o vers=4.2,proto=rdma,port=20049,addr={to},clientaddr={lab.a.ip4},sec=sys {to}:/ /mnt", timeout=90)


def nfs(lab, kib):
    """A file of `kib` KiB and small files, read again after the cache is dropped and from a second mount."""
    try:
        nfs_up(lab)
        mount(lab)
        r = lab.a.run(f"""set -e; dd if=/dev/urandom of=/tmp/t/f bs=64k count={kib // 64} 2>/dev/null; cp /tmp/t/f /mnt/f
            for i in 1 2 3 4 5 6 7 8; do echo $i >/mnt/new; mv /mnt/new /mnt/small$i; done; umount /mnt; echo 3 >/proc/sys/vm/drop_caches""", timeout=180)
        mount(lab)
        r = lab.a.run("cat /mnt/small? | tr -d '\\n'; echo; sha256sum </mnt/f; sha256sum </tmp/t/f; rm /tmp/t/f", timeout=180)
        server = lab.b.run("cat /export/small? | tr -d '\\n'; echo; sha256sum </export/f").out.splitlines()
        lines = r.out.splitlines()
        assert lines[0] == "12345678" and lines[1] == lines[2] and lines[:2] == server, (r, server)
        lab.a.run("rm /mnt/small1 && ! cat /mnt/small1 2>/dev/null && umount /mnt", timeout=60)
    finally:
        lab.a.run("umount -f /mnt 2>/dev/null; true", timeout=60)
        nfs_down(lab)


# --- the tests -----------------------------------------------------------------------------------
def none_again(lab, qps=3):
    """No host has sent anything again because of the WAN."""
    again = lab.host_retransmits(timer=CM_TIMER / RETRIES, qps=qps)
    assert not again, again


@needs(gateway=True, relay=PORTS, timeout=400)
def test_relay_nvme(lab):
    """nvme-rdma to nvmet-rdma: a disk written and verified by badblocks, then ext4 with a file, unmounted, mounted, checked."""
    storage(lab)
    nvme(lab, lab.gwa, lab.scaled(4096, 256))
    none_again(lab)


@needs(gateway=True, relay=PORTS, timeout=500)
def test_relay_fio(lab):
    """fio with --verify=crc32c over nvme-rdma: the disk itself, then a file of ext4 on it. What somebody else wrote at the server's side
    fio does find."""
    storage(lab)
    fio_verify(lab, lab.scaled(8, 1))
    none_again(lab)


@needs(gateway=True, relay=PORTS, timeout=400)
def test_relay_nfs(lab):
    """NFS 4.2 over RDMA: a file and small files written, read after the cache is dropped and from a second mount; checksums equal at the server."""
    storage(lab)
    nfs(lab, 64 * lab.scaled(64, 4))
    none_again(lab, qps=1)


def storage_set(lab, relay, kib, mib):
    """The three of them: badblocks over `kib` KiB, fio over `mib` MiB, and a file of `kib` KiB by NFS."""
    nvme(lab, relay, kib)
    fio_verify(lab, mib)
    nfs(lab, kib)


@each(carrier=["tcp", "quic"])
@needs(gateway=True, relay=PORTS, carrier=lambda carrier: carrier, timeout=600)
def test_relay_kernel(lab, carrier):
    """NVMe-oF with badblocks and fio, and NFS, while the relays speak TCP or QUIC to each other."""
    storage(lab)
    wait_for(f"both relays send by {carrier}", lambda: both(lab, carrier), 20, 0.1)
    storage_set(lab, lab.gwa, lab.scaled(1024, 256), lab.scaled(4, 1))
    stayed(lab.gateways, carrier)
    none_again(lab)


@needs(gateway=True, relay=PORTS, timeout=900)
def test_relay_kernel_rdma(lab):
    """NVMe-oF with badblocks and fio, and NFS, between relays that speak RDMA to each other."""
    storage(lab)
    with by_rdma(lab) as i:
        storage_set(lab, i.a, 256, 1)  # a relay in a guest carries 0.5 MB/s
