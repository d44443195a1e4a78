"""What a switch costs and what moves it: the measurements under the floor, in sections that stand alone.

Two processes of `programs/floor.cu`, a latency side and a best-effort side, with `programs/levers.c` preloaded into
both. Each pulls levers on its own channel groups only. A section that loses a process is cut short; the next begins
with new ones.
"""

import contextlib
import time

from . import figures, modes
from .modes import Unavailable
from .tenants import Lost, Tenant

SECTIONS = ("switch", "levers", "wake", "two", "calls")
LATENCY, BEST_EFFORT, OTHER = "latency", "best-effort", "other"

# Microseconds: what the driver gives a compute group, and what ebb gives a best-effort one.
DEFAULT_SLICE, SHORT_SLICE = 2048, 1
GRID = 5000
QUANTUM = 30000

# What there is to switch away from: a warp on every SM, 16 blocks of 128 threads, all registers and shared memory, or a
# copy at the memory's full rate; and the length of a block.
LOADS = (("warp", 1000), ("small", 20), ("small", 1000), ("large", 1000), ("stream", 20))
USUAL = ("small", 1000)
SLICES = (SHORT_SLICE, 200, DEFAULT_SLICE)
WATCHED = ("watched-warp", "watched-large")

# The slice, and which lever the best-effort side pulls when a burst begins.
TRIED = tuple((size, lever) for size in (SHORT_SLICE, DEFAULT_SLICE) for lever in (None, "preempt", "disable", "bar"))
LEVELS = {LATENCY: 2, BEST_EFFORT: 0}
BETWEEN_BLOCKS = 1

HOSTS = ("none", "host:100", "host:200", "host:400")
PREPARES = (*HOSTS, "pinned:65536", "pinned:1048576", "pinned:4194304")
COPIES = (
    "pinned:4", "pinned:65536", "pinned:1048576", "pageable:4", "pageable:65536", "pageable:1048576", "back:4",
    "memset:4", "memset:1048576",
)  # fmt: skip
HELD = (512, 2048, 8192)
CALLS = ("get", "set", "preempt", "disable", "bar")
CALLED_UNDER = (None, USUAL, ("stream", 20))

# Seconds: for the bursts of a row at most, and beyond that until a process counts as lost.
MOST = 5.0
PATIENCE = 20.0


def switches(ran_ns, gaps_ns):
    """Puts each burst beside the time in which the watching thread stood still, all by the GPU's clock.

    From that thread's last instruction to the burst's first, from the burst's last to the thread's next, and in how
    many pieces it stood still; of the bursts that fell into such a time. Microseconds.
    """
    gaps = list(zip(gaps_ns[::2], gaps_ns[1::2]))
    there, back, pieces = [], [], []
    for first, last in zip(ran_ns[::2], ran_ns[1::2]):
        met = [(begin, end) for begin, end in gaps if end > first and begin < last]
        if met:
            there.append((first - met[0][0]) / 1e3)
            back.append((met[-1][1] - last) / 1e3)
            pieces.append(len(met))
    return there, back, pieces


def rate(before, after, by="at"):
    """Grids per second between two counts: by when they were taken, or by when the last grid before each ended.

    The second knows a rate better than to a grid; the first knows one that stands still.
    """
    return (after["ended"] - before["ended"]) / max(after[by] - before[by], 1.0) * 1e6


