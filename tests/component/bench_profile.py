#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# bench_profile.py [BUILD]: what run-fastpath --profile makes of the text of perf script and of stacks
# in perf.data (tests/bench/fp_stages.py, fp_profile.py), on made-up ones; and whether the table of
# stages names functions that are there. Runs no perf.
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
sys.dont_write_bytecode = True
import cases  # noqa: E402
import fp_profile  # noqa: E402
import fp_stages  # noqa: E402

BENCH = "(/b/tests/bench/bench_fastpath)"
END = f"""\
\t           1d5b4 first_turn (inlined)
\t           1d5b4 fp_run_turn {BENCH}
\t           163a3 main {BENCH}
"""
NEAR = f"""\
\t           36598 gw_worker_turn {BENCH}
\t           1d278 near_turn {BENCH}
{END}"""
FAR = NEAR.replace("near_turn", "far_turn")


def sample(time, stack, event="cpu-clock", period=100):
    return f"{time:.9f}:     {period} {event}: \n{stack}\n"


def line(name, place=BENCH, address="c6d23"):
    return f"\t           {address} {name} {place}\n"


def profile(text, chosen=("cpu-clock",)):
    p = fp_profile.Profile(chosen)
    p.start = 0
    p.read(text.splitlines(keepends=True))
    return p


def stages(tally):
    return dict(tally.stages)


def test_table_names_functions_that_are_there():
    assert not fp_stages.missing(), fp_stages.missing()


def test_table_without_a_function():
    with tempfile.TemporaryDirectory() as d:
        for _, _, files in fp_stages.STAGES:
            for name, functions in files.items():
                if name:
                    path = Path(d) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("a") as f:
                        f.writelines(f"static int {f}(\n    struct x *x)\n{{\n\treturn 0;\n}}\n" for f in functions.split())
        assert not fp_stages.missing(Path(d))
        parse = Path(d) / "roce/parse.c"
        parse.write_text(parse.read_text().replace("int roce_parse(", "int roce_read("))
        wrong = fp_stages.missing(Path(d))
        assert len(wrong) == 1 and "roce_parse, of the stage `parse`, is not in roce/parse.c" in wrong[0], wrong
        parse.write_text("int roce_parse(struct x *x);\n\tif (roce_parse(x)) {\n" + parse.read_text())  # a prototype, a call
        assert fp_stages.missing(Path(d)) == wrong


def test_the_innermost_function_of_the_table_decides():
    p = profile(
        sample(1, line("cut", "(inlined)") + line("wan_data_new") + line("wan_poll") + line("eng_poll") + NEAR)
        + sample(2, line("_mm_xor_si128", "(inlined)") + line("helper") + line("roce_icrc_ok.part.0") + line("lan_group.constprop.0") + NEAR)
        + sample(3, line("wan_pto_at") + line("eng_poll") + FAR)  # of no stage
        + sample(4, line("[unknown]", "(/usr/lib/x86_64-linux-gnu/dpdk/librte_net_ring.so.23)") + line("rte_eth_rx_burst", "(inlined)") + FAR)
        + sample(5, line("roce_icrc_adjust") + line("fp_hosts_send") + line("main"))  # outside both gateways
        + sample(6, line("clear_page_erms", "([kernel.kallsyms])", "ffffffff8160ebb5") + line("asm_exc_page_fault", "([kernel.kallsyms])") + line("wan_fec_keep") + FAR)
        + sample(7, NEAR))
    near, far = p.sides["near"], p.sides["far"]
    assert stages(near) == {"DATA frames": 100, "ICRC": 100, "other": 100}, near.stages
    assert stages(far) == {"other": 100, "receive a burst": 100, "kernel": 100}, far.stages
    assert near.functions["ICRC"] == {"helper": 100} and near.functions["DATA frames"] == {"cut": 100}
    assert far.functions["receive a burst"] == {"librte_net_ring": 100}


def test_the_begin_is_left_out():
    p = fp_profile.Profile(("cpu-clock",))
    times = (5, 9.999, 10, 10 + 0.9 * fp_profile.LEAD, 10 + 1.1 * fp_profile.LEAD, 12)
    p.read("".join(sample(t, line("main") if t < 10 else line("wan_poll") + NEAR) for t in times).splitlines())
    assert p.sides["near"].samples == 2, p.sides["near"].samples


def test_cycles_shares_and_misses():
    text = "".join(sample(1 + i, line("wan_poll") + NEAR, "cycles:P", 300) for i in range(3))
    text += sample(9, line("roce_parse") + NEAR, "cycles:P", 100) + sample(10, line("roce_parse") + NEAR, "cache-misses:P", 20)
    p = profile(text, ("cycles", "cache-misses"))
    rows = {r["stage"]: r for r in p.sides["near"].rows(500)}
    assert p.sides["near"].samples == 4 and set(rows) == {"datagrams out", "parse"}
    assert rows["datagrams out"]["cycles"] == 450 and rows["datagrams out"]["share"] == 0.9 and rows["datagrams out"]["misses"] == 0
    assert rows["parse"]["cycles"] == 50 and rows["parse"]["misses"] == 10  # 20 in 1000 cycles, 500 a packet
    lines = fp_stages.table(p.sides["near"].rows(500), True)
    assert "misses" in lines[0] and lines[-1].split()[:2] == ["total", "500"], lines


