# SPDX-License-Identifier: Apache-2.0
# What test scripts of this folder end with: every test_* function of theirs in turn, a traceback for each that fails, and a summary.
import traceback


def run(names):
    """The exit code; `names`: the script's globals()."""
    tests = [(n, f) for n, f in names.items() if n.startswith("test_")]
    failed = 0
    for name, test in tests:
        try:
            test()
        except Exception:  # whatever a test raises is its verdict
            failed += 1
            print(f"FAIL {name}")
            traceback.print_exc()
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0
