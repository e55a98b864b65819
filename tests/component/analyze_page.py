#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""analyze_page.py BUILD: the page of `roceway analyze --html` in a browser (Debian's chromium): its drawings have a size and points, everything is on the page, and a hostile name is text."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

BUILD = Path(sys.argv[1])
ROCEWAY = BUILD / "bin/roceway"
# What the browser drew, as JSON in the title: drawings, those without a size, points outside of theirs, broken links, text behind the right edge.
LOOK = """<script>
addEventListener("load", () => {
  const all = [...document.querySelectorAll("svg")], size = e => e.getBoundingClientRect();
  const flat = all.filter(s => size(s).width < 100 || size(s).height < 10).length;
  const inside = (s, e) => { const a = size(s), b = size(e); return b.left >= a.left - 1 && b.right <= a.right + 1 && b.top >= a.top - 1 && b.bottom <= a.bottom + 1; };
  const outside = all.map(s => [...s.querySelectorAll("circle,rect,path,polyline,text")].filter(e => !inside(s, e)).length).reduce((a, b) => a + b, 0);
  const lost = [...document.querySelectorAll("a")].filter(a => !document.querySelector(a.getAttribute("href"))).length;
  document.title = JSON.stringify({drawings: all.length, flat, outside, lost, sections: document.querySelectorAll("section").length,
    marks: document.querySelectorAll("svg circle, svg path, svg polyline, svg rect").length, wide: document.documentElement.scrollWidth > innerWidth,
    foreign: performance.getEntriesByType("resource").length});
});
</script>"""


def browse(page):
    looked = ROOM / "looked.html"
    looked.write_text(page.read_text().replace("</body>", LOOK + "</body>"))
    r = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={ROOM}/profile",
                        "--window-size=1100,900", "--virtual-time-budget=5000", "--dump-dom", f"file://{looked}"], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stderr[-500:]
    return json.loads(re.search(r"<title>(.*?)</title>", r.stdout, re.S).group(1).replace("&quot;", '"'))


def page_of(capture):
    page = ROOM / f"{capture.stem}.html"
    r = subprocess.run([ROCEWAY, "analyze", capture, "--html", page], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stderr
    return page


def test_pages():
    (ROOM / "captures").mkdir()
    r = subprocess.run([BUILD / "tests/captures", ROOM / "captures"], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stderr
    for name in ("loss", "rnr", "read-depth", "dead", "held-two"):
        page = page_of(ROOM / "captures" / f"{name}.pcap")
        assert not re.search(r"(src|href)=['\"](?!#)|url\(|@import", page.read_text()), name
        found = browse(page)
        assert found["sections"] >= (2 if name == "held-two" else 1), (name, found)
        assert found["drawings"] >= 3 * found["sections"] and found["marks"] > 20, (name, found)
        assert not (found["flat"] or found["outside"] or found["lost"] or found["wide"] or found["foreign"]), (name, found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as room:
        ROOM = Path(room)
        sys.exit(cases.run(globals()))
