#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# embed.py DIRECTORY: its files as C, for ctlr_page_find (controller/server/page.h).
import sys
from pathlib import Path

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml", ".png": "image/png"}


def main():
    root = Path(sys.argv[1])
    files = sorted(p for p in root.rglob("*") if p.suffix in TYPES)
    print("/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by controller/embed.py from controller/page. */")
    print('#include <string.h>\n\n#include "controller/server/page.h"\n')
    for i, p in enumerate(files):
        data = p.read_bytes()
        print(f"static const unsigned char file{i}[] = {{{','.join(map(str, data))}{',' if data else ''}0}};")
    print("\nstatic const struct ctlr_page_file files[] = {")
    for i, p in enumerate(files):
        print(f'    {{"/{p.relative_to(root)}", "{TYPES[p.suffix]}", file{i}, sizeof(file{i}) - 1}},')
    print("};\n\nconst struct ctlr_page_file *ctlr_page_find(const char *path)\n{")
    print('\tif (!strcmp(path, "/"))\n\t\tpath = "/index.html";')
    print("\tfor (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)")
    print("\t\tif (!strcmp(files[i].path, path))\n\t\t\treturn &files[i];\n\treturn NULL;\n}")


main()
