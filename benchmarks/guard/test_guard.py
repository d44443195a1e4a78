"""The arithmetic, the tables, and every part with made-up programs. `python3 -m unittest` here; no GPU."""

import contextlib
import importlib.util
import io
import json
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

import run
from guarding import cost, coverage, equality, runs, sampling, stops, verdicts
from guarding.runs import Runner, Task

# isort: split
from sharing.campaign import ALONE, Record

HERE = Path(__file__).resolve().parent
TORCH = importlib.util.find_spec("torch") and importlib.util.find_spec("torchvision")


def told(name="k", verdict="guard", launches=10, **more):
    return {"name": name, "verdict": verdict, "launches": launches, **more}


def kernels(*each):
    return verdicts.reported({"processes": [{"kernels": list(each), "counters": {}}]}).kernels


class Kernels(unittest.TestCase):
    def setUp(self):
        spec = importlib.util.spec_from_file_location("kernels", HERE / "programs" / "kernels.py")
        self.kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.kernels)

    def test_kernels_that_run_at_once_keep_the_gpu_busy_once(self):
        found = self.kernels.summary([("a", 15, 25), ("a", 0, 10), ("b", 12, 20)], 1)
        self.assertEqual((found["whole_us"], found["busy_us"]), (25, 23))
        self.assertEqual(found["kernels"], {"a": [2, 20], "b": [1, 8]})

    def test_what_takes_more_comes_first_with_how_much_per_launch(self):
        one = self.kernels.summary([("a", 0, 10), ("b", 10, 20)], 1)
        other = self.kernels.summary([("a", 0, 11), ("b", 11, 24), ("b", 30, 40)], 1)
        lines = list(self.kernels.compared(one, other))
        self.assertEqual(lines[3].split(), ["between", "kernels", "0.0", "6.0", "2.00"])
        self.assertEqual(lines[4].split(), ["b", "10.0", "23.0", "6.50"])


class Verdicts(unittest.TestCase):
    def test_every_verdict_has_a_side(self):
        words = ("guard", "ordered", "refuse", "unknown")
        found = [kernel.side for kernel in kernels(*(told(verdict=word) for word in words))]
        self.assertEqual(found, list(verdicts.SIDES))

    def test_why_it_was_refused_is_said(self):
        whole, short, none = kernels(told(reason="old", sentence="it is old"), told(reason="old"), told(reason=None))
        self.assertEqual([whole.reason, short.reason, none.reason], ["it is old", "old", ""])

    def test_time_is_covered_by_both_rules(self):
        times = {"guard": 60, "ordered": 35, "refuse": 4, "unknown": 1}
        some = kernels(*(told(verdict=verdict, gpu_ns=time) for verdict, time in times.items()))
        self.assertAlmostEqual(verdicts.covered(some), 0.95)
        self.assertEqual(verdicts.shares(some, lambda _: 1)["unjudged"], 0.25)

    def test_nothing_timed_is_not_nothing_covered(self):
        self.assertIsNone(verdicts.covered(kernels(told(gpu_ns=None))))
        self.assertIsNone(verdicts.ran_guarded([]))

    def test_launches_before_there_was_a_twin_are_not_guarded(self):
        some = kernels(told(launches=10, guarded=9), told(verdict="refuse", launches=90))
        self.assertEqual(verdicts.ran_guarded(some), 0.9)

    def test_what_nobody_counted_is_missing(self):
        counters = [{"guard": {"stops": 2}}, {"guard": {"stops": 3}}, {}]
        report = {"processes": [{"kernels": [], "counters": each} for each in counters]}
        self.assertEqual(verdicts.reported(report).sums, {"stops": 5})


def covered_row(workload, *each):
    return {"row": "coverage", "workload": workload, "kernels": [vars(kernel) for kernel in kernels(*each)]}


def compared(plain, storm, **more):
    found = {"row": "equality", "workload": "bert-equality"}
    return Record(rows=[found | {"how": "plain", "digests": plain}, found | {"how": "storm", "digests": storm} | more])


