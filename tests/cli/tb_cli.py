# SPDX-License-Identifier: MIT
"""What the command line's tests share: running the program as a stranger
would, strict JSON, and the count at the end. Standard library only."""

import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

# $TOLLBOOTH, or the first argument of a test file that is run alone.
PROGRAM = os.path.abspath(os.environ.get("TOLLBOOTH") or
                          (sys.argv[1:] + ["build/tollbooth"])[0])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = []  # (name, function), in order of definition


def built_for_a_sanitizer():
    try:
        with open(PROGRAM, "rb") as f:
            return b"__asan_init" in f.read()
    except OSError:
        return False


SANITIZED = "san" in os.environ.get("ASAN_OPTIONS", "") or built_for_a_sanitizer()


class Fail(Exception):
    pass


class Skip(Exception):
    pass


def test(fn):
    """A test: takes one T, raises Fail or Skip."""
    TESTS.append((fn.__name__, fn))
    return fn


def add(name, fn):
    TESTS.append((name, fn))


class Result:
    def __init__(self, args, rc, out, err, peak_kb):
        self.args, self.rc, self.peak_kb = args, rc, peak_kb
        self.raw, self.raw_err = out, err
        self.out = out.decode("utf-8", "replace")
        self.err = err.decode("utf-8", "replace")

    def __str__(self):
        words = " ".join(a if len(a) < 120 else a[:117] + "..." for a in self.args)
        return "tollbooth %s -> %d\n    stdout: %s\n    stderr: %s" % (
            words, self.rc, self.out[:400], self.err[:600])

    def json(self):
        return strict(self.out, self)

    def lines(self):
        return [strict(line, self) for line in self.out.splitlines()]


def strict(text, what=""):
    """JSON without NaN, Infinity or duplicate keys."""

    def bad(word):
        raise Fail("%s in JSON: %s" % (word, what))

    def once(pairs):
        keys = [k for k, _ in pairs]
        if len(set(keys)) != len(keys):
            raise Fail("a key twice in JSON: %s: %s" % (keys, what))
        return dict(pairs)

    try:
        return json.loads(text, parse_constant=bad, object_pairs_hook=once)
    except ValueError as e:
        raise Fail("not JSON (%s): %s" % (e, what))


def environment(extra):
    env = dict(os.environ)
    for name in ("COLUMNS", "NO_COLOR", "TB_ISA", "TB_THREADS"):
        env.pop(name, None)
    env.update({"LC_ALL": "C.UTF-8", "OMP_WAIT_POLICY": "passive",
                "TB_THREADS": "1", "TERM": "xterm"})
    # a refused allocation is an error message, as without the sanitizer
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1"
    env.update(extra)
    return {k: v for k, v in env.items() if v is not None}


class T:
    """What one test uses; `dir` is an empty folder that is removed after."""

    def __init__(self):
        self._dir = None

    @property
    def dir(self):
        if not self._dir:
            self._dir = tempfile.mkdtemp(prefix="tollbooth-cli-")
        return self._dir

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, data):
        path = self.path(name)
        with open(path, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        return path

    def start(self, *args, env=None, **popen):
        return subprocess.Popen([PROGRAM] + list(args), env=environment(env or {}),
                                cwd=self.dir, **popen)

    def run(self, *args, env=None, stdin=b"", timeout=240, preexec=None,
            stdout=None, rc=None):
        """rc: the exit code wanted. stdout: an open file in place of a pipe."""
        args = [str(a) for a in args]
        with tempfile.TemporaryFile() as o, tempfile.TemporaryFile() as e, \
                tempfile.TemporaryFile() as i:
            i.write(stdin)
            i.seek(0)
            child = self.start(*args, env=env, stdin=i, stdout=stdout or o,
                               stderr=e, preexec_fn=preexec)
            timer = threading.Timer(timeout, child.kill)
            timer.start()
            _, status, usage = os.wait4(child.pid, 0)
            timer.cancel()
            child.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) \
                else -os.WTERMSIG(status)
            o.seek(0)
            e.seek(0)
            r = Result(args, child.returncode, o.read(), e.read(), usage.ru_maxrss)
        if rc is not None:
            self.code(r, rc)
        return r

    def code(self, r, rc):
        if r.rc != rc:
            raise Fail("exit code: got %s, wanted %s\n    %s" % (r.rc, rc, r))

    def ok(self, condition, *what):
        if not condition:
            raise Fail(" ".join(str(w) for w in what) or "condition")

    def eq(self, got, wanted, *what):
        if got != wanted:
            raise Fail("got %.300r, wanted %.300r %s" % (
                got, wanted, " ".join(str(w) for w in what)))

    def has(self, text, *parts):
        for part in parts:
            if part not in text:
                raise Fail("no %r in %.700r" % (part, text))

    def near(self, got, wanted, tolerance, what=""):
        """Nested lists of the same shape, absolute tolerance."""
        if isinstance(wanted, (list, tuple)):
            if not isinstance(got, list) or len(got) != len(wanted):
                raise Fail("shape of %s: got %.200r, wanted %.200r" % (
                    what, got, wanted))
            for i, (g, w) in enumerate(zip(got, wanted)):
                self.near(g, w, tolerance, "%s[%d]" % (what, i))
        elif isinstance(wanted, str) or isinstance(got, str):
            if got != wanted:
                raise Fail("%s: got %r, wanted %r" % (what, got, wanted))
        elif not abs(got - wanted) <= tolerance:
            raise Fail("%s: got %.17g, wanted %.17g within %g" % (
                what, got, wanted, tolerance))

    def clear(self):
        if self._dir:
            shutil.rmtree(self._dir, ignore_errors=True)


