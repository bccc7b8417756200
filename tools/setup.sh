#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing on a Debian machine; the one list of packages.
# Says nothing when nothing is missing. Where it may not install, it names the
# packages and goes on if a build is still possible.
set -u

# Is it here in any form? A package is only the usual way to get it.
cmd() { command -v "$1" >/dev/null 2>&1; }
file() { compgen -G "$1" >/dev/null; }
header() {
    echo "#include <$1>" | ${CC:-cc} -E -x c - >/dev/null 2>&1 ||
        file "/usr/include/$1" || file "/usr/include/*/$1"
}
python_has() {
    python3 -c "import $1" || /usr/bin/python3 -c "import $1"
}
clang_runtime() {
    cmd clang && file "$(clang -print-file-name=lib)/*/libclang_rt.fuzzer*.a"
}

# package | need | test; need: build = no build without it, check = some
# tests are skipped without it, speed = slower without it, demo = make demo
LIST='
gcc                    | build | cmd gcc
g++                    | check | cmd g++
libc6-dev              | build | header stdlib.h
make                   | build | cmd make
cmake                  | build | cmd cmake
ninja-build            | build | cmd ninja
pkg-config             | build | cmd pkg-config
libjansson-dev         | build | header jansson.h
zlib1g-dev             | check | header zlib.h
libdnnl-dev            | speed | header dnnl.h
libopenblas-openmp-dev | speed | file /usr/lib/*/openblas-openmp/libopenblas.so
libcairo2              | check | file '/usr/lib/*/libcairo.so.2'
fonts-dejavu-core      | check | file '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf'
python3                | check | cmd python3
clang                  | check | cmd clang
clang-format           | check | cmd clang-format
lld                    | check | cmd wasm-ld
binaryen               | speed | cmd wasm-opt
libclang-rt-dev        | check | clang_runtime
nodejs                 | check | cmd node
gcc-aarch64-linux-gnu  | check | cmd aarch64-linux-gnu-gcc
libc6-dev-arm64-cross  | check | file /usr/aarch64-linux-gnu/include/stdlib.h
qemu-user              | check | cmd qemu-aarch64
locales                | check | file /usr/share/i18n/locales/de_DE
librsvg2-bin           | check | cmd rsvg-convert
poppler-utils          | check | cmd pdftotext
chromium               | check | cmd chromium
chromium-driver        | check | cmd chromedriver
python3-selenium       | check | python_has selenium
python3-pip            | check | python_has pip
dict-devil             | demo  | file /usr/share/dictd/devil.dict.dz
'
# tools/make_goldens.py rewrites the goldens of ops with PyTorch; nothing else
# needs it: setup.sh --goldens
if [ "${1:-}" = --goldens ]; then
    LIST+='python3-torch | check | python3 -c "import torch"
python3-numpy | check | python3 -c "import numpy"
'
fi

missing_of() { # needs... -> packages not here
    local package need test
    while IFS='|' read -r package need test; do
        read -r package <<<"$package"
        read -r need <<<"$need"
        [ -n "$package" ] && [[ " $* " == *" $need "* ]] || continue
        eval "$test" >/dev/null 2>&1 || echo "$package"
    done <<<"$LIST"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}
# sudo may ask for a password only where somebody can answer
may_install() {
    cmd apt-get || return 1
    [ "$(id -u)" = 0 ] && return
    cmd sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }
}

# Packages this release of Debian does not have must not stop the others.
offered() {
    local package
    for package; do
        if apt-cache policy "$package" 2>/dev/null |
            grep -q 'Candidate: [0-9]'; then
            echo "$package"
        else
            echo "setup: no package $package here" >&2
        fi
    done
}

install() {
    echo "setup: installing $*"
    as_root apt-get update -qq || echo "setup: package lists not renewed" >&2
    local packages
    packages=$(offered "$@")
    # shellcheck disable=SC2086 # a list of words
    as_root apt-get install -y -qq --no-install-recommends $packages \
        </dev/null >/dev/null || echo "setup: apt-get failed" >&2
}

missing=$(missing_of build check speed demo)
[ -z "$missing" ] && exit 0
# shellcheck disable=SC2086
if may_install; then
    install $missing
else
    echo "setup: no right to install here; missing packages (Debian names):"
    echo $missing
fi
vital=$(missing_of build)
if [ -n "$vital" ]; then
    echo "setup: no build is possible without:" $vital >&2
    exit 1
fi
still=$(missing_of check speed demo)
[ -z "$still" ] || echo "setup: going on without:" $still
