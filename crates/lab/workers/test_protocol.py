"""A worker of made-up jobs, as a process, spoken to as the lab does. `python3 -m unittest`; no GPU."""

import json
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).parent


class Worker:
    """A child process; leaving it closes its input."""

    def __init__(self, *workloads, program="fake.py", classes=()):
        self._folder = tempfile.TemporaryDirectory()
        classes = classes or ["latency"] * len(workloads)
        tenants = [
            {"name": f"t{index}", "class": kind, "workload": one, "stream": "normal"}
            for index, (kind, one) in enumerate(zip(classes, workloads, strict=True))
        ]
        path = Path(self._folder.name, "spec.json")
        path.write_text(json.dumps({"tenants": tenants, "slowdown": 1.0, "tiny": True}))
        self.process = subprocess.Popen(
            [sys.executable, HERE / program, path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self._folder.cleanup()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def tell(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def ask(self, **order):
        self.tell(**order)
        return self.hear()


def run(tenant=0, in_ms=20, due_us=None, until_us=50_000):
    begin_ns = time.monotonic_ns() + in_ms * 1_000_000
    return {"do": "run", "tenant": tenant, "begin_ns": begin_ns, "due_us": due_us, "until_us": until_us, "drain_us": 0}


class Protocol(unittest.TestCase):
    def test_a_worker_says_what_it_is_and_obeys(self):
        with Worker({"model": "fake", "wrong": [2], "tokens": 4}) as worker:
            ready = worker.hear()
            self.assertEqual((ready["say"], ready["tenants"][0]["gpu_us"]), ("ready", 100.0))
            self.assertEqual(ready["gpu"], {"name": "none", "sms": 0})
            calibrated = worker.ask(do="calibrate", tenant=0, seconds=0.05)
            self.assertEqual(calibrated["say"], "calibrated")
            self.assertGreater(calibrated["count"], 0)
            self.assertEqual(worker.ask(do="prepare", tenant=0), {"say": "prepared", "tenant": 0})
            ran = worker.ask(**run(due_us=[0, 5000, 9000]))
            self.assertEqual((ran["say"], ran["tenant"], ran["wrong"]), ("ran", 0, [2]))
            for due, start, end in zip([0, 5000, 9000], ran["start_us"], ran["end_us"], strict=True):
                self.assertTrue(due <= start < end)
            self.assertEqual(ran["tokens"], [4, 4, 4])

    def test_tenants_of_one_process_run_at_the_same_time(self):
        # The request lasts long enough for the other tenant to begin beside it on a machine that is busy with other things.
        jobs = {"model": "fake", "us": 400_000}, {"model": "fake", "us": 5000, "ahead": True}
        with Worker(*jobs, classes=["latency", "best-effort"]) as worker:
            self.assertEqual(len(worker.hear()["tenants"]), 2)
            worker.tell(**run(0, in_ms=200, due_us=[0]))
            worker.tell(**run(1, in_ms=200, until_us=500_000))
            replies = {reply["tenant"]: reply for reply in (worker.hear(), worker.hear())}
            self.assertLess(replies[1]["start_us"][0], replies[0]["end_us"][0])
            self.assertEqual(len(replies[1]["checks"]), len(replies[1]["end_us"]))

    def test_the_end_of_its_input_ends_it_in_the_middle_of_a_run(self):
        with Worker({"model": "fake", "us": 60_000_000}) as worker:
            worker.hear()
            worker.tell(**run(due_us=[0]))
            worker.process.stdin.close()
            self.assertEqual(worker.process.wait(timeout=30), 0)

    def test_what_it_does_not_understand_is_said_and_costs_nothing(self):
        with Worker({"model": "fake"}) as worker:
            worker.hear()
            self.assertIn("no order `dance`", worker.ask(do="dance", tenant=0)["reason"])
            self.assertIn("no tenant 7", worker.ask(do="prepare", tenant=7)["reason"])
            worker.process.stdin.write("prepare!\n")
            self.assertEqual(worker.ask(do="prepare", tenant=0)["say"], "error")
            self.assertEqual(worker.hear()["say"], "prepared")

    def test_what_goes_wrong_in_an_order_is_an_answer(self):
        with Worker({"model": "fake"}) as worker:
            worker.hear()
            reply = worker.ask(do="run", tenant=0, begin_ns=0, until_us=1, drain_us=0)
            self.assertEqual((reply["say"], reply["tenant"]), ("error", 0))
            self.assertIn("due_us", reply["reason"])
            self.assertEqual(worker.ask(do="prepare", tenant=0)["say"], "prepared")

    def test_an_unknown_model_is_named(self):
        for program in ("fake.py", "worker.py"):
            with self.subTest(program), Worker({"model": "perceptron"}, program=program) as worker:
                reply = worker.hear()
                self.assertEqual(reply["say"], "error")
                self.assertIn("t0: there is no model `perceptron`", reply["reason"])
                self.assertEqual(worker.process.wait(timeout=60), 1)


if __name__ == "__main__":
    unittest.main()
