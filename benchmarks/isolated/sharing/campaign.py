"""What is measured, in which order: both benchmarks under one mode after the other.

Tenants stay up for all measurements of a mode. A tenant that is lost costs its mode's remaining measurements of that
benchmark and nothing else; the record says so. Everything is written down as it comes, because a machine may be taken
away.
"""

import contextlib
import itertools
import json
import time
from dataclasses import dataclass

from . import figures, modes
from .modes import BEST_EFFORT, LATENCY, Unavailable
from .programs import TRAININGS
from .tenants import Lost, Tenant

ALONE, TWO = "alone", "two"
SHARED = ("time-slicing", "mps", "mps-priority", "ebb")
PICKS = (*SHARED, TWO)
PARTS = ("bursts", "serving")

# Block length in microseconds, and how much there is to save of a block when it is switched out.
BLOCKS = ((20, "small"), (100, "small"), (1000, "small"), (1000, "large"))
RATES = {"graph": 600, "eager": 90}


@dataclass
class Lengths:
    phase: float = 7.0
    bursts: int = 400
    settle: float = 0.7
    """Until a best-effort tenant runs as it will."""
    load: float = 150.0
    """At most, until a tenant is ready."""


class Record:
    """Rows as lines of JSON in a file, and in memory for the tables."""

    def __init__(self, path=None, rows=()):
        self.rows = list(rows)
        self._path = path
        self._began = time.monotonic()

    def add(self, row, **more):
        line = {"row": row, "at_s": round(time.monotonic() - self._began, 1), **more}
        self.rows.append(line)
        if self._path:
            with open(self._path, "a") as file:
                file.write(json.dumps(line) + "\n")

    def remark(self, text):
        self.add("remark", text=text)

    def find(self, row, **keys):
        """The last row that has all of these."""
        found = [r for r in self.rows if r["row"] == row and all(r.get(key) == value for key, value in keys.items())]
        return found[-1] if found else None

    @staticmethod
    def read(path):
        with open(path) as lines:
            return [json.loads(line) for line in lines if line.strip()]


