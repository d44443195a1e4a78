"""The arithmetic, the tables, and a whole campaign with made-up tenants. `python3 -m unittest` here; no GPU."""

import contextlib
import io
import os
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import run
from sharing import figures, modes, table
from sharing.campaign import ALONE, BLOCKS, TWO, Campaign, Lengths, Record
from sharing.programs import TRAININGS, Programs
from sharing.tenants import Lost, Tenant


class Figures(unittest.TestCase):
    def test_a_quantile_is_one_of_the_values(self):
        values = list(range(1, 101))
        self.assertEqual([figures.quantile(values, q) for q in (0.0, 0.5, 0.99, 1.0)], [1, 50, 99, 100])
        self.assertEqual(figures.quantile([3.0], 0.99), 3.0)
        self.assertIsNone(figures.quantile([], 0.5))

    def test_iterations_count_by_the_part_that_lies_in_the_window(self):
        stamps = [0.0, 1.0, 2.0, 4.0]
        self.assertEqual(figures.iterations_between(stamps, 0.0, 4.0), 3.0)
        self.assertEqual(figures.iterations_between(stamps, 0.5, 3.0), 0.5 + 1.0 + 0.5)
        self.assertEqual(figures.iterations_between(stamps, 5.0, 6.0), 0.0)
        self.assertEqual(figures.rate_between(stamps, 2.0, 4.0), 0.5)
        self.assertEqual(figures.rate_between(stamps, 2.0, 2.0), 0.0)

    def test_what_stood_still_has_no_throughput(self):
        self.assertAlmostEqual(figures.rate_between([0.0, 100.0], 10.0, 20.0), 0.01)

    def test_ideal_is_what_the_latency_tenant_leaves(self):
        busy = figures.busy_share(600, 1000.0, 1.0)
        self.assertAlmostEqual(busy, 0.6)
        self.assertAlmostEqual(figures.of_ideal(3.6, 10.0, busy), 0.9)
        self.assertEqual(figures.busy_share(6000, 1000.0, 1.0), 1.0)
        self.assertIsNone(figures.of_ideal(1.0, 10.0, 1.0))

    def test_results_are_compared_as_far_as_the_shorter_run_goes(self):
        self.assertEqual(figures.same_results(["a", "b", "c"], ["a", "b"]), (True, 2))
        self.assertEqual(figures.same_results(["a", "b", "c"], ["a", "x"]), (False, 1))
        self.assertEqual(figures.same_results(["a"], ["a", "b"]), (None, 1))
        self.assertEqual(figures.same_results([], ["a"]), (None, 0))
        self.assertEqual(figures.same_results(["a"], []), (None, 0))

    def test_a_histogram_counts_everything_once(self):
        values = [-30.0, 0.0, 24.9, 25.0, 180.0]
        buckets = figures.histogram(values)
        self.assertEqual(sum(count for *_, count in buckets), len(values))
        self.assertEqual(buckets[0], (-50.0, -25.0, 1))
        self.assertEqual(buckets[-1], (175.0, 200.0, 1))
        self.assertEqual([low for low, *_ in figures.folded(buckets)], [-50.0, -25.0, 0.0, 25.0, 175.0])
        self.assertEqual(sum(count for *_, count in figures.folded(buckets)), len(values))
        self.assertIn("25 ..      50      1  " + "#" * 20 + "\n    ...\n", table.histogram("it", values))
        short = figures.coarse(buckets, most=3)
        self.assertEqual(len(short), 3)
        self.assertEqual(sum(count for *_, count in short), len(values))


def phase(sharing, name, service, seconds=10.0, **more):
    answer = {"from": 0.0, "to": seconds, "service_us": service, "arrival_us": service, "unserved": 0, "wrong": 0}
    return {"row": "serving", "sharing": sharing, "phase": name} | answer | more


def record_of(ebb_us=1350.0, rate=3.5, same=True, unserved=0):
    """Alone: 600 requests of 1 ms in 1 s of the graph phase, so the GPU is busy for 0.6 of it, and idle when eager."""
    rows = [
        phase(ALONE, "graph", [1000.0] * 6000, gpu_us=1000.0),
        phase(ALONE, "eager", [5000.0], gpu_us=1000.0),
        {"row": "training-alone", "name": "gpt2", "rate": 10.0, "digests": ["a"]},
        phase("ebb", "graph", [ebb_us] * 6000, beside="gpt2", rates={"gpt2": rate}, unserved=unserved),
        phase("ebb", "eager", [5000.0], beside="gpt2", rates={"gpt2": 9.0}),
        {"row": "results", "sharing": "ebb", "name": "gpt2", "same": same, "compared": 1},
    ]
    return Record(rows=rows)


