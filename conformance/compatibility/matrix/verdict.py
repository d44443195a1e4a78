"""What the runs of a row mean, measured against the bars."""

import re
import statistics
from dataclasses import dataclass, field

from .ebb_report import cut

START_UP_RATIO = 1.05
LAUNCH_NS = 100.0


@dataclass
class Verdict:
    row: str
    title: str
    skipped: str = ""
    failures: list = field(default_factory=list)
    same: "bool | None" = None
    start_up: "tuple | None" = None
    """Seconds of the fastest run without ebb and through ebb."""
    launch: "Launch | None" = None
    framework: "Pair | None" = None
    counted: "int | None" = None
    profiled: "int | None" = None
    remarks: list = field(default_factory=list)

    @property
    def passed(self):
        return not self.failures and not self.skipped


@dataclass
class Launch:
    """Nanoseconds of a launch straight into the driver, and what ebb adds, both measured in one process."""

    driver: float
    added: float


@dataclass
class Pair:
    """The cheapest launch by the framework on each side, in nanoseconds, and how far the runs of one side lie apart."""

    without: float
    through: float
    spread: float


def judge(row, runs):
    verdict = Verdict(row.name, row.title)
    for run in runs:
        if run.failure:
            side = "through ebb" if run.through else "without ebb"
            verdict.failures.append(f"{side}{', counted' if run.counted else ''}: {run.failure}")
    good = [run for run in runs if not run.failure]
    judge_results(row, verdict, good)
    timed = [run for run in good if not run.counted]
    without = [run for run in timed if not run.through]
    through = [run for run in timed if run.through]
    if without and through:
        judge_times(verdict, without, through)
    judge_counts(row, verdict, good)
    return verdict


def judge_results(row, verdict, runs):
    without = {run.line["digest"] for run in runs if not run.through}
    through = {run.line["digest"] for run in runs if run.through}
    if len(without) > 1:
        verdict.failures.append("the results differ from run to run even without ebb, so they prove nothing")
    if not without or not through:
        return
    verdict.same = len(without) == 1 and without == through
    if len(without) == 1 and not verdict.same:
        verdict.failures.append("the results differ")
    if row.sanitizer:
        said = {tuple(run.words) for run in runs}
        verdict.same &= len(said) == 1
        if len(said) > 1:
            verdict.failures.append("compute-sanitizer says something else: " + first_difference(runs))
        else:
            verdict.remarks.append("both sides: " + (runs[0].words[-1].strip("= ") if runs[0].words else "nothing"))


def first_difference(runs):
    without = next(run.words for run in runs if not run.through)
    through = next((run.words for run in runs if run.through and run.words != without), without)
    for a, b in zip(without + ["(end)"], through + ["(end)"]):
        if a != b:
            return f"«{a}» became «{b}»"
    return "runs of one side differ"


def judge_times(verdict, without, through):
    # What ebb adds it adds to every run; what the machine adds comes and goes, and is several times the bar.
    verdict.start_up = tuple(min(run.start_up for run in side) for side in (without, through))
    if verdict.start_up[1] > verdict.start_up[0] * START_UP_RATIO:
        verdict.failures.append(f"start-up is more than {START_UP_RATIO - 1:.0%} slower")
    verdict.launch = launch(through)
    if verdict.launch and verdict.launch.added > LAUNCH_NS:
        verdict.failures.append(f"a launch costs {verdict.launch.added:.0f} ns more")
    if not verdict.launch and any("launch_ns" in run.line for run in through):
        verdict.failures.append("only one libcuda was loaded, so ebb was not in front of the driver")
    # No bar for this one: two processes of one side are further apart than what is looked for.
    verdict.framework = pair(without, through)


def launch(through):
    lines = [run.line for run in through if "launch_behind_ns" in run.line]
    if not lines:
        return None
    added = statistics.median(line["launch_ns"] - line["launch_behind_ns"] for line in lines)
    return Launch(min(line["launch_behind_ns"] for line in lines), added)


def pair(without, through):
    a, b = (
        [run.line["framework_launch_ns"] for run in side if "framework_launch_ns" in run.line]
        for side in (without, through)
    )
    return Pair(min(a), min(b), max(max(a) - min(a), max(b) - min(b))) if a and b else None


def judge_counts(row, verdict, runs):
    """Every run through ebb of a program that counts itself is compared, else the one that the profiler watched."""
    for run in runs:
        if not run.through or not run.report or not (run.counted or row.counts_itself):
            continue
        profiled = run.line.get("kernels") if row.counts_itself else run.profiled.total
        verdict.counted, verdict.profiled = run.report.total, profiled
        # Which process it was is of interest to nobody after the run.
        said = [re.sub(r"Process \d+", "a process", sentence) for sentence in run.report.sentences]
        verdict.remarks += [f"ebb: {sentence}" for sentence in dict.fromkeys(said)]
        if run.report.round_ebb:
            verdict.failures.append(f"{run.report.round_ebb} processes reached the driver round ebb")
        if run.profiled and run.profiled.dropped:
            verdict.failures.append(f"the profiler lost {run.profiled.dropped} kernels, so its count is too low")
        if profiled == 0:
            verdict.failures.append("no kernel was run, so nothing was shown")
        if run.report.total != profiled:
            more = f": {by_name(run)}" if run.profiled else ""
            verdict.failures.append(f"ebb counted {run.report.total} launches, the profiler {profiled}{more}")
            break
    verdict.remarks += own_count_differs(row, runs)


def own_count_differs(row, runs):
    """A program may know its kernels beside the profiler; then all three must agree."""
    for run in runs:
        if run.profiled and run.line.get("kernels", run.profiled.total) != run.profiled.total:
            return [f"the program says {run.line['kernels']} kernels, the profiler {run.profiled.total}"]
    return []


def by_name(run):
    """The kernels on which the two counts differ most, ebb's count first."""
    seen = {}
    for name, count in run.profiled.kernels.items():
        seen[cut(name)] = seen.get(cut(name), 0) + count
    names = set(seen) | set(run.report.kernels)
    apart = sorted(names, key=lambda name: (-abs(run.report.kernels[name] - seen.get(name, 0)), name))
    lines = [f"{name[:60]} {run.report.kernels[name]}/{seen.get(name, 0)}" for name in apart[:5]]
    return ", ".join(lines)
