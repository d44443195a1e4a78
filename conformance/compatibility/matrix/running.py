"""Running one program once, with or without ebb in front, and reading what it, ebb and the profiler say."""

import collections
import itertools
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import ebb_report, tools
from .rows import CACHES, ENVIRONMENT

LIMIT_SECONDS = 150


@dataclass
class Run:
    through: bool
    counted: bool
    """A profiler counted, so times mean nothing."""
    seconds: float = 0.0
    failure: str = ""
    line: dict = field(default_factory=dict)
    start_up: float = 0.0
    """Seconds from starting the command, ebb included, to the program's first result."""
    words: list = field(default_factory=list)
    """What compute-sanitizer said, without what must differ between two runs."""
    report: "ebb_report.Counts | None" = None
    profiled: "Profiled | None" = None


@dataclass
class Profiled:
    kernels: collections.Counter
    in_graphs: int = 0
    dropped: int = 0

    @property
    def total(self):
        return sum(self.kernels.values())


class Runner:
    def __init__(self, work, python, ebb, profiler, launch):
        self.work = Path(work)
        self.python = python
        self.ebb = ebb
        self.profiler = profiler
        self.launch = launch
        self._numbers = itertools.count(1)

    def run(self, row, through, count):
        """Never raises for what the program does: a failed run says so."""
        folder = self.work / f"run-{next(self._numbers)}-{row.name}"
        folder.mkdir()
        run = Run(through=through, counted=count)
        command = self._command(row)
        if through:
            command = [self.ebb, "run", f"--report=json:{folder / 'report.json'}", "--", *command]
        environment = self._environment(row, folder, count)
        started = time.monotonic_ns()
        output, errors, status = execute(command, environment)
        run.seconds = (time.monotonic_ns() - started) / 1e9
        self._read(row, run, folder, started, output, errors, status)
        return run

    def _command(self, row):
        if row.program.endswith(".cu"):
            command = [str(tools.build_program(self.work, row.program))]
        else:
            command = [self.python, str(tools.HERE / "programs" / row.program)]
        if row.sanitizer:
            command = [tools.find_program("compute-sanitizer"), "--tool", "memcheck", *command]
        return command

    def _environment(self, row, folder, count):
        environment = dict(os.environ) | ENVIRONMENT
        for name, place in CACHES.items():
            environment[name] = str(self.work / "caches" / place)
        environment["COMPAT_MODE"] = "count" if count or row.counts_itself else "time"
        environment["COMPAT_LAUNCH"] = str(self.launch)
        if count and not row.counts_itself:
            environment["CUDA_INJECTION64_PATH"] = str(self.profiler)
            environment["COMPAT_KERNELS"] = str(folder)
        return environment

    def _read(self, row, run, folder, started, output, errors, status):
        (folder / "stdout").write_text(output)
        (folder / "stderr").write_text(errors)
        lines = output.splitlines()
        found = [line for line in lines if line.startswith('{"')]
        if status != 0 or not found:
            run.failure = f"exit status {status}: " + last_words(errors or output)
            return
        run.line = json.loads(found[-1])
        run.start_up = (run.line["first_result_ns"] - started) / 1e9
        run.words = sanitizer_words(lines)
        if run.through:
            try:
                run.report = ebb_report.read(folder / "report.json")
            except (OSError, ValueError) as reason:
                run.failure = f"no report of ebb: {reason}"
        if run.counted and not row.counts_itself:
            run.profiled = read_profiled(folder)
            if run.profiled is None:
                run.failure = "the profiler left no counts: " + last_words(errors)


def execute(command, environment):
    """Standard output, standard error and exit status; a program over its limit is killed with its children."""
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        errors += f"\nended after {LIMIT_SECONDS} seconds"
    return output, errors, process.returncode


def read_profiled(folder):
    files = list(folder.glob("*.kernels"))
    if not files:
        return None
    sums = Profiled(collections.Counter())
    for file in files:
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith("dropped "):
                sums.dropped += int(line.split()[1])
            elif line.startswith("in-graphs "):
                sums.in_graphs += int(line.split()[1])
            else:
                count, name = line.split("\t", 1)
                sums.kernels[name] += int(count)
    return sums


def sanitizer_words(lines):
    """Addresses differ between any two runs. Frames of the host do so rightly: with ebb there is one more caller."""
    said = [line for line in lines if line.startswith("=========") and "Host Frame" not in line]
    return [re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"\b\d{4,}\b", "N", line)) for line in said]


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-500:] or "it said nothing"
