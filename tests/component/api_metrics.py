#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# api_metrics.py BUILD: the metrics on an address of their own (api.metrics), and that the dashboard
# conf/grafana/roceway.json and the alerts conf/prometheus/roceway.rules.yaml name metrics that there
# are. The gateway is the simulated one of tests/component/api/server.c with conf/samples/gateway.yaml.
# tests/monitoring/run has the real Prometheus.
import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import cases
import yaml

sys.argv = sys.argv[:2]
from cli_api import BUILD, ROOT, Server  # noqa: E402

GATEWAY = BUILD / "bin/roceway-gateway"
SAMPLE = ROOT / "conf/samples/gateway.yaml"


def with_metrics(folder, where):
    text = SAMPLE.read_text()
    line = "  socket: /run/roceway/gateway.sock\n"
    assert line in text
    path = Path(folder) / "gateway.yaml"
    path.write_text(re.sub(r"^  metrics: .*\n", "", text, flags=re.M).replace(line, line + f"  metrics: '{where}'\n"))
    return path


def ask(where, page, method="GET"):
    c = http.client.HTTPConnection("gateway", timeout=20)
    if isinstance(where, str):
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(where)
    else:
        c.sock = socket.create_connection(where, timeout=20)
    c.request(method, page)
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return r.status, text


def free_port(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as s:
        s.bind((host, 0))
        return s.getsockname()[1]


def test_served():
    for host in ("127.0.0.1", "::1", None):
        with tempfile.TemporaryDirectory() as d:
            if host:
                where = (host, free_port(host))
                text = f"[{host}]:{where[1]}" if ":" in host else f"{host}:{where[1]}"
            else:
                where = f"{d}/metrics.sock"
                text = f"unix:{where}"
            with Server("metrics=1", f"conf={with_metrics(d, text)}") as s:
                status, body = ask(where, "/metrics")
                assert status == 200 and 'roceway_tunnel_up{tunnel="site-b"} 1' in body
                names = {line.split()[2] for line in body.splitlines() if line.startswith("# TYPE")}
                assert names == {line.split()[2] for line in s.request("/metrics")[2].splitlines() if line.startswith("# TYPE")}
                assert ask(where, "/livez")[0] == 200 and ask(where, "/healthz")[0] in (200, 503)
                for page in ("/v1/status", "/v1", "/v1/tenants/red", "/", "/metricsx"):
                    assert ask(where, page)[0] == 404, page
                assert ask(where, "/v1/tenants/red", "DELETE")[0] == 404 and ask(where, "/v1/drain", "POST")[0] == 404
                assert ask(where, "/metrics", "POST")[0] == 405
            assert host or not Path(where).exists(), "the socket is left behind"


def test_wrong_addresses():
    for where in ("127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", ":9464", "::1:9464", "[127.0.0.1]:9464", "[::1]", "[::1:9464", "[]:1", "localhost:9464",
                  "unix:", "unix:x", "unix:/", "unix:/" + "x" * 107, "unix:/run/roceway/gateway.sock", "1" * 90 + ":1"):
        with tempfile.TemporaryDirectory() as d:
            path = with_metrics(d, where)
            r = subprocess.run([GATEWAY, "--check", path], capture_output=True, text=True)
            line = 1 + path.read_text().splitlines().index(f"  metrics: '{where}'")
            assert r.returncode == 2 and f":{line}:12: expected an address and port" in r.stderr, (where, r.stderr)
            assert r.stderr.count("\n") == 1
    with tempfile.TemporaryDirectory() as d:
        for where in ("0.0.0.0:1", "[::]:65535", "unix:/run/roceway/metrics.sock"):
            subprocess.run([GATEWAY, "--check", with_metrics(d, where)], check=True, capture_output=True)


def known():
    """{metric: type} of gateway and control center."""
    out = {}
    for program in ("roceway-gateway", "roceway-controller"):
        for line in subprocess.run([BUILD / "bin" / program, "--print-metrics"], capture_output=True, text=True, check=True).stdout.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                assert name not in out, name
                out[name] = kind
    return out


def check_query(query, metrics):
    """Each name in the query is a metric, and a rate is of a counter."""
    bare = re.sub(r'"[^"]*"', '""', query)
    names = set(re.findall(r"\broceway_\w+", bare))
    for name in names:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in metrics or metrics.get(base) == "histogram", (name, query)
    for inner in re.findall(r"(?:rate|increase)\((roceway_\w+)", bare):
        assert metrics.get(inner, "histogram") in ("counter", "histogram"), (inner, query)
    for pattern in re.findall(r'__name__=~"([^"]*)"', query):
        assert any(re.fullmatch(pattern, m) for m in metrics), pattern
    return names


def test_dashboard():
    board, metrics = json.loads((ROOT / "conf/grafana/roceway.json").read_text()), known()
    panels = [p for p in board["panels"] if p["type"] != "row"]
    assert len(panels) > 10 and len({p["id"] for p in board["panels"]}) == len(board["panels"])
    places = set()
    for p in panels:
        g = p["gridPos"]
        cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
        assert g["x"] + g["w"] <= 24 and not cells & places, p["title"]
        places |= cells
        for t in p["targets"]:
            assert 'instance=~"$gateway"' in t["expr"] and t["legendFormat"]
            assert check_query(t["expr"], metrics) or "__name__" in t["expr"], t
    for v in board["templating"]["list"]:
        if v["type"] == "query":
            check_query(v["query"], metrics)


def test_alerts():
    metrics, seen = known(), set()
    for group in yaml.safe_load((ROOT / "conf/prometheus/roceway.rules.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["alert"] not in seen and rule["labels"]["severity"] in ("critical", "warning")
            assert rule["annotations"]["summary"] and rule["annotations"]["description"]
            assert check_query(rule["expr"], metrics) or rule["expr"].startswith("up{")
            seen.add(rule["alert"])
    assert len(seen) > 10


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
