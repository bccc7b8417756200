#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every test and check, each stage timed; closes with one line of the form
# "N passed, N failed, N skipped" and exits 1 on a failure.
#
#   tools/check.sh               all of it; CI=true adds -Werror, clang, TSan
#   tools/check.sh PRESET...     only the builds named (asan, tsan, clang,
#                                debug, release) and their tests
#
# A test program prints such a line itself, and "SKIP name: reason"; anything
# else counts as one by its exit status (77: skipped, its output says why).
# Logs stay in build/check/.
set -u
cd "$(dirname "$0")/.."
root=$PWD
logs=$root/build/check
jobs=$(nproc 2>/dev/null || echo 2)
sums='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'
passed=0 failed=0 skipped=0
export OMP_WAIT_POLICY=passive # programs side by side share the cores
# gcc 12's leak checker crashes on the thread-local data of libraries that were
# opened while threads run (oneDNN, OpenBLAS): it need not look there
export ASAN_OPTIONS=detect_leaks=1:intercept_tls_get_addr=0:${ASAN_OPTIONS:-}
export LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}
export TSAN_OPTIONS=halt_on_error=1:${TSAN_OPTIONS:-}

# --- counting --------------------------------------------------------------

show() { # LOG: what a reader needs of a failure
    grep -E '^FAIL|ERROR: |error: |WARNING: ThreadSanitizer' "$1" ||
        tail -n 30 "$1"
}

count() { # LABEL LOG EXIT-STATUS
    local label=$1 log=$2 status=$3 line p f s
    line=$(grep -E "$sums" "$log" | tail -n 1)
    if [ -n "$line" ]; then
        IFS=' ' read -r p _ f _ s _ <<<"$line"
        [ "$status" = 0 ] || [ "$f" != 0 ] || f=1
    else
        p=0 f=0 s=0
        case $status in
        0) p=1 ;;
        77) s=1 ;;
        *) f=1 ;;
        esac
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" != 0 ]; then
        echo "FAIL $label (exit $status, $log)"
        show "$log" | sed 's/^/    /'
    fi
    if [ -n "$line" ]; then
        grep '^SKIP' "$log" | sed "s|^SKIP |SKIP $label: |"
    elif [ "$s" = 1 ]; then
        echo "SKIP $label: $(tail -n 1 "$log")"
    fi
    grep '^warning: ' "$log"
    return 0
}

