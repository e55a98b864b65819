# SPDX-License-Identifier: Apache-2.0
# The paths of files and programs.
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("ROCEWAY_BUILD", ROOT / "build")).resolve()
BIN = BUILD / "bin"
LIB = BUILD / "lib"
GUEST_BIN = BUILD / "guest"
OUT = BUILD / "e2e"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roceway"
