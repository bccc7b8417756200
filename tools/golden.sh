#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Rewrites expected texts and pictures from what the program prints now; read
# `git diff tests/golden docs/img` before you commit. Goldens of ops come from
# PyTorch and are rewritten only where it is installed.
set -eu
cd "$(dirname "$0")/.."
export TB_GOLDEN=write
for test in $(grep -rl TB_GOLDEN tests --include='*.[ch]' | xargs grep -l \
    '^TB_TEST') $(grep -l test_pictures_demo.h tests/*/*.c); do
    "build/tests/$(basename "$test" .c)"
done
for test in tests/cli/*.sh; do
    [ ! -f "$test" ] || ! grep -q TB_GOLDEN "$test" || bash "$test"
done
python=$(for p in python3 /usr/bin/python3; do
    ! "$p" -c 'import torch' 2>/dev/null || { echo "$p" && break; }
done)
if [ -n "$python" ]; then
    "$python" tools/make_goldens.py
else
    echo "no PyTorch: tests/golden/ops stays (tools/setup.sh --goldens)"
fi
tools/pictures.sh
git diff --stat -- tests/golden docs/img 2>/dev/null || true
