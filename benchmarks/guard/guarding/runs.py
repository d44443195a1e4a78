"""Programs that run once and end: under a limit each, several at a time, nothing begun when the time is up."""

import concurrent.futures
import itertools
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from matrix.rows import CACHES

from . import verdicts

# Below this there is no use in beginning: a framework takes longer to load.
LEAST_SECONDS = 5.0


@dataclass
class Task:
    name: str
    command: list
    guard: str = ""
    """What EBB_GUARD is set to; without it the command runs without ebb."""
    limit: float = 60.0
    environment: dict = field(default_factory=dict)


@dataclass
class Ended:
    task: Task
    seconds: float = 0.0
    failure: str = ""
    answer: dict = field(default_factory=dict)
    """The last line of JSON that the program said."""
    report: "verdicts.Report | None" = None


class Runner:
    def __init__(self, folder, ebb, seconds):
        self.folder, self.ebb = Path(folder), ebb
        self.deadline = time.monotonic() + seconds
        self._numbers = itertools.count(1)

    def left(self):
        return self.deadline - time.monotonic()

    def environment(self, guard="", sampled=True):
        """What is compiled is kept in the work folder, and so are twins and what is remembered of them: a run starts
        without what earlier ones left on the machine."""
        environment = dict(os.environ)
        for name, place in CACHES.items():
            environment[name] = str(self.folder / "caches" / place)
        if guard:
            environment |= {"EBB_GUARD": guard, "EBB_GUARD_CACHE": str(self.folder / "caches" / "guard")}
            environment |= {"EBB_SAMPLE": "1"} if sampled else {}
        return environment

    def command(self, command, report=None):
        """In front of a program: no daemon, because what guards is the switch in the environment."""
        reporting = [f"--report=json:{report}"] if report else []
        return [self.ebb, "run", "--no-daemon", "--quiet", *reporting, "--", *command]

    def together(self, tasks, at_once):
        """Each task's end, as they come."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as threads:
            running = [threads.submit(self.run, task) for task in tasks]
            for ended in concurrent.futures.as_completed(running):
                yield ended.result()

    def run(self, task):
        """Never raises for what the program does: one that failed says so."""
        limit = min(task.limit, self.left())
        if limit < LEAST_SECONDS:
            return Ended(task, failure="not begun, the time was up")
        place = self.folder / f"{next(self._numbers):03}-{task.name}"
        report = place.with_suffix(".json")
        command = self.command(task.command, report) if task.guard else task.command
        began = time.monotonic()
        output, status = execute(command, self.environment(task.guard) | task.environment, limit, place)
        ended = Ended(task, time.monotonic() - began)
        found = [line for line in output.splitlines() if line.startswith("{")]
        if status != 0 or not found:
            ended.failure = f"{how(status, limit)}: {last_words(place.with_suffix('.err'))}"
        else:
            ended.answer = json.loads(found[-1])
        if task.guard and report.exists():
            try:
                ended.report = verdicts.read(report)
            except (ValueError, KeyError) as reason:
                ended.failure = ended.failure or f"the report cannot be read: {reason!r}"
        return ended


def execute(command, environment, limit, place):
    """Standard output and the status; None for one that was killed, with its children, because its time was over."""
    with open(place.with_suffix(".err"), "wb") as errors:
        process = subprocess.Popen(
            [str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=errors, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit)
            return output, process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0], None


def how(status, limit):
    if status is None:
        return f"ended after {limit:.0f} s, its limit"
    return f"ended with status {status}" if status else "said nothing"


def last_words(path):
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-2:])[-300:] or "no last words"
