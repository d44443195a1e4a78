"""When requests begin and end, with a clock that only moves when it is told to. `python3 -m unittest`; no GPU."""

import unittest

import loops
from jobs import Job


class StillClock:
    def __init__(self):
        self.ns = 0

    def now_ns(self):
        return self.ns

    def wait_until(self, due_ns):
        self.ns = max(self.ns, due_ns)


class Steady(Job):
    """Every request takes as long as the last one."""

    def __init__(self, clock, us, wrong=()):
        self.clock, self.us, self.wrong, self.order = clock, us, wrong, []

    def request(self, number):
        self.order.append(number)
        self.first_ns = self.clock.ns + self.us * 250
        self.clock.ns += self.us * 1000

    def is_right(self, number):
        # Looking takes time as well, and none of it may be seen in this request's latency.
        self.clock.ns += 7_000
        return number not in self.wrong

    def digest(self, number):
        return f"d{number}"


class Queued(Steady):
    """The GPU does one iteration after another; handing over takes no time."""

    queues_ahead = True
    free_ns = 0

    def hand_over(self, number):
        self.order.append(number)
        self.clock.ns += 1000
        self.free_ns = max(self.free_ns, self.clock.ns) + self.us * 1000
        return self.free_ns

    def wait(self, end_ns):
        self.clock.ns = max(self.clock.ns, end_ns)

    def digests(self, count):
        return [f"d{number}" for number in range(count)]


def run(job, best_effort=False, due_us=None, until_us=1000, drain_us=0, begin_ns=5_000_000):
    order = {"begin_ns": begin_ns, "due_us": due_us, "until_us": until_us, "drain_us": drain_us}
    return loops.run(job, best_effort, order, job.clock)


class Arrivals(unittest.TestCase):
    def test_none_begins_before_it_is_due(self):
        job = Steady(StillClock(), us=10)
        ran = run(job, due_us=[100, 400, 900])
        self.assertEqual(ran["start_us"], [100, 400, 900])
        self.assertEqual(ran["end_us"], [110, 410, 910])

    def test_those_that_came_meanwhile_wait_their_turn(self):
        job = Steady(StillClock(), us=300)
        ran = run(job, due_us=[0, 1, 2])
        self.assertEqual(job.order, [0, 1, 2])
        self.assertEqual(ran["start_us"], [0, 307, 614])
        self.assertEqual(ran["end_us"], [300, 607, 914])

    def test_what_was_not_begun_by_the_end_of_the_drain_stays_unserved(self):
        job = Steady(StillClock(), us=300)
        ran = run(job, due_us=[0, 10, 20, 30, 40], until_us=500, drain_us=200)
        self.assertEqual(len(ran["start_us"]), 3)
        self.assertEqual(len(ran["end_us"]), 3, "the last one was begun in time and is finished")

    def test_wrong_answers_are_told_by_their_number(self):
        job = Steady(StillClock(), us=10, wrong=(1, 3))
        self.assertEqual(run(job, due_us=[0, 50, 100, 150])["wrong"], [1, 3])

    def test_a_latency_tenant_has_no_checks_and_nothing_of_tokens(self):
        ran = run(Steady(StillClock(), us=10), due_us=[0])
        self.assertEqual(set(ran), {"start_us", "end_us", "wrong"})

    def test_tokens_are_told_with_the_moment_of_the_first(self):
        job = Steady(StillClock(), us=100)
        job.generates, job.tokens = True, 32
        ran = run(job, due_us=[0, 500])
        self.assertEqual((ran["first_us"], ran["tokens"]), ([25, 525], [32, 32]))


class ClosedLoop(unittest.TestCase):
    def test_begins_nothing_after_the_end(self):
        ran = run(Steady(StillClock(), us=300), until_us=1000)
        self.assertEqual(ran["start_us"], [0, 307, 614, 921])
        self.assertEqual(ran["end_us"][-1], 1221)

    def test_best_effort_has_one_check_to_an_answer(self):
        ran = run(Steady(StillClock(), us=300), best_effort=True, until_us=1000)
        self.assertEqual(ran["checks"], ["d0", "d1", "d2", "d3"])

    def test_one_iteration_is_queued_ahead(self):
        job = Queued(StillClock(), us=100)
        ran = run(job, best_effort=True, until_us=350)
        self.assertEqual(ran["end_us"], [101, 201, 301, 401, 501])
        self.assertLess(ran["start_us"][1], ran["end_us"][0])
        self.assertGreaterEqual(ran["start_us"][2], ran["end_us"][0], "one, not two")
        self.assertEqual(ran["checks"], ["d0", "d1", "d2", "d3", "d4"])

    def test_a_latency_tenant_waits_for_each_answer(self):
        job = Queued(StillClock(), us=100)
        self.assertEqual(run(job, until_us=200)["start_us"], [0, 107])

    def test_calibration_counts_what_finished_over_the_time_it_took(self):
        clock = StillClock()
        count, seconds = loops.calibrate(Queued(clock, us=100_000), True, 1.0, clock)
        self.assertEqual(count, 11)
        self.assertAlmostEqual(count / seconds, 10, delta=0.1)


if __name__ == "__main__":
    unittest.main()