class Floor:
    def __init__(self, programs, record, folder, only=SECTIONS, limit=None, pace=1.0, say=print):
        self.programs, self.record, self.folder, self.only = programs, record, folder, only
        self.pace, self.say = pace, say
        self._deadline = time.monotonic() + limit if limit else None
        self._tenants = {}

    def run(self):
        for name in SECTIONS:
            if name not in self.only:
                continue
            if self._deadline and time.monotonic() > self._deadline:
                self._remark(f"{name}: not measured, the time was up")
                continue
            began = time.monotonic()
            try:
                getattr(self, f"_{name}")()
            except (Lost, Unavailable) as reason:
                self._remark(f"{name}: {reason}")
                self._close()
                if isinstance(reason, Unavailable):
                    break
            self.say(f"{name}: {time.monotonic() - began:.1f} s")
        self._close()

    def _remark(self, text):
        self.say(text)
        self.record.remark(text)

    # The two sides, and a third for best-effort beside best-effort.

    def _tenant(self, name):
        if name not in self._tenants:
            environment = modes.Mode(self.folder).environment(None)
            preload = [word for word in (self.programs.levers(), environment.get("LD_PRELOAD")) if word]
            environment |= {"LD_PRELOAD": " ".join(str(word) for word in preload)} if preload else {}
            command = self.programs.floor(self.folder / "words")
            tenant = Tenant(name, command, environment, self.folder / f"floor-{name}.log")
            self._tenants[name] = tenant
            ready = tenant.await_ready(60.0).ready
            self.record.add("ready", tenant=name, **ready)
            if not ready["groups"]:
                raise Unavailable("no channel group was seen: the driver's calls do not pass through the C library")
        return self._tenants[name]

    def _close(self):
        for tenant in self._tenants.values():
            tenant.close()
        self._tenants.clear()

    def _slice(self, micros, *names):
        for name in names or (BEST_EFFORT,):
            answer = self._tenant(name).ask("lever", "set", micros)
            if answer["status"]:
                raise Unavailable(f"the driver refused a timeslice of {micros} us: {refusal(answer['status'])}")

    def _rest(self, seconds):
        time.sleep(seconds * self.pace)

    @contextlib.contextmanager
    def _load(self, kind, block, grid=GRID):
        # Whatever has to be measured while nobody else works is measured when a process starts.
        self._tenant(LATENCY)
        tenant = self._tenant(BEST_EFFORT)
        self._slice(DEFAULT_SLICE)
        tenant.ask("load", kind, block, grid)
        self._rest(0.1)
        yield tenant
        self._slice(DEFAULT_SLICE)
        self._stop(tenant, kind)

    def _stop(self, tenant, kind):
        done = tenant.ask("stop", seconds=PATIENCE)
        self.record.add("exact", kind=kind, **done)

    def _counts(self, *names):
        return [self._tenant(name).ask("count") for name in names]

    def _rates(self, seconds, *names, by="at"):
        before = self._counts(*names)
        self._rest(seconds)
        return [rate(a, b, by) for a, b in zip(before, self._counts(*names))]

    def _bursts(self, count, launches=10, low=3000, high=7000, prepare="none", wake="none"):
        words = ("bursts", max(2, round(count * self.pace)), launches, low, high, prepare, wake, MOST)
        return self._tenant(LATENCY).ask(*words, seconds=MOST + PATIENCE)

    def _note(self, row, answer, **more):
        self.record.add(row, latency_us=answer["latency_us"], **more)

    # One section each.

    def _switch(self):
        answer = self._bursts(200)
        spans = [(last - first) / 1e3 for first, last in zip(answer["ran_ns"][::2], answer["ran_ns"][1::2])]
        self._note("alone", answer, gpu_us=figures.quantile(spans, 0.5))
        self._note("follows", self._bursts(200, low=0, high=20), beside=None)
        for kind, block in LOADS:
            with self._load(kind, block):
                (alone,) = self._rates(0.6, BEST_EFFORT, by="last")
                for size in SLICES if (kind, block) == USUAL else (SHORT_SLICE,):
                    self._extra(kind, block, size, alone)
                if (kind, block) == USUAL:
                    self._slice(SHORT_SLICE)
                    self._note("follows", self._bursts(200, low=0, high=20), beside=kind)
        for kind in WATCHED:
            with self._load(kind, 20000, 20000) as best_effort:
                self._slice(SHORT_SLICE)
                answer = self._bursts(200)
            there, back, pieces = switches(answer["ran_ns"], best_effort.ask("gaps")["gaps"])
            bursts = len(answer["latency_us"])
            self.record.add("switch", kind=kind, there_us=there, back_us=back, pieces=pieces, bursts=bursts)

    def _extra(self, kind, block, size, alone):
        self._slice(size)
        (before,) = self._counts(BEST_EFFORT)
        answer = self._bursts(160)
        (after,) = self._counts(BEST_EFFORT)
        found = {"kind": kind, "block": block, "slice": size, "alone": alone, "rate": rate(before, after, "last")}
        self._note("extra", answer, **found, seconds=(answer["to"] - answer["from"]) / 1e6)

    def _levers(self):
        with self._load(*USUAL) as best_effort:
            for size, lever in TRIED:
                self._slice(size)
                if lever:
                    best_effort.ask("gate", lever)
                self._note("tried", self._bursts(200), slice=size, lever=lever)
                if lever:
                    best_effort.ask("ungate", seconds=PATIENCE)
        self._interleave()
        # A level and a mode go with the process: what comes next begins with new ones.
        self._close()
        self._between_blocks()
        self._close()

    def _interleave(self):
        with self._load(*USUAL):
            for name, level in LEVELS.items():
                answer = self._tenant(name).ask("lever", "interleave", level)
                if answer["status"]:
                    self._skipped("interleave", answer["status"])
                    return
            for size in (DEFAULT_SLICE, SHORT_SLICE):
                self._slice(size)
                self._note("tried", self._bursts(200), slice=size, lever="interleave")

    def _between_blocks(self):
        # The usual one of the two last, as everywhere; no load may run while the mode changes.
        self._tenant(LATENCY)
        answer = self._tenant(BEST_EFFORT).ask("lever", "mode", BETWEEN_BLOCKS)
        if answer["status"]:
            self._skipped("mode", answer["status"])
            return
        for kind, block in (("small", 20), USUAL):
            with self._load(kind, block):
                self._slice(SHORT_SLICE)
                self._note("tried", self._bursts(200), slice=SHORT_SLICE, lever="mode", block=block)

    def _skipped(self, lever, status):
        self.record.add("skipped", lever=lever, status=status, why=refusal(status))

    def _wake(self):
        self._wakes(None, 60)
        with self._load(*USUAL):
            self._slice(SHORT_SLICE)
            self._wakes(USUAL[0], 120)
            for size in HELD:
                self._slice(size, LATENCY)
                answer = self._bursts(50, low=2500, high=5000, prepare="host:400", wake="hold")
                self._note("held", answer, slice=size)
            self._slice(DEFAULT_SLICE, LATENCY)

    def _wakes(self, beside, count):
        for prepare in PREPARES:
            for wake in ("none", "kernel"):
                answer = self._bursts(count, low=2500, high=5000, prepare=prepare, wake=wake)
                self._note("wake", answer, beside=beside, prepare=prepare, wake=wake)
        for prepare in COPIES:
            answer = self._bursts(60, launches=0, low=2500, high=5000, prepare=prepare)
            self._note("copy", answer, beside=beside, prepare=prepare)

    def _two(self):
        pair = BEST_EFFORT, OTHER
        self._tenant(OTHER)
        with self._load(*USUAL) as one:
            (alone,) = self._rates(0.7, BEST_EFFORT)
            two = self._tenant(OTHER)
            two.ask("load", *USUAL, GRID)
            for size in (DEFAULT_SLICE, 200, SHORT_SLICE):
                self._slice(size, *pair)
                self._rest(0.05)
                self.record.add("two", how="slices", slice=size, alone=alone, rates=self._rates(1.0, *pair))
            one.ask("turn", 0)
            before = self._counts(*pair)
            for who, tenant in enumerate((one, two)):
                tenant.tell("token", who, QUANTUM, 1.8 * self.pace)
            status = [tenant.answer(PATIENCE)["status"] for tenant in (one, two)]
            rates = [rate(a, b) for a, b in zip(before, self._counts(*pair))]
            self.record.add("two", how="disable", slice=SHORT_SLICE, alone=alone, rates=rates, status=status)
            self._slice(DEFAULT_SLICE, *pair)
            self._stop(two, USUAL[0])
        self._drained(one, two, alone)

    def _drained(self, one, two, alone):
        """Nobody's turn until both are ready: groups of 1 us that meet on the GPU stop each other."""
        pair = BEST_EFFORT, OTHER
        one.ask("turn", 2)
        for who, tenant in enumerate((one, two)):
            tenant.ask("share", who, QUANTUM)
            tenant.ask("load", *USUAL, GRID)
        self._slice(SHORT_SLICE, *pair)
        one.ask("turn", 0)
        self._rest(0.15)
        self.record.add("two", how="drain", slice=SHORT_SLICE, alone=alone, rates=self._rates(1.5, *pair))
        self._slice(DEFAULT_SLICE, *pair)
        for tenant in (one, two):
            self._stop(tenant, USUAL[0])
            tenant.ask("share", -1, 0)

    def _calls(self):
        for load in CALLED_UNDER:
            with self._load(*load) if load else contextlib.nullcontext():
                for name in CALLS:
                    words = ("calls", name, max(2, round(40 * self.pace)))
                    answer = self._tenant(BEST_EFFORT).ask(*words, seconds=PATIENCE)
                    self.record.add("calls", beside=load[0] if load else None, name=name, **answer)
            self._slice(DEFAULT_SLICE)


def refusal(status):
    """A status of levers.c, in words; the driver's own are numbers of its."""
    words = {
        -1: "the call itself failed", -2: "there was nothing to pull it on", 0x1B: "it needs a privilege (0x1b)",
        0x56: "the driver does not know it (0x56)",
    }  # fmt: skip
    return words.get(status, f"the driver's status is {status:#x}")
