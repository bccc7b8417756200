# SPDX-License-Identifier: MIT
"""What the scripts here share: options that are refused in one line, and ends
like the program's: 2 for a wrong word, 3 for bad input, 5 where output cannot be
written, 130 for Ctrl-C."""

import argparse
import os
import sys


class Bad(Exception):
    def __init__(self, words, code=3):
        super().__init__(words)
        self.code = code


class Options(argparse.ArgumentParser):
    """Of a script whose text starts with its name."""

    def __init__(self, doc):
        super().__init__(add_help=False, allow_abbrev=False)
        self.doc = doc
        self.add_argument("--help", "-h", action="store_true")

    def error(self, message):
        raise Bad(message + "; --help lists all options", 2)

    def parse(self):
        if {"--help", "-h"} & set(sys.argv):
            print(self.doc)
            sys.exit(0)
        return self.parse_args()


def count(text):
    """A whole number from 1 on."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) < 1 << 31):
        raise argparse.ArgumentTypeError(
            "got %.40s, wanted a whole number from 1 to 2147483647" % text)
    return int(text)


def run(doc, main):
    name, words = doc.split()[0], None
    try:
        code = main()
        sys.stdout.flush()
    except Bad as e:
        code, words = e.code, e
    except KeyboardInterrupt:
        code, words = 130, "interrupted"
    except OSError as e:
        # Python would write what is left once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code, words = 5, "%s: %s" % (e.filename or "standard output", e.strerror)
    if words:
        print("%s: %s" % (name, words), file=sys.stderr)
    sys.exit(code)