class Tables(unittest.TestCase):
    def test_every_refusal_is_named_with_its_time(self):
        refused = told("b", "refuse", 2, gpu_ns=2, sentence="x")
        row = covered_row("bert-training-eager", told("a", launches=98, gpu_ns=98), refused)
        text = coverage.markdown(Record(rows=[row]))
        self.assertIn("| bert training | `b` | x | 2 | 2.0% |", text)
        self.assertIn("| 98.0% / 0.0% / 2.0% / 0.0% |", text)

    def test_the_three_trainings_have_a_higher_bar(self):
        some = (told("a", gpu_ns=98), told("b", "refuse", gpu_ns=2))
        rows = [covered_row("bert-training-eager", *some), covered_row("with_cupy", *some)]
        self.assertEqual([met for *_, met in coverage.judged(Record(rows=rows))], [False, True])

    def bars(self, record):
        return [met for *_, met in equality.judged(record)]

    def test_equal_results_with_enough_cuts_meet_the_bars(self):
        self.assertEqual(self.bars(compared([["a", "b"]] * 2, [["a", "b"]] * 3, mid_grid=1000)), [True, True])
        self.assertEqual(self.bars(compared([["a", "b"]] * 2, [["a", "b"]], mid_grid=999)), [True, False])

    def test_cuts_that_nobody_counted_are_not_enough(self):
        record = compared([["a"]] * 2, [["a"]], cut=5000)
        self.assertEqual(self.bars(record), [True, False])
        self.assertIn("| – |", equality.markdown(record))

    def test_one_wrong_round_is_seen_with_its_first_step(self):
        record = compared([["a", "b", "c"]] * 2, [["a", "b", "c"], ["a", "x", "y"]], mid_grid=2000)
        self.assertEqual(self.bars(record), [False, True])
        self.assertIn("**NO** (from step 1)", equality.markdown(record))

    def test_a_shorter_round_is_a_wrong_one(self):
        self.assertEqual(self.bars(compared([["a", "b"]] * 2, [["a"]], mid_grid=2000)), [False, True])

    def test_what_differs_without_ebb_cannot_be_judged(self):
        for plain in ([["a"], ["b"]], [["a"]]):
            record = compared(plain, [["a"]], mid_grid=2000)
            self.assertFalse(self.bars(record)[0])
            self.assertIn("| **NO** | – |", equality.markdown(record))

    def test_the_cost_is_the_median_of_pairs(self):
        pairs = [(100.0, 99.0), (50.0, 49.0), (100.0, 90.0)]
        rows = [{"row": "cost", "training": "bert", "plain": plain, "guarded": guarded} for plain, guarded in pairs]
        record = Record(rows=rows)
        found = cost.facts(record, "bert")
        self.assertEqual((found["ratio"], found["low"], found["high"]), (0.98, 0.9, 0.99))
        self.assertEqual([met for *_, met in cost.judged(record)], [True])

    def test_what_timing_takes_is_the_median_of_turns(self):
        rows = [
            {"row": "sampling", "training": "bert", "untimed": 100.0, "timed": timed} for timed in (90.0, 98.0, 98.5, 99.5)
        ]
        record = Record(rows=rows)
        self.assertEqual(sampling.facts(record, "bert")["turns"], 4)
        self.assertEqual([met for *_, met in sampling.judged(record)], [False])
        self.assertEqual([met for *_, met in sampling.judged(Record(rows=rows[3:]))], [True])

    def test_an_operation_shows_what_the_prologue_adds(self):
        row = {"row": "cost-operation", "operation": "add", "plain": [10.0, 11.0, 12.0], "guarded": [12.0] * 3}
        self.assertIn("| 11.00 | 12.00 | +1.00 | 1.091 |", cost.markdown(Record(rows=[row])))

    def stopped(self, latency, span):
        row = {"row": "stops", "sharing": "ebb-shared"}
        alone = row | {"beside": ALONE, "latency_us": [40.0, 42.0, 44.0], "span_us": [20.0] * 3}
        grids = {"beside": "grids", "block": 20, "blocks": 1 << 20, "exact": True}
        idle = {"count": 200, "p50_ns": 31_000, "p99_ns": 88_000}
        return Record(rows=[alone, row | grids | {"latency_us": latency, "span_us": span, "idle": idle}])

    def test_a_wait_is_what_is_neither_the_way_nor_the_work(self):
        record = self.stopped([72.0, 97.0], [30.0, 40.0])
        found = stops.facts(record, record.rows[1])
        self.assertEqual(found, {"wait_us": [20.0, 35.0], "extra_us": [30.0, 55.0]})
        text = stops.markdown(record)
        self.assertIn("| 1,048,576 blocks of 20 µs | 2 | 20 / 35 / 35 | 30 / 55 / 55 | 31 / 88 (200) | yes |", text)

    def test_a_wait_may_have_the_running_block_and_a_little_more_than_alone(self):
        # Alone, one time in a hundred, it is 2 µs later than its median.
        wait = [met for what, *_, met in stops.judged(self.stopped([99.0], [40.0])) if "wait" in what]
        self.assertEqual(wait, [True])
        wait = [met for what, *_, met in stops.judged(self.stopped([100.0], [40.0])) if "wait" in what]
        self.assertEqual(wait, [False])

    def test_an_empty_record_makes_an_empty_table(self):
        self.assertEqual(run.markdown(Record()).strip(), "")

    def test_grids_differ_and_reach_a_million_blocks(self):
        self.assertEqual(len(set(stops.GRIDS)), len(stops.GRIDS))
        self.assertEqual(max(blocks for _, blocks in stops.GRIDS), 1 << 20)


