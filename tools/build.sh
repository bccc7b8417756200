#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/build.sh PRESET [TARGET...]: configure where needed, then build. Quiet
# about what CMake finds from the second time on.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
command -v cmake >/dev/null && command -v ninja >/dev/null || {
    echo "cmake and ninja are needed: make setup" >&2
    exit 1
}
folder=build-$preset
case $preset in release | ci) folder=build ;; esac

# a changed preset or another state of TB_WERROR needs a new look
want="$preset $(cksum <CMakePresets.json)"
if [ "$want" != "$(cat "$folder/preset" 2>/dev/null)" ]; then
    cmake --preset "$preset" -DTB_WERROR="$([ "$preset" = ci ] ||
        [ "$preset" = clang ] && echo ON || echo OFF)"
    echo "$want" >"$folder/preset"
fi
targets=()
[ $# = 0 ] || targets=(--target "$@")
exec cmake --build "$folder" "${targets[@]}"
