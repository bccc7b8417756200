#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make_man.sh PROGRAM OUT: man pages and bash completion from the
# program's own option tables, into OUT/man1 and OUT/completions.
set -eu
program=$1
out=$2
here=$(dirname "$0")/..
mkdir -p "$out/man1" "$out/completions"
commands=$("$program" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
[ -n "$commands" ]

roff() { sed 's/\\/\\e/g; s/-/\\-/g'; }
{
    cat "$here/man/tollbooth.head"
    echo ".SH COMMANDS"
    for command in $commands; do
        echo ".TP"
        echo ".BR tollbooth\\-$command (1)"
        "$program" --help | sed -n "s/^  $command  *//p" | roff
    done
    cat "$here/man/tollbooth.tail"
} >"$out/man1/tollbooth.1"

blocks=$("$program" blocks --json | grep -o '"name":"[^"]*"' | cut -d'"' -f4)
{
    echo "# bash completion for tollbooth; written by its build"
    echo "_tollbooth()"
    echo "{"
    echo "    local word=\${COMP_WORDS[COMP_CWORD]} words="
    echo "    if [ \"\$COMP_CWORD\" = 1 ]; then"
    echo "        words='$(echo $commands) --help --version'"
    echo "    else"
    echo "        case \${COMP_WORDS[1]} in"
    for command in $commands; do
        echo "        $command) words='$(echo $("$program" "$command" \
            --help-words))' ;;"
        "$program" "$command" --help-man >"$out/man1/tollbooth-$command.1"
    done
    echo "        esac"
    echo "        case \$word in"
    echo "        -*) ;;"
    echo "        *) words='$(echo $blocks)' ;;"
    echo "        esac"
    echo "    fi"
    echo "    mapfile -t COMPREPLY < <(compgen -W \"\$words\" -- \"\$word\")"
    echo "}"
    echo "complete -o default -F _tollbooth tollbooth"
} >"$out/completions/tollbooth"