class Campaign:
    def __init__(
        self,
        programs,
        record,
        folder,
        ebb,
        picks=PICKS,
        parts=PARTS,
        lengths=None,
        limit=None,
        have_alone=False,
        say=print,
    ):
        self.programs, self.record, self.folder, self.ebb = programs, record, folder, ebb
        self.picks, self.parts = picks, parts
        self.lengths = lengths or Lengths()
        self.have_alone = have_alone
        self.say = say
        self._deadline = time.monotonic() + limit if limit else None
        self._logs = itertools.count(1)

    # The order of everything.

    def run(self):
        if not self.have_alone or "time-slicing" in self.picks:
            self._within(modes.Mode(self.folder), self._bursts_plain, self._serving_plain)
        if "mps" in self.picks:
            self._within(modes.Mps(self.folder), self._bursts_shared, self._serving_shared)
        if "mps-priority" in self.picks:
            self._within(modes.MpsPriority(self.folder), self._bursts_shared, self._serving_shared)
        if "ebb" in self.picks or TWO in self.picks:
            self._within(modes.Ebb(self.folder, self.ebb), self._bursts_shared, self._serving_shared)

    def _within(self, mode, bursts, serving):
        work = [part for name, part in (("bursts", bursts), ("serving", serving)) if name in self.parts]
        try:
            with mode:
                for part in work:
                    self._attempt(mode, part)
        except Unavailable as reason:
            self._remark(f"{mode.title}: {reason}")

    def _attempt(self, mode, part):
        if self._deadline and time.monotonic() > self._deadline:
            self._remark(f"{mode.title}: not measured, the time was up")
            return
        try:
            with contextlib.ExitStack() as stack:
                part(mode, stack)
        except (Lost, Unavailable) as reason:
            self._remark(f"{mode.title}: {reason}")

    def _remark(self, text):
        self.say(text)
        self.record.remark(text)

    # Starting tenants.

    def _start(self, mode, stack, kind, command, name):
        command = mode.command(kind, [*command, *mode.arguments(kind)])
        log = self.folder / f"{next(self._logs)}-{mode.name}-{name}.log"
        tenant = Tenant(f"{name} ({mode.title})", command, mode.environment(kind), log)
        stack.callback(tenant.close)
        return tenant

    def _start_all(self, mode, stack, wanted):
        """All at once: loading a framework takes seconds, mostly of waiting."""
        tenants = [self._start(mode, stack, kind, command, name) for kind, command, name in wanted]
        for tenant in tenants:
            tenant.await_ready(self.lengths.load)
            self.record.add("ready", tenant=tenant.name, **tenant.ready)
        return tenants

    # The microbenchmark.

    def _burst_tenants(self, mode, stack):
        # One after the other: each measures how fast it is while nobody else is there.
        pair = []
        for kind in (LATENCY, BEST_EFFORT):
            tenant = self._start(mode, stack, kind, self.programs.burst(kind), f"burst-{kind}")
            pair.append(tenant.await_ready(self.lengths.load))
        return pair

    def _bursts_plain(self, mode, stack):
        latency, best_effort = self._burst_tenants(mode, stack)
        if not self.have_alone:
            self._bursts_alone(latency, best_effort)
        if "time-slicing" in self.picks:
            self._bursts_pairs(mode, latency, best_effort)

    def _bursts_alone(self, latency, best_effort):
        answer = self._bursts(latency)
        self.record.add("bursts", sharing=ALONE, gpu_us=latency.ready["gpu_us"], **answer)
        for block, state in BLOCKS:
            best_effort.ask("go", block, state)
            begin = time.monotonic() + self.lengths.settle / 2
            time.sleep(self.lengths.settle / 2 + min(1.2, self.lengths.phase))
            answer = best_effort.ask("stop")
            rate = figures.rate_between(answer["stamps"], begin, answer["stamps"][-1])
            self.record.add("bursts-alone", block=block, state=state, rate=rate, exact=exact(answer))

    def _bursts_shared(self, mode, stack):
        if mode.name not in self.picks:
            return
        self._bursts_pairs(mode, *self._burst_tenants(mode, stack))

    def _bursts_pairs(self, mode, latency, best_effort):
        for block, state in BLOCKS:
            best_effort.ask("go", block, state)
            time.sleep(self.lengths.settle / 2)
            answer = self._bursts(latency)
            status = mode.status()
            done = best_effort.ask("stop", seconds=60.0)
            rate = figures.rate_between(done["stamps"], answer["from"], answer["to"])
            found = {"block": block, "state": state, "rate": rate, "exact": exact(done), "status": status}
            self.record.add("bursts", sharing=mode.name, **found, **answer)
            p50 = figures.quantile(answer["latency_us"], 0.5)
            self.say(f"bursts, {mode.title}, blocks of {block} us ({state}): p50 {p50:.0f} us, exact: {exact(done)}")

    def _bursts(self, latency):
        return latency.ask("bursts", self.lengths.bursts, 3000, 7000, 17, seconds=60.0)

    # Serving beside training.

    def _serving_tenants(self, mode, stack):
        wanted = [(LATENCY, self.programs.bert(), "bert")]
        wanted += [(BEST_EFFORT, self.programs.training(name), name) for name in TRAININGS]
        bert, *trainings = self._start_all(mode, stack, wanted)
        return bert, dict(zip(TRAININGS, trainings))

    def _serving_plain(self, mode, stack):
        bert, trainings = self._serving_tenants(mode, stack)
        if not self.have_alone:
            self._serving_alone(bert, trainings)
        if "time-slicing" in self.picks:
            self._serving_pairs(mode, bert, trainings)

    def _serving_alone(self, bert, trainings):
        for phase in RATES:
            answer = self._phase(bert, phase)
            self.record.add("serving", sharing=ALONE, phase=phase, gpu_us=bert.ready["gpu_us"], **answer)
        for name, training in trainings.items():
            training.ask("reset", seconds=60.0)
            training.ask("go")
            begin = time.monotonic() + self.lengths.settle
            # At least as long as beside somebody, so that it does at least as many iterations to compare with.
            time.sleep(2 * self.lengths.settle + len(RATES) * (self.lengths.phase + 0.1))
            answer = training.ask("stop", seconds=60.0)
            rate = figures.rate_between(answer["stamps"], begin, answer["stamps"][-1])
            self.record.add("training-alone", name=name, rate=rate, digests=answer["digests"])
            self.say(f"{name} alone: {rate:.2f} iterations/s")

    def _serving_shared(self, mode, stack):
        bert, trainings = self._serving_tenants(mode, stack)
        if mode.name in self.picks:
            self._serving_pairs(mode, bert, trainings)
        if mode.name == "ebb" and TWO in self.picks:
            self._two(mode, bert, trainings)

    def _serving_pairs(self, mode, bert, trainings):
        for name in trainings:
            self._beside(mode, bert, {name: trainings[name]}, mode.name)

    def _beside(self, mode, bert, trainings, sharing):
        """Both phases beside one training or two; iterations count in the phases' time only."""
        for training in trainings.values():
            training.ask("reset", seconds=60.0)
        for training in trainings.values():
            training.ask("go")
        time.sleep(self.lengths.settle)
        together = {}
        if sharing == TWO:
            begin = time.monotonic()
            time.sleep(self.lengths.phase)
            together["nobody"] = {"from": begin, "to": time.monotonic()}
        for phase in RATES:
            together[phase] = self._phase(bert, phase)
        status = mode.status()
        for training in trainings.values():
            training.tell("stop")
        ends = {name: training.answer(60.0) for name, training in trainings.items()}
        for phase, answer in together.items():
            window = answer["from"], answer["to"]
            rates = {name: figures.rate_between(end["stamps"], *window) for name, end in ends.items()}
            found = {"beside": " and ".join(trainings), "rates": rates, "status": status}
            self.record.add("serving", sharing=sharing, phase=phase, **found, **answer)
            p50 = figures.quantile(answer.get("service_us"), 0.5)
            shown = ", ".join(f"{name} {rate:.2f}/s" for name, rate in rates.items())
            self.say(f"{sharing}, {phase}: service p50 {p50 or 0:.0f} us beside {shown}")
        for name, end in ends.items():
            reference = self.record.find("training-alone", name=name)
            same, compared = figures.same_results(reference["digests"] if reference else [], end["digests"])
            self.record.add("results", sharing=sharing, name=name, same=same, compared=compared)

    def _two(self, mode, bert, trainings):
        self._beside(mode, bert, trainings, TWO)

    def _phase(self, bert, phase):
        length = self.lengths.phase
        return bert.ask("phase", phase, RATES[phase], length, 23, seconds=length + 60.0)


def exact(answer):
    return answer["blocks"] == answer["expected"]
