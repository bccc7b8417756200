#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check how the tree hangs together: who includes whom, file names, lengths.

- A file of src/ROOM includes headers of its own or of an earlier room of
  src/LAYERS, and public headers.
- cli, web and examples include public headers and their own (web also rooms:
  it links them).
- OpenMP is seen by threads only, dlopen by kernels and pictures/cairo.c only,
  stdio by the rooms that read and write files.
- No two files of the tree have the same name.
- A function longer than 70 lines is worth a look (a warning).

usage: check_layers.py [ROOT]    exit 1 on a violation
"""
import os
import re
import sys

SOURCE_FOLDERS = ["src", "cli", "web", "examples", "tests", "include"]
NAMED_FOLDERS = SOURCE_FOLDERS + ["blocks", "families", "tools", "bench",
                                  "docs", "cmake", "man"]
MAY_REPEAT = {"CMakeLists.txt", "README.md", ".gitignore"}
# public headers and expected texts are always named with their folder;
# web/libc stands in for the system's headers
NAMED_WITH_FOLDER = ("include/", "web/libc/", "tests/golden/", "tests/fuzz/")
LONGEST_FUNCTION = 70

# header -> rooms that may include it; a file where one is enough
OUTSIDE = {
    "omp.h": ["threads"],
    "pthread.h": ["threads"],
    "dlfcn.h": ["kernels", "pictures/cairo.c"],
    "immintrin.h": ["kernels"],
    "jansson.h": ["checkpoint"],
    "zlib.h": ["data"],
    "stdio.h": ["checkpoint", "data", "train", "equation/load.c"],
    "unistd.h": ["checkpoint", "data", "train",
                 "threads/threads_pthread.c"],
    "fcntl.h": ["checkpoint", "data", "train"],
    "stdlib.h": ["base/platform.c", "threads/threads_pthread.c",
                 "checkpoint", "train"],
    "math.h": ["checkpoint"],
    "assert.h": [],
    "locale.h": [],
    "setjmp.h": [],
    "time.h": ["train"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def files_under(root, folder):
    for at, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            yield os.path.relpath(os.path.join(at, name), root)


def is_c(path):
    return path.endswith((".c", ".h"))


def includes_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1), found.group(2)


class Checker:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.warnings = []
        with open(os.path.join(root, "src", "LAYERS"), encoding="utf-8") as f:
            self.layers = [line.strip() for line in f
                           if line.strip() and not line.startswith("#")]

    def error(self, path, line, text):
        self.errors.append(f"{path}:{line}: {text}")

    def room_include(self, path, line, room, name):
        """An include in quotes from a room of src."""
        target = name.split("/")[0]
        if target == "tollbooth":
            if not os.path.exists(os.path.join(self.root, "include", name)):
                self.error(path, line, f"no public header {name}")
        elif "/" not in name:
            self.error(path, line, f'write "{room}/{name}", not "{name}"')
        elif target not in self.layers:
            self.error(path, line, f"{name}: no room {target} in src/LAYERS")
        elif self.layers.index(target) > self.layers.index(room):
            self.error(path, line,
                       f"{room} comes before {target}: it may not include "
                       f"{name}")

    def system_include(self, path, line, room, name):
        allowed = OUTSIDE.get(name)
        inside = os.path.relpath(path, "src")
        if allowed is not None and room not in allowed and \
                inside not in allowed:
            where = ", ".join(allowed) or "no room"
            self.error(path, line, f"<{name}> is for {where}")

    def check_room_file(self, path):
        parts = path.split(os.sep)
        if len(parts) < 3:
            return self.error(path, 1, "lies in no room")
        room = parts[1]
        if room not in self.layers:
            return self.error(path, 1, f"room {room} is not in src/LAYERS")
        for line, quote, name in includes_of(self.root, path):
            if quote == '"':
                self.room_include(path, line, room, name)
            else:
                self.system_include(path, line, room, name)

    def check_outer_file(self, path, may_see_rooms):
        folder = os.path.dirname(os.path.join(self.root, path))
        for line, quote, name in includes_of(self.root, path):
            own = os.path.exists(os.path.join(folder, name))
            room = name.split("/")[0] in self.layers and may_see_rooms
            if quote == '"' and not (name.startswith("tollbooth/") or own or
                                     room):
                self.error(path, line,
                           f"{name}: only public headers and own ones here")

    def check_public_header(self, path):
        for line, quote, name in includes_of(self.root, path):
            if quote == '"' and not name.startswith("tollbooth/"):
                self.error(path, line, f"a public header includes {name}")

    def check_includes(self):
        for path in files_under(self.root, "src"):
            if is_c(path):
                self.check_room_file(path)
        for path in files_under(self.root, "include"):
            if is_c(path):
                self.check_public_header(path)
        for folder in ("cli", "examples", "web"):
            for path in files_under(self.root, folder):
                if is_c(path):
                    self.check_outer_file(path, folder == "web")

    def check_names(self):
        seen = {}
        for folder in NAMED_FOLDERS:
            for path in files_under(self.root, folder):
                name = os.path.basename(path)
                if name in MAY_REPEAT or path.startswith(NAMED_WITH_FOLDER):
                    continue
                if name in seen:
                    self.error(path, 1, f"{seen[name]} has the same name")
                seen[name] = path

    def check_lengths(self):
        for folder in SOURCE_FOLDERS:
            for path in files_under(self.root, folder):
                if path.endswith(".c"):
                    self.check_functions(path)

    def check_functions(self, path):
        begin, head = 0, ""
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if line.startswith("{"):
                    begin = number
                elif line.startswith("}") and begin:
                    lines = number - begin - 1
                    if lines > LONGEST_FUNCTION:
                        self.warnings.append(
                            f"{path}:{begin}: {lines} lines in one function: "
                            f"{head}")
                    begin = 0
                elif re.match(r"[A-Za-z].*\(", line):
                    head = line.strip()


def main():
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    check = Checker(sys.argv[1] if len(sys.argv) > 1 else default)
    check.check_includes()
    check.check_names()
    check.check_lengths()
    for text in check.warnings:
        print(f"warning: {text}")
    for text in check.errors:
        print(f"FAIL {text}")
    return 1 if check.errors else 0


if __name__ == "__main__":
    sys.exit(main())
