"""Part `phases`: BERT serving beside training, end to end, in the shared domain and in the other ways to share.

It is the benchmark of the isolated domain (`../isolated`), with its rows, tables and bars.
"""

from sharing import table
from sharing.campaign import Campaign

BUDGET = 200.0
PICKS = ("ebb-shared", "mps-priority")
PHASE_SECONDS = 5.0


def measure(bench):
    Campaign(
        bench.programs, bench.record, bench.folder, bench.ebb, PICKS, ("serving",),
        bench.lengths(phase=PHASE_SECONDS), bench.seconds, say=bench.say,
    ).run()  # fmt: skip


def markdown(record):
    return table.serving(record)


def judged(record):
    return table.judged(record)
