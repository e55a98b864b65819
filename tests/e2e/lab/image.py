# SPDX-License-Identifier: Apache-2.0
# The guests' kernel and initramfs. The kernel is Debian's own, downloaded once and unpacked (never
# installed) in the user's cache, keyed by version. The initramfs is busybox, the modules,
# rdma-core, perftest and our guest programs. It is written here as a plain cpio archive, again only
# when an input has changed. It knows nothing about running guests.
import fcntl
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
from pathlib import Path

from .paths import BIN, CACHE, GUEST_BIN, LIB, OUT, ROOT

META = "linux-image-amd64"
# The order of loading matters; dependencies are added from modules.dep. crc32_generic: `rdma link
# add` fails without it.
MODULES = """crc32_generic virtio_pci virtio_net virtio_console virtio_rng rdma_rxe ib_uverbs rdma_cm rdma_ucm
             sch_netem vxlan 8021q
             veth sch_ingress cls_flower act_gact act_mirred act_vlan act_tunnel_key act_pedit crc32c_generic act_csum""".split()
# Loaded by the tests of kernel clients only (Host.modules): boots stay short.
LATER = "brd ext4 nvme_rdma nvmet_rdma nfsv4 nfsd rpcrdma".split()
# A guest with a relay loads these, too.
RELAY_MODULES = ["tun"]
# A guest with a gateway on PCI devices, these.
PCI_MODULES = ["tun", "vfio-pci", "vfio_iommu_type1"]
# A guest with a gateway on a tap whose driver makes rules by tc flower, these.
TAP_MODULES = ["tun", "bridge", "sch_multiq", "act_skbedit"]
PROGRAMS = """/bin/dash /usr/bin/rping /usr/bin/rcopy /usr/bin/rstream /usr/bin/riostream /usr/bin/ucmatose /usr/bin/ibv_rc_pingpong /usr/bin/ibv_devinfo
              /usr/bin/ib_send_bw /usr/bin/ib_write_bw /usr/bin/ib_read_bw /usr/bin/ib_atomic_bw
              /usr/bin/ib_send_lat /usr/bin/ib_write_lat /usr/bin/ib_read_lat /usr/bin/ib_atomic_lat
              /usr/sbin/ip /usr/sbin/tc /usr/bin/rdma /usr/bin/ss
              /usr/sbin/mkfs.ext4 /usr/sbin/e2fsck /usr/sbin/badblocks""".split()
# Debian's fio is linked with the clients of Ceph and GlusterFS, 80 MB of libraries. A guest that needs it gets it while it runs
# (Host.fio): in the archive it would make each boot longer.
FIO = Path("/usr/bin/fio")
BUSYBOX = "/bin/busybox"
LIBDIR = "/usr/lib/x86_64-linux-gnu"
# Programs open these by name at run time, so ldd does not list them.
EXTRA = ["/etc/libibverbs.d/rxe.driver", "/lib/x86_64-linux-gnu/libgcc_s.so.1"]

INIT = """#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
export PATH=/opt/rwy:/usr/bin:/bin
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root /etc /usr/bin
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox --install -s /usr/bin
while read -r m; do insmod "$m" || echo "init: insmod $m failed"; done </etc/modules.list
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmp /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs -o size=75% tmp /tmp
echo root:x:0:0:root:/root:/bin/sh >/etc/passwd
echo 'alias ip=/opt/rwy/ip tc=/opt/rwy/tc' >/etc/profile
export ENV=/etc/profile
ulimit -l unlimited
ulimit -n 65536
ip link set lo up
cd /tmp
(while sleep .2; do setsid cttyhack sh -i </dev/ttyS0 >/dev/ttyS0 2>&1; done) &
while [ ! -e /dev/vport0p1 ] && [ ! -e /dev/vport1p1 ]; do usleep 10000; done
exec rwy_agent /dev/vport*p1
"""


class ImageError(Exception):
    pass


def _sh(*cmd, timeout=300, **kw):
    return subprocess.run(cmd, check=True, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                          **kw).stdout


def _kernel_dirs():
    dirs = [p.parent for p in CACHE.glob("kernel-*/ready")]
    return sorted(dirs, key=lambda p: [int(x) for x in re.findall(r"\d+", p.name)])


