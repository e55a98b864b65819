# SPDX-License-Identifier: Apache-2.0
# Wrong datagrams of the WAN: tests of gw_badinput.py.
import struct
import time

from badinput.from_host import victim
from badinput.lab import changes, rng
from badinput.packets import addr, datagram, fix_ip4, tunnel_ip


def capture(lab, seconds=0.6):
    """UDP payloads from gateway a to gateway b."""
    out = []
    lab.wan_b.drain()
    flow = lab.lasting[False]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert lab.write(flow)
        while (frame := lab.wan_b.recv()) is not None:
            if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[26:30] == addr("192.0.2.1"):
                size = struct.unpack(">H", frame[38:40])[0]
                out.append(frame[42:34 + size])
    assert out
    return out


def strangers(lab):
    d = capture(lab)
    for src in ("192.0.2.77", "10.1.0.2", "0.0.0.0", "192.0.2.2", "255.255.255.255"):
        bad = [tunnel_ip(x, src=src) for x in d[-8:]] + [tunnel_ip(rng.randbytes(rng.randrange(0, 1400)), src=src)
                                                         for _ in range(400)]
        lab.attack({"drop_wan_stranger": len(bad)}, lambda: lab.wan_a.send(bad), at="b", allow=("drop_rx_not_ours",))
    away = [tunnel_ip(x, dst=dst) for x in d[-4:] for dst in ("192.0.2.3", "10.2.0.2", "10.2.0.1", "1.2.3.4", "192.0.2.1")]
    lab.attack({"drop_wan_not_ours": len(away)}, lambda: lab.wan_a.send(away), at="b", allow=("drop_rx_not_ours",))
    ports = [tunnel_ip(x, dport=p) for x in d[-4:] for p in (0, 1, 4792, 4794, 4791, 65535)]
    lab.attack({}, lambda: lab.wan_a.send(ports), at="b", allow=("drop_rx_not_ours",))
    # RoCE directly from the WAN to a host, as without a gateway
    lab.attack({"drop_wan_not_ours": 2}, lambda: lab.wan_a.send([victim(), victim(True)]), at="b", allow=("drop_rx_not_ours",))


def wan_headers(lab):
    x = tunnel_ip(capture(lab, 0.2)[-1])
    bad = [fix_ip4(bytes([0x40 | n]) + x[1:]) for n in range(5)]
    lab.attack({"gw_drop_bad_ip": 5}, lambda: lab.wan_a.send(bad), at="b", allow=("drop_rx_not_ours",))
    bad = [x[:24] + struct.pack(">H", n) + x[26:] for n in (0, 7, len(x) - 19, 65535)]
    lab.attack({"drop_bad_udp": len(bad)}, lambda: lab.wan_a.send(bad), at="b", allow=("drop_rx_not_ours",))
    lab.attack({"gw_drop_bad_ip": 20, "drop_rx_truncated": len(x) - 20}, lambda: lab.wan_a.send([x[:n] for n in range(len(x))],
                                                                                       ethertype=0x0800), at="b",
               allow=("drop_rx_not_ours",))


def wan_forged(lab):
    """From the right address: wrong index, checksum, length, version, random bytes."""
    d = next(x for x in capture(lab) if x[0] == 0x20 and len(x) > 100)
    hit = lambda expect, bad: lab.attack({"wan_" + k: v for k, v in expect.items()}, lambda: lab.wan_a.send(map(tunnel_ip, bad)),
                                         at="b", allow=("drop_rx_not_ours",))
    hit({"drop_unknown_tunnel": 1000}, [datagram(d[:4] + rng.randbytes(4) + d[8:]) for _ in range(1000)])
    flips = [d[:i] + bytes([d[i] ^ 1 << rng.randrange(8)]) + d[i + 1:] for i in range(8, len(d))]
    hit({"drop_crc": len(flips)}, flips)
    hit({"drop_short": 21}, [d[:n] for n in range(21)])
    hit({"drop_crc": len(d) - 21}, [d[:n] for n in range(21, len(d))])
    hit({"drop_version": 240 + 14}, [datagram(bytes([n]) + d[1:]) for n in range(256) if n not in (0x20, 0x21)])
    hit({"drop_version": 252}, [datagram(d[:1] + bytes([n]) + d[2:]) for n in range(4, 256)])
    hit({"drop_unknown_tunnel": 255}, [datagram(d[:2] + bytes([n]) + d[3:]) for n in range(1, 256)])
    g = lab.gw["b"]
    before = g.counters()
    junk = [rng.randbytes(rng.randrange(0, 1400)) for _ in range(2000)]
    lab.wan_a.send(map(tunnel_ip, junk))
    end = time.monotonic() + 20
    while True:
        got = changes(before, g.counters())
        dropped = sum(v for k, v in got.items() if k.startswith("wan_drop_"))
        if dropped == len(junk):
            break
        assert dropped < len(junk) and time.monotonic() < end, got
        time.sleep(0.05)
    lab.works()


