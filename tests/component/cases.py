# SPDX-License-Identifier: Apache-2.0
# Common end of the test scripts in this folder: runs every test_* function in turn, prints a
# traceback of each failure, and a summary.
import traceback


def run(names):
    """Runs the tests in `names`, the script's globals(). Returns the exit code."""
    tests = [(n, f) for n, f in names.items() if n.startswith("test_")]
    failed = 0
    for name, test in tests:
        try:
            test()
        except Exception:  # any exception is a failure
            failed += 1
            print(f"FAIL {name}")
            traceback.print_exc()
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0
