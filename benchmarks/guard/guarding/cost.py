"""Part `cost`: what guarding takes when nobody is ever stopped.

Two processes of the same program are up, one without ebb and one with EBB_GUARD=now, and take turns: a machine that
is slower in one minute than in the next is so for both.
"""

import contextlib

from sharing import figures
from sharing.table import lines
from sharing.tenants import Lost, Tenant

from . import verdicts

BUDGET = 120.0
BAR = 0.98
LOAD = 70.0
TURNS = 4
TURN_SECONDS = 1.5
WARM_SECONDS = 2.0

TRAININGS = {
    "resnet50": ("ResNet-50, 128 pictures", {"model": "resnet50", "task": "training", "batch": 128}),
    "gpt2-large": ("GPT-2 large, 8 x 1,024", {"model": "gpt2-large", "task": "training", "batch": 8, "tokens": 1024}),
    "bert": ("BERT, 32 x 128", {"model": "bert", "task": "training", "batch": 32, "tokens": 128}),
}
OPERATIONS = {
    "softmax": ("softmax 4096 x 4096, fp16", 100), "add": ("add to 64 M floats", 100), "sum": ("sum of 64 M floats", 100),
    "gemm-2048": ("product 2048³, fp16", 100), "gemm-8192": ("product 8192³, fp16", 20),
    "attention": ("attention 8 x 16 x 1,024 x 64, fp16", 50), "convolution": ("convolution 64 x 256 x 56², fp16", 50),
}  # fmt: skip
SIDES = ("plain", "guarded")


def measure(bench):
    runner = bench.runner()
    with contextlib.ExitStack() as stack:
        # All are loaded at once, because loading is mostly waiting; those that have no turn are idle.
        pairs = {
            name: started(bench, runner, stack, name, bench.programs.job(job)) for name, (_, job) in TRAININGS.items()
        }
        pairs["micro"] = started(bench, runner, stack, "micro", bench.programs.micro())
        for name in [name for name, pair in pairs.items() if are_ready(bench, name, pair)]:
            if runner.left() < 0:
                bench.remark(f"cost, {name}: not measured, the time was up")
                continue
            try:
                (operations if name == "micro" else training)(bench, runner, name, pairs[name])
            except Lost as reason:
                bench.remark(f"cost, {name}: {reason}")
    for name in pairs:
        add_guarded(bench, name)


def are_ready(bench, name, pair):
    """Nobody has a turn before all are: one that loads warms up on the GPU."""
    try:
        for tenant in pair.values():
            tenant.await_ready(LOAD)
    except Lost as reason:
        bench.remark(f"cost, {name}: {reason}")
        return False
    return True


def started(bench, runner, stack, name, command):
    pair = {}
    for side in SIDES:
        guard = "now" if side == "guarded" else ""
        through = runner.command(command, report_of(bench, name)) if guard else command
        log = bench.folder / f"cost-{name}-{side}.log"
        tenant = Tenant(f"{name} ({side})", through, runner.environment(guard, sampled=False), log)
        stack.callback(tenant.close)
        pair[side] = tenant
    return pair


def report_of(bench, name):
    return bench.folder / f"cost-{name}-report.json"


def training(bench, runner, name, pair):
    for tenant in pair.values():
        tenant.ask("pace", WARM_SECONDS, seconds=LOAD)
    for _ in range(TURNS):
        if runner.left() < 0:
            break
        rates = {}
        for side, tenant in pair.items():
            answer = tenant.ask("pace", TURN_SECONDS, seconds=30.0)
            rates[side] = answer["iterations"] / answer["seconds"]
        bench.record.add("cost", training=name, **rates)
        bench.say(f"cost, {name}: {rates['guarded'] / rates['plain']:.4f} of {rates['plain']:.2f} iterations/s")


def operations(bench, runner, _name, pair):
    for name, (_, calls) in OPERATIONS.items():
        for tenant in pair.values():
            tenant.ask("time", name, calls)
        times = {side: [] for side in SIDES}
        for _ in range(2 * TURNS):
            for side, tenant in pair.items():
                times[side].append(tenant.ask("time", name, calls)["us"])
        bench.record.add("cost-operation", operation=name, **times)
        if runner.left() < 0:
            return


def add_guarded(bench, name):
    """Whether what was measured was guarded: the first launches are not, until there is a twin."""
    try:
        report = verdicts.read(report_of(bench, name))
    except (OSError, ValueError, KeyError):
        bench.remark(f"cost, {name}: there is no report that says which launches were guarded")
        return
    bench.record.add("cost-guarded", training=name, guarded=report.all("guarded"), launches=report.all("launches"))


# The tables.


def facts(record, name):
    pairs = [row for row in record.rows if row["row"] == "cost" and row["training"] == name]
    if not pairs:
        return None
    ratios = [row["guarded"] / row["plain"] for row in pairs]
    rates = {side: figures.quantile([row[side] for row in pairs], 0.5) for side in SIDES}
    return {
        "ratio": figures.quantile(ratios, 0.5),
        "low": min(ratios),
        "high": max(ratios),
        "turns": len(pairs),
    } | rates


def markdown(record):
    parts = [trainings(record), micro(record)]
    return "\n\n".join(["### Cost without stops", *(part for part in parts if part)]) if any(parts) else ""


def trainings(record):
    cells = []
    for name, (title, _) in TRAININGS.items():
        if found := facts(record, name):
            told = record.find("cost-guarded", training=name)
            share = f"{100 * told['guarded'] / told['launches']:.1f}%" if told and told["launches"] else "–"
            cells.append((
                title, f"{found['plain']:.2f}", f"{found['guarded']:.2f}", f"{found['ratio']:.3f}",
                f"{found['low']:.3f} to {found['high']:.3f}", found["turns"], share,
            ))  # fmt: skip
    headings = (
        "training",
        "without ebb, iterations/s",
        "guarded",
        "ratio, median",
        "spread",
        "turns",
        "launches guarded",
    )
    return lines(headings, cells)


def micro(record):
    cells = []
    for name, (title, _) in OPERATIONS.items():
        if row := record.find("cost-operation", operation=name):
            plain, guarded = (figures.quantile(row[side], 0.5) for side in SIDES)
            cells.append((title, f"{plain:.2f}", f"{guarded:.2f}", f"{guarded - plain:+.2f}", f"{guarded / plain:.3f}"))
    return lines(("operation", "original, µs", "guarded, µs", "more, µs", "ratio"), cells)


def judged(record):
    for name, (title, _) in TRAININGS.items():
        if found := facts(record, name):
            ratio = found["ratio"]
            yield f"{title}: throughput of native", ratio, f"at least {BAR:.2f}", ratio >= BAR
