#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs every tests/fuzz/fuzz_*.c for FUZZ_SECONDS (60) under libFuzzer, from
# its corpus, the blocks, lint's texts and the examples of docs/. New inputs go to build-fuzz/found/NAME; a crash leaves a file
# there and the exit status is 1.
set -eu
cd "$(dirname "$0")/.."
targets=$(cd tests/fuzz && ls fuzz_*.c | sed 's/\.c$//')
# shellcheck disable=SC2086 # a list of words
tools/build.sh fuzz $targets
export OMP_NUM_THREADS=1 # inputs are small
bad=0
seeds=build-fuzz/seeds
rm -rf "$seeds"
mkdir -p "$seeds"
# the fenced examples of the documents, one file each
for doc in docs/*.md README.md; do
    awk -v to="$seeds/$(basename "$doc" .md)" '
        /^```/ { inside = !inside; n += inside; next }
        inside { print > (to "-" n) }' "$doc"
done
for target in $targets; do
    found=build-fuzz/found/${target#fuzz_}
    mkdir -p "$found"
    echo "$target: ${FUZZ_SECONDS:-60} s"
    "build-fuzz/tests/$target" -max_total_time="${FUZZ_SECONDS:-60}" \
        -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$found/" \
        -print_final_stats=1 "$found" "tests/fuzz/corpus/${target#fuzz_}" \
        blocks tests/golden/lint "$seeds" >"$found.log" 2>&1 || bad=1
    grep -E '^(SUMMARY|stat::number_of_executed_units|==.*ERROR)' "$found.log" ||
        tail -n 5 "$found.log"
done
exit $bad
