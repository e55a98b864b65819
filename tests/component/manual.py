#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# manual.py BUILD: the manual pages have every command, option, key and metric, and render without a
# warning; the completion scripts complete in their shells. Pages are made by tools/manual/manual
# from docs/configuration.md's table (conf/reference.c), conf/samples/gateway.yaml and
# conf/samples/controller.yaml, and controller/conf/conf.c has the controller's keys.
import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import cases

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
ROOT = Path(__file__).resolve().parents[2]
CLI = BUILD / "bin/roceway"
PAGES = ["roceway.1", "roceway-ca.1", "roceway-run.1", "wanem.1", "roceway-gateway.yaml.5", "roceway-controller.yaml.5", "roceway-metrics.7", "roceway-gateway.8", "roceway-proxy.8", "roceway-controller.8", "roceway-host-agent.8"]


def run(*argv, **kw):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60, **kw)
    assert r.returncode == 0, (argv, r.returncode, r.stdout, r.stderr)
    return r.stdout


def rendered(page):
    """The page as a reader sees it, without line breaks."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "1000"}
    r = subprocess.run(["man", "--warnings", "-E", "ascii", "-l", BUILD / "man" / page], capture_output=True, text=True, env=env, timeout=60)
    assert r.returncode == 0 and r.stderr == "", (page, r.stderr)
    return re.sub(r"\x1b\[[0-9;]*m|.\x08", "", r.stdout)


def test_pages_render_without_warnings():
    for page in PAGES:
        assert len(rendered(page)) > 500, page
        assert run("mandoc", "-T", "lint", "-W", "warning", str(BUILD / "man" / page)) == "", page


def test_every_command_and_option():
    text, table = rendered("roceway.1"), json.loads(run(CLI, "list-commands", "--json"))
    assert [c["name"] for c in table["commands"]] == run(CLI, "list-commands").split()
    for c in table["commands"]:
        body = re.search(rf"^   {c['name']}( .*)?$((?:\n(?!   \S).*)*)", text, re.M)
        assert body, c["name"]
        for o in c["options"]:
            assert f"--{o['name']}" in body.group(2), (c["name"], o["name"])
    # what a command's own help says is in the page as well
    for c in ("drain", "tenant", "completion"):
        for line in run(CLI, c, "-h").splitlines():
            if line.startswith("  --"):
                assert line.split()[0] in text, line


def test_every_option_of_the_daemons():
    for page, source in (("roceway-gateway.8", "gateway/program.c"), ("roceway-proxy.8", "gateway/program.c"), ("roceway-controller.8", "controller/main.c"), ("wanem.1", "tools/wanem/main.c"), ("roceway-run.1", "shim/run.c"), ("roceway-host-agent.8", "shim/agent/main.c")):
        text = rendered(page)
        names = re.findall(r'\{"([a-z-]+)", (?:no|required|optional)_argument', (ROOT / source).read_text())
        assert len(names) > 3 or page.endswith(".1"), source
        for name in names:
            assert f"--{name}" in text, (page, name)


def test_every_program_tells_its_version():
    for page in PAGES:
        name, section = page.rsplit(".", 1)
        if section in "18":
            for word in "--version", "-V":
                assert run(BUILD / "bin" / name, word) == f"{name} {(ROOT / 'VERSION').read_text().strip()}\n", (name, word)


def test_the_file_of_the_quick_start_is_good():
    text = (ROOT / "docs/quick-start.md").read_text()
    block = re.search(r"^ {7}gateway:\n(?: {7}.*\n)+", text, re.M).group(0)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(textwrap.dedent(block))
        f.flush()
        assert "good" in run(BUILD / "bin/roceway-gateway", "--check", f.name)


def test_every_key():
    text = rendered("roceway-gateway.yaml.5")
    rows = [line.split("|") for line in (ROOT / "docs/configuration.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 100
    for row in rows:
        assert re.search(rf"^ +{re.escape(row[1].strip().strip('`'))}\b", text, re.M), row
    text = rendered("roceway-controller.yaml.5")
    keys = re.findall(r'^    \{"(\w+)", "(\w+)", K_', (ROOT / "controller/conf/conf.c").read_text(), re.M)
    assert len(keys) > 20
    for group, key in keys:
        assert re.search(rf"^ +(# )?{group}:(.*\n)*? +(# )? *{key}: ", text, re.M), (group, key)


def test_every_counter():
    text = rendered("roceway-metrics.7")
    for family in re.findall(r"`(roceway_[a-z]+_)\*", (ROOT / "docs/cli.md").read_text()):
        assert family in text, family
    lists = {"engine": "engine/counters.h:ENG_COUNTERS", "tunnel": "wan/stats.h:WAN_COUNTERS", "gateway": "gateway/counters.h:GW_COUNTERS", "port": "gateway/api/api.h:API_PORT_COUNTERS"}
    for group, place in lists.items():
        path, macro = place.split(":")
        body = re.search(rf"#define {macro}\(X\)((?:.*\\\n)+.*\n)", (ROOT / path).read_text()).group(1)
        names = re.findall(r"^\s*X\((\w+)", body, re.M)
        assert len(names) > 6, place
        for name in names:
            assert re.search(rf"^ +roceway_{group}_{name}_total$", text, re.M), (group, name)
    assert "roceway_tunnel_rtt_seconds" in text and "roceway_controller_gateways_up" in text


# --- completion ---------------------------------------------------------------------------------------


def bash(line):
    script = f'source {BUILD}/completion/bash; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _roceway; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return run("bash", "-c", script, cwd=ROOT).split()


def fish(line):
    with tempfile.TemporaryDirectory() as home:
        out = run("fish", "--no-config", "-c", f"source {BUILD}/completion/fish; complete -C '{line}'", cwd=ROOT, env={**os.environ, "HOME": home})
    return [row.split("\t")[0] for row in out.splitlines()]


def zsh(line, want):
    """Types the line and a tabulator into a terminal. True: it shows what is wanted; False: not within 30 s."""
    with tempfile.TemporaryDirectory() as home:
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb", "PS1": "> ", "COLUMNS": "200"})
        try:
            os.write(fd, f"autoload -U compinit; compinit -u -D; source {BUILD}/completion/zsh; echo rea''dy\r".encode())
            text, end, typed = "", time.monotonic() + 30, False
            while time.monotonic() < end:
                if select.select([fd], [], [], 0.5)[0]:
                    text += os.read(fd, 65536).decode(errors="replace")
                if "ready\r" in text and not typed:
                    typed, text = True, ""
                    os.write(fd, (line + "\t\t").encode())
                if typed and want in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x07\x08]", "", text):
                    return True
            return False
        finally:
            os.close(fd)
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def test_bash():
    table = [c["name"] for c in json.loads(run(CLI, "list-commands", "--json"))["commands"]]
    assert [w for w in bash('roceway ""') if not w.startswith("-")] == table
    assert bash("roceway fl") == ["flows"] and bash("roceway --socket /x fl") == ["flows"]
    assert bash("roceway flows --st") == ["--state"]
    assert bash('roceway map ""') == ["list", "add", "del"] and bash('roceway tunnel ""') == ["add", "set", "del"]
    assert bash('roceway flows --state ""') == ["learning", "paired", "idle", "failed", "closing"]
    assert bash("roceway tenant s") == ["show", "set"] and bash("roceway help metr") == ["metrics"]
    assert bash("roceway analyze CHANGE") == ["CHANGELOG.md"] and bash("roceway analyze --html READ") == ["README.md"]
    assert bash("roceway --json stat") == ["status"] and bash("roceway tunnel a") == ["add"]
    assert bash("roceway status --j") == bash("roceway --j") == ["--json"] and bash("roceway metrics --j") == bash("roceway report --j") == []
    assert bash("roceway status x") == [] and bash("roceway flows --limit ''") == []


def test_fish():
    assert fish("roceway fl") == ["flows"] and "--state" in fish("roceway flows --st")
    assert fish("roceway flows --state p") == ["paired"] and sorted(fish("roceway tenant s")) == ["set", "show"]
    assert fish("roceway status --js") == fish("roceway --js") == ["--json"] and fish("roceway metrics --js") == fish("roceway report --js") == []
    assert fish("roceway analyze CHANGE") == ["CHANGELOG.md"] and fish("roceway status CHANGE") == []


def test_zsh():
    assert zsh("roceway fl", "flows") and zsh("roceway flows --st", "--state")
    assert zsh("roceway flows --state pa", "paired")
    assert zsh("roceway analyze CHANGE", "CHANGELOG.md")
    text = run(CLI, "completion", "zsh")
    options = {name: "'--json[" in text.split(f"\n\t\t{name})\n", 1)[1].split(";;", 1)[0] for name in ("status", "metrics", "report")}
    assert options == {"status": True, "metrics": False, "report": False}, options


def test_wrong_shell():
    for words in ([], ["tcsh"]):
        r = subprocess.run([CLI, "completion", *words], capture_output=True, text=True)
        assert r.returncode == 2 and r.stderr.startswith("roceway: ") and not r.stdout, r


if __name__ == "__main__":
    sys.exit(cases.run(globals()))
