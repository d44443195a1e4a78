#!/usr/bin/env python3
"""The compatibility matrix: CUDA programs of every kind, without ebb and through `ebb run`, side by side.

Each row is one program. It is run once through ebb with a profiler that counts its kernels (several rows at once, since
nothing is timed then), and after that alternately on both sides, one process at a time. Its results must be the same
bits, it must start at most 5% later, a launch must cost at most 0.1 µs more, and ebb's report must count every kernel
that the profiler counts. The script needs nothing but Python's library; what a row needs beyond that and does not find
is said in the table.

Exit status: 0 if no row failed, 1 if one did, 2 for wrong arguments, 125 if nothing could be measured.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import shutil
import sys
import tempfile
from pathlib import Path

from matrix import machine, table, tools
from matrix.rows import ROWS
from matrix.running import Runner
from matrix.verdict import Verdict, judge

# Counted runs side by side: as many as leave each of them a processor or two on a small server.
AT_ONCE = 6


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ebb", default="ebb", help="the ebb program [default: ebb on the PATH]")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the frameworks")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="timed runs of each side [default: 3]")
    parser.add_argument("--quick", action="store_true", help="one timed run of each side")
    parser.add_argument("--only", action="append", metavar="ROW", help="only this row; may be repeated")
    parser.add_argument("--baseline", action="store_true", help="without ebb: are the programs deterministic here?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/compatibility.md has it")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what every run said in this new folder")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    options = parser.parse_args()
    names = [row.name for row in ROWS]
    for name in options.only or []:
        if name not in names:
            parser.error(f"there is no row {name!r}; the rows are {', '.join(names)}")
    if options.runs < 1:
        parser.error("--runs wants a number from 1")
    if options.quick:
        options.runs = 1
    return options


def order(options, row):
    """Which timed runs are through ebb. The sides take turns at being first, so that drift favours neither."""
    if options.baseline:
        return [False, False]
    pairs = options.runs * (4 if row.short else 1)
    return [through for index in range(pairs) for through in ((False, True), (True, False))[index % 2]]


def installed(python, modules):
    program = "import importlib.util as u, sys; print([m for m in sys.argv[1:] if u.find_spec(m) is None])"
    missing = tools.ask([python, "-c", program, *modules])
    if missing is None:
        raise tools.Missing(f"{python} does not run")
    if missing != "[]":
        raise tools.Missing(f"{python} has no module {missing.strip('[]')}")


def once(row, runner, through, counted):
    run = runner.run(row, through, counted)
    side = ("ebb" if through else "without") + (", counted" if counted else "")
    print(f"{row.name:>15} {side:<17} {run.seconds:6.2f} s  {run.failure}", file=sys.stderr, flush=True)
    return run


def counted_run(row, runner, options):
    """The run with the profiler, or why the row cannot be run here. It also fills the caches for the timed ones."""
    try:
        installed(options.python, row.modules)
        return once(row, runner, through=not options.baseline, counted=True)
    except tools.Missing as missing:
        return str(missing)


def measure(rows, runner, options, described):
    with concurrent.futures.ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        firsts = list(pool.map(lambda row: counted_run(row, runner, options), rows))
    verdicts, measured = [], {}
    for row, first in zip(rows, firsts):
        if isinstance(first, str):
            measured[row.name] = []
            verdicts.append(Verdict(row.name, row.title, skipped=first))
        else:
            measured[row.name] = [first] + [
                once(row, runner, through, counted=False) for through in order(options, row)
            ]
            verdicts.append(judge(row, measured[row.name]))
        print(
            "  ".join(table.cells(verdicts[-1])), *table.remarks(verdicts[-1:]), sep="\n", file=sys.stderr, flush=True
        )
        if options.json:
            # After every row: a machine that is taken away leaves what it has measured.
            save(options.json, described, options, verdicts, measured)
    return verdicts, measured


def print_baseline(verdicts, measured):
    for verdict in verdicts:
        runs = measured[verdict.row]
        counts = [run.profiled.total if run.profiled else run.line.get("kernels") for run in runs[:1]]
        starts = " ".join(f"{run.start_up:.2f}" for run in runs)
        costs = [run.line for run in runs if "launch_ns" in run.line]
        cost = " ".join(f"{line['launch_ns']:.0f}/{line.get('framework_launch_ns', 0):.0f}" for line in costs)
        word = "skipped" if verdict.skipped else "ok" if verdict.passed else "FAIL"
        print(f"{verdict.row:>15} {word:<8} start-up {starts} s, launch {cost} ns, kernels {counts}")
    for note in table.remarks(verdicts):
        print(note)


def prepared(options, work):
    (work / "caches").mkdir()
    ebb = None
    if not options.baseline:
        ebb = shutil.which(options.ebb)
        if ebb is None:
            raise tools.Missing(f"the program {options.ebb} was not found; name it with --ebb")
        ebb = str(Path(ebb).resolve())
    site_packages = tools.ask([options.python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])
    profiler = tools.build_profiler(work, site_packages)
    return Runner(work, options.python, ebb, profiler, tools.build_launch(work))


def save(path, described, options, verdicts, measured):
    everything = {
        "machine": described,
        "runs": options.runs,
        "rows": [
            dataclasses.asdict(verdict)
            | {"passed": verdict.passed, "runs": [dataclasses.asdict(run) for run in measured[verdict.row]]}
            for verdict in verdicts
        ],
    }
    path.write_text(json.dumps(plain(everything), indent=1, default=str) + "\n")


def plain(value):
    """The same with keys that JSON knows."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def main():
    options = arguments()
    if options.list:
        print("\n".join(f"{row.name:<15} {row.title}" for row in ROWS))
        return 0
    if options.keep:
        options.keep.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="compatibility-") as temporary:
        work = (options.keep or Path(temporary)).resolve()
        try:
            runner = prepared(options, work)
        except tools.Missing as missing:
            print(f"run.py: {missing}", file=sys.stderr)
            return 125
        rows = [row for row in ROWS if not options.only or row.name in options.only]
        described = machine.describe(options.python, runner.ebb)
        verdicts, measured = measure(rows, runner, options, described)
    if options.baseline:
        print_baseline(verdicts, measured)
    elif options.markdown:
        print(table.markdown(verdicts, described, f"{options.runs} timed runs of each side."))
    else:
        print("\n".join([table.about(described), "", table.text(verdicts), "", *table.remarks(verdicts)]))
    return 1 if any(verdict.failures for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
