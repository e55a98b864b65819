# SPDX-License-Identifier: Apache-2.0
"""Stages of the fast path: which function belongs to which, and what a stage's samples add up to.

A sample of a profile is a call stack. Its innermost function that STAGES names decides the stage;
helpers that are not named belong to the stage that calls them. A name that two files of the packet
path define is not in it. missing() and Tally.problems() report what a renamed function leaves behind.
"""
import collections
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIDES = {"near_turn": "near", "far_turn": "far"}  # fp_run.c: a gateway's turn in a batch that counts
OTHER = "other"
OTHER_MAX = 0.05  # of a side's samples; more: the table lacks a function
ENOUGH = 1000  # samples of a side; with fewer, a stage can be without one by chance
WIDTH = 100
FUNCTIONS = 3  # of a stage

# (stage, sides that cannot be without it, {file that defines them: functions}). "clear": only without keys; "sealed": only with
# keys. Functions of DPDK, of libraries and of the kernel have no file; NAME* is all that begin so.
STAGES = (
    ("receive a burst", "near far", {
        "gateway/datapath/worker.c": "ports_receive", "gateway/datapath/rx.c": "gw_rx rx_one parse_l2 prefetch_burst prefetch_head prefetch_rest",
        "gateway/datapath/rx.h": "gw_rx_ip gw_rx_engine", "gateway/datapath/pkt.h": "gw_pkt_ip", "": "rte_eth_rx_burst"}),
    ("verdict, tunnel's look-up", "near far", {
        "gateway/datapath/rx.c": "from_lan from_wan from_tunnel tunnel_find path_hears", "gateway/datapath/resolve.c": "gw_resolve_source",
        "gateway/datapath/verdict.c": "gw_verdict_find"}),
    ("parse", "near far", {
        "gateway/datapath/rx_out.c": "gw_rx_flush", "engine/lan.c": "eng_tenant_rx lan_group group_handle lan_packet",
        "roce/parse.c": "roce_parse roce_parse_offsets"}),
    ("connection's look-up", "near", {
        "engine/lan.c": "prefetch_side prefetch_connection rc_packet", "engine/table.c": "eng_key_hash eng_find_hashed", "engine/pair.c": "eng_pair_owner",
        "engine/connection.h": "eng_prefetch_side"}),
    ("ICRC", "near far", {"roce/icrc.c": "roce_icrc_ok roce_icrc_compute roce_icrc_set_ackreq"}),
    ("responder, custody", "near", {
        "engine/responder_states.c": "eng_responder_request", "engine/request.c": "eng_responder_take_request eng_responder_accept",
        "roce/resp.c": "roce_resp_recv", "engine/ack_policy.c": "eng_ack_in_custody", "wan/flow_tx.c": "wan_tx_send wan_tx_send_after"}),
    ("schedule", "near", {"wan/data_new.c": "next_flow has_credit", "wan/sched.c": "wan_sched_pick wan_sched_sent wan_sched_add"}),
    ("DATA frames", "near", {"wan/data_new.c": "wan_data_new new_one", "wan/data.c": "wan_data_put wan_data_attach"}),
    ("FEC", "near", {
        "wan/data.h": "wan_data_wants_fec wan_data_earn_fec", "wan/send.c": "add_to_group put_repair", "wan/recv.c": "frame_repair",
        "wan/fec/fec.c": "wan_fec_add wan_fec_wants wan_fec_takes wan_fec_next_repair mix", "wan/fec/plan.c": "wan_fec_plan wan_fec_refresh",
        "wan/fec/keep.c": "wan_fec_keep", "": "gf_vect_*"}),
    ("datagrams' checksum", "near far clear", {
        "wan/send.c": "checksum", "wan/wire/pkt.c": "wan_pkt_seal wan_pkt_seal_over wan_pkt_open", "engine/port.c": "tx_crc"}),
    ("keys", "near far sealed", {
        "gateway/datapath/tx_wan.c": "sealed", "wan/seal.c": "wan_tx_write_joined", "wan/keys_dgram.c": "wan_keys_mark wan_keys_open", "": "aes_gcm_*"}),
    ("datagrams out", "near far", {
        "engine/engine.c": "poll_tunnels serve_tunnel wan_out", "wan/send.c": "wan_poll send_data", "wan/loss.c": "wan_loss_on_sent wan_loss_room",
        "wan/tunnel.c": "wan_next"}),
    ("headers, transmit", "near far", {
        "gateway/datapath/tx_wan.c": "gw_tx_engine_wan", "gateway/datapath/tx_lan.c": "gw_tx_engine_lan gw_tx_lan packet_send",
        "gateway/datapath/tx.c": "gw_tx_flush gw_txq_flush", "gateway/datapath/tx_make.c": "gw_tx_copy gw_tx_room", "gateway/datapath/resolve.h": "gw_next_hop",
        "": "rte_eth_tx_burst"}),
    ("ACK to the host", "", {"engine/engine.c": "flush_responder", "engine/answer.c": "eng_responder_flush", "engine/emit.c": "eng_lan_made"}),
    ("datagrams in", "far", {
        "engine/engine.c": "eng_wan_rx", "wan/recv.c": "wan_recv receive frames accept", "wan/ack.c": "wan_ack_on_received"}),
    ("ACK in", "near", {"wan/recv.c": "frame_ack", "wan/loss.c": "wan_loss_on_ack"}),
    ("DELIVERED in", "near", {"wan/recv.c": "frame_delivered", "wan/flow_tx.c": "wan_tx_on_delivered deliver_first"}),
    ("flow's order", "far", {"wan/recv.c": "frame_data", "wan/flow_rx.c": "wan_rx_data add_whole hand_over"}),
    ("requester's queue", "far", {
        "engine/port.c": "rx_data", "engine/requester_states.c": "eng_requester_message", "engine/deliver.c": "eng_requester_take_message queue_request",
        "engine/requester.c": "eng_requester_push", "roce/reqr.c": "roce_reqr_push"}),
    ("requests to the host", "far", {
        "engine/turns.c": "eng_requester_flush", "engine/send.c": "eng_requester_send", "roce/reqr_send.c": "roce_reqr_send", "engine/emit.c": "eng_lan_send",
        "engine/drain.c": "eng_drain"}),
    ("the host's ACK", "far", {
        "engine/response.c": "eng_requester_take_response complete_requests", "roce/reqr_recv.c": "roce_reqr_recv", "engine/reported.c": "eng_requester_report",
        "wan/flow_rx.c": "wan_rx_delivered"}),
    ("ACK, DELIVERED out", "", {"wan/send.c": "send_control", "wan/ctl.c": "wan_ctl_put", "wan/ack.c": "wan_ack_put"}),
    ("buffers freed", "near far", {"include/rwy/buf.h": "rwy_buf_free", "gateway/port/mbuf.c": "buf_free"}),
    ("timers", "", {
        "engine/wheel.c": "eng_wheel_run eng_wheel_arm", "engine/requester_states.c": "eng_requester_tick", "wan/tunnel.c": "wan_tick",
        "wan/loss.c": "wan_loss_tick", "wan/pto.c": "wan_pto", "engine/expire.c": "eng_sweep", "gateway/clock.c": "gw_now", "tenant/vtep.c": "vtep_age"}),
    ("kernel", "", {"": "asm_exc_page_fault asm_sysvec_apic_timer_interrupt entry_SYSCALL_64_after_hwframe"}),
)
STAGE_OF = {function: stage for stage, _, files in STAGES for names in files.values() for function in names.split()}
BEGINS = tuple((f[:-1], stage) for f, stage in STAGE_OF.items() if f.endswith("*"))
# too small to be the function that a reader looks for
TRIVIAL = re.compile(r"_mm\d*_\w+|rte_(prefetch|mov|rdtsc)\w*|rwy_(prefetch|clmul|time_m\w+)|rwy_(get|put)\d+")


