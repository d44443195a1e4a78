"""Part `stops`: how long a latency tenant waits until best-effort work is out of its way, in the shared domain.

The latency tenant launches one kernel of 20 µs blocks, one on every SM, every 3 to 7 ms. How long a burst takes is
split by the GPU's own clock: the *span* from its first instruction to its last, and the rest, which is the way there
and back. What the rest is longer than alone is what it waited to begin.
"""

import contextlib
import functools
import json
import time

from sharing import figures, modes
from sharing.campaign import ALONE, Campaign
from sharing.modes import BEST_EFFORT, LATENCY
from sharing.programs import TITLES, TRAININGS
from sharing.table import lines, us, yes

BUDGET = 150.0
PART = "stops"
BURSTS, FIRST_BURSTS = 250, 20
ROW_SECONDS = 4.0
BAR_US = 15.0
GRID_US = 20_000
RESIDENT = 132 * 16
MOST_BLOCKS = 1 << 20
# Block length in microseconds, and blocks in a grid: grids of some 20 ms, then grids of all sizes.
GRIDS = (
    *((block, min(MOST_BLOCKS, RESIDENT * max(1, GRID_US // block))) for block in (1, 5, 20, 100, 300, 1000)),
    *((20, blocks) for blocks in (RESIDENT, 16 * RESIDENT, 1 << 18)),
)
SHARINGS = ("ebb-shared", "mps-priority")


def measure(bench):
    lengths = bench.lengths(row=ROW_SECONDS)
    Stops(
        bench.programs, bench.record, bench.folder, bench.ebb, SHARINGS, (PART,), lengths, bench.seconds, say=bench.say
    ).run()


class Stops(Campaign):
    def run(self):
        shared, rival = modes.EbbShared(self.folder, self.ebb), modes.MpsPriority(self.folder)
        self._part(PART, shared, self._latency_tenant, self._grids())
        self._part(PART, shared, self._with_trainings, self._trainings())
        self._part(PART, rival, self._latency_tenant, self._grids())

    def _latency_tenant(self, mode, stack):
        return self._start_all(mode, stack, [(LATENCY, self.programs.burst(LATENCY), "burst")])

    def _with_trainings(self, mode, stack):
        wanted = [(LATENCY, self.programs.burst(LATENCY), "burst")]
        wanted += [(BEST_EFFORT, self.programs.training(name), name) for name in TRAININGS]
        latency, *trainings = self._start_all(mode, stack, wanted)
        return latency, dict(zip(TRAININGS, trainings))

    def _grids(self):
        beside = [functools.partial(self._beside_grids, block, blocks) for block, blocks in GRIDS]
        return [self._alone, *beside]

    def _trainings(self):
        return [functools.partial(self._beside_training, name) for name in TRAININGS]

    def _alone(self, mode, latency):
        self.record.add(PART, sharing=mode.name, beside=ALONE, **self._one_launch(latency))

    def _beside_grids(self, block, blocks, mode, latency):
        with contextlib.ExitStack() as stack:
            # A new process for every row: what ebb counts for it is then of this row alone.
            tenant = self._start(mode, stack, BEST_EFFORT, self.programs.burst(BEST_EFFORT), f"grids-{block}")
            tenant.await_ready(self.lengths.load)
            tenant.ask("go", block, "small", blocks)
            found = self._beside(mode, latency, tenant)
            exact = found.pop("done")
        keys = {"beside": "grids", "block": block, "blocks": blocks}
        self._add(mode, keys | {"exact": exact["blocks"] == exact["expected"]} | found)

    def _beside_training(self, name, mode, latency, trainings):
        trainings[name].ask("reset", seconds=60.0)
        trainings[name].ask("go")
        found = self._beside(mode, latency, trainings[name])
        found.pop("done")
        self._add(mode, {"beside": name} | found)

    def _beside(self, mode, latency, tenant):
        time.sleep(self.lengths.settle)
        # Until a latency tenant has shown itself, originals run and whole grids are in the way: once, not in every burst.
        first = self._one_launch(latency, FIRST_BURSTS)["latency_us"]
        answer = self._one_launch(latency)
        idle = flag_to_idle(mode.status(), tenant.pid)
        return answer | {"idle": idle, "first_us": first, "done": tenant.ask("stop", seconds=60.0)}

    def _one_launch(self, latency, bursts=BURSTS):
        most = self.lengths.row
        return latency.ask("bursts", bursts, 3000, 7000, 17, most, 1, seconds=most + 30.0)

    def _add(self, mode, row):
        self.record.add(PART, sharing=mode.name, **row)
        found = facts(self.record, self.record.rows[-1])
        shown = f"{us(figures.quantile(found['wait_us'], 0.5))} / {us(figures.quantile(found['wait_us'], 0.99))} us"
        self.say(f"stops, {mode.title}, beside {title(row)}: waits p50 / p99 {shown}")


def flag_to_idle(status, pid):
    """Count, p50 and p99 of the times from a stop to an idle GPU that ebb counted for a process."""
    try:
        gpus = json.loads(status or "")["gpus"]
    except (ValueError, KeyError, TypeError):
        return None
    for process in (process for gpu in gpus for process in gpu["processes"]):
        if process["pid"] == pid:
            return process.get("guard_stops")
    return None


# The tables.


def rests(row):
    return [whole - span for whole, span in zip(row["latency_us"], row["span_us"])]


def facts(record, row):
    """By how much each burst took longer than the median alone: until it began, and in all."""
    alone = record.find(PART, sharing=row["sharing"], beside=ALONE)
    if not alone:
        return {"wait_us": [], "extra_us": []}
    rest, whole = (figures.quantile(values, 0.5) for values in (rests(alone), alone["latency_us"]))
    return {
        "wait_us": [each - rest for each in rests(row)], "extra_us": [each - whole for each in row["latency_us"]]
    }  # fmt: skip


def own_p99(record, row):
    """By how much the latency tenant alone is later than its median, one time in a hundred."""
    alone = record.find(PART, sharing=row["sharing"], beside=ALONE)
    return figures.quantile(facts(record, alone)["wait_us"], 0.99) if alone else None


def title(row):
    if row["beside"] == ALONE:
        return "nobody"
    return TITLES[row["beside"]] if row["beside"] in TITLES else f"{row['blocks']:,} blocks of {row['block']:,} µs"


def rows(record, sharing):
    return [row for row in record.rows if row["row"] == PART and row["sharing"] == sharing]


def quantiles(values):
    return " / ".join(us(figures.quantile(values, q)) for q in (0.5, 0.99, 1.0))


def markdown(record):
    cells = []
    for sharing, shown in (("ebb-shared", "**ebb shared**"), ("mps-priority", "MPS with priorities")):
        for row in rows(record, sharing):
            found, idle = facts(record, row), row.get("idle") or {}
            cells.append((
                shown, title(row), len(row["latency_us"]), quantiles(found["wait_us"]), quantiles(found["extra_us"]),
                f"{in_us(idle.get('p50_ns'))} / {in_us(idle.get('p99_ns'))} ({idle.get('count', 0):,})" if idle else "–",
                yes(row.get("exact")),
            ))  # fmt: skip
    if not cells:
        return ""
    headings = (
        "sharing", "beside", "bursts", "waits to begin, p50 / p99 / max, µs", "takes longer in all, p50 / p99 / max, µs",
        "flag to idle, p50 / p99, µs (stops)", "every block once",
    )  # fmt: skip
    return "### Stops\n\nAgainst the median alone in the same run.\n\n" + lines(headings, cells)


def in_us(nanoseconds):
    return us(None if nanoseconds is None else nanoseconds / 1000)


def judged(record):
    for row in rows(record, "ebb-shared"):
        wait, own = figures.quantile(facts(record, row)["wait_us"], 0.99), own_p99(record, row)
        if wait is not None and own is not None and row["beside"] == "grids":
            more, bar = wait - own, BAR_US + row["block"]
            yield f"beside {title(row)}: wait p99 over that alone, µs", more, f"at most {bar:.0f}", more <= bar
            yield f"beside {title(row)}: every block ran once", yes(row["exact"]), "yes", row["exact"]
