# SPDX-License-Identifier: Apache-2.0
# A gateway on PCI devices: virtio-net, bound to vfio-pci, in a guest (lab/pci.py).
from lab import needs
from lab.pci import gateway_in, guest_of


def prepared(guest):
    """roceway-prepare reserves the hugepages and binds both devices; the kernel has no interface of them any more. It says what is
    wrong with a kernel without VFIO_NOIOMMU, and with a device that is not there."""
    r = guest.prepare(VFIO_NOIOMMU="1")
    assert not r.ok and r.text == "roceway-prepare: VFIO without an IOMMU is not in this kernel (CONFIG_VFIO_NOIOMMU)\n", r
    r = guest.prepare(VFIO_DEVICES="0000:7f:00.0")
    assert not r.ok and r.text == "roceway-prepare: 0000:7f:00.0: no such PCI device\n", r
    r = guest.prepare()
    assert r.ok, r
    assert [guest.driver_of(d) for d in guest.devices] == ["vfio-pci"] * 2
    assert guest.run("ls /sys/class/net").out.split() == ["lo"]


def received(gw):
    return {p["name"]: p["rx_packets"] for p in gw.ask("ports")["ports"]}


@needs(gateway=True, timeout=400)
def test_pci_vfio(lab):
    """The gateway of site A on two virtio-net PCI devices with vfio-pci, behind an IOMMU: rping -V, WRITE, READ, with keys and loss."""
    with guest_of(lab) as guest:
        prepared(guest)
        with gateway_in(lab, guest) as gw:
            ports = gw.ask("ports")["ports"]
            lab.log(f"ports: {ports}")
            assert [p["driver"] for p in ports] == ["net_virtio"] * 2 and all(p["up"] for p in ports), ports
            lab.wan(rtt_ms=5, loss=0.5)
            r = lab.pair(f"rping -s -V -C 20 -a {lab.b.ip4} -p 7174", "rping -c -V -C 20 -a {server} -p 7174", port=7174, cm=True, timeout=60)
            assert r.ok, r
            before = received(gw)
            for tool in "ib_write_bw", "ib_read_bw":
                p = lab.perftest(tool, size=16384, iters=100, limit=60)
                assert p.ok, p.text
            after = received(gw)
            assert all(after[name] > before[name] + 500 for name in after), (before, after)
            flows = [f for f in gw.flows() if f.get("state") == "failed"]
            assert not flows, flows