def missing(root=ROOT):
    """Functions of the table that their file does not define: [text]."""
    wrong = []
    for stage, _, files in STAGES:
        for name, functions in files.items():
            text = (root / name).read_text() if name and (root / name).exists() else ""
            wrong += [f"{f}, of the stage `{stage}`, is not in {name}" for f in functions.split()
                      if name and not re.search(rf"^(?![\s#/*])[^;=\n]*\b{f}\([^;{{}}]*\)\s*\{{", text, re.M)]
    return wrong


def stage_of(frames):
    """frames: functions from the innermost outwards."""
    for f in frames:
        stage = STAGE_OF.get(f) or next((s for begin, s in BEGINS if f.startswith(begin)), None)
        if stage:
            return stage
    return OTHER


def own(frames):
    """The function that a sample is shown with."""
    return next((f for f in frames if not TRIVIAL.fullmatch(f)), frames[0])


FRAME = re.compile(r"\s*[0-9a-f]+ (.*) \(([^()]*(?:\([^()]*\))?)\)$")


def frame(line):
    """The function in a line of a stack, without what the compiler added to its name. One without a name
    has its library's."""
    m = FRAME.match(line)
    name, place = m.groups() if m else (line.split(None, 1)[-1], "")
    if name == "[unknown]" and "/" in place:
        return Path(place).name.split(".")[0]
    return re.sub(r"\.(part|isra|constprop|cold|lto_priv).*|\+0x[0-9a-f]+$", "", name)


