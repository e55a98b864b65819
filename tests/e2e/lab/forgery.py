# SPDX-License-Identifier: Apache-2.0
# Packets with which a host of one tenant (the attacker) may try to reach another's (the victim's),
# drawn by seed. The attacker knows everything: addresses, MACs, QPNs, PSNs. It forges all but its
# own source MAC address on the LAN, which its switch port enforces. KINDS has one function per kind
# of forgery; each gives one frame. None may reach the victim, and each is one drop.
import random
from dataclasses import dataclass

from . import frames as f

MARK = b"FORGED!!"
SPORT = 0x6f6f  # of forged inner packets that are too short for the mark


@dataclass
class Known:
    """The attacker's knowledge. Addresses are packed, MACs are bytes."""
    mac: bytes          # the attacker's own
    gw_mac: bytes       # the gateway's on the LAN
    ip: bytes           # the attacker's VTEP
    gw_ip: bytes  # the gateway's VTEP, its remote one
    vni: int
    inner_gw_mac: bytes
    v_vni: int          # the victim's
    v_vlan: int
    v_inner_gw_mac: bytes
    v_mac: bytes        # its inner MAC
    v_ip: bytes         # its VTEP
    v_far_ip: bytes     # the VTEP of its far host
    src: bytes          # inner addresses: both tenants have the same
    dst: bytes
    qpns: list          # QPNs and PSNs of the victim's connections, in either direction
    psns: list


