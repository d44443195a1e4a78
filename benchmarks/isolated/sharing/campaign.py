"""What is measured, in which order: both benchmarks under one mode after the other.

Tenants stay up for all rows of a benchmark in a mode. One that is lost costs its row and nothing else: the mode and its
tenants begin afresh for the rows that are left, and the record says so. Everything is written down as it comes, because
a machine may be taken away.
"""

import collections
import contextlib
import functools
import itertools
import json
import time
from dataclasses import dataclass

from . import figures, modes
from .modes import BEST_EFFORT, LATENCY, Unavailable
from .programs import TRAININGS
from .tenants import Lost, Tenant

ALONE, TWO = "alone", "two"
SHARED = ("time-slicing", "mps", "mps-priority", "ebb", "ebb-shared")
OURS = ("ebb", "ebb-shared", TWO)
PICKS = (*SHARED, TWO)
PARTS = ("bursts", "serving")

# Block length in microseconds, and how much there is to save of a block when it is switched out.
BLOCKS = ((20, "small"), (100, "small"), (1000, "small"), (1000, "large"))
RATES = {"graph": 600, "eager": 90}


@dataclass
class Lengths:
    phase: float = 7.0
    bursts: int = 400
    row: float = 6.0
    """At most, for the bursts of a row."""
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


class Drawn(Record):
    """A record whose tables are on the disk as far as they go. `draw` makes them of a record."""

    def __init__(self, path=None, rows=(), markdown=None, draw=None):
        super().__init__(path, rows)
        self._markdown, self._draw = markdown, draw

    def add(self, row, **more):
        super().add(row, **more)
        if self._markdown:
            self._markdown.write_text(self._draw(self))


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
        plain = modes.Mode(self.folder)
        self._part("bursts", plain, self._burst_tenants, self._bursts_plain())
        self._part("serving", plain, self._serving_tenants, self._serving_plain())
        # Ours first: if the time is short, it is the others that were measured before.
        ours = [modes.EbbShared(self.folder, self.ebb), modes.Ebb(self.folder, self.ebb)]
        for mode in (*ours, modes.MpsPriority(self.folder), modes.Mps(self.folder)):
            self._part("bursts", mode, self._burst_tenants, self._bursts_shared(mode))
            self._part("serving", mode, self._serving_tenants, self._serving_shared(mode))

    def _part(self, name, mode, tenants, rows):
        """One benchmark in one mode. A row that loses a tenant is not tried again; the others are."""
        rows = collections.deque(rows if name in self.parts else ())
        while rows:
            if self._is_late():
                self._remark(f"{mode.title}: not measured, the time was up")
                return
            left = len(rows)
            try:
                with mode, contextlib.ExitStack() as stack:
                    self._rows(mode, tenants(mode, stack), rows)
            except (Lost, Unavailable) as reason:
                self._remark(f"{mode.title}: {reason}")
                if isinstance(reason, Unavailable) or len(rows) == left:
                    # Without a row begun there is nothing that would go better the next time.
                    return

    def _rows(self, mode, tenants, rows):
        while rows and not self._is_late():
            rows.popleft()(mode, *tenants)

    def _is_late(self):
        return self._deadline is not None and time.monotonic() > self._deadline

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

    def _bursts_plain(self):
        alone = [] if self.have_alone else [self._bursts_alone]
        return alone + self._bursts_shared(modes.Mode)

    def _bursts_alone(self, _mode, latency, best_effort):
        answer = self._bursts(latency)
        self.record.add("bursts", sharing=ALONE, gpu_us=latency.ready["gpu_us"], **answer)
        for block, state in BLOCKS:
            best_effort.ask("go", block, state)
            begin = time.monotonic() + self.lengths.settle / 2
            time.sleep(self.lengths.settle / 2 + min(1.2, self.lengths.phase))
            answer = best_effort.ask("stop")
            rate = figures.rate_between(answer["stamps"], begin, answer["stamps"][-1])
            self.record.add("bursts-alone", block=block, state=state, rate=rate, exact=exact(answer))

    def _bursts_shared(self, mode):
        wanted = BLOCKS if mode.name in self.picks else ()
        return [functools.partial(self._bursts_beside, block, state) for block, state in wanted]

    def _bursts_beside(self, block, state, mode, latency, best_effort):
        best_effort.ask("go", block, state)
        time.sleep(self.lengths.settle / 2)
        answer = self._bursts(latency)
        status = mode.status()
        done = best_effort.ask("stop", seconds=60.0)
        rate = figures.rate_between(done["stamps"], answer["from"], answer["to"])
        found = {"block": block, "state": state, "rate": rate, "exact": exact(done), "status": status}
        self.record.add("bursts", sharing=mode.name, **found, **answer)
        p50 = figures.quantile(answer["latency_us"], 0.5)
        self.say(
            f"bursts, {mode.title}, blocks of {block} us ({state}): p50 {p50:.0f} us of {len(answer['latency_us'])}, "
            f"exact: {exact(done)}"
        )

    def _bursts(self, latency):
        most = self.lengths.row
        return latency.ask("bursts", self.lengths.bursts, 3000, 7000, 17, most, seconds=most + 30.0)

    # Serving beside training.

    def _serving_tenants(self, mode, stack):
        wanted = [(LATENCY, self.programs.bert(), "bert")]
        wanted += [(BEST_EFFORT, self.programs.training(name), name) for name in TRAININGS]
        bert, *trainings = self._start_all(mode, stack, wanted)
        return bert, dict(zip(TRAININGS, trainings))

    def _serving_plain(self):
        alone = [] if self.have_alone else [self._serving_alone]
        return alone + self._serving_shared(modes.Mode)

    def _serving_alone(self, _mode, bert, trainings):
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

    def _serving_shared(self, mode):
        rows = [((name,), mode.name) for name in TRAININGS if mode.name in self.picks]
        if mode.name == "ebb" and TWO in self.picks:
            rows.append((TRAININGS, TWO))
        return [functools.partial(self._beside, names, sharing) for names, sharing in rows]

    def _beside(self, names, sharing, mode, bert, trainings):
        """Both phases beside one training or two; iterations count in the phases' time only."""
        trainings = {name: trainings[name] for name in names}
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

    def _phase(self, bert, phase):
        length = self.lengths.phase
        return bert.ask("phase", phase, RATES[phase], length, 23, seconds=length + 60.0)


def exact(answer):
    return answer["blocks"] == answer["expected"]