def wan_replayed(lab):
    """Earlier datagrams again: their data is known, and an old HELLO resets nothing."""
    d = lab.captured + capture(lab)
    data, hello = [x for x in d if x[0] == 0x20], [x for x in d if x[0] == 0x21]
    assert data and hello
    data = (data * 2000)[:2000]
    lab.attack({"wan_drop_duplicate_pn": len(data)}, lambda: lab.wan_a.send(map(tunnel_ip, data)), at="b", allow=("drop_rx_not_ours",))
    hello = (hello * 500)[:500]
    lab.attack({}, lambda: lab.wan_a.send(map(tunnel_ip, hello)), at="b", allow=("drop_rx_not_ours",))
    g = lab.gw["b"]
    assert g.text().count("state=up") == 1 and "state=down" not in g.text(), g.text()


def wan_hello(lab):
    """HELLOs that the peer never sent: other epochs, other tunnels, short and random ones."""
    h = next(x for x in lab.captured if x[0] == 0x21)
    hit = lambda expect, bad: lab.attack({"wan_" + k: v for k, v in expect.items()}, lambda: lab.wan_a.send(map(tunnel_ip, bad)),
                                         at="b", allow=("drop_rx_not_ours",))
    epochs = [datagram(h[:20 + 16] + rng.randbytes(16) + h[20 + 32:]) for _ in range(500)]
    hit({}, epochs)
    hit({"drop_unknown_tunnel": 300}, [datagram(h[:20 + 8] + rng.randbytes(8) + h[20 + 16:]) for _ in range(300)])
    hit({"drop_bad_frame": 67}, [datagram(h[:20 + n]) for n in range(1, 68)])  # with 68 bytes, an older gateway's
    hit({"drop_bad_frame": 2}, [datagram(h[:20 + 2] + b"\0\0" + h[20 + 4:]), datagram(h[:20 + 48] + bytes(4) + h[20 + 52:])])
    assert lab.gw["b"].text().count("state=up") == 1 and "state=down" not in lab.gw["b"].text(), lab.gw["b"].text()


def wan_frames(lab):
    """Right address, index, number and CRC, but invalid frames."""
    g = lab.gw["b"]
    d = [x for x in capture(lab) if x[0] == 0x20][-1]
    pn = struct.unpack(">Q", d[8:16])[0]
    head = lambda n: d[:8] + struct.pack(">Q", n) + bytes(4)
    kinds = [0x00, 0x09, 0x0A, 0x0F, *range(0x1B, 0x20), 0x20, 0x7F, 0xFF]
    # No valid frame by chance behind padding (0x00).
    bad = [datagram(head(pn + 5000 + i) + bytes([kinds[i % len(kinds)], 0xFF]) + rng.randbytes(rng.randrange(0, 200))) for i in range(1000)]
    short = [(2, 14), (3, 14), (4, 8), (5, 11), (6, 11), (7, 3), (8, 3), (0x10, 8), (0x11, 17), (0x12, 13), (0x18, 0), (0x1A, 9)]
    bad += [datagram(head(pn + 9000 + i) + bytes([k]) + b"\1" * n) for i, (k, n) in enumerate(short)]
    lab.attack({"wan_drop_bad_frame": len(bad)}, lambda: lab.wan_a.send(map(tunnel_ip, bad)), at="b", allow=("drop_rx_not_ours",))
    # numbers beyond all sent ones
    far = [datagram(head(n) + b"\1") for n in (1 << 62, (1 << 64) - 1)]
    lab.attack({"wan_drop_bad_frame": 2}, lambda: lab.wan_a.send(map(tunnel_ip, far)), at="b", allow=("drop_rx_not_ours",))
    assert g.text().count("state=up") == 1, g.text()