one() { # LABEL COMMAND...: one check
    local label=$1 log=$logs/${1//[ \/]/_}.log
    shift
    "$@" >"$log" 2>&1 </dev/null
    count "$label" "$log" $?
}

begin() {
    stage=$1 since=$SECONDS before="$passed $failed $skipped"
}

end() { # one line about the stage
    local p f s
    read -r p f s <<<"$before"
    printf -- '-- %-34s %5d s   %d passed, %d failed, %d skipped\n' "$stage" \
        $((SECONDS - since)) $((passed - p)) $((failed - f)) $((skipped - s))
}

# --- stages ----------------------------------------------------------------

build() { # PRESET [TARGET...]
    begin "$1: build"
    one "$stage" tools/build.sh "$@"
    grep -E 'warning:|tollbooth: .*: none' "$logs/$1:_build.log" | sort -u |
        head -n 20
    end
    ! grep -qE '^(FAILED|ninja: error|CMake Error)' "$logs/$1:_build.log"
}

# A program of its own process group and time limit; status beside the log.
run_one() { # LOG PROGRAM
    local status
    case $2 in
    *.sh) set -- "$1" bash "$2" ;;
    */aarch64/*) set -- "$1" qemu-aarch64 -L /usr/aarch64-linux-gnu "$2" ;;
    *.mjs) set -- "$1" node "$2" ;;
    *.py) set -- "$1" python3 "$2" ;;
    esac
    timeout 900 "${@:2}" >"$1" 2>&1 </dev/null
    status=$?
    [ $status != 124 ] || echo "FAIL ran for more than 900 s" >>"$1"
    echo $status >"$1.status"
}
export -f run_one

run_all() { # LABEL PROGRAM...: side by side, counted in order
    local label=$1 program name
    local -A log
    shift
    mkdir -p "$logs/$label"
    rm -f "$logs/$label"/*
    for program; do
        log[$program]=$logs/$label/$(basename "$program").log
        printf '%s\0%s\0' "${log[$program]}" "$program"
    done | xargs -0 -r -n 2 -P "$jobs" bash -c 'run_one "$@"' run_one
    for program; do
        name=$(basename "$program")
        log[$program]=$logs/$label/$name.log
        count "$label $name" "${log[$program]}" \
            "$(cat "${log[$program]}.status" 2>/dev/null || echo 1)"
    done
}

tests_of() { # FOLDER [REGEX]
    local source
    find tests -name 'test_*.c' | grep -E "${2:-.}" | while read -r source; do
        echo "$1/tests/$(basename "$source" .c)"
    done | sort
}

scripts() { # FOLDER: what tests it has
    [ ! -d "$1" ] || find "$1" -name 'test_*' \
        \( -name '*.sh' -o -name '*.py' \) | sort
}

unit_tests() { # PRESET FOLDER
    begin "$1: tests"
    # shellcheck disable=SC2046 # names without blanks
    run_all "$1" $(tests_of "$2")
    end
}

# What people type, run against this build's program.
cli_tests() { # PRESET FOLDER
    [ -n "$(scripts tests/cli)" ] || return 0
    begin "$1: command line"
    export TOLLBOOTH=$root/$2/tollbooth
    # shellcheck disable=SC2046
    run_all "$1-cli" $(scripts tests/cli)
    end
}

have() { # COMMAND: or say so and skip
    command -v "$1" >/dev/null 2>&1 || {
        echo "no $1 here"
        return 77
    }
}

format_check() { # other versions break lines elsewhere
    local version
    have clang-format || return
    version=$(clang-format --version)
    [[ $version == *" version 14."* ]] || {
        echo "the rules are clang-format 14's; here: $version"
        return 77
    }
    tools/format.sh --check
}

headers_check() { # each public header alone, as C11 and as C++11
    local header bad=0
    for header in include/tollbooth/*.h; do
        gcc -std=c11 -Wall -Wextra -pedantic-errors -Werror -Iinclude \
            -fsyntax-only -x c "$header" || bad=1
        ! command -v g++ >/dev/null || g++ -std=c++11 -Wall -Wextra \
            -pedantic-errors -Werror -Iinclude -fsyntax-only -x c++ \
            "$header" || bad=1
    done
    return $bad
}

# The installed tree serves a program that knows only pkg-config.
install_check() {
    local prefix=$logs/prefix flags
    rm -rf "$prefix"
    cmake --install build --prefix "$prefix" >/dev/null || return
    flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tollbooth.pc)") \
        pkg-config --cflags --libs tollbooth) || return
    # shellcheck disable=SC2086
    gcc -std=c11 examples/flow_from_c.c $flags -Wl,-rpath,"$(dirname \
        "$(find "$prefix" -name libtollbooth.so)")" -o "$logs/installed" ||
        return
    "$logs/installed" pre-ln >/dev/null || return
    "$prefix/bin/tollbooth" --version || return
    [ -s "$prefix/share/man/man1/tollbooth.1" ] || return
    bash -n "$prefix/share/bash-completion/completions/tollbooth"
}

exports_check() { # the shared library shows what the public headers declare
    local name names
    have nm || return
    names=$(nm -D --defined-only build/src/libtollbooth.so |
        awk '$2 ~ /[TRDB]/ { print $3 }')
    [ -n "$names" ] || return
    for name in $names; do
        grep -qw "$name" include/tollbooth/*.h ||
            { echo "FAIL $name is in no public header" && return 1; }
    done
}

python() { # SCRIPT ARGUMENTS...
    have python3 || return
    python3 "$@"
}

static_checks() {
    begin "tree"
    one layers python tools/check_layers.py
    one format format_check
    one headers headers_check
    # shellcheck disable=SC2046
    run_all tools $(scripts tests/tools)
    end
}

library_checks() {
    begin "library, examples, install"
    one symbols python tools/check_symbols.py build/src/libtollbooth.a
    one exports exports_check
    one example build/examples/flow_from_c pre-ln
    one install install_check
    one "export torch" python tests/parity/export_torch.py build/tollbooth \
        build/tests/parity_dump
    for script in tools/check_docs*; do
        [ ! -f "$script" ] || one "docs" "$script"
    done
    end
}

web_checks() {
    begin "web"
    one wasm bash -c 'for c in clang wasm-ld; do command -v $c >/dev/null ||
        { echo "no $c here"; exit 77; }; done; make -s -f web/wasm.mk'
    [ ! -f build/wasm/tollbooth.wasm ] ||
        one page python web/page.py build/tollbooth build/wasm/tollbooth.wasm \
            build/web/tollbooth.html
    if [ -f build/wasm/tollbooth.wasm ] && have node >/dev/null; then
        export TOLLBOOTH=$root/build/tollbooth
        run_all web tests/web/test_*.mjs tests/web/test_*.py
    else
        one "web tests" bash -c 'echo "no wasm build or no node here"; exit 77'
    fi
    end
}

# Another architecture: the tests of numbers, texts and kernels, emulated.
arm_checks() {
    local need
    begin "64-bit ARM, emulated"
    for need in aarch64-linux-gnu-gcc qemu-aarch64; do
        command -v $need >/dev/null || {
            one aarch64 have $need
            end
            return
        }
    done
    one aarch64 make -s -j "$jobs" -f tools/aarch64.mk
    # shellcheck disable=SC2046
    run_all aarch64 $(make -s -f tools/aarch64.mk list)
    end
}

whole() { # PRESET FOLDER
    if build "$1"; then
        unit_tests "$1" "$2"
        cli_tests "$1" "$2"
    fi
}

# What runs on several threads; everything else only repeats under TSan.
tsan() {
    local threaded='test_(threads|kernels_gemm|ops|plan|model|flow|train)_?'
    # shellcheck disable=SC2046
    build tsan $(tests_of build-tsan "$threaded" | xargs -n 1 basename) || return
    begin "tsan: tests"
    # shellcheck disable=SC2046
    run_all tsan $(tests_of build-tsan "$threaded")
    end
}

# A locale with a decimal comma, for these tests only.
comma_locale() {
    local folder=$logs/locale
    command -v localedef >/dev/null || return 0
    [ -d "$folder/de_DE.UTF-8" ] || {
        mkdir -p "$folder"
        localedef -i de_DE -f UTF-8 "$folder/de_DE.UTF-8" 2>/dev/null
    }
    export LOCPATH=$folder
}

mkdir -p "$logs"
comma_locale
if [ $# != 0 ]; then
    for preset; do
        case $preset in
        tsan) tsan ;;
        release) whole release build ;;
        *) whole "$preset" "build-$preset" ;;
        esac
    done
else
    static_checks
    first=release
    [ "${CI:-}" != true ] || first=ci
    if build $first; then
        unit_tests $first build
        cli_tests $first build
        library_checks
        web_checks
        arm_checks
    fi
    whole asan build-asan
    if [ "${CI:-}" = true ]; then
        whole clang build-clang
        tsan
    fi
fi
echo "-- all: $SECONDS s; logs in build/check"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
