# SPDX-License-Identifier: Apache-2.0
# Programs that check their data: rping, rcopy, ibv_rc_pingpong, over a bad WAN.
from lab import BAD_WAN, CM_TIMER, PINGPONG_TIMER, TIMEOUT, ci, each, needs, short


def quiet(lab, timer=None):
    repeated = lab.host_retransmits(timer)
    assert not repeated, repeated


@short(only=4)
@each(ip=[4, 6])
def test_rping(lab, ip):
    """rping -V, 100 rounds."""
    lab.wan(**BAD_WAN)
    addr = lab.b.ip(ip)
    r = lab.pair(f"rping -s -V -C 100 -a {addr} -p 7174", f"rping -c -V -C 100 -a {addr} -p 7174", port=7174, cm=True)
    assert r.ok, r
    quiet(lab, timer=CM_TIMER)


@each(direction=["a-to-b", "b-to-a"])
def test_rcopy(lab, direction):
    """rcopy of a 64 MiB file, equal checksums."""
    lab.wan(**BAD_WAN)
    src, dst = (lab.a, lab.b) if direction == "a-to-b" else (lab.b, lab.a)
    src.run("dd if=/dev/urandom of=/tmp/t/src bs=1M count=64")
    server = lab.serve("rcopy -p 7427", port=7427, cm=True, host=dst)
    copy = src.start(f"rcopy /tmp/t/src {dst.ip4}:/tmp/t/dst -p 7427").wait(45)
    server.kill()
    assert copy.ok, copy
    sums = [h.run(f"sha256sum <{f}; rm {f}").out for h, f in ((src, "/tmp/t/src"), (dst, "/tmp/t/dst"))]
    assert sums[0] == sums[1], sums
    quiet(lab, timer=CM_TIMER)


@each(ip=[4, 6])
def test_rc_pingpong(lab, ip):
    """ibv_rc_pingpong -c, data checked by the program."""
    lab.wan(**BAD_WAN)
    opts = "-d rxe0 -c -e -n 50 -s 8192 -m 1024"
    r = lab.pair(f"ibv_rc_pingpong {opts} -g {lab.b.gid(ip)}", f"ibv_rc_pingpong {opts} -g {lab.a.gid(ip)} {{server}}",
                 port=18515)
    assert r.ok, r
    quiet(lab, timer=PINGPONG_TIMER)


@each(qps=[1, 16])
def test_nccl(lab, qps):
    """The NCCL-like workload, every byte checked, data both ways."""
    lab.wan(**BAD_WAN)
    nccl(lab, qps, "--bidir")


@ci(only="one-port")
@needs(timeout=90)
@each(port=["own-ports", "one-port"])
def test_equal_psn_64(lab, port):
    """64 QPs at once, all PSNs 0; then also one UDP source port for all."""
    lab.wan(**BAD_WAN)
    nccl(lab, 64, "--flow-label 0xfffff" if port == "one-port" else "")


def nccl(lab, qps, extra):
    r = lab.nccl(qps, 24, f"--timeout {TIMEOUT} {extra}")
    assert r.ok, r
    quiet(lab)
