# SPDX-License-Identifier: Apache-2.0
# Reads RoCEv2 packets over IPv4 from a capture of Ethernet frames. It reads headers only and is no
# dissector.
import struct
from dataclasses import dataclass

ACK = 0x11
COMPLETING = {0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0a, 0x0b, 0x16, 0x17}  # LAST and ONLY
CONTINUED = {0x00, 0x01, 0x06, 0x07}  # FIRST and MIDDLE


@dataclass
class Packet:
    """One RoCEv2 packet: time in s, addresses, UDP source port, BTH fields, AETH syndrome of an ACK, MAC addresses."""
    time: float
    src: str
    dst: str
    port: int
    opcode: int
    qpn: int
    psn: int
    ack_req: bool
    syndrome: int = -1
    smac: str = ""
    dmac: str = ""

    @property
    def rnr_nak(self):
        return self.syndrome >> 5 == 1


def roce(path):
    """All RoCEv2/IPv4 packets of the capture, in order."""
    data = path.read_bytes()
    at = 24
    while at + 16 <= len(data):
        sec, usec, size, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16:at + 16 + size]
        at += 16 + size
        if len(frame) < 54 or frame[12:15] != b"\x08\x00\x45" or frame[23] != 17 or frame[36:38] != b"\x12\xb7":
            continue
        bth = frame[42:]
        yield Packet(sec + usec / 1e6, ".".join(map(str, frame[26:30])), ".".join(map(str, frame[30:34])),
                     int.from_bytes(frame[34:36], "big"), bth[0], int.from_bytes(bth[5:8], "big"),
                     int.from_bytes(bth[9:12], "big"), bool(bth[8] & 0x80), bth[12] if bth[0] == ACK else -1,
                     frame[6:12].hex(":"), frame[:6].hex(":"))


@dataclass
class Datagram:
    """An IPv4 packet: time in s, addresses, TOS, bytes of its frame on the wire, whatever the capture kept of it."""
    time: float
    src: str
    dst: str
    tos: int
    length: int


def ip(path):
    """All IPv4 packets of the capture, in order."""
    data = path.read_bytes()
    at = 24
    while at + 16 <= len(data):
        sec, usec, size, length = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16:at + 16 + size]
        at += 16 + size
        if len(frame) >= 34 and frame[12:15] == b"\x08\x00\x45":
            yield Datagram(sec + usec / 1e6, ".".join(map(str, frame[26:30])), ".".join(map(str, frame[30:34])), frame[15], length)


def repeated(path, host):
    """SEND and WRITE packets that this host sent again: (those that complete a message, others),
    lists of (destination QPN, PSN, seconds since the first time)."""
    first, completing, others = {}, [], []
    for p in roce(path):
        if p.src != host or p.opcode not in COMPLETING | CONTINUED:
            continue
        if (p.qpn, p.psn) in first:
            (completing if p.opcode in COMPLETING else others).append((p.qpn, p.psn, p.time - first[p.qpn, p.psn]))
        first.setdefault((p.qpn, p.psn), p.time)
    return completing, others


def ack_delays(path, host):
    """The seconds from each packet of `host` with AckReq until an ACK that covers it was on the
    same wire."""
    waiting, delays = [], []
    for p in roce(path):
        if p.src == host and p.ack_req and p.opcode < ACK:
            waiting.append(p)
        elif p.dst == host and p.opcode == ACK:
            covered = [w for w in waiting if (p.psn - w.psn) & 0x800000 == 0]
            delays += [p.time - w.time for w in covered]
            waiting = [w for w in waiting if w not in covered]
    return delays
