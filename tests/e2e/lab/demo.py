# SPDX-License-Identifier: Apache-2.0
# The demo's table: WRITE, SEND, READ at three distances, with and without loss, natively and
# through Roceway.
import argparse
import fcntl
import json
import signal
import time

from .lab import Lab
from .paths import BIN, BUILD, OUT
from .proc import LabError
from .runner import TestTimeout, exit_on_signals, need_root, time_limit

OPS = ["write", "send", "read"]
RTTS = [0.2, 20, 100]
LOSSES = [0, 1]
SIZE = 65536
SECONDS = 5  # perftest -D; it does not measure the first and the last second
# QP timeout (268 ms) of both sides: longer than the longest RTT, but short, since native recovery
# waits for it
TIMEOUT = 16
LIMIT = 12     # a run that takes longer is ended
FOOTER = f"""One QP, {SIZE // 1024} KiB messages, RoCE MTU 1024, {SECONDS} s a run of which the middle {SECONDS - 2} s count,
QP timeout {TIMEOUT} (268 ms), retry 7, the same on both sides. Loss is independent, each way.
Hosts: Debian's kernel with Soft-RoCE in QEMU; ratios tell more than figures."""


class Demo:
    def __init__(self, args):
        self.args = args
        self.modes = ["native"] if args.native else ["native", "gateway"]
        self.figures, self.notes = {}, {}
        self.begin = time.monotonic()

    def say(self, text):
        print(f"[{time.monotonic() - self.begin:5.0f} s] {text}", flush=True)

    def run(self):
        self.log_lines = []
        self.lab = Lab(print if self.args.verbose else self.log_lines.append)
        try:
            self.say("booting two hosts")
            self.lab.boot()
            for mode in self.modes:
                self.lab.wan()
                self.lab.use(mode)
                self.mode = mode
                for rtt in RTTS:
                    for loss in LOSSES:
                        self.lab.wan(rtt_ms=rtt, loss=loss)
                        self.measure(mode, rtt, loss)
        finally:
            if self.notes:
                self.keep()
            self.lab.close()

    def keep(self):
        """Keeps the logs of a demo in which something did not finish."""
        out = OUT / "demo"
        out.mkdir(parents=True, exist_ok=True)
        (out / "log.txt").write_text("\n".join(self.log_lines) + "\n")
        for p in self.lab.log_files():
            (out / p.name).write_bytes(p.read_bytes())
        self.say(f"some runs did not finish; logs: {out}/")

    def measure(self, mode, rtt, loss):
        words = []
        for op in OPS:
            key = (mode, op, rtt, loss)
            self.figures[key], note = self.one(op, {"rtt_ms": rtt, "loss": loss})
            if note:
                self.notes[key] = note
            words.append(f"{op.upper()} {self.figures[key]:.2f}" + (f" ({note})" if note else ""))
        self.say(f"{'native ' if mode == 'native' else 'Roceway'}  RTT {rtt:g} ms, loss {loss:g} %: {', '.join(words)} MB/s")

    def path(self, impairments):
        """After a failed run: checks that the hosts still reach each other. If they do not, an
        emulated network device hung (QEMU's does on a very busy machine), and the run means
        nothing: the hosts are booted again."""
        lab, mode = self.lab, self.lab.mode
        lab.wan()
        try:
            if mode and not lab.hung():
                lab.wait_path(10)
                lab.wan(**impairments)
                return True
        except LabError:
            pass
        self.say("the hosts do not reach each other any more, over a clean WAN: booting them again")
        lab.gateways_stop()
        lab.reboot()
        lab.use(mode or self.mode)
        lab.wan(**impairments)
        return False

    def one(self, op, impairments, again=True):
        """(MB/s, note). If perftest reported nothing: what arrived, with a note. On a busy machine it
        may report 0.00 of a transfer that went well, since its timers fire late: that one is run
        again."""
        lab = self.lab
        lab.counters_mark()
        start = time.monotonic()
        try:
            with time_limit(LIMIT + 30):
                p = lab.perftest(f"ib_{op}_bw", size=SIZE, seconds=SECONDS, timeout=TIMEOUT, limit=LIMIT)
            if p.ok and p.bw:
                return p.bw, ""
            if p.ok and again:
                self.say(f"{op.upper()}: perftest reports 0.00 MB/s: the run is repeated")
                return self.one(op, impairments, False)
            why = reason(p.text)
            lab.log(p.text)
        except (LabError, TestTimeout) as e:
            why = str(e)[:80] or "no answer"
        got = self.arrived(op) / (time.monotonic() - start) / 1e6
        lab.describe()
        lab.settle()
        if again and not self.path(impairments):
            return self.one(op, impairments, False)
        if lab.mode == "gateway":
            self.gateways_renew()
        return got, why

    def gateways_renew(self):
        """Starts new gateways, so that a failed run does not spoil the next."""
        for g in self.lab.gateways:
            g.kill()
        for g in self.lab.gateways:
            g.start()

    def arrived(self, op):
        """Bytes that the receiving host took in order during a run that did not finish."""
        host = self.lab.a if op == "read" else self.lab.b
        d = self.lab.rxe_delta(host)
        packets = d["rcvd_pkts"] - d["duplicate_request"] - d["out_of_seq_request"] - d["rcvd_seq_err"]
        return max(packets, 0) * 1024

    def rows(self):
        for rtt in RTTS:
            for loss in LOSSES:
                for op in OPS:
                    native, ours = (self.figures.get((m, op, rtt, loss)) for m in ("native", "gateway"))
                    row = {"op": op.upper(), "rtt_ms": rtt, "loss": loss, "native_MBps": rounded(native),
                           "roceway_MBps": rounded(ours), "ratio": rounded(ours / native) if native and ours is not None else None}
                    notes = [f"{m}: {self.notes[k]}" for m in ("native", "gateway") if (k := (m, op, rtt, loss)) in self.notes]
                    yield dict(row, note="; ".join(notes)) if notes else row

    def print_table(self):
        print(f"\n{'':6}  {'RTT':>7}  {'loss':>5}  {'native RoCE':>12}  {'Roceway':>12}  {'ratio':>7}")
        notes = []
        for r in self.rows():
            mark = ""
            if "note" in r:
                notes.append(r["note"])
                mark = f" [{len(notes)}]"
            print(f"{r['op']:6}  {r['rtt_ms']:>4g} ms  {r['loss']:>3g} %  {cell(r['native_MBps'], ' MB/s'):>12}  "
                  f"{cell(r['roceway_MBps'], ' MB/s'):>12}  {cell(r['ratio'], 'x'):>7}{mark}")
        for i, n in enumerate(notes, 1):
            print(f"[{i}] did not finish; the figure is what arrived until it ended. {n}")
        print("\n" + FOOTER)


