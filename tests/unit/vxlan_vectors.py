#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""vxlan_vectors.py BUILD | --write: packets made by scapy for test_vxlan_wire.c, in
vxlan_vectors.h. As a test: the file equals scapy's output."""
import sys
from pathlib import Path

from scapy.all import ARP, Dot1Q, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IP, IPv6, Raw, UDP, raw
from scapy.layers.vxlan import VXLAN

OUT = Path(__file__).resolve().parents[1] / "lib" / "vxlan_vectors.h"
SRC_MAC, DST_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
ROCE = bytes.fromhex("0440ffff0000001280000007") + b"abcd" + bytes(4)


STRUCT = """struct vec {
	const char *name;
	const uint8_t *bytes; /* from the outer IP header on */
	uint32_t len;
	bool is6, csum; /* underlay, UDP checksum */
	uint16_t tci;   /* 0: untagged */
	uint32_t vni;
	uint16_t sport;
	uint8_t tos;   /* outer */
	uint8_t inner; /* enum vxlan_inner */
	bool roce;
	uint32_t net_off;
};

"""


def inner4(payload=ROCE, dport=4791):
    return IP(src="10.0.0.1", dst="10.0.0.2", ttl=64, tos=0x6A, flags="DF", id=0) / UDP(sport=50001, dport=dport, chksum=0) / Raw(payload)


def inner6():
    return IPv6(src="fd00::1", dst="fd00::2", hlim=64, tc=0x6A) / UDP(sport=50001, dport=4791) / Raw(ROCE)


def outer4(sport, tos, csum):
    udp = UDP(sport=sport, dport=4789) if csum else UDP(sport=sport, dport=4789, chksum=0)
    return IP(src="192.0.2.1", dst="192.0.2.2", ttl=64, tos=tos, flags="DF", id=0) / udp


def outer6(sport, tos, csum):
    udp = UDP(sport=sport, dport=4789) if csum else UDP(sport=sport, dport=4789, chksum=0)
    return IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=64, tc=tos, fl=sport) / udp


def vectors():
    """name, underlay is IPv6, UDP checksum, tag or 0, VNI, source port, outer TOS, kind, RoCE, inner packet."""
    arp = ARP(op=1, hwsrc=SRC_MAC, psrc="10.0.0.1", hwdst="00:00:00:00:00:00", pdst="10.0.0.2")
    kinds = (("ip4", "IP4", True, inner4()), ("ip6", "IP6", True, inner6()), ("tcpish", "IP4", False, inner4(b"hello", 53)),
             ("odd", "IP4", False, inner4(b"odd", 53)), ("arp", "ARP", False, arp))
    n = 0
    for under6 in (False, True):
        for csum in (False, True):
            for tci in (0, 0x6064):
                for name, kind, roce, packet in kinds:
                    n += 1
                    yield (f"{name}{'-tag' if tci else ''}{'-csum' if csum else ''}-over-ip{6 if under6 else 4}", under6, csum, tci,
                           0x10203 * n & 0xFFFFFF, 49152 + 257 * n, 7 * n & 0xFF, kind, roce, packet)


def emit(name, data):
    rows = [", ".join(f"0x{b:02x}" for b in data[i:i + 16]) for i in range(0, len(data), 16)]
    return f"static const uint8_t {name}[] = {{\n    " + ",\n    ".join(rows) + "};\n"


def nd():
    """A neighbour solicitation, and its answers: for the gateway's own address, and as a proxy."""
    gw = "02:00:00:00:00:fe"
    ns = (Ether(src=SRC_MAC, dst="33:33:ff:00:00:09") / IPv6(src="fd00::1", dst="ff02::1:ff00:9", hlim=255)
          / ICMPv6ND_NS(tgt="fd00::9") / ICMPv6NDOptSrcLLAddr(lladdr=SRC_MAC))
    yield "vec_ns", ns
    for name, override, router in (("vec_na_own", 1, 1), ("vec_na_proxy", 0, 1)):
        yield name, (Ether(src=gw, dst=SRC_MAC) / IPv6(src="fd00::9", dst="fd00::1", hlim=255)
                     / ICMPv6ND_NA(R=router, S=1, O=override, tgt="fd00::9") / ICMPv6NDOptDstLLAddr(lladdr=gw))
    yield "vec_ns_made", (Ether(src=gw, dst="33:33:ff:00:00:07") / IPv6(src="fd00::fe", dst="ff02::1:ff00:7", hlim=255)
                          / ICMPv6ND_NS(tgt="fd00::7") / ICMPv6NDOptSrcLLAddr(lladdr=gw))


def main():
    text, rows = "", []
    for i, (name, under6, csum, tci, vni, sport, tos, kind, roce, packet) in enumerate(vectors()):
        eth = Ether(src=SRC_MAC, dst=DST_MAC)
        frame = (eth / Dot1Q(prio=tci >> 13, vlan=tci & 0xFFF) if tci else eth) / packet
        data = raw((outer6 if under6 else outer4)(sport, tos, csum) / VXLAN(vni=vni, flags=8) / frame)
        off = len(data) - len(raw(packet))
        text += emit(f"vec{i}", data)
        rows.append(f'    {{"{name}", vec{i}, sizeof(vec{i}), {int(under6)}, {int(csum)}, {tci:#x}, {vni:#x}, {sport}, {tos:#x}, '
                    f"VXLAN_INNER_{kind}, {int(roce)}, {off}}},")
    for name, frame in nd():
        text += emit(name, raw(frame))
    head = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Packets made by scapy: written by vxlan_vectors.py --write, not by hand. */\n" '#include "vxlan/vxlan.h"\n\n'
    body = "// clang-format off\n" + STRUCT + text + "\nstatic const struct vec vecs[] = {\n" + "\n".join(rows) + "\n};\n// clang-format on\n"
    if sys.argv[1:] == ["--write"]:
        OUT.write_text(head + body)
        return 0
    same = OUT.read_text() == head + body
    print("1 passed, 0 failed" if same else "vxlan_vectors.h is not what scapy makes\n0 passed, 1 failed")
    return 0 if same else 1


sys.exit(main())
