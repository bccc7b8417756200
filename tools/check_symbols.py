#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check what the static library asks of the system, and what it can change.

Every function an object takes from outside must stand in the list of its
room: the library never exits, aborts or prints, and only the rooms that read
and write files can. No object has writable data: state hangs off a tb_ctx.

usage: check_symbols.py LIBRARY [ROOT]    exit 1 on a violation
"""
import os
import re
import subprocess
import sys

# of the C library, in every room: what web/wasm_platform.c has too
EVERYWHERE = (r"mem(cpy|set|move|cmp|chr)|str(len|cmp|ncmp|chr|rchr|spn|cspn|"
              r"pbrk|str)|_GLOBAL_OFFSET_TABLE_")
FILES = (r"open|close|p?read|write|f?stat|fcntl|flock|fsync|ftruncate|"
         r"rename|unlink|mkdir|rmdir|realpath|fchmod|opendir|readdir|closedir|"
         r"__errno_location|strerror|getpid|isatty")
SIGNALS = r"sig(emptyset|addset|ismember|pending|timedwait)|pthread_sigmask"
ROOMS = {
    "base": r"aligned_alloc|posix_memalign|madvise|free|getenv",
    "threads": r"omp_\w+|GOMP_\w+|pthread_\w+|sysconf",
    "kernels": r"dl(open|sym|close)|__cpu_(model|indicator_init)",
    "equation": r"fopen|fread|ferror|fclose|__errno_location|strerror",
    # sigpending and its kin: a write beyond a limit must fail, not kill
    "checkpoint": FILES + "|" + SIGNALS + r"|qsort|json_\w+",
    "data": FILES + r"|inflate\w*",
    "train": FILES + r"|clock_gettime|qsort",
}
ONE_FILE = {"cairo": r"dl(open|sym)"}  # of a room that may not else
GENERATED = {"builtins": "equation"}


def rooms_by_name(root):
    rooms = dict(GENERATED)
    src = os.path.join(root, "src")
    for room in sorted(os.listdir(src)):
        folder = os.path.join(src, room)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.endswith(".c"):
                rooms[name[:-2]] = room
    return rooms


def output_of(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def outside_symbols(library):
    """(object, symbol) of everything not defined in the library itself."""
    defined = set(re.findall(r" [TRDBVW] (\w+)$",
                             output_of("nm", "--defined-only", library), re.M))
    for line in output_of("nm", "-A", "-u", library).splitlines():
        where, symbol = line.rsplit(None, 1)
        if symbol not in defined:
            yield where.split(":")[-2], symbol


def writable_symbols(library):
    """(object, symbol) in .data, .bss and their thread-local kin; tables of
    constant pointers (.data.rel.ro) are read-only once loaded."""
    member = ""
    for line in output_of("objdump", "-t", library).splitlines():
        found = re.match(r"(\S+):\s+file format", line)
        if found:
            member = found.group(1)
        found = re.search(r"(\.t?(?:data|bss)(?:\.\S+)?|\*COM\*)\s+"
                          r"([0-9a-f]{8,})\s+(?:\.hidden )?(\S+)$", line)
        if found and not found.group(1).startswith(".data.rel.ro") and \
                not found.group(3).startswith(".") and \
                int(found.group(2), 16) > 0:
            yield member, found.group(3)


def main():
    library = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..")
    rooms = rooms_by_name(root)
    errors = []
    count = 0
    for member, symbol in outside_symbols(library):
        count += 1
        name = re.sub(r"(\.c)?\.o$", "", member)
        room = rooms.get(name)
        if room is None:
            errors.append(f"{member}: from no file of src/")
        elif not re.fullmatch(f"{EVERYWHERE}|{ROOMS.get(room, '-')}|"
                              f"{ONE_FILE.get(name, '-')}", symbol):
            errors.append(f"{member} (room {room}) uses {symbol}")
    for member, symbol in writable_symbols(library):
        errors.append(f"{member}: {symbol} is writable; state hangs off tb_ctx")
    if count == 0:
        errors.append(f"{library}: no outside symbols at all: is nm here?")
    for text in sorted(set(errors)):
        print(f"FAIL {text}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
