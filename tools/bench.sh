#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# This machine's kernels and training step, as `tollbooth bench` measures them.
set -eu
cd "$(dirname "$0")/.."
if build/tollbooth bench --help >/dev/null 2>&1; then
    exec build/tollbooth bench "$@"
fi
echo "this build has no command 'bench': nothing measured" >&2
exit 1
