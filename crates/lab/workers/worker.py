"""A process that hosts one tenant, or several in streams of their own: `python worker.py SPEC.json`.

Orders come as lines of JSON on standard input, replies go as lines of JSON to standard output, remarks to standard
error. The words are those of `crew/protocol.rs`. Every tenant has a thread of its own, in which it is built and in
which it works, because a framework keeps its current stream per thread; another thread reads the orders. The end of
standard input is the end of the process, whatever it is doing.
"""

import gc
import json
import os
import queue
import sys
import threading
import time
import traceback

import loops
from turns import Turns

# The last moments of a wait are spun through, and a thread that spins lets nobody else run for this long.
SWITCH_S = 50e-6


class Voice:
    """Standard output, a whole line at a time. Whatever else is printed in this process goes to standard error."""

    def __init__(self):
        self._lock = threading.Lock()
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def say(self, what, **more):
        line = json.dumps({"say": what, **more}, separators=(",", ":"))
        with self._lock:
            self._out.write(line + "\n")
            self._out.flush()


class Tenant(threading.Thread):
    """One tenant's thread: builds its job, then does what it is told until the process ends."""

    def __init__(self, index, spec, crowd, build, voice, turns):
        super().__init__(name=spec["name"], daemon=True)
        self.index, self.spec, self._build, self._voice, self._turns = index, spec, build, voice, turns
        self._clock = loops.Clock(shared=crowd > 1)
        self._orders = queue.SimpleQueue()
        self._best_effort, self._crowd = spec["class"] == "best-effort", crowd
        self._used = False
        self.built = threading.Event()
        self.job = self.failure = self.load_s = self.gpu_us = None

    def order(self, order):
        self._orders.put(order)

    def run(self):
        try:
            self.job = self._ready()
        except BaseException as error:
            traceback.print_exc()
            self.failure = reason(error)
        self.built.set()
        while self.job is not None:
            order = self._orders.get()
            try:
                getattr(self, "do_" + order["do"])(order)
            except BaseException as error:
                traceback.print_exc()
                self._voice.say("error", tenant=self.index, reason=reason(error))

    def _ready(self):
        began = time.monotonic()
        with self._turns.together():
            job = self._build(self.spec)
        self.load_s = round(time.monotonic() - began, 2)
        with self._turns.alone():
            self.gpu_us = round(job.measure_gpu_us(), 1)
            job.prepare()
            self._rest(job)
        return job

    def _rest(self, job):
        # Giving memory back stops all streams of a process, and its other tenants may not be at their end.
        if self._crowd == 1:
            job.rest()

    def do_calibrate(self, order):
        self._used = True
        count, seconds = loops.calibrate(self.job, self._best_effort, float(order["seconds"]), self._clock)
        self._rest(self.job)
        self._voice.say("calibrated", tenant=self.index, per_s=round(count / seconds, 3), count=count)

    def do_prepare(self, order):
        self.prepare()
        self._voice.say("prepared", tenant=self.index)

    def prepare(self):
        self.job.prepare()
        gc.collect()
        self._used = False

    def do_run(self, order):
        if self._used:
            self.prepare()
        self._used = True
        ran = loops.run(self.job, self._best_effort, order, self._clock)
        # Before the reply: after it, others may be measured.
        self._rest(self.job)
        self._voice.say("ran", tenant=self.index, **ran)

    def do_record(self, order):
        import recorder

        self._used = True
        self._voice.say("recorded", tenant=self.index, profile=recorder.record(self.job, self.spec["workload"]))


def reason(error):
    """The error in one line: a reply is a line, and the whole story is on standard error."""
    first = (str(error).strip().splitlines() or [""])[0]
    kind = type(error).__name__
    return first if kind in ("ValueError", "Unsuitable") and first else f"{kind}: {first}"


ORDERS = ("calibrate", "prepare", "run", "record")


def obey(tenants, voice):
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            order = json.loads(line)
            index = order["tenant"]
            if order["do"] not in ORDERS:
                raise ValueError(f"there is no order `{order['do']}`; there are {', '.join(ORDERS)}")
            if not 0 <= index < len(tenants):
                raise ValueError(f"there is no tenant {index}; there are {len(tenants)}")
        except (ValueError, KeyError, TypeError) as error:
            voice.say("error", tenant=None, reason=f"not an order: {error}")
            continue
        tenants[index].order(order)


def start(path, build, voice):
    with open(path) as file:
        spec = json.load(file)
    crowd, turns = len(spec["tenants"]), Turns(os.path.dirname(os.path.abspath(path)))
    tenants = []
    # One after another: a graph that is being captured forbids other threads to allocate.
    for index, one in enumerate(spec["tenants"]):
        one = {**one, "tiny": spec.get("tiny", False), "crowd": spec["tenants"]}
        tenant = Tenant(index, one, crowd, build, voice, turns)
        tenant.start()
        tenant.built.wait()
        if tenant.failure:
            voice.say("error", tenant=index, reason=f"{tenant.spec['name']}: {tenant.failure}")
            os._exit(1)
        tenants.append(tenant)
    return tenants


def main(build, about):
    """`build` makes a job of a tenant's specification; `about` tells versions and the GPU, once all are built."""
    voice = Voice()
    try:
        if len(sys.argv) != 2:
            raise ValueError("usage: worker.py SPEC.json")
        sys.setswitchinterval(SWITCH_S)
        tenants = start(sys.argv[1], build, voice)
        versions, gpu = about()
    except BaseException as error:
        traceback.print_exc()
        voice.say("error", tenant=None, reason=reason(error))
        os._exit(1)
    gc.collect()
    # What lives now lives to the end; a collection in the middle of a request would be seen as its latency.
    gc.freeze()
    gc.disable()
    ready = [{"gpu_us": tenant.gpu_us, "load_s": tenant.load_s} for tenant in tenants]
    voice.say("ready", tenants=ready, versions=versions, gpu=gpu)
    obey(tenants, voice)
    # Threads and contexts go with the process; there is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    import workloads

    main(workloads.build, workloads.about)
