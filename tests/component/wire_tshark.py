#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""wire_tshark.py BUILD: packets of roce/, read by two other programs: tshark (every field, nothing
malformed) and tests/lib/roce_icrc.py."""
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKER = HERE.parent / "lib" / "roce_icrc.py"
# tshark 4.0 knows CNP as 0x80 and shows ours as unknown, lacks XRC's extension header, and fails on
# some of RD's: of these only the BTH is compared.
DECODED = ("RC_", "UC_", "UD_")


def tshark(pcap, *args):
    # tshark guesses RPC over RDMA from payload bytes, wrongly for ours.
    cmd = ["tshark", "-n", "-r", str(pcap), "--disable-protocol", "rpcordma", *args]
    return subprocess.run(cmd, capture_output=True, text=True, check=True, timeout=120).stdout


def parse_lines(text):
    """[(name, {field: value})] of the lines that the emitter prints."""
    out = []
    for line in text.splitlines():
        m = re.match(r"([A-Z_]+) opcode=", line)
        if m:
            out.append((m[1], dict(kv.split("=", 1) for kv in line.split()[1:])))
    return out


def number(text):
    return int(text, 0) if text else None


def check_tshark(pcap, packets):
    bad = []
    verbose = tshark(pcap, "-V")
    frames = re.split(r"^Frame \d+: ", verbose, flags=re.M)[1:]
    if len(frames) != len(packets):
        return bad + [f"tshark sees {len(frames)} packets, {len(packets)} were written"]
    fields = sorted({k for _, f in packets for k in f})
    prefixed = [f"infiniband.{k}" if "." in k else f"infiniband.bth.{k}" for k in fields]
    rows = tshark(pcap, "-T", "fields", "-E", "occurrence=f", *(a for f in prefixed for a in ("-e", f))).splitlines()
    for i, ((name, want), row, frame) in enumerate(zip(packets, rows, frames), 1):
        got = dict(zip(fields, row.split("\t")))
        for key, value in want.items():
            if number(got.get(key)) != int(value, 0):
                bad.append(f"packet {i} {name}: {key} is {value}, tshark sees {got.get(key)!r}")
        if name.startswith(DECODED):
            if "alformed" in frame:
                bad.append(f"packet {i} {name}: tshark finds it malformed")
            if "Unknown" in (re.search(r"Opcode: (.*)", frame) or [""])[0]:
                bad.append(f"packet {i} {name}: tshark does not know the opcode")
            if "Invariant CRC" not in frame:
                bad.append(f"packet {i} {name}: tshark finds no ICRC")
    return bad


def check_icrc(pcap, packets):
    spec = importlib.util.spec_from_file_location("roce_icrc", CHECKER)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    bad, seen = [], 0
    for n, link, frame, _ in checker.records(pcap):
        for packet, hlen, complete in checker.roce_packets(checker.to_ip(link, frame)):
            seen += 1
            if not complete or checker.icrc(packet, hlen) != packet[-4:]:
                bad.append(f"packet {n} {packets[n - 1][0]}: the independent checker finds a bad ICRC")
    if seen != len(packets):
        bad.append(f"the checker sees {seen} packets, {len(packets)} were written")
    return bad


def check_checker(pcap, tmp):
    """The checker itself: both file formats, and it finds a wrong bit in any packet."""
    bad = []

    def run(path):
        return subprocess.run([CHECKER, "-q", path], capture_output=True, text=True, timeout=60).returncode

    if run(pcap) != 0:
        bad.append("the checker refuses a good file")
    subprocess.run(["editcap", "-F", "pcapng", pcap, tmp / "good.pcapng"], check=True, timeout=60)
    if run(tmp / "good.pcapng") != 0:
        bad.append("the checker refuses a good pcapng file")
    data = bytearray(pcap.read_bytes())
    data[-5] ^= 1  # last byte before the last ICRC
    (tmp / "bad.pcap").write_bytes(data)
    if run(tmp / "bad.pcap") != 1:
        bad.append("the checker misses a flipped bit")
    (tmp / "none.pcap").write_bytes(bytes(data[:24]))
    if run(tmp / "none.pcap") != 3 or run(tmp / "absent.pcap") != 2 or run(CHECKER) != 2:
        bad.append("the checker's exit status is wrong for files without RoCEv2")
    return bad


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    if not shutil.which("tshark") or not shutil.which("editcap"):
        print("tshark and editcap are needed (apt-get install tshark wireshark-common)")
        return 1
    with tempfile.TemporaryDirectory() as name:
        tmp = Path(name)
        pcap = tmp / "emit.pcap"
        text = subprocess.run([build / "tests/unit/test_roce_emit", pcap], capture_output=True, text=True, check=True, timeout=60)
        packets = parse_lines(text.stdout)
        results = {
            "tshark": check_tshark(pcap, packets),
            "icrc": check_icrc(pcap, packets),
            "checker": check_checker(pcap, tmp),
        }
    for bad in results.values():
        for line in bad[:20]:
            print(line)
    failed = sum(1 for bad in results.values() if bad)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