class Forger:
    def __init__(self, known, seed):
        self.k, self.r = known, random.Random(seed)

    # --- parts ------------------------------------------------------------------------------------
    def roce(self, src=None, dst=None, **args):
        """A RoCE packet as the victim sends or receives it: mostly right, sometimes random."""
        r, k = self.r, self.k
        opcode = r.choice(list(f.EXT) + [0, 1, 2, 4, 7, 8, 14]) if r.random() < 0.9 else r.randrange(256)
        qpn = r.choice(k.qpns) if r.random() < 0.7 else r.randrange(1 << 24)
        psn = (r.choice(k.psns) + r.choice([0, 0, 1, -1, r.randrange(-300, 300)]) if r.random() < 0.8 else r.randrange(1 << 24)) % (1 << 24)
        load = b"" if opcode in (12, 16, 17, 18, 19, 20) else MARK + r.randbytes(r.choice([0, 8, 56, 1016]))
        return f.roce(src or k.src, dst or k.dst, SPORT, opcode, qpn, psn, r.randbytes(f.EXT.get(opcode, 0)), load, **args)

    def inner(self, packet, src_mac=None, dst_mac=None, vlan=None, kind=None):
        return f.ether(dst_mac or self.k.v_inner_gw_mac, src_mac or self.k.v_mac, packet, kind, vlan)

    def frame(self, payload, **args):
        return f.ether(self.k.gw_mac, self.k.mac, payload, **args)

    def outer(self, vni, inner, src=None, dst=None, flags=8, reserved=0, **ip_args):
        src = src or self.k.ip
        u = f.udp(self.r.randrange(1024, 65536), f.VXLAN, f.vxlan(vni, inner, flags, reserved))
        return self.frame(f.ip(src, dst or self.k.gw_ip, u, **ip_args))

    def any_address(self, like):
        return self.r.randbytes(len(like)) if len(like) == 16 else bytes([self.r.choice([10, 172, 192, 100]), *self.r.randbytes(3)])

    # --- kinds ------------------------------------------------------------------------------------
    def victims_vni(self):
        """The victim's VNI from the attacker's own VTEP."""
        return self.outer(self.k.v_vni, self.inner(self.roce()))

    def victims_vni_other(self):
        """The same without RoCE: UDP, TCP, ICMP to the victim."""
        r, k = self.r, self.k
        proto = r.choice([1, 6, 17])
        body = f.udp(SPORT, r.randrange(1, 65536), MARK) if proto == 17 else MARK + r.randbytes(24)
        return self.outer(k.v_vni, self.inner(f.ip(k.src, k.dst, body, proto=proto)))

    def victims_vtep(self):
        """The victim's VNI with the victim's VTEP as outer source: only the source MAC is the
        attacker's."""
        return self.outer(self.k.v_vni, self.inner(self.roce()), src=self.k.v_ip)

    def strange_vtep(self):
        """The victim's VNI from VTEPs that do not exist."""
        like = self.k.ip
        src = self.any_address(like) if len(like) == 16 else like[:3] + bytes([self.r.randrange(20, 250)])
        if len(src) == 16:
            src = like[:15] + bytes([self.r.randrange(20, 250)])
        return self.outer(self.k.v_vni, self.inner(self.roce()), src=src)

    def unknown_vni(self):
        """VNIs of no tenant."""
        while (vni := self.r.randrange(1, 1 << 24)) in (self.k.vni, self.k.v_vni):
            pass
        return self.outer(vni, self.inner(self.roce()))

    def zero_vni(self):
        return self.outer(0, self.inner(self.roce()))

    def flags(self):
        """The I flag missing, or flags of VXLAN-GPE."""
        flags = self.r.choice([x for x in range(256) if not x & 8 or x & 0x34])
        return self.outer(self.r.choice([self.k.v_vni, self.k.vni]), self.inner(self.roce()), flags=flags)

    def nested(self):
        """VXLAN with the victim's VNI inside the attacker's VNI."""
        k = self.k
        deep = f.vxlan(k.v_vni, self.inner(self.roce()))
        return self.outer(k.vni, self.inner(f.ip(k.src, self.r.choice([x for x in (k.dst, k.gw_ip, k.v_far_ip) if len(x) == len(k.src)]), f.udp(4000, f.VXLAN, deep)),
                                            src_mac=k.mac, dst_mac=k.inner_gw_mac))

    def inner_fragment(self):
        """First fragments of RoCE in the attacker's tenant. (Later ones show no port: they are
        other IP, carried to a host of that tenant.)"""
        k = self.k
        return self.outer(k.vni, self.inner(self.roce(frag=0x2000), k.mac, k.inner_gw_mac))

    def inner_source(self):
        """The attacker's VNI with inner sources that its tenant does not have on that side."""
        k = self.k
        src = self.r.choice([self.any_address(k.src), k.dst])
        while src[:-1] == k.src[:-1]:
            src = self.any_address(k.src)
        return self.outer(k.vni, self.inner(self.roce(src=src), k.mac, k.inner_gw_mac))

    def inner_destination(self):
        """The attacker's VNI to addresses outside its tenant: the victim's VTEPs, other networks.
        """
        k = self.k
        return self.outer(k.vni, self.inner(self.roce(dst=self.r.choice([x for x in (k.v_far_ip, k.v_ip) if len(x) == len(k.src)] + [self.any_address(k.src)])), k.mac, k.inner_gw_mac))

    def inner_tag(self):
        """The victim's VLAN, or a random one, as a tag in the attacker's VXLAN."""
        return self.outer(self.k.vni, self.inner(self.roce(), self.k.mac, self.k.inner_gw_mac, vlan=self.r.choice([self.k.v_vlan, self.r.randrange(2, 4094)])))

    def inner_mac(self):
        """Multicast addresses and 0 as inner source."""
        return self.outer(self.k.vni, self.inner(self.roce(), self.r.choice([b"\xff" * 6, bytes(6), b"\x01\x00\x5e\x00\x00\x01"]), self.k.inner_gw_mac))

    def truncated(self):
        """Cut inside the inner headers, with consistent lengths or not."""
        k, r = self.k, self.r
        inner = self.inner(self.roce(), k.mac, k.inner_gw_mac)
        return self.outer(k.vni, inner[:r.randrange(0, 33)])

    def own_bad_icrc(self):
        """In the attacker's tenant: RoCE requests with a wrong ICRC."""
        k = self.k
        return self.outer(k.vni, self.inner(f.roce(k.src, k.dst, SPORT, 10, self.r.choice(k.qpns), self.r.choice(k.psns), bytes(16), MARK,
                                                   icrc_xor=self.r.randrange(1, 1 << 32)), k.mac, k.inner_gw_mac))

    def own_answers(self):
        """In the attacker's tenant: responses to the victim's connections, which this tenant does
        not have."""
        k, r = self.k, self.r
        opcode = r.choice([13, 15, 16, 17, 18])
        return self.outer(k.vni, self.inner(f.roce(k.src, k.dst, SPORT, opcode, r.choice(k.qpns), r.choice(k.psns), r.randbytes(f.EXT[opcode]),
                                                   MARK if opcode < 17 else b""), k.mac, k.inner_gw_mac))

    def vlan(self):
        """Tagged with the victim's VLAN, or a random one."""
        return self.frame(self.roce(), vlan=self.r.choice([self.k.v_vlan, self.r.randrange(2, 4094)]))

    def plain(self):
        """Untagged, without VXLAN, with the victim's inner addresses."""
        return self.frame(self.roce())

    def transit(self):
        """VXLAN past the gateway: directly to the victim's far VTEP, from the attacker's VTEP or
        the victim's."""
        return self.outer(self.k.v_vni, self.inner(self.roce()), src=self.r.choice([self.k.ip, self.k.v_ip]), dst=self.k.v_far_ip)

    def arp_victim(self):
        """ARP in the victim's VNI: it claims the victim's or the gateway's address for the
        attacker."""
        k, r = self.k, self.r
        if len(k.src) == 16:
            return self.nd(k.v_vni)
        who = r.choice([k.src, k.dst, k.src[:3] + b"\x01"])
        msg = f.arp(r.choice([1, 2]), k.mac, who, bytes(6), r.choice([who, k.src]))
        return self.outer(k.v_vni, self.inner(msg, k.mac, r.choice([b"\xff" * 6, k.v_inner_gw_mac]), kind=0x0806))

    def arp_own(self):
        """ARP in the attacker's VNI: the gateway's address, or one outside its tenant; MACs that
        disagree."""
        k, r = self.k, self.r
        if len(k.src) == 16:
            return self.nd(k.vni)
        how = r.randrange(3)
        who = k.src[:3] + b"\x01" if how == 0 else self.any_address(k.src) if how == 1 else k.src
        msg = f.arp(2, r.randbytes(6) if how == 2 else k.mac, who, k.inner_gw_mac, k.src[:3] + b"\x01")
        return self.outer(k.vni, self.inner(msg, k.mac, k.inner_gw_mac, kind=0x0806))

    def nd(self, vni):
        k, r = self.k, self.r
        target = r.choice([k.src[:15] + b"\x01", self.any_address(k.src)])
        hop = r.choice([255, 64])
        return self.outer(vni, self.inner(f.advert(k.src, f.addr("ff02::1"), target, k.mac, hop), k.mac, b"\x33\x33\0\0\0\x01"))


# Frames per thousand. Outer fragments are not among them: the kernel reassembles or keeps them
# before the gateway's af_packet port sees them (tests/component/ has them).
KINDS = {"victims_vni": 200, "victims_vni_other": 40, "victims_vtep": 150, "strange_vtep": 50, "unknown_vni": 40, "zero_vni": 20,
         "flags": 70, "nested": 50, "inner_fragment": 40, "inner_source": 60, "inner_destination": 40,
         "inner_tag": 30, "inner_mac": 20, "truncated": 30, "own_bad_icrc": 30, "own_answers": 40, "vlan": 40, "plain": 20,
         "transit": 30, "arp_victim": 30, "arp_own": 30}


def draw(known, seed, count, kinds=KINDS):
    """(kind, frame), count of them."""
    forger = Forger(known, seed)
    names = random.Random(seed ^ 1).choices(list(kinds), list(kinds.values()), k=count)
    for name in names:
        yield name, getattr(forger, name)()
