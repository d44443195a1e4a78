#!/usr/bin/env python3
"""A latency tenant beside best-effort tenants on one GPU, shared in every way there is: latency, throughput, results.

Two benchmarks: bursts of short kernels beside grids that fill the GPU, and BERT serving beside training. Each tenant is
a process of its own. The ways: alone, time-slicing by the driver, MPS, MPS with priorities, and ebb's isolated and
shared domains. Nothing of the card is set; what is started is ended.

Exit status: 0 if what was measured met its bars, 1 if not, 2 for wrong arguments, 125 if nothing could be measured.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from sharing import machine, table
from sharing.campaign import ALONE, OURS, PARTS, PICKS, Campaign, Drawn, Lengths, Record
from sharing.programs import Programs


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ebb", default="ebb", metavar="PATH", help="the ebb program [default: ebb on the PATH]")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch and transformers")
    parser.add_argument("--only", action="append", metavar="MODE", help=f"of {', '.join(PICKS)}; may be repeated")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this benchmark")
    parser.add_argument("--seconds", type=float, default=7.0, help="length of a serving phase [default: 7]")
    parser.add_argument("--bursts", type=int, default=400, help="bursts in each row, if 6 s suffice [default: 400]")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="begin nothing new after this time")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every row as a line of JSON, as it comes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too, after every row")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what the tenants said on standard error")
    parser.add_argument("--alone", type=Path, metavar="FILE", help="take the rows alone from an earlier --out")
    parser.add_argument("--table", type=Path, metavar="FILE", help="measure nothing, print the tables of an --out")
    parser.add_argument("--fake", action="store_true", help="made-up tenants that need no GPU, to try the script")
    options = parser.parse_args(words)
    for pick in options.only or []:
        if pick not in (*PICKS, ALONE):
            parser.error(f"there is no mode {pick!r}; the modes are {', '.join((ALONE, *PICKS))}")
    return options


def picks(options):
    """Alone is always measured, because everything is compared with it."""
    return tuple(pick for pick in options.only if pick != ALONE) if options.only else PICKS


def measure(options, folder, described):
    earlier = Record.read(options.alone) if options.alone else []
    earlier = [row for row in earlier if row["row"].endswith("-alone") or row.get("sharing") == ALONE]
    record = Drawn(options.out, earlier, options.markdown, lambda so_far: table.markdown(so_far, described))
    record.add("machine", described=described)
    wanted = picks(options)
    if set(OURS) & set(wanted):
        found = shutil.which(options.ebb)
        if found is None and not options.fake:
            record.remark(f"the program {options.ebb} was not found; name it with --ebb")
            wanted = tuple(pick for pick in wanted if pick not in OURS)
        options.ebb = str(Path(found or options.ebb).resolve())
    campaign = Campaign(
        Programs(folder, options.python, options.fake), record, folder, options.ebb, wanted, options.part or PARTS,
        Lengths(phase=options.seconds, bursts=options.bursts), options.limit, have_alone=bool(earlier),
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip
    campaign.run()
    return record


def main():
    options = arguments()
    if options.table:
        record = Record(rows=Record.read(options.table))
        said = record.find("machine")
        print(table.markdown(record, said["described"] if said else ""), end="")
        return 0
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="isolated-") as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        described = machine.describe(options.python, None if options.fake else options.ebb, options.seconds)
        record = measure(options, folder, described)
    print(table.markdown(record, described), end="")
    if not any(row["row"] in ("bursts", "serving") for row in record.rows):
        return 125
    return 0 if all(met for *_, met in table.judged(record)) else 1


if __name__ == "__main__":
    sys.exit(main())
