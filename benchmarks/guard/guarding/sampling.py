"""Part `sampling`: what it takes to time launches, from which kernels' profiles are learned.

Two guarded processes of the same program are up, one whose launches are timed and one whose are not, and take many short
turns: what is looked for is less than the machine differs from one second to the next.
"""

import contextlib

from sharing import figures
from sharing.table import lines
from sharing.tenants import Lost, Tenant

from . import cost

BUDGET = 90.0
BAR = 0.99
TURNS = 24
TURN_SECONDS = 0.4
SIDES = {"untimed": "0", "timed": "1"}


def measure(bench):
    runner = bench.runner()
    with contextlib.ExitStack() as stack:
        pairs = {name: started(bench, runner, stack, name) for name in cost.TRAININGS}
        for name in [name for name, pair in pairs.items() if cost.are_ready(bench, name, pair)]:
            try:
                take_turns(bench, runner, name, pairs[name])
            except Lost as reason:
                bench.remark(f"sampling, {name}: {reason}")


def started(bench, runner, stack, name):
    pair = {}
    for side, sampled in SIDES.items():
        command = runner.command(bench.programs.job(cost.TRAININGS[name][1]))
        environment = runner.environment("now", sampled=False) | {"EBB_SAMPLE": sampled}
        tenant = Tenant(f"{name} ({side})", command, environment, bench.folder / f"sampling-{name}-{side}.log")
        stack.callback(tenant.close)
        pair[side] = tenant
    return pair


def take_turns(bench, runner, name, pair):
    for tenant in pair.values():
        tenant.ask("pace", cost.WARM_SECONDS, seconds=cost.LOAD)
    for turn in range(TURNS):
        if runner.left() < 0:
            bench.remark(f"sampling, {name}: {turn} turns of {TURNS}, the time was up")
            return
        rates = {}
        # Whoever comes first finds the GPU cooler.
        for side in sorted(pair, reverse=turn % 2 == 1):
            answer = pair[side].ask("pace", TURN_SECONDS, seconds=30.0)
            rates[side] = answer["iterations"] / answer["seconds"]
        bench.record.add("sampling", training=name, **rates)


# The tables.


def facts(record, name):
    pairs = [row for row in record.rows if row["row"] == "sampling" and row["training"] == name]
    ratios = sorted(row["timed"] / row["untimed"] for row in pairs)
    if not ratios:
        return None
    median, low, high = (figures.quantile(ratios, part) for part in (0.5, 0.25, 0.75))
    return {"ratio": median, "low": low, "high": high, "turns": len(ratios)}


def markdown(record):
    cells = []
    for name, (title, _) in cost.TRAININGS.items():
        if found := facts(record, name):
            half = f"{found['low']:.3f} to {found['high']:.3f}"
            cells.append((title, f"{found['ratio']:.4f}", half, found["turns"]))
    headings = ("training", "timed, of untimed: median", "half of the turns", "turns")
    return "\n\n".join(("### What it takes to time launches", lines(headings, cells))) if cells else ""


def judged(record):
    for name, (title, _) in cost.TRAININGS.items():
        if found := facts(record, name):
            ratio = found["ratio"]
            yield f"{title}: throughput with launches timed, of untimed", ratio, f"at least {BAR:.2f}", ratio >= BAR
