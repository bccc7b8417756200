#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/format.sh [--check]: clang-format every C file, or list those that
# differ and exit 1.
set -eu
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" != --check ] || mode=(--dry-run -Werror --ferror-limit=1)
find src cli include tests examples web -name '*.[ch]' -print0 |
    sort -z | xargs -0 -P "$(nproc)" -n 32 clang-format "${mode[@]}"
