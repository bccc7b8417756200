#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/pictures.sh [DIR]: the pictures of README and docs, as the program draws
# them now; DIR is docs/img unless given.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
program=${TOLLBOOTH:-$root/build/tollbooth}
to=${1:-$root/docs/img}
"$program" flow post-ln pre-ln --depth 12 --svg "$to/flow.svg" >/dev/null
for file in "$root"/docs/img/*.svg; do
    shot=$(basename "$file" .svg)
    [ "$shot" = flow ] || "$program" picture "$shot" --out "$to/$shot.svg"
done
