"""Programs that are started once, told what to do by lines of words, and answer with lines of JSON."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time


class Lost(Exception):
    """A tenant ended, or did not answer in time; the text says which and its last words."""


class Tenant:
    """One process. It is killed, with its children, when it does not answer, and when this is closed."""

    def __init__(self, name, command, environment, log):
        self.name = name
        self._log = open(log, "wb")
        self._log_path = log
        self._pending = b""
        self._process = subprocess.Popen(
            [str(word) for word in command], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._log, start_new_session=True, bufsize=0,
        )  # fmt: skip
        self.ready = {}

    @property
    def pid(self):
        return self._process.pid

    def await_ready(self, seconds):
        self.ready = self.answer(seconds)
        return self

    def tell(self, *words):
        try:
            self._process.stdin.write((" ".join(str(word) for word in words) + "\n").encode())
        except OSError as error:
            self._lose(f"cannot be told anything ({error})")

    def answer(self, seconds):
        line = self._line(time.monotonic() + seconds)
        try:
            answer = json.loads(line)
        except ValueError:
            self._lose(f"said {line[:200]!r}")
        if "error" in answer:
            self._lose(answer["error"])
        return answer

    def ask(self, *words, seconds=30.0):
        self.tell(*words)
        return self.answer(seconds)

    def _line(self, deadline):
        output = self._process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                line, newline, rest = self._pending.partition(b"\n")
                if newline and line.startswith(b"{"):
                    self._pending = rest
                    return line
                if newline:
                    # A library that prints something is not an answer.
                    self._pending = rest
                    continue
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self._lose("did not answer in time")
                piece = os.read(output.fileno(), 1 << 20)
                if not piece:
                    self._lose(f"ended with status {self._process.wait()}")
                self._pending += piece

    def _lose(self, what):
        self.close()
        words = ""
        with contextlib.suppress(OSError):
            lines = self._log_path.read_text(errors="replace").strip().splitlines()
            words = ": " + " | ".join(lines[-3:])[-400:] if lines else ""
        raise Lost(f"{self.name} {what}{words}")

    def close(self):
        """Asks the process to end, and then sees to it."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()
        self._log.close()
