#!/usr/bin/env python3
"""What the floor of a switch is made of, and what moves it: slices, preemption, disabling, early wake, taking turns.

Two processes pull the driver's levers on their own channel groups, by a preload library, without ebb. Nothing of the
card is set. Exit status: 0 if anything was measured, 2 for wrong arguments, 125 if nothing was.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from sharing import floor_table, machine
from sharing.campaign import Drawn, Record
from sharing.floor import SECTIONS, Floor
from sharing.programs import Programs


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=SECTIONS, help="this section; may be repeated")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="begin no section after it")
    parser.add_argument("--pace", type=float, default=1.0, help="this share of all bursts and waits [default: 1]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every row as a line of JSON, as it comes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too, after every row")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what was compiled and said on standard error")
    parser.add_argument("--table", type=Path, metavar="FILE", help="measure nothing, print the tables of an --out")
    parser.add_argument("--fake", action="store_true", help="a made-up program that needs no GPU, to try the script")
    return parser.parse_args(words)


def measure(options, folder, described):
    record = Drawn(options.out, (), options.markdown, lambda so_far: floor_table.markdown(so_far, described))
    record.add("machine", described=described)
    Floor(
        Programs(folder, fake=options.fake), record, folder, options.only or SECTIONS, options.limit, options.pace,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    ).run()  # fmt: skip
    return record


def main():
    options = arguments()
    if options.table:
        record = Record(rows=Record.read(options.table))
        said = record.find("machine")
        print(floor_table.markdown(record, said["described"] if said else ""), end="")
        return 0
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="floor-") as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        described = machine.describe()
        record = measure(options, folder, described)
    print(floor_table.markdown(record, described), end="")
    return 0 if any(row["row"] not in ("machine", "ready", "remark") for row in record.rows) else 125


if __name__ == "__main__":
    sys.exit(main())
