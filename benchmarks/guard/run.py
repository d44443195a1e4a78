#!/usr/bin/env python3
"""The guard on a GPU: what it covers, whether results stay the same, what it costs, how fast it stops, end to end.

Six parts, each with a time of its own; a program that is lost costs its row and no other. Nothing of the card is set;
what is started is ended.

Exit status: 0 if what was measured met its bars, 1 if not, 2 for wrong arguments, 125 if nothing could be measured.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from guarding import cost, coverage, equality, phases, sampling, stops
from guarding.bench import Bench
from guarding.programs import Programs, stand_in

# isort: split
# Found only now, by way of `guarding`.
from sharing import machine, table
from sharing.campaign import Drawn, Record

PARTS = {
    "coverage": coverage, "equality": equality, "cost": cost, "sampling": sampling, "stops": stops, "phases": phases,
}  # fmt: skip
FAKE_BUDGET = 60.0


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ebb", default="ebb", metavar="PATH", help="the ebb program [default: ebb on the PATH]")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch and the other frameworks")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; may be repeated")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="for each part, in the place of its own")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every row as a line of JSON, as it comes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too, after every row")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what programs said, compiled and reported")
    parser.add_argument("--table", type=Path, action="append", metavar="FILE", help="only print the tables of an --out")
    parser.add_argument("--fake", action="store_true", help="made-up programs that need no GPU, to try the script")
    return parser.parse_args(words)


def markdown(record, described=""):
    parts = [f"*{described}*"] if described else []
    parts += [part.markdown(record) for part in PARTS.values()]
    parts += [table.bars_of(judged(record)), table.remarks(record)]
    return "\n\n".join(part for part in parts if part) + "\n"


def judged(record):
    for part in PARTS.values():
        yield from part.judged(record)


def measure(options, folder, described):
    record = Drawn(options.out, (), options.markdown, lambda so_far: markdown(so_far, described))
    record.add("machine", described=described)
    for name in options.part or PARTS:
        part = PARTS[name]
        bench = Bench(
            folder, record, Programs(folder, options.python, options.fake), options.ebb,
            options.budget or (FAKE_BUDGET if options.fake else part.BUDGET), say, options.fake,
        )  # fmt: skip
        part.measure(bench)
    return record


def say(text):
    print(text, file=sys.stderr, flush=True)


def earlier(paths):
    record = Record(rows=[row for path in paths for row in Record.read(path)])
    said = record.find("machine")
    return markdown(record, said["described"] if said else "")


def main(words=None):
    options = arguments(words)
    if options.table:
        print(earlier(options.table), end="")
        return 0
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="guard-") as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        found = stand_in(folder) if options.fake else shutil.which(options.ebb)
        if found is None:
            say(f"the program {options.ebb} was not found; name it with --ebb")
            return 125
        options.ebb = str(Path(found).resolve())
        described = machine.describe(options.python, None if options.fake else options.ebb)
        record = measure(options, folder, described)
    print(markdown(record, described), end="")
    if not any(row["row"] not in ("machine", "remark", "ready") for row in record.rows):
        return 125
    return 0 if all(met for *_, met in judged(record)) else 1


if __name__ == "__main__":
    sys.exit(main())
