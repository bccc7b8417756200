#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The main job on a real text: post-LN against pre-LN on The Devil's
# Dictionary, which `make setup` installed. Everything goes to demo/.
#   DEMO_MINUTES=4   training time in all
set -eu
cd "$(dirname "$0")/.."
book=/usr/share/dictd/devil.dict.dz
licences=/usr/share/common-licenses # every Debian system has them
text=demo/devils-dictionary.txt
mkdir -p demo
if [ -f "$book" ]; then
    # what stands before the title is about the file, not the book
    gzip -dc <"$book" | sed -n "/THE DEVIL'S DICTIONARY/,\$p" >"$text"
elif [ -d "$licences" ]; then
    echo "no $book (Debian package dict-devil): training on licence texts" >&2
    text=demo/licences.txt
    cat "$licences"/* >"$text"
else
    echo "no $book (Debian package dict-devil): training on docs/*.md" >&2
    text=demo/docs.txt
    cat README.md ARCHITECTURE.md docs/*.md >"$text"
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