def samples(lines):
    """Of the text of `perf script --ns -F event,time,period,ip,sym,dso`: (time, event, period, frames from the
    innermost outwards) of each sample."""
    head, frames = None, []
    for line in lines:
        line = line.rstrip()
        if not line:
            if head:
                yield (*head, frames)
            head, frames = None, []
        elif head is None:
            m = re.match(r"\s*(\d+\.\d+):\s+(\d+)\s+([\w/=,-]+?)(?::\w*)?:", line)
            head = (m[1], m[3], int(m[2])) if m else None
        else:
            frames.append(frame(line))
    if head:
        yield (*head, frames)


def turn(frames):
    """(side or None, the frames down to its turn)."""
    for i, f in enumerate(frames):
        if f in SIDES:
            return SIDES[f], frames[:i + 1]
    return None, frames


class Tally:
    """What the samples of one side add up to."""

    def __init__(self):
        self.samples, self.total = 0, 0
        self.stages, self.misses = collections.Counter(), collections.Counter()
        self.functions = collections.defaultdict(collections.Counter)

    def add(self, frames, weight, misses=False):
        stage = stage_of(frames)
        if misses:
            self.misses[stage] += weight
            return
        self.samples += 1
        self.total += weight
        self.stages[stage] += weight
        self.functions[stage][own(frames)] += weight

    def rows(self, cycles):
        """cycles: of a packet of this side, all of its turn."""
        scale = cycles / self.total if self.total else 0
        order = [s for s, _, _ in STAGES] + [OTHER]
        return [{"stage": s, "cycles": round(self.stages[s] * scale, 1), "share": round(self.stages[s] / self.total, 4),
                 "misses": round(self.misses[s] * scale, 2),
                 "functions": [{"name": f, "cycles": round(n * scale, 1)} for f, n in self.functions[s].most_common(FUNCTIONS)]}
                for s in order if self.stages[s]]

    def problems(self, side, keys=False):
        """What the table has wrong, by these samples: [text]."""
        without = {"clear" if keys else "sealed"}
        files = {s: [f for names in d.values() for f in names.split()] for s, when, d in STAGES if side in when.split() and not without & set(when.split())}
        wrong = [f"{side}: the stage `{s}` has no sample; was one of these renamed? {', '.join(f)}" for s, f in files.items()
                 if self.samples >= ENOUGH and not self.stages[s]]
        if self.total and self.stages[OTHER] > OTHER_MAX * self.total:
            most = ", ".join(f for f, _ in self.functions[OTHER].most_common(8))
            wrong.append(f"{side}: {100 * self.stages[OTHER] / self.total:.0f} % belongs to no stage, mostly {most}")
        return wrong


def table(rows, with_misses=False):
    """Lines of at most WIDTH columns."""
    wide = max(len(r["stage"]) for r in rows)
    misses = f" {'misses':>7}" if with_misses else ""
    lines = [f"{'stage':{wide}} {'cycles':>7} {'share':>7}{misses}  functions that take most, cycles"]
    for r in [*rows, {"stage": "total", "cycles": sum(r["cycles"] for r in rows), "share": sum(r["share"] for r in rows),
                      "misses": sum(r["misses"] for r in rows), "functions": []}]:
        misses = f" {r['misses']:7.2f}" if with_misses else ""
        line = f"{r['stage']:{wide}} {r['cycles']:7.0f} {100 * r['share']:5.1f} %{misses} "
        for i, f in enumerate(r["functions"]):
            more = f"{',' if i else ''} {f['name']} {f['cycles']:.0f}"
            line += more if len(line) + len(more) <= WIDTH else ""
        lines.append(line.rstrip())
    return lines
