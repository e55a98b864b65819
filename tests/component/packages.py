#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# packages.py BUILD: what `make install` puts where, and roceway-prepare on a made-up /sys. The packages
# themselves are tests/packages/run, in make check-long. Reads Makefile, debian/*.install,
# debian/not-installed, conf/systemd/roceway-prepare,
# conf/systemd/roceway-gateway.service, conf/systemd/roceway-controller.service,
# conf/systemd/roceway-prepare.service, conf/default/roceway-gateway, debian/changelog and VERSION.
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

ROOT = Path(__file__).resolve().parents[2]
PREPARE = ROOT / "conf/systemd/roceway-prepare"


def prepare(sys_dir, *words, **env):
    return subprocess.run([PREPARE, *words], capture_output=True, text=True, env={"PATH": os.environ["PATH"], "SYSFS": str(sys_dir), **env}, timeout=20)


def tree(top, files):
    for name, text in files.items():
        path = Path(top) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_versions_agree():
    assert re.match(r"roceway \((\S+)\)", (ROOT / "debian/changelog").read_text()).group(1) == (ROOT / "VERSION").read_text().strip()


def test_each_file_has_one_package():
    """dh_missing stops the build of the packages at a file that `make install` puts somewhere and no package takes. Of two packages with
    one file dpkg refuses the second."""
    taken = [line.split()[0] for f in (ROOT / "debian").glob("*install*") for line in f.read_text().splitlines() if line.split()]
    with tempfile.TemporaryDirectory() as d:
        env = {k: v for k, v in os.environ.items() if k != "MAKEFLAGS"}
        subprocess.run(("make", "-C", ROOT, f"BUILD={sys.argv[1]}", "-o", "all", "install", "PREFIX=/usr", "UNITDIR=/lib/systemd/system", f"DESTDIR={d}"),
                       check=True, stdout=subprocess.DEVNULL, env=env)
        there = [str(p.relative_to(d)) for p in Path(d).rglob("*") if not p.is_dir()]
    assert len(there) > 50, there
    packages = {p: sum(p == t or p.startswith(t + "/") for t in taken) for p in there}
    assert set(packages.values()) == {1}, {p: n for p, n in packages.items() if n != 1}


def test_units():
    for name in ("gateway", "controller", "prepare"):
        text = (ROOT / f"conf/systemd/roceway-{name}.service").read_text()
        for path in re.findall(r"^Exec\w+=(/\S+)", text, re.M):
            assert path.startswith("/usr/local/") or path == "/bin/kill", path
    for line in (ROOT / "conf/default/roceway-gateway").read_text().splitlines():
        assert line == "" or line.startswith("#") or re.fullmatch(r"[A-Z0-9_]+=", line), line


def test_hugepages():
    with tempfile.TemporaryDirectory() as d:
        two, node = "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages"
        tree(d, {two: "16\n", node: "0\n"})
        assert prepare(d).returncode == 0 and prepare(d, HUGEPAGES_2M="8").returncode == 0
        assert (Path(d) / two).read_text() == "16\n"  # never fewer than there are
        assert prepare(d, HUGEPAGES_2M="512").returncode == 0 and (Path(d) / two).read_text() == "512\n"
        assert prepare(d, HUGEPAGES_1G="4", HUGEPAGES_NODES="1").returncode == 0 and (Path(d) / node).read_text() == "4\n"
        r = prepare(d, HUGEPAGES_1G="4")
        assert r.returncode == 1 and "the kernel has no such hugepages" in r.stderr
        r = prepare(d, HUGEPAGES_2M="many")
        assert r.returncode == 1 and "found many" in r.stderr and r.stderr.count("\n") == 1


def test_vfio():
    with tempfile.TemporaryDirectory() as d:
        dev = Path(d) / "bus/pci/devices/0000:3b:00.0"
        tree(d, {"bus/pci/drivers_probe": "", "bus/pci/drivers/ice/unbind": "", "bus/pci/drivers/mlx5_core/unbind": "", "bus/pci/drivers/vfio-pci/unbind": "",
                 "bus/pci/devices/0000:3b:00.0/driver_override": ""})
        (dev / "driver").symlink_to(Path(d) / "bus/pci/drivers/vfio-pci")
        assert prepare(d, VFIO_DEVICES="0000:3b:00.0").returncode == 0
        assert (dev / "driver_override").read_text() == "", "a device that is bound is left alone"
        (dev / "driver").unlink()
        (dev / "driver").symlink_to(Path(d) / "bus/pci/drivers/ice")
        for words, status in (("--help",), 0), (("-x",), 2):  # it tells its usage, and does nothing
            r = prepare(d, *words, VFIO_DEVICES="0000:3b:00.0")
            assert r.returncode == status and (r.stderr if status else r.stdout).startswith("usage: roceway-prepare "), r
        r = prepare(d, VFIO_DEVICES="0000:3b:00.0")  # nobody binds it in a made-up /sys
        assert (dev / "driver_override").read_text() == "vfio-pci\n"
        assert (Path(d) / "bus/pci/drivers/ice/unbind").read_text() == "0000:3b:00.0\n" and (Path(d) / "bus/pci/drivers_probe").read_text() == "0000:3b:00.0\n"
        assert r.returncode == 1 and "vfio-pci does not take it: is the IOMMU on" in r.stderr
        (dev / "driver").unlink()
        (dev / "driver").symlink_to(Path(d) / "bus/pci/drivers/mlx5_core")
        r = prepare(d, VFIO_DEVICES="0000:3b:00.0 0000:ff:00.0")
        assert r.returncode == 1 and "mlx5_core stays with its kernel driver" in r.stderr and "0000:ff:00.0: no such PCI device" in r.stderr
        assert (Path(d) / "bus/pci/drivers/mlx5_core/unbind").read_text() == ""


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
