"""When requests begin and end.

A request is served when it is due and not before, one at a time and in order; one that came while another was served
waits, and its latency counts from when it was due. Nothing is skipped: what was not begun by the end of the drain stays
unserved, and the reply is shorter than the list of arrivals by exactly those.
"""

import time

SPIN_NS = 200_000


class Clock:
    """The machine's monotonic clock, which all processes share."""

    def __init__(self, shared=False):
        # Tenants in one process take turns in the interpreter: one that spins has to offer its turn.
        self._pause = (lambda: time.sleep(0)) if shared else (lambda: None)

    now_ns = staticmethod(time.monotonic_ns)

    def wait_until(self, due_ns):
        """Sleeps while there is time and spins at the end: a sleep comes back late by tens of microseconds."""
        left = due_ns - time.monotonic_ns()
        if left > SPIN_NS:
            time.sleep((left - SPIN_NS) * 1e-9)
        while time.monotonic_ns() < due_ns:
            self._pause()


def calibrate(job, best_effort, seconds, clock):
    """How many in a closed loop, and in how long."""
    job.prepare()
    begin_ns = clock.now_ns()
    log = Log(job, best_effort, begin_ns, clock)
    closed(job, log, begin_ns + int(seconds * 1e9), clock)
    return len(log.end_us), max(1, clock.now_ns() - begin_ns) * 1e-9


def run(job, best_effort, order, clock):
    begin_ns = order["begin_ns"]
    log = Log(job, best_effort, begin_ns, clock)
    clock.wait_until(begin_ns)
    until_ns = begin_ns + order["until_us"] * 1000
    if order["due_us"] is None:
        closed(job, log, until_ns, clock)
    else:
        arriving(job, log, order["due_us"], until_ns + order["drain_us"] * 1000, clock)
    return log.reply()


def arriving(job, log, due_us, last_ns, clock):
    for number, due in enumerate(due_us):
        clock.wait_until(log.begin_ns + due * 1000)
        if clock.now_ns() >= last_ns:
            break
        log.serve(number)


def closed(job, log, until_ns, clock):
    if job.queues_ahead and log.best_effort:
        ahead(job, log, until_ns, clock)
        return
    number = 0
    while clock.now_ns() < until_ns:
        log.serve(number)
        number += 1


def ahead(job, log, until_ns, clock):
    """One iteration is queued while another runs, as a training does that looks at its loss now and then."""
    number, queued = 0, []
    while clock.now_ns() < until_ns:
        log.begin()
        queued.append(job.hand_over(number))
        number += 1
        if len(queued) > 1:
            job.wait(queued.pop(0))
            log.end()
    for last in queued:
        job.wait(last)
        log.end()


class Log:
    """What happened when, in whole microseconds from the beginning of the run."""

    def __init__(self, job, best_effort, begin_ns, clock):
        self.job, self.best_effort, self.begin_ns, self._clock = job, best_effort, begin_ns, clock
        self.start_us, self.end_us, self.wrong, self.checks = [], [], [], []
        self.first_us, self.tokens = [], []

    def _at(self, now_ns):
        return (now_ns - self.begin_ns) // 1000

    def begin(self):
        self.start_us.append(self._at(self._clock.now_ns()))

    def end(self):
        self.end_us.append(self._at(self._clock.now_ns()))

    def serve(self, number):
        """One request from its start to its end; the answer is looked at after the time was taken."""
        self.begin()
        self.job.request(number)
        self.end()
        if self.job.generates:
            self.first_us.append(self._at(self.job.first_ns))
            self.tokens.append(self.job.tokens)
        if self.best_effort:
            self.checks.append(self.job.digest(number))
        elif not self.job.is_right(number):
            self.wrong.append(number)

    def reply(self):
        reply = {"start_us": self.start_us, "end_us": self.end_us, "wrong": self.wrong}
        if self.best_effort:
            count = len(self.end_us)
            reply["checks"] = self.checks if len(self.checks) == count else self.job.digests(count)
        if self.job.generates:
            reply |= {"first_us": self.first_us, "tokens": self.tokens}
        return reply