def reason(text):
    """perftest's last line before it ended without a result."""
    if "exit 124" in text:
        return f"no end within {LIMIT} s"
    words = [line.strip() for line in text.splitlines() if "rror" in line or "ailed" in line or "Completion" in line]
    return words[0][:80] if words else "perftest failed"


def rounded(x):
    return None if x is None else round(x, 3)


def cell(x, unit):
    return "-" if x is None else f"{x:.2f}{unit}"


def main(argv):
    p = argparse.ArgumentParser(prog="tests/e2e/demo", description="Native RoCE beside Roceway over an emulated WAN.")
    p.add_argument("--native", action="store_true", help="only the native half")
    p.add_argument("-v", "--verbose", action="store_true", help="print every command and its output")
    args = p.parse_args(argv)
    need_root()
    exit_on_signals()
    OUT.mkdir(parents=True, exist_ok=True)
    if not args.native and not (BIN / "roceway-gateway").exists():
        print(f"{BIN}/roceway-gateway is not built; --native runs without it")
        return 2
    demo = Demo(args)
    try:
        with open(OUT / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            demo.run()
    except LabError as e:
        print(f"the lab failed: {e}")
        return 1
    except KeyboardInterrupt:
        print("interrupted")
        return 128 + signal.SIGINT
    demo.print_table()
    path = BUILD / "demo.json"
    path.write_text(json.dumps(list(demo.rows()), indent=1) + "\n")
    demo.say(f"done; the rows are in {path}")
    return 0
