"""What the runs of a row are taken to mean. `python3 -m unittest` in this folder; no GPU, no framework."""

import collections
import json
import tempfile
import unittest
from pathlib import Path

from run import plain
from matrix import ebb_report, running, table
from matrix.rows import Row
from matrix.running import Profiled, Run
from matrix.verdict import judge

ROW = Row("row", "a row", "program.py")


def report(own=3, in_graphs=2, **more):
    kernels = collections.Counter({"k": own + in_graphs})
    return ebb_report.Counts(1, own, in_graphs, 0, kernels=kernels, **more)


def run(through, counted=False, digest="d", start_up=1.0, **line):
    result = Run(through, counted, start_up=start_up, line={"digest": digest} | line)
    if through:
        result.report = report()
    if counted:
        result.profiled = Profiled(collections.Counter({"k": 5}))
    return result


def runs(**last):
    timed = {"launch_ns": 2050.0, "launch_behind_ns": 2000.0, "framework_launch_ns": 6000.0}
    return [run(True, counted=True), run(False, framework_launch_ns=5900.0), run(True, **(timed | last))]


class Judging(unittest.TestCase):
    def test_what_meets_every_bar_passes(self):
        verdict = judge(ROW, runs())
        self.assertEqual(verdict.failures, [])
        self.assertTrue(verdict.passed and verdict.same)
        self.assertEqual((verdict.counted, verdict.profiled, verdict.launch.added), (5, 5, 50.0))
        self.assertIn("2.00 µs +50 ns", table.text([verdict]))

    def fails(self, measured, words, row=ROW):
        failures = judge(row, measured).failures
        self.assertTrue(any(words in failure for failure in failures), failures)

    def test_other_results_fail(self):
        self.fails(runs(digest="other"), "the results differ")

    def test_results_that_differ_without_ebb_prove_nothing(self):
        self.fails([*runs(), run(False, digest="other")], "even without ebb")

    def test_a_late_start_fails(self):
        self.fails(runs(start_up=1.06), "start-up")
        self.assertTrue(judge(ROW, runs(start_up=1.04)).passed)

    def test_a_dear_launch_fails(self):
        self.fails(runs(launch_ns=2101.0), "a launch costs 101 ns more")

    def test_a_launch_with_nothing_behind_fails(self):
        measured = runs()
        del measured[2].line["launch_behind_ns"]
        self.fails(measured, "only one libcuda")

    def test_a_kernel_that_ebb_missed_fails_by_name(self):
        measured = runs()
        measured[0].profiled.kernels["missed"] = 1
        self.fails(measured, "ebb counted 5 launches, the profiler 6: missed 0/1")

    def test_a_profiler_that_saw_nothing_fails(self):
        measured = runs()
        measured[0].profiled.kernels.clear()
        self.fails(measured, "no kernel was run")

    def test_a_process_round_ebb_fails(self):
        measured = runs()
        measured[0].report = report(round_ebb=1)
        self.fails(measured, "round ebb")

    def test_a_failed_run_fails_the_row(self):
        measured = runs()
        measured[1].failure = "exit status 1"
        self.fails(measured, "without ebb: exit status 1")

    def test_what_the_sanitizer_says_is_compared(self):
        row = Row("row", "a row", "program.cu", sanitizer=True, counts_itself=True)
        measured = [run(True, kernels=5), run(False, kernels=5)]
        for one in measured:
            one.words = ["========= ERROR SUMMARY: 1 error"]
        self.assertTrue(judge(row, measured).passed)
        measured[0].words = ["========= ERROR SUMMARY: 2 errors"]
        self.fails(measured, "compute-sanitizer says something else", row)


class Reading(unittest.TestCase):
    def test_launches_of_all_kinds_and_processes_are_added(self):
        launches = {"plain": {"default": 1}, "extended": {"created": 2}, "graph": {"default": 7}, "host_function": {}}
        kernels = [{"name": "k", "launches": 3, "in_graphs": 4}]
        process = {"counters": {"launches": launches, "kernels": {"in_graphs": 4, "captured": 1}}, "kernels": kernels}
        text = json.dumps({"processes": [process, process], "sentences": [], "round_ebb": []})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "report.json")
            path.write_text(text)
            counts = ebb_report.read(path)
        self.assertEqual((counts.processes, counts.own, counts.in_graphs, counts.captured), (2, 6, 8, 2))
        self.assertEqual((counts.total, counts.kernels["k"]), (14, 14))

    def test_the_counts_of_all_processes_of_the_profiler_are_added(self):
        with tempfile.TemporaryDirectory() as folder:
            for pid in (1, 2):
                Path(folder, f"{pid}.kernels").write_text("dropped 0\nin-graphs 2\n3\ta\tb\n1\tc\n")
            profiled = running.read_profiled(Path(folder))
        self.assertEqual((profiled.total, profiled.in_graphs, profiled.kernels["a\tb"]), (8, 4, 6))

    def test_addresses_and_frames_of_the_host_are_no_difference(self):
        one = ["========= at 0x7f12 of 4096", "=========     Host Frame: main [0x8bf3] in a", "hello"]
        other = ["========= at 0x7f9a of 4097", "=========     Host Frame: cuLaunchKernel in libcuda.so.1"]
        self.assertEqual(running.sanitizer_words(one), running.sanitizer_words(other))


class Saving(unittest.TestCase):
    def test_what_was_measured_can_be_written_whatever_its_keys(self):
        self.assertEqual(plain({("a", 1): [{2: (3, "b")}]}), {"('a', 1)": [{"2": [3, "b"]}]})


if __name__ == "__main__":
    unittest.main()
