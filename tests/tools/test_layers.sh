#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/check_layers.py and check_symbols.py find what is planted, and nothing
# in the tree as it is.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

expect() { # NAME TEXT: the last output has it
    if grep -qF -- "$2" "$work/out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1: no '$2' in:"
        sed 's/^/    /' "$work/out"
    fi
}
layers() { python3 "$root/tools/check_layers.py" "$work/tree" >"$work/out"; }

plant() { # FILE LINE TEXT: a copy of the tree where it is the first line
    rm -rf "$work/tree"
    mkdir "$work/tree"
    cp -r "$root/src" "$root/cli" "$root/include" "$work/tree"
    mkdir -p "$(dirname "$work/tree/$1")"
    { echo "$2" && cat "$root/$1" 2>/dev/null; } >"$work/planted"
    cp "$work/planted" "$work/tree/$1"
    layers
}

plant src/base/arena.c '#include "plan/plan.h"'
expect "upward include" \
    "FAIL src/base/arena.c:1: base comes before plan: it may not include plan/plan.h"
plant src/plan/plan.c '#include <omp.h>'
expect "OpenMP outside threads" "FAIL src/plan/plan.c:1: <omp.h> is for threads"
plant src/graph/lane.c '#include <stdio.h>'
expect "stdio in graph" "FAIL src/graph/lane.c:1: <stdio.h> is for"
plant src/graph/lane.c '#include "build.h"'
expect "no room named" 'FAIL src/graph/lane.c:1: write "graph/build.h"'
plant cli/common.c '#include "base/base.h"'
expect "a command sees a room" "FAIL cli/common.c:1: base/base.h: only public"
plant include/tollbooth/base.h '#include "base/base.h"'
expect "a public header sees a room" \
    "FAIL include/tollbooth/base.h:1: a public header includes base/base.h"
plant cli/arena.c '/* empty */'
expect "two files of one name" "arena.c has the same name"
plant src/cellar/dig.c '/* empty */'
expect "a room outside LAYERS" "room cellar is not in src/LAYERS"

cat >"$work/planted.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
int counter;
int tb_planted(int x);
int tb_planted(int x)
{
    static int calls;
    if (x > 3)
        abort();
    printf("%d", x);
    return ++calls + counter;
}
C
mkdir -p "$work/tree/src/plan"
cp "$work/planted.c" "$work/tree/src/plan"
if (cd "$work" && ${CC:-cc} -O1 -c planted.c -o planted.c.o &&
    ar rc planted.a planted.c.o); then
    python3 "$root/tools/check_symbols.py" "$work/planted.a" "$work/tree" \
        >"$work/out"
    expect "abort" "planted.c.o (room plan) uses abort"
    expect "printf" "planted.c.o (room plan) uses printf"
    expect "a global" "counter is writable"
    expect "a static" "calls"
fi

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