class Idle(unittest.TestCase):
    def test_it_is_that_of_the_process(self):
        times = {"count": 3, "p50_ns": 1, "p99_ns": 2}
        status = {"gpus": [{"processes": [{"pid": 7}, {"pid": 8, "guard_stops": times}]}]}
        self.assertEqual(stops.flag_to_idle(json.dumps(status), 8), times)
        self.assertIsNone(stops.flag_to_idle(json.dumps(status), 7))

    def test_no_status_is_no_time(self):
        for status in (None, "", "no daemon answers", "{}"):
            self.assertIsNone(stops.flag_to_idle(status, 7))


class Running(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_once(self, program, seconds=60.0, limit=30.0):
        command = [sys.executable, "-c", textwrap.dedent(program)]
        return Runner(self.folder, "ebb", seconds).run(Task("it", command, limit=limit))

    def test_the_last_line_of_json_is_the_answer(self):
        ended = self.run_once("""print('hello\\n{"a": 1}\\n{"a": 2}\\nbye')""")
        self.assertEqual((ended.answer, ended.failure), ({"a": 2}, ""))

    def test_one_that_fails_says_so_with_its_last_words(self):
        ended = self.run_once("import sys; print('{}'); sys.exit('no such device')")
        self.assertEqual(ended.failure, "ended with status 1: no such device")
        self.assertIn("said nothing", self.run_once("pass").failure)

    def test_one_that_takes_too_long_is_ended(self):
        with mock.patch.object(runs, "LEAST_SECONDS", 0.5):
            ended = self.run_once("import time; time.sleep(100)", limit=0.5)
        self.assertIn("its limit", ended.failure)
        self.assertLess(ended.seconds, 50)

    def test_nothing_is_begun_when_the_time_is_up(self):
        self.assertIn("the time was up", self.run_once("print('{}')", seconds=1.0).failure)

    def test_what_is_not_guarded_runs_without_ebb(self):
        runner = Runner(self.folder, "ebb", 60.0)
        self.assertNotIn("EBB_GUARD", runner.environment())
        self.assertEqual(runner.environment("storm:3")["EBB_GUARD"], "storm:3")
        self.assertNotIn("EBB_SAMPLE", runner.environment("always", sampled=False))


class Whole(unittest.TestCase):
    def parts(self, *names):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "rows")
            words = ["--fake", "--out", str(out), "--markdown", str(Path(folder, "text"))]
            with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()):
                run.main([*words, *(word for name in names for word in ("--part", name))])
            self.assertEqual(Path(folder, "text").read_text(), said.getvalue())
            again = run.earlier([out])
        self.assertEqual(again, said.getvalue())
        return said.getvalue()

    def test_programs_that_run_once(self):
        text = self.parts("coverage", "equality")
        for workload in coverage.WORKLOADS:
            self.assertIn(f"| {workload.title} | 3 |", text)
        self.assertIn("| BERT training | 40 x 50 | 980 | 50 | 40 | 12 | 52 | 0 | yes | yes |", text)

    def test_programs_that_take_turns(self):
        text = self.parts("cost")
        self.assertIn("| BERT, 32 x 128 | 100.00 | 100.00 | 1.000 | 1.000 to 1.000 | 4 | 98.0% |", text)
        self.assertIn("| product 8192³, fp16 | 100.00 |", text)
        self.assertIn("| BERT, 32 x 128 | 1.0000 | 1.000 to 1.000 | 24 |", self.parts("sampling"))

    def test_bursts_beside_grids_and_trainings(self):
        text = self.parts("stops")
        for beside in ("2,112 blocks of 20 µs", "42,240 blocks of 1,000 µs", "GPT-2", "ResNet-50"):
            self.assertIn(f"| **ebb shared** | {beside} | 250 |", text)

    def test_serving_in_the_shared_domain(self):
        text = self.parts("phases")
        self.assertIn("| **ebb shared** | ResNet-50 |", text)
        self.assertIn("shared: GPT-2 of ideal", text)


@unittest.skipUnless(TORCH, "there is no torch here")
class Jobs(unittest.TestCase):
    def answer(self, *words):
        command = [sys.executable, HERE / "programs" / "job.py", *words, "--tiny"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    def test_every_group_of_operations_gives_the_same_bits_again(self):
        sys.path += [str(HERE / "programs"), str(HERE.parent.parent / "crates" / "lab" / "workers")]
        import operations

        for group in operations.GROUPS:
            with self.subTest(group):
                job = operations.build(group, tiny=True)
                job.request(1)
                self.assertEqual(job.digest(1), job._digest)
                job._answers[0].view(-1)[0] += 1
                self.assertNotEqual(job.digest(1), job._digest)

    def test_a_training_tells_every_loss_and_all_weights(self):
        workload = json.dumps({"model": "bert", "task": "training", "batch": 2, "tokens": 8})
        first, second = self.answer(workload, "--steps", "3", "--rounds", "2")["digests"]
        self.assertEqual(first, second)
        self.assertEqual([len(digest) for digest in first], [8, 8, 8, 32])


if __name__ == "__main__":
    unittest.main()
