"""Part `equality`: the same bits although launches are cut at random moments and resumed.

Every workload runs twice without ebb, in one process, and in another with EBB_GUARD=storm, as often as there is time
for; a storm has the GPU to itself, since most of its stops would find somebody else there. Of a training every loss is
compared and, after fifty steps, every bit of every weight; of operations every bit of every result.
"""

from dataclasses import dataclass
from itertools import chain

from sharing.table import lines, yes

from .runs import Task
from .verdicts import SUMS

BUDGET = 180.0
# Without a storm it does not matter who else is there.
PLAINS_AT_ONCE = 3
SEED = 20
# Calm for at most so many microseconds, stopped for at most so many: a thousand cuts should not take minutes.
WILD = "300:100"
BAR_CUTS = 1000
LIMIT = 60.0


@dataclass
class Workload:
    name: str
    title: str
    described: object
    steps: int
    training: bool = True


def training(model, title, batch, **more):
    described = {"model": model, "task": "training", "form": "eager", "batch": batch, **more}
    return Workload(f"{model}-equality", title, described, 50)


WORKLOADS = (
    training("gpt2-large", "GPT-2 large training", 1, tokens=1024),
    training("resnet50", "ResNet-50 training", 128),
    training("bert", "BERT training", 32, tokens=128),
    Workload("scans", "sorts and look-back scans", "scans", 20, training=False),
    Workload("clusters", "products and convolutions with clusters", "clusters", 20, training=False),
)


def measure(bench):
    runner = bench.runner()
    storms, plains = tasks(bench)
    for ended in chain(runner.together(storms, 1), runner.together(plains, PLAINS_AT_ONCE)):
        name, _, how = ended.task.name.rpartition("-")
        if ended.failure:
            bench.remark(f"equality, {name}, {how}: {ended.failure}")
        if not ended.answer:
            continue
        found = {"digests": ended.answer["digests"], "seconds": ended.answer["seconds"]}
        if ended.report:
            found |= {name: ended.report.all(name) for name in ("guarded", "launches", "cut")} | ended.report.sums
        bench.record.add("equality", workload=name, how=how, **found)
        bench.say(f"equality, {name}, {how}: {len(found['digests'])} rounds, {found.get('cut', 0):,} launches cut")


def tasks(bench):
    # Loading, five times, and the runs without ebb take a minute and a half.
    seconds = min(60.0, max(1.0, (bench.seconds - 90.0) / len(WORKLOADS)))
    storms, plains = [], []
    for number, workload in enumerate(WORKLOADS):
        steps = ("--steps", workload.steps, "--rounds")
        storm = bench.programs.job(workload.described, *steps, 40, "--seconds", seconds)
        plain = bench.programs.job(workload.described, *steps, 2)
        limit = seconds + LIMIT
        storms.append(Task(f"{workload.name}-storm", storm, f"storm:{SEED + number}:{WILD}", limit))
        plains.append(Task(f"{workload.name}-plain", plain, limit=limit))
    return storms, plains


# The tables.


def facts(record, workload):
    """None until both runs are there."""
    plain = record.find("equality", workload=workload.name, how="plain")
    storm = record.find("equality", workload=workload.name, how="storm")
    if not plain or not storm:
        return None
    right = plain["digests"][0]
    repeats = len(plain["digests"]) > 1 and all(digests == right for digests in plain["digests"])
    wrong = [first_difference(right, digests) for digests in storm["digests"] if digests != right]
    return {
        "rounds": len(storm["digests"]), "repeats": repeats, "same": not wrong if repeats else None,
        "first_wrong": min(wrong, default=None), "storm": storm,
    }  # fmt: skip


def first_difference(right, digests):
    for number, (one, other) in enumerate(zip(right, digests)):
        if one != other:
            return number
    return min(len(right), len(digests))


def markdown(record):
    cells = []
    for workload in WORKLOADS:
        if found := facts(record, workload):
            storm = found["storm"]
            same = yes(found["same"])
            if found["first_wrong"] is not None and found["same"] is False:
                same += f" (from step {found['first_wrong']})"
            cells.append((
                workload.title, f"{found['rounds']} x {workload.steps}", counted(storm.get("guarded")),
                *(counted(storm.get(name)) for name in SUMS), yes(found["repeats"]), same,
            ))  # fmt: skip
    headings = (
        "workload", "rounds x steps", "guarded launches", "stops", "cut mid-grid", "turned away whole", "relaunches",
        "freed by the watchdog", "two runs without ebb are equal", "stopped and resumed: equal to them",
    )  # fmt: skip
    return "### Equality\n\n" + lines(headings, cells) if cells else ""


def counted(value):
    return "–" if value is None else f"{value:,}"


def judged(record):
    for workload in WORKLOADS:
        if found := facts(record, workload):
            yield judged_same(workload, found)
            if workload.training:
                cuts = found["storm"].get("mid_grid")
                met = cuts is not None and cuts >= BAR_CUTS
                yield f"{workload.title}: launches cut mid-grid", counted(cuts), f"at least {BAR_CUTS:,}", met


def judged_same(workload, found):
    if not found["repeats"]:
        return f"{workload.title}: two runs without ebb", "differ", "equal", False
    return f"{workload.title}: equal to the run without ebb", yes(found["same"]), "yes", found["same"]
