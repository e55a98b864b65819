# SPDX-License-Identifier: Apache-2.0
# A test that has passed with the same inputs is not run again: its inputs are hashed, and BUILD/tests/passed/ keeps the hashes of
# those that passed. A program's inputs are its own bytes. A script's are its text and the modules that it imports. Both also depend on
# each built program and tracked file whose name is a word of the text (for a program: of its source and the headers of tests/ that
# this includes, except C files), on all of a folder whose path is in quotes or before a computed name ("docs/%s"), on the installed
# packages and on the kernel. So a test must name the files that it reads. FULL=1 runs everything.
import functools
import hashlib
import os
import platform
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEEP = 7 * 86400  # lifetime of a verdict, seconds
WORD = re.compile(r"[\w.-]+")
IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.M)
# where scripts find their modules
MODULES = ["tests/component", "tests/e2e", "tests/bench", "tests/lib", "tests"]
# no test reads them; a corpus belongs to its fuzzer
RUNNERS = re.compile(r"(\.ci|tests)/[^/]*$|tests/e2e/run$|tests/fuzz/corpus/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"(tests/[^"]+)"', re.M)


@functools.cache
def tracked():
    out = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    return [f for f in out.decode().split("\0") if f and (ROOT / f).is_file()]


@functools.cache
def by_name():
    """({name: tracked files of that name}, {folder: its files})."""
    names, folders = {}, {}
    for f in tracked():
        if not RUNNERS.match(f):
            names.setdefault(os.path.basename(f), set()).add(f)
            if "/" in f and not f.endswith((".c", ".h")):  # programs are built from these
                folders.setdefault(os.path.dirname(f), set()).add(f)
    return names, folders


def imported(f, text):
    """Modules of the tree that a script imports."""
    for name in IMPORT.findall(text):
        path = name.lstrip(".").replace(".", "/")
        for base in (os.path.dirname(f), *MODULES):
            for module in (f"{base}/{path}.py", f"{base}/{path}/__init__.py", f"{base}/{os.path.dirname(path)}/__init__.py"):
                if (ROOT / module).is_file():
                    yield os.path.normpath(module)
            if (ROOT / base / path / "__init__.py").is_file():  # from package import module: all of it
                yield from (os.path.relpath(p, ROOT) for p in (ROOT / base / path).glob("*.py"))


@functools.cache
def content(path):
    return hashlib.sha256(Path(path).read_bytes()).digest()


@functools.cache
def machine():
    packages = subprocess.run(["dpkg-query", "-W"], capture_output=True).stdout
    return hashlib.sha256(packages + platform.release().encode()).digest()


def text_of(source):
    """A test's C source with the headers of tests/ that it includes."""
    seen, todo, text = set(), [source], ""
    while todo:
        f = todo.pop()
        if f in seen or not (ROOT / f).is_file():
            continue
        seen.add(f)
        more = (ROOT / f).read_text(errors="replace")
        text += more
        todo += INCLUDE.findall(more)
    return text


class Passed:
    def __init__(self, build):
        self.build = Path(build)
        self.dir = self.build / "tests/passed"
        self.full = bool(os.environ.get("FULL"))
        self.names = None

    def programs(self):
        """{name: built programs of that name}."""
        if self.names is None:
            self.names = {}
            for pattern in ("bin/*", "tests/*", "tests/sim/*", "guest/*"):
                for p in self.build.glob(pattern):
                    if p.is_file() and os.access(p, os.X_OK):
                        self.names.setdefault(p.name, []).append(p)
        return self.names

    def named(self, f, text):
        """Files and programs that the text of file f names, and those of scripts that it runs or
        imports."""
        names, folders = by_name()
        found, todo = set(), [(f, text)]
        while todo:
            f, text = todo.pop()
            words = {w.strip(".") for w in WORD.findall(text)}
            files = {n for w in words & names.keys() for n in names[w]}
            files |= {n for folder in folders if re.search(rf"[\"'/]{re.escape(folder)}/?[\"'%{{*]", text) for n in folders[folder]}
            files = {n for n in files if not n.endswith((".c", ".h"))} if f.endswith(".c") else files | set(imported(f, text))
            for new in files - found:
                if new.endswith(".py"):
                    todo.append((new, (ROOT / new).read_text(errors="replace")))
            found |= files
            found.update(str(p) for w in words & self.programs().keys() for p in self.programs()[w])
        return found

    def inputs(self, test):
        path = Path(test)
        source = f"tests/{path.parent.name}/{path.name}.c"
        if path.suffix == ".py":
            source = os.path.relpath(path.resolve(), ROOT)
            text = path.read_text(errors="replace")
        else:
            text = text_of(source)
        return {str(path), *(str(ROOT / f) for f in self.named(source, text))}

    def key(self, label, files):
        key = hashlib.sha256(machine() + label.encode())
        for f in sorted(set(map(str, files))):
            key.update(os.path.relpath(f, ROOT).encode() + b"\0" + content(f))
        return self.dir / key.hexdigest()

    def before(self, key):
        """The stored result of its pass; None: it must run."""
        if self.full or not key.exists() or time.time() - key.stat().st_mtime > KEEP:
            return None
        return key.read_text()

    def note(self, key, worth):
        self.dir.mkdir(parents=True, exist_ok=True)
        key.write_text(worth)
        for old in self.dir.iterdir():
            try:
                if time.time() - old.stat().st_mtime > KEEP:
                    old.unlink()
            except FileNotFoundError:
                pass  # another stage was faster
