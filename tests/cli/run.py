#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/cli/run.py TOLLBOOTH [FILTER]: every test of the command line whose
name holds FILTER; closes with "N passed, N failed, N skipped"."""

import glob
import importlib
import os
import sys

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
if len(sys.argv) > 1:
    os.environ["TOLLBOOTH"] = os.path.abspath(sys.argv[1])

import tb_cli  # noqa: E402 (reads TOLLBOOTH)

for path in sorted(glob.glob(os.path.join(here, "test_*.py"))):
    importlib.import_module(os.path.basename(path)[:-3])
sys.exit(tb_cli.main(sys.argv[2] if len(sys.argv) > 2 else ""))