def test_table_fits():
    t = fp_stages.Tally()
    for stage, _, files in fp_stages.STAGES:
        for f in " ".join(files.values()).split():
            t.add(["a_very_long_name_of_an_assembler_function_" + f[:20], f], 10)
    lines = fp_stages.table(t.rows(1000))
    assert len(lines) == len(fp_stages.STAGES) + 2 and all(len(x) <= 100 for x in lines), lines


def test_what_is_wrong_is_said():
    p = profile((sample(1, line("wan_poll") + NEAR) + sample(2, line("new_thing") + NEAR)) * (fp_stages.ENOUGH // 2))
    said = "\n".join(p.problems())
    assert "far: no sample" in said, said
    said = "\n".join(p.sides["near"].problems("near"))
    assert "near: the stage `ICRC` has no sample; was one of these renamed? roce_icrc_ok" in said, said
    assert "near: 50 % belongs to no stage, mostly new_thing" in said and "`keys`" not in said and "requester" not in said, said
    few = profile(sample(1, line("wan_poll") + NEAR) * 9).sides["near"]
    assert not few.problems("near"), few.problems("near")
    said = "\n".join(p.sides["near"].problems("near", keys=True))
    assert "`keys`" in said and "checksum" not in said, said


def perf_data(path, samples):
    """A file as perf record writes it, with the fields of --call-graph dwarf: the program at 0x10000, and
    (time in ns, words of the stack)."""
    kind = sum((fp_profile.IP, fp_profile.TID, fp_profile.TIME, fp_profile.ADDR, fp_profile.CALLCHAIN, fp_profile.PERIOD, fp_profile.REGS_USER, fp_profile.STACK_USER))
    attr = bytearray(144)
    struct.pack_into("<Q", attr, 24, kind)
    struct.pack_into("<Q", attr, 80, 0b111)  # three registers
    name = b"/b/tests/bench/bench_fastpath\0"
    name += bytes(-len(name) % 8)
    body = struct.pack("<IHH", fp_profile.MMAP2, 0, 72 - 8 + len(name) + 8) + struct.pack("<2I3Q", 1, 1, 0x11000, 0x1000, 0x1000) + bytes(32) + name
    for time, words in samples:
        s = struct.pack("<QIIQQQ", 0, 1, 1, time, 0, 100) + struct.pack("<2Q", 1, 0) + struct.pack("<4Q", 1, 0, 0, 0)
        s += struct.pack(f"<Q{len(words)}QQ", 8 * len(words), *words, 8 * len(words))
        body += struct.pack("<IHH", fp_profile.SAMPLE, 0, 8 + len(s)) + s
    path.write_bytes(struct.pack("<8s6Q", b"PERFILE2", 104, 144, 104, 144, 104 + 144, len(body)) + bytes(48) + attr + body)


SYMBOLS = [(0x1000, "roce_icrc_compute"), (0x1100, "stale"), (0x1200, "near_turn"), (0x1300, "far_turn"), (0x1400, "main"), (0x1500, "end")]


def test_stacks_that_perf_did_not_follow():
    crc = line("crc32_gzip_refl_by16_10", "(/usr/lib/x86_64-linux-gnu/libisal.so.2.0.30)")
    text = sample(1, crc) + sample(2, crc + line("[unknown]", "([unknown])")) + sample(3, crc) + sample(4, crc)
    p = profile(text)
    assert len(p.cut) == 4 and not p.sides["near"].samples
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / "perf.data"
        base = 0x10000
        perf_data(path, [(10**9, [7, base + 0x1010, base + 0x1110, 0, base + 0x1210, base + 0x1310]),  # near, compute
                         (2 * 10**9, [base + 0x1010, base + 0x1310, base + 0x1410]),  # far
                         (3 * 10**9, [base + 0x1010, base + 0x1410, base + 0x1210]),  # neither: main came first
                         (5 * 10**9, [base + 0x1010, base + 0x1210])])  # not asked for
        found = dict(fp_profile.Stacks(path, "/b/tests/bench/bench_fastpath", SYMBOLS).read({t for t, *_ in p.cut}))
    assert found == {10**9: ["roce_icrc_compute", "stale", "near_turn"], 2 * 10**9: ["roce_icrc_compute", "far_turn"], 3 * 10**9: ["roce_icrc_compute", "main"]}, found
    p.mend(found.items())
    assert stages(p.sides["near"]) == {"ICRC": 100} and stages(p.sides["far"]) == {"ICRC": 100}
    assert p.sides["near"].functions["ICRC"] == {"crc32_gzip_refl_by16_10": 100}


def test_library_functions_have_a_stage():
    assert fp_stages.stage_of(["aes_gcm_enc_128_vaes_avx512", "stale", "near_turn"]) == "keys"
    assert fp_stages.stage_of(["gf_vect_mad_avx512", "mix", "near_turn"]) == "FEC"


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