class Tables(unittest.TestCase):
    def bars(self, record):
        return {what: met for what, _, _, met in table.judged(record)}

    def test_the_share_of_ideal_is_over_both_phases(self):
        facts = table.training_facts(record_of(), "ebb", "gpt2")
        self.assertAlmostEqual(facts["of_alone"], (3.5 + 9.0) / 20.0)
        self.assertAlmostEqual(facts["of_ideal"], (0.35 + 0.9) / (0.4 + 0.9999), places=4)
        graph = table.training_facts(record_of(), "ebb", "gpt2", ("graph",))
        self.assertAlmostEqual(graph["of_ideal"], 0.875)

    def test_bars_are_met_and_missed(self):
        met = self.bars(record_of(rate=3.9))
        self.assertTrue(all(met.values()), met)
        self.assertEqual(len(met), 4)
        missed = self.bars(record_of(ebb_us=1451.0, rate=0.0, same=False))
        self.assertFalse(any(missed.values()), missed)

    def test_the_shared_domain_has_bars_of_its_own(self):
        record = record_of(ebb_us=1240.0)
        for row in record.rows:
            row["sharing"] = row.get("sharing", "").replace("ebb", "ebb-shared")
        bars = self.bars(record)
        self.assertTrue(bars["shared: graph-BERT service p50 beside GPT-2, times alone"])
        record.find("serving", sharing="ebb-shared", phase="graph")["service_us"] = [1260.0] * 6000
        self.assertFalse(self.bars(record)["shared: graph-BERT service p50 beside GPT-2, times alone"])
        self.assertFalse([what for what in bars if what.startswith("isolated")])

    def test_results_that_could_not_be_compared_are_not_the_same(self):
        self.assertIn(False, self.bars(record_of(same=None)).values())

    def test_two_trainings_together_are_measured_against_one_alone(self):
        record = record_of()
        record.rows.append({"row": "training-alone", "name": "resnet50", "rate": 30.0, "digests": []})
        both = " and ".join(TRAININGS)
        window = {"from": 0.0, "to": 1.0, "rates": {"gpt2": 5.0, "resnet50": 13.5}}
        record.rows.append({"row": "serving", "sharing": TWO, "phase": "nobody", "beside": both} | window)
        self.assertAlmostEqual(table.training_facts(record, TWO, both, ("nobody",))["of_alone"], 0.95)
        self.assertIn("| nobody | 5.00 + 13.50 | 0.95 |", table.two(record))

    def test_an_overloaded_server_has_no_latency_from_arrival(self):
        text = table.serving(record_of(unserved=1000))
        self.assertIn("| 1.35 / 1.35 | 1.35 / 1.35 | overload |", text)
        self.assertNotIn("overload", table.serving(record_of()))

    def test_it_says_how_many_of_those_due_were_served(self):
        self.assertIn("| 6,000 of 7,000 / 1 of 1 |", table.serving(record_of(unserved=1000)))

    def test_an_empty_record_makes_an_empty_table(self):
        self.assertEqual(table.markdown(Record()).strip(), "")


class Tenants(unittest.TestCase):
    def tenant(self, program):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        command = [sys.executable, "-c", textwrap.dedent(program)]
        tenant = Tenant("it", command, dict(os.environ), Path(folder.name, "log"))
        self.addCleanup(tenant.close)
        return tenant

    def test_what_a_library_prints_is_no_answer(self):
        tenant = self.tenant("print('hello'); print('{\"ready\": true}', flush=True); input()")
        self.assertEqual(tenant.await_ready(20).ready, {"ready": True})

    def test_one_that_ends_is_lost_with_its_last_words(self):
        tenant = self.tenant("import sys; sys.exit('no such device')")
        with self.assertRaisesRegex(Lost, "it ended with status 1: no such device"):
            tenant.await_ready(20)

    def test_one_that_says_nothing_is_lost_and_killed(self):
        tenant = self.tenant("import time; time.sleep(100)")
        began = time.monotonic()
        with self.assertRaisesRegex(Lost, "in time"):
            tenant.await_ready(0.1)
        self.assertLess(time.monotonic() - began, 50)
        with self.assertRaises(ProcessLookupError):
            os.kill(tenant.pid, 0)

    def test_one_that_reports_an_error_is_lost(self):
        with self.assertRaisesRegex(Lost, "out of memory"):
            self.tenant('print(\'{"error": "out of memory"}\', flush=True); input()').await_ready(20)


STAND_IN = """#!/bin/sh
echo "$@" >> "$0.said"
case "$1" in
    run) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
    daemon) exec sleep 100 ;;
    status) echo '{"tenants": []}' ;;
esac
"""


# It answers only some time after it was started, like the real one.
MPS_STAND_IN = """#!/bin/sh
pid="$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
case "$1" in
    -d) "$0" serve & exit ;;
    serve) sleep 0.2; echo $$ > "$pid"; echo up >> "$0.said"; while :; do sleep 0.1; done ;;
esac
read word
[ -f "$pid" ] || exit 1
[ "$word" = quit ] && echo "$(cat "$pid")" >> "$0.said" && kill "$(cat "$pid")"
exit 0
"""