def kernel(refresh=False):
    """The directory of the unpacked kernel package; the newest cached one unless `refresh` asks the
    archive again."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "kernel.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        have = _kernel_dirs()
        return have[-1] if have and not refresh else _kernel_fetch()


def _kernel_fetch():
    try:
        return _kernel_download()
    except (subprocess.CalledProcessError, ImageError):
        sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
        _sh(*sudo, "apt-get", "-q", "update", timeout=300)
        return _kernel_download()


def _kernel_download():
    found = re.search(r"Depends: (linux-image-\S+)", _sh("apt-cache", "depends", META))
    if not found:
        raise ImageError(f"apt-cache knows no kernel package behind {META}")
    package = found.group(1)
    version = re.search(r"Candidate: (\S+)", _sh("apt-cache", "policy", package)).group(1)
    final = CACHE / f"kernel-{package}-{version}".replace(":", "_")
    if (final / "ready").exists():
        return final
    print(f"lab: fetching {package} {version} (70 MB, once)", flush=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="fetch-") as tmp:
        _sh("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package, cwd=tmp, timeout=600)
        deb = next(Path(tmp).glob("*.deb"))
        work = Path(tmp) / "x"
        _sh("dpkg", "-x", str(deb), str(work))
        release = next((work / "lib/modules").iterdir()).name
        _sh("/sbin/depmod", "-b", str(work), release)
        (work / "ready").write_text(release + "\n")
        shutil.rmtree(final, ignore_errors=True)
        work.rename(final)
    return final


def vmlinuz(kdir):
    return next((kdir / "boot").glob("vmlinuz-*"))


def _modules(kdir, names):
    """Module files in load order, dependencies first."""
    base = kdir / "lib/modules" / (kdir / "ready").read_text().strip()
    deps = {}
    for line in (base / "modules.dep").read_text().splitlines():
        path, _, need = line.partition(":")
        deps[Path(path).name.split(".")[0].replace("-", "_")] = (path, need.split())
    order = []
    for name in names:
        if name.replace("-", "_") not in deps:
            continue  # built in
        path, need = deps[name.replace("-", "_")]
        for p in [*reversed(need), path]:
            if p not in order:
                order.append(p)
    return [base / p for p in order]


def _libs(path):
    out = subprocess.run(["ldd", str(path)], capture_output=True, text=True, timeout=20).stdout
    return [m for m in re.findall(r"(?:=> )?(/\S+) \(0x", out)]


class _Cpio:
    """Writes a newc archive: files, symlinks, and the directories above them."""

    def __init__(self, out):
        self.out, self.ino, self.seen = out, 0, set()

    def _entry(self, name, mode, data=b"", dev=(0, 0)):
        self.ino += 1
        name = name.lstrip("/").encode() + b"\0"
        fields = (self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, *dev, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
        self.out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def _parents(self, name):
        for p in reversed(Path(name).parents):
            if str(p) not in (".", "/") and str(p) not in self.seen:
                self.seen.add(str(p))
                self._entry(str(p), stat.S_IFDIR | 0o755)

    def add(self, name, data, mode=0o755):
        name = name.lstrip("/")
        if name in self.seen:
            return
        self.seen.add(name)
        self._parents(name)
        self._entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        self._parents(name.lstrip("/"))
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def node(self, name, mode, dev):
        self._parents(name.lstrip("/"))
        self._entry(name, stat.S_IFCHR | mode, dev=dev)

    def close(self):
        self._entry("TRAILER!!!", 0)


def _guest_programs():
    return sorted(p for p in [*GUEST_BIN.glob("*"), BIN / "roceway-run"] if p.suffix == "" and os.access(p, os.X_OK))


def _shims():
    """The libraries of roceway-run, which looks for them in ../lib."""
    return sorted(LIB.glob("librwy*.so"))


def initramfs(kdir):
    """The path of the archive, which is rebuilt only if a program, a library, a module or this file
    has changed."""
    own = _guest_programs()
    if not any(p.name == "rwy_agent" for p in own):
        raise ImageError(f"{GUEST_BIN}/rwy_agent is missing: run `make guest`")
    programs = [Path(p) for p in PROGRAMS]
    providers = list(Path(LIBDIR, "libibverbs").glob("librxe*.so"))
    absent = [str(p) for p in [*programs, Path(BUSYBOX)] if not p.exists()]
    if absent or not providers:
        raise ImageError(f"missing on this machine: {' '.join(absent) or 'the rxe verbs provider'}: run tools/setup/install")
    mods, later = _modules(kdir, MODULES), _modules(kdir, LATER)
    inputs = [Path(__file__), Path(BUSYBOX), *programs, *providers, *own, *_shims(), *mods, *later]
    key = hashlib.sha256()
    for p in inputs:
        st = p.stat()
        key.update(f"{p} {st.st_size} {st.st_mtime_ns}\n".encode())
    image, stamp = OUT / "image/initramfs.cpio", OUT / "image/key"
    if image.exists() and stamp.exists() and stamp.read_text() == key.hexdigest():
        return image
    image.parent.mkdir(parents=True, exist_ok=True)
    fresh = image.with_suffix(f".{os.getpid()}")
    with open(fresh, "wb") as out:
        _pack(_Cpio(out), programs, providers, own, mods, later)
    fresh.rename(image)
    stamp.write_text(key.hexdigest())
    return image


def relay_initramfs(kdir):
    """The same with a relay on kernel interfaces."""
    return _more(kdir, "relay", [BIN / "roceway-proxy", BIN / "roceway"], ["net_af_packet"], RELAY_MODULES)


def pci_initramfs(kdir):
    """The same with a gateway on PCI devices, and what binds these to vfio-pci."""
    programs = [BIN / "roceway-gateway", BIN / "roceway", ROOT / "conf/systemd/roceway-prepare"]
    return _more(kdir, "pci", programs, ["net_virtio"], PCI_MODULES)


def tap_initramfs(kdir):
    """The same with a gateway on a tap."""
    return _more(kdir, "tap", [BIN / "roceway-gateway", BIN / "roceway"], ["net_af_packet", "net_tap"], TAP_MODULES)


def _more(kdir, name, programs, pmds, modules):
    """A second archive after the first one: programs, their libraries, DPDK's drivers for a port and its buffers, and modules, among
    them that of the port's tap; /etc/modules.NAME lists these."""
    base, image = initramfs(kdir), OUT / f"image/{name}.cpio"
    drivers = sorted(p for pmd in (*pmds, "mempool_ring", "mempool_stack") for p in Path(LIBDIR, "dpdk").glob(f"pmds-*/librte_{pmd}.so*"))
    mods = _modules(kdir, modules)
    key = hashlib.sha256(b"".join(f"{p} {p.stat().st_size} {p.stat().st_mtime_ns}\n".encode() for p in [Path(__file__), base, *programs, *drivers, *mods])).hexdigest()
    stamp = OUT / f"image/{name}.key"
    if image.exists() and stamp.exists() and stamp.read_text() == key:
        return image
    fresh = image.with_suffix(f".{os.getpid()}")
    with open(fresh, "wb") as out:
        out.write(base.read_bytes())
        out.write(b"\0" * (-out.tell() % 512))
        cpio = _Cpio(out)
        for p in programs:
            cpio.add(f"opt/rwy/{p.name}", p.read_bytes())
        for p in dict.fromkeys(lib for x in [*programs, *drivers] for lib in _libs(x)):
            cpio.add(p, Path(p).read_bytes())
        for p in drivers:
            cpio.add(str(p), p.read_bytes())
        for p in mods:
            cpio.add(f"modules/{p.name}", p.read_bytes(), 0o644)
        cpio.add(f"etc/modules.{name}", "".join(f"/modules/{p.name}\n" for p in mods).encode(), 0o644)
        cpio.close()
    fresh.rename(image)
    stamp.write_text(key)
    return image


