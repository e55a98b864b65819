#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile packets to two real gateways, from a host on the LAN and from attackers on the WAN.

    ha [eth0] -- [lan0] ga [wan0] ======= [wan0] gb [lan0] -- [eth0] hb

After each class of packets: exactly the named counters changed, at the attacked gateway and at no
other; there is no new flow; no packet reached the other LAN; and a valid connection from before
still carries a WRITE and its ACK. The test acts as both hosts, on raw sockets. It also makes
packets and ICRCs, from the standards, not with roce/. Needs root. Argument: the build folder.
"""
import os
import signal
import struct
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from badinput.from_host import (  # noqa: E402
    bad_mads, bth_version, cut_frame, cut_packet, foreign_source, fragments, frames, ghost_acks, half_open, ip6_extensions, ip_checksum,
    ip_lengths, jumbo, mapped, noise, not_roce, opcodes, options, payloads, psn_window, sequences, stray_mads, udp_lengths, unknown_qpn,
    wrong_icrc)
from badinput.from_wan import strangers, wan_forged, wan_frames, wan_headers, wan_hello, wan_replayed  # noqa: E402
from badinput.lab import Lab  # noqa: E402
from badinput.packets import addr  # noqa: E402

TESTS = [cut_frame, cut_packet, ip_lengths, udp_lengths, ip_checksum, payloads, wrong_icrc, opcodes, bth_version, fragments, options, foreign_source,
         ip6_extensions, mapped, unknown_qpn, ghost_acks, psn_window, sequences, bad_mads, stray_mads, not_roce, frames, jumbo, noise,
         strangers, wan_headers, wan_forged, wan_replayed, wan_hello, wan_frames, half_open]


def main():
    if os.geteuid():
        print("skipped: needs root")
        return 0
    only = sys.argv[2:]
    passed = failed = 0
    lab = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        try:
            lab = Lab.__new__(Lab)
            lab.gw = {}
            lab.__init__(folder)
            lab.wan_b.drain()
            lab.start()
            lab.captured = []
            while (frame := lab.wan_b.recv()) is not None:
                if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[26:30] == addr("192.0.2.1"):
                    lab.captured.append(frame[42:34 + struct.unpack(">H", frame[38:40])[0]])
            for t in TESTS:
                if only and t.__name__ not in only:
                    continue
                began = time.monotonic()
                try:
                    t(lab)
                    passed += 1
                    print("ok %s %.1f s" % (t.__name__, time.monotonic() - began), flush=True)
                except AssertionError as e:
                    failed += 1
                    print("not ok %s: line %d: %s" % (t.__name__, e.__traceback__.tb_next.tb_lineno, e), flush=True)
            ends = [g.stop() for g in lab.gw.values()]
            good = ends == [0, 0]
            passed, failed = passed + good, failed + (not good)
            print("%s end %s%s" % ("ok" if good else "not ok", ends, "" if good else "".join(g.text()[-2000:] for g in lab.gw.values())))
        finally:
            if lab:
                lab.close()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