class ForgetfulPrograms(Programs):
    """The first latency tenant ends when it is told something."""

    def burst(self, kind):
        if kind == modes.LATENCY and not vars(self).get("forgot"):
            self.forgot = True
            return [sys.executable, "-c", "print('{}', flush=True); input()"]
        return super().burst(kind)


class WholeCampaign(unittest.TestCase):
    def campaign(self, picks, programs=Programs, stand_in=STAND_IN, **more):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        ebb = Path(folder.name, "ebb")
        ebb.write_text(stand_in)
        ebb.chmod(0o755)
        record = Record(Path(folder.name, "rows"))
        lengths = Lengths(phase=0.05, bursts=20, settle=0.02)
        campaign = Campaign(
            programs(folder.name, fake=True), record, Path(folder.name), str(ebb), picks, lengths=lengths,
            say=lambda _: None, **more,
        )  # fmt: skip
        campaign.run()
        self.assertEqual(Record.read(Path(folder.name, "rows")), record.rows)
        said = Path(folder.name, "ebb.said")
        return record, said.read_text() if said.exists() else ""

    def test_every_tenant_goes_through_ebb_with_its_class(self):
        record, said = self.campaign(("ebb", TWO))
        self.assertEqual([row for row in record.rows if row["row"] == "remark"], [])
        self.assertIn("run --class latency -- ", said)
        self.assertIn("run --class best-effort -- ", said)
        results = [(row["sharing"], row["name"], row["same"]) for row in record.rows if row["row"] == "results"]
        self.assertEqual([r[:2] for r in results], [(s, n) for s in ("ebb", TWO) for n in TRAININGS])
        text = table.markdown(record, "a machine")
        for part in ("### Bursts", "### Serving", "### Two trainings", "### Stop latency", "### Bars"):
            self.assertIn(part, text)

    def test_the_shared_domain_is_asked_of_the_daemon(self):
        record, said = self.campaign(("ebb-shared",), parts=("bursts",), have_alone=True)
        self.assertEqual(len([row for row in record.rows if row["row"] == "bursts"]), len(BLOCKS))
        self.assertIn("daemon --domain shared", said)

    def test_a_daemon_that_ends_is_a_remark_with_its_last_words(self):
        failing = STAND_IN.replace("exec sleep 100", "echo no such card >&2; exit 1").replace(
            "echo '{", "exit 1; echo '{"
        )
        record, _ = self.campaign(("ebb",), stand_in=failing, parts=("bursts",), have_alone=True)
        self.assertIn("* ebb isolated: the daemon of ebb does not answer: no such card", table.remarks(record))

    def test_a_mode_that_cannot_be_is_a_remark(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(swapped(modes, "MPS_CONTROL", "no-such-program"))
            record, said = self.campaign(("mps",), parts=("bursts",))
        self.assertIn("* MPS: there is no no-such-program", table.markdown(record))
        self.assertEqual(said, "")

    def test_each_benchmark_has_an_mps_daemon_of_its_own_that_is_gone_afterwards(self):
        with tempfile.TemporaryDirectory() as folder:
            control = Path(folder, modes.MPS_CONTROL)
            control.write_text(MPS_STAND_IN)
            control.chmod(0o755)
            with swapped(modes, "MPS_CONTROL", str(control)), swapped(modes, "MPS_PID", f"{control.name}.pid"):
                record, _ = self.campaign(("mps",), have_alone=True)
            said = Path(folder, f"{control.name}.said").read_text().split()
        self.assertIsNone(record.find("remark"))
        self.assertEqual([said[0], said[2], len(said)], ["up", "up", 4])
        self.assertFalse([process for process in said[1::2] if modes.is_of_mps(int(process))])

    def test_a_lost_tenant_costs_its_row_and_no_other(self):
        record, _ = self.campaign(("ebb",), ForgetfulPrograms, parts=("bursts",), have_alone=True)
        self.assertIn("burst-latency (ebb isolated) ended with status 0", table.remarks(record))
        rows = [(row["block"], row["state"]) for row in record.rows if row["row"] == "bursts"]
        self.assertEqual(rows, list(BLOCKS[1:]))

    def test_nothing_new_is_begun_when_the_time_is_up(self):
        record, _ = self.campaign(("ebb",), limit=1e-9)
        self.assertIn("the time was up", table.remarks(record))
        self.assertIsNone(record.find("serving"))


@contextlib.contextmanager
def swapped(where, name, value):
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)


class Arguments(unittest.TestCase):
    def test_alone_is_not_a_choice_but_may_be_said(self):
        self.assertEqual(run.picks(run.arguments(["--only", "alone", "--only", "ebb"])), ("ebb",))
        self.assertEqual(run.picks(run.arguments(["--only", "alone"])), ())
        self.assertIn(TWO, run.picks(run.arguments([])))

    def test_an_unknown_mode_is_refused(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            run.arguments(["--only", "mig"])
        self.assertIn("there is no mode 'mig'", said.getvalue())


if __name__ == "__main__":
    unittest.main()