def commands():
    out = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True).stdout
    return [line.split()[0] for line in out.splitlines() if line.startswith("  ")]


def options(command):
    """[(name, what --help calls its value or None)] of the option table."""
    out = subprocess.run([PROGRAM, command, "--help"], capture_output=True,
                         text=True).stdout
    found = []
    for line in out.splitlines():
        if line.startswith("  --"):
            left = line[2:].split("  ")[0].split()
            found.append((left[0][2:], left[1] if len(left) > 1 else None))
    return found


# --- inputs ----------------------------------------------------------------

WORDS = "the cat sat on a mat and then the dog ran far away from it".split()


def story(words=600, seed=1):
    """A text that depends on nothing but its arguments."""
    out, state = [], seed
    for i in range(words):
        state = (state * 1103515245 + 12345) % 2 ** 31
        out.append(WORDS[(state >> 16) % len(WORDS)])
        out.append("\n" if (state >> 8) % 9 == 0 else " ")
    return "".join(out)


def npy(values, dims, kind="<f8"):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (
        kind, tuple(dims))
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    code = {"<f8": "d", "<f4": "f"}[kind]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + \
        struct.pack("<%d%s" % (len(values), code), *values)


def safetensors(tensors):
    """{name: (dtype, dims, bytes)}"""
    head, data = {}, b""
    for name, (dtype, dims, raw) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(dims),
                      "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data


def bf16(values):
    """Truncation: for values that bfloat16 holds."""
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def is_finite(x):
    return not isinstance(x, str) and math.isfinite(x)


# --- running ---------------------------------------------------------------


def main(name_filter=""):
    if not os.path.isfile(PROGRAM):
        print("FAIL program: %s is not there" % PROGRAM)
        print("0 passed, 1 failed, 0 skipped")
        return 1
    passed = failed = skipped = 0
    for name, fn in TESTS:
        if name_filter not in name:
            continue
        t = T()
        try:
            fn(t)
            passed += 1
        except Skip as e:
            skipped += 1
            print("SKIP %s: %s" % (name, e))
        except Fail as e:
            failed += 1
            print("FAIL %s: %s" % (name, e))
        except Exception:
            failed += 1
            print("FAIL %s: %s" % (name, traceback.format_exc()))
        finally:
            t.clear()
        sys.stdout.flush()
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 0


def interrupted(t, script, *words):
    """Ctrl-C while a script of bench/ waits for the program: 130, in one line."""
    t.write("slow", "#!/bin/sh\n[ $1 = --version ] || { touch started; exec sleep 60; }\n")
    os.chmod(t.path("slow"), 0o755)
    p = subprocess.Popen(
        [sys.executable, os.path.join(ROOT, *script.split("/")), "--tollbooth",
         t.path("slow"), *words], cwd=t.dir, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while p.poll() is None and not os.path.exists(t.path("started")):
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate()
    t.eq((p.returncode, out, err), (130, "", script + ": interrupted\n"))


def alone(name):
    """The end of every test file: run it when it is the program."""
    if name == "__main__":
        sys.exit(main(sys.argv[2] if len(sys.argv) > 2 else ""))


