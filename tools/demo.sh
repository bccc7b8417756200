#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The main job on a real text: post-LN against pre-LN on The Devil's
# Dictionary, which `make setup` installed. Everything goes to demo/.
#   DEMO_MINUTES=4   training time in all
set -eu
cd "$(dirname "$0")/.."
book=/usr/share/dictd/devil.dict.dz
text=demo/devils-dictionary.txt
mkdir -p demo
# waiting threads must not spin where other programs run too: on a busy machine
# that made training 27 times slower (10500 against 390 tokens/s)
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
if [ -f "$book" ]; then
    # what stands before the title is about the file, not the book
    gzip -dc <"$book" | sed -n "/THE DEVIL'S DICTIONARY/,\$p" >"$text"
else
    echo "no $book (Debian package dict-devil): training on docs/*.md" >&2
    cat README.md docs/*.md >"$text"
fi
say() { printf '\n$ tollbooth %s\n\n' "$*"; }

say explain post-ln
build/tollbooth explain post-ln
say flow post-ln pre-ln --depth 12 --text "$text"
build/tollbooth flow post-ln pre-ln --depth 12 --text "$text"
compare=(compare post-ln pre-ln --text "$text" --depth 12,24 --width 64
    --context 64 --minutes "${DEMO_MINUTES:-4}" --report demo/report.html)
say "${compare[@]}"
build/tollbooth "${compare[@]}"
echo
echo "The report: demo/report.html"
