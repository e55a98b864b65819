#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# cli_doctor.py BUILD: roceway doctor on made-up /sys and /proc trees.
import json
import sys
import tempfile
from pathlib import Path

import cases

sys.argv = sys.argv[:2]
from cli_api import cli, fits  # noqa: E402

NIC = "sys/bus/pci/devices/0000:3b:00.0"
MLX = "sys/class/infiniband/mlx5_0/ports/1"
GATEWAY = {
    "proc/cpuinfo": "model name\t: X\nflags\t\t: fpu movbe avx2 bmi2 fma aes\n", "proc/cmdline": "isolcpus=2-5 nohz_full=2-5\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "1024\n", "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "1000\n",
    "sys/devices/system/cpu/isolated": "2-5\n", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n", "sys/kernel/iommu_groups/0/x": "",
    f"{NIC}/class": "0x020000\n", f"{NIC}/numa_node": "1\n", "sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages": "512\n",
    "sys/class/net/eth1/mtu": "9000\n", "sys/class/net/eth1/carrier": "1\n", "proc/77/comm": "bash\n",
}
HOST = {
    f"{MLX}/link_layer": "Ethernet\n", f"{MLX}/state": "4: ACTIVE\n", f"{MLX}/gid_attrs/types/0": "IB/RoCE v1\n", f"{MLX}/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001\n",
    f"{MLX}/gid_attrs/types/3": "RoCE v2\n", f"{MLX}/gids/3": "0000:0000:0000:0000:0000:ffff:0a01:0002\n", f"{MLX}/hw_counters/out_of_sequence": "0\n",
    "sys/class/infiniband/mlx5_0/device/net/eth2/x": "", "sys/class/net/eth2/mtu": "9000\n", "sys/class/net/eth2/carrier": "1\n",
}
LINKS = {f"{NIC}/driver": "../../drivers/vfio-pci", "sys/class/net/eth1/device/driver": "../../../drivers/ice"}


class Tree:
    def __init__(self, base, links=None, **change):
        self.base, self.links, self.change = base, links or {}, change

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory()
        for name in "sys", "proc":
            (Path(self.dir.name) / name).mkdir()
        for name, text in {**self.base, **self.change}.items():
            if text is not None:
                path = Path(self.dir.name) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        for name, target in self.links.items():
            path = Path(self.dir.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
        return self.dir.name

    def __exit__(self, *exc):
        self.dir.cleanup()


def doctor(base, links=None, want=None, host=False, **change):
    """{check: finding} of a tree."""
    with Tree(base, links, **change) as root:
        words = ["doctor", "--root", root, *(["--host"] if host else [])]
        r = cli([*words, "--json"], 1 if want == "bad" else 0)
        fits(cli(words, 1 if want == "bad" else 0).stdout)
    out = json.loads(r.stdout)
    assert out["good"] == (want != "bad")
    for f in out["findings"]:
        assert f["verdict"] == "ok" or f["do"], f
    return {f["check"]: f for f in out["findings"]}


def test_a_good_gateway():
    found = doctor(GATEWAY, LINKS)
    assert {f["verdict"] for f in found.values()} == {"ok"}, found
    assert "1024, 1000 free" in found["hugepages"]["finding"] and "vfio-pci, NUMA node 1" in found["port"]["finding"] and "9000" in found["link"]["finding"]


def test_each_fault_of_a_gateway():
    huge, clock = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "sys/devices/system/clocksource/clocksource0/current_clocksource"
    for check, verdict, change in (
            ("hugepages", "bad", {huge: "0\n"}), ("hugepages", "bad", {huge: None}), ("clock", "bad", {clock: "hpet\n"}),
            ("processor", "bad", {"proc/cpuinfo": "flags\t\t: fpu movbe bmi2 fma aes\n"}), ("numa", "bad", {"sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages": "0\n"}),
            ("cpu isolation", "note", {"sys/devices/system/cpu/isolated": "\n"}), ("cpu ticks", "note", {"proc/cmdline": "isolcpus=2-5\n"}),
            ("cpu frequency", "note", {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n"}), ("iommu", "note", {"sys/kernel/iommu_groups/0/x": None}),
            ("vfio", "note", {"sys/module/vfio/parameters/enable_unsafe_noiommu_mode": "Y\n"}), ("interrupts", "note", {"proc/77/comm": "irqbalance\n"}),
            ("mtu", "note", {"sys/class/net/eth1/mtu": "1500\n"}), ("link", "note", {"sys/class/net/eth1/carrier": "0\n"})):
        found = doctor(GATEWAY, LINKS, want=verdict, **change)
        assert found[check]["verdict"] == verdict, (check, found)


def test_a_host():
    found = doctor(HOST, host=True)
    assert found["gid"]["finding"] == "mlx5_0 has 1 routable RoCE v2 GIDs" and found["mtu"]["verdict"] == "ok"
    for check, verdict, change in (
            ("gid", "bad", {f"{MLX}/gid_attrs/types/3": "IB/RoCE v1\n"}), ("gid", "bad", {f"{MLX}/gids/3": "fe80:0000:0000:0000:0000:0000:0000:0001\n"}),
            ("port", "bad", {f"{MLX}/state": "1: DOWN\n"}), ("link", "bad", {"sys/class/net/eth2/carrier": "0\n"}), ("mtu", "note", {"sys/class/net/eth2/mtu": "1500\n"}),
            ("link layer", "note", {f"{MLX}/link_layer": "InfiniBand\n"}), ("out_of_sequence", "note", {f"{MLX}/hw_counters/out_of_sequence": "5\n"}),
            ("rnr_nak_retry_err", "note", {f"{MLX}/hw_counters/rnr_nak_retry_err": "1\n"})):
        assert doctor(HOST, want=verdict, host=True, **change)[check]["verdict"] == verdict, check
    assert doctor({}, want="bad", host=True)["devices"]["verdict"] == "bad"


def test_odd_trees():
    assert doctor({}, want="bad")["hugepages"]["verdict"] == "bad"
    odd = {name: "\x00" * 30000 for name in GATEWAY}
    doctor(odd, LINKS, want="bad")
    doctor({name: "9" * 100 for name in HOST}, want="note", host=True)


def test_wrong_usage_and_this_machine():
    cli(["doctor", "more"], 2)
    with Tree({}) as root:
        (Path(root) / "proc").rmdir()
        for words, missing in (["--root", "/nonexistent", "--json"], "/nonexistent/sys"), (["--root", root], root + "/proc"):
            r = cli(["doctor", *words], 2)
            assert r.stderr.endswith(f"there is no folder {missing}\n") and not r.stdout, r
    r = json.loads(cli(["doctor", "--json"], None).stdout)  # of this machine
    assert r["good"] in (True, False) and r["findings"]


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