def program_archive(path):
    """A compressed tar file with a program and the libraries that it needs, in one folder."""
    if not path.exists():
        raise ImageError(f"missing on this machine: {path}: run tools/setup/install and make")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for p in [path, *_libs(path)]:
            info = tarfile.TarInfo(Path(p).name)
            info.size, info.mode = Path(p).stat().st_size, 0o755
            with open(p, "rb") as f:
                tar.addfile(info, f)
    return out.getvalue()


def _pack(cpio, programs, providers, own, mods, later):
    cpio.add("init", INIT.encode())
    cpio.node("dev/console", 0o600, (5, 1))
    cpio.add("bin/busybox", Path(BUSYBOX).read_bytes())
    # dash instead of busybox sh, which prefers its own `ip` and `tc` to PATH
    cpio.link("bin/sh", "/opt/rwy/dash")
    libs = {}
    for p in [*programs, *providers, *own, *_shims()]:
        for lib in _libs(p):
            libs[lib] = None
    for p in [*programs, *own]:
        cpio.add(f"opt/rwy/{p.name}", p.read_bytes())
    for p in _shims():
        cpio.add(f"opt/lib/{p.name}", p.read_bytes())
    for p in [*map(str, providers), *EXTRA, *libs]:
        cpio.add(p, Path(p).read_bytes())
    for p in [*mods, *later]:
        cpio.add(f"modules/{p.name}", p.read_bytes(), 0o644)
    for name, which in (("list", mods), ("later", [p for p in later if p not in mods])):
        cpio.add(f"etc/modules.{name}", "".join(f"/modules/{p.name}\n" for p in which).encode(), 0o644)
    cpio.close()
