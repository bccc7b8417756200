#!/bin/sh
# make demo: post-norm against pre-norm at 12 and 24 blocks on real English
# text, four minutes of training, one table and one report.
set -eu
cd "$(dirname "$0")/.."

# The Devil's Dictionary (public domain) from Debian's dict-devil; else the
# licence texts that every Debian system has; else our own documents.
choose_text() {
    for f in /usr/share/dictd/devil.dict.dz; do
        [ -r "$f" ] && { echo "$f"; return; }
    done
    mkdir -p demo
    if [ -r /usr/share/common-licenses/GPL-3 ]; then
        cat /usr/share/common-licenses/* > demo/text.txt
    else
        cat README.md ARCHITECTURE.md docs/*.md > demo/text.txt
    fi
    echo demo/text.txt
}

mkdir -p demo
text=$(choose_text)
minutes=${DEMO_MINUTES:-4}
echo "demo: text $text, $minutes minutes of training on $(nproc) cores"
build/tollbooth compare post-ln pre-ln --depth 12,24 --width 64 \
    --text "$text" --minutes "$minutes" --report demo/report.html
