"""The tables of the floor, in Markdown; made from the rows of a record and nothing else."""

from . import figures
from .floor import CALLED_UNDER, CALLS, COPIES, HELD, HOSTS, LOADS, PREPARES, SHORT_SLICE, SLICES, TRIED, USUAL, WATCHED
from .table import lines, remarks, share, us

KINDS = {
    "warp": "one warp an SM", "small": "16 blocks of 128 threads an SM",
    "large": "all registers and shared memory of an SM", "stream": "streaming copy",
    "watched-warp": "one warp an SM", "watched-large": "all registers and shared memory of an SM",
}  # fmt: skip
LEVERS = {
    None: "", "preempt": ", PREEMPT at the burst's start", "disable": ", DISABLE_CHANNELS at the burst's start",
    "bar": ", DISABLE_CHANNELS at the burst's start, what runs let run",
    "interleave": ", interleave level high for the latency side, low for the other",
    "mode": ", switched between blocks only (CTA mode)",
}  # fmt: skip


def markdown(record, described=""):
    parts = [f"*{described}*"] if described else []
    parts += [switch(record), extra(record), tried(record), wakes(record), copies(record), held(record), two(record)]
    parts += [calls(record), exact(record), remarks(record)]
    return "\n\n".join(part for part in parts if part) + "\n"


def spread(values):
    """Median and 99th percentile."""
    return f"{us(figures.quantile(values, 0.5))} / {us(figures.quantile(values, 0.99))}"


def titled(title, headings, rows, about=""):
    return "\n\n".join(part for part in (f"### {title}", about, lines(headings, rows)) if part) if rows else ""


def switch(record):
    rows = []
    for kind in WATCHED:
        row = record.find("switch", kind=kind)
        if row:
            once = sum(piece == 1 for piece in row["pieces"])
            rows.append((KINDS[kind], spread(row["there_us"]), spread(row["back_us"]), f"{once} of {row['bursts']}"))
    headings = (
        "best-effort state", "its last instruction to the burst's first, p50 / p99, µs",
        "the burst's last instruction to its next", "bursts that stopped it once",
    )  # fmt: skip
    return titled("A switch, by the GPU's clock on both sides", headings, rows)


def extra(record):
    alone = record.find("alone")
    if not alone:
        return ""
    base = figures.quantile(alone["latency_us"], 0.5)
    rows = []
    for kind, block in LOADS:
        for size in SLICES:
            row = record.find("extra", kind=kind, block=block, slice=size)
            if row:
                rows.append((
                    KINDS[kind], f"{block:,}", f"{size:,}", spread(row["latency_us"]),
                    us(figures.quantile(row["latency_us"], 0.5) - base), us(lost_us(row)),
                    us(lost_us(row) - alone["gpu_us"]),
                ))  # fmt: skip
    headings = (
        "best-effort", "blocks, µs", "slice, µs", "burst p50 / p99, µs", "over alone, p50",
        "best-effort loses per burst, µs", "beyond the burst's own",
    )  # fmt: skip
    about = f"Alone a burst takes {spread(alone['latency_us'])} µs, {us(alone['gpu_us'])} of it on the GPU."
    after = [record.find("follows", beside=beside) for beside in (None, USUAL[0])]
    if all(after):
        medians = [figures.quantile(row["latency_us"], 0.5) for row in after]
        about += (
            f" One that follows another at once takes {us(medians[0])} alone and {us(medians[1])} beside best-effort "
            f"at slice 1: {us(medians[1] - medians[0])} more."
        )
    return titled("What a burst pays, and what best-effort loses", headings, rows, about)


def lost_us(row):
    """Of best-effort's time, per burst."""
    bursts = len(row["latency_us"])
    return (1.0 - row["rate"] / row["alone"]) * row["seconds"] * 1e6 / bursts if row["alone"] and bursts else 0.0


def tried(record):
    rows = []
    wanted = [{"slice": size, "lever": lever} for size, lever in TRIED]
    wanted += [{"slice": size, "lever": "interleave"} for size in reversed(SLICES) if size in dict(TRIED)]
    wanted += [{"slice": SHORT_SLICE, "lever": "mode", "block": block} for block in (20, 1000)]
    for keys in wanted:
        row = record.find("tried", **keys)
        if row:
            what = f"slice {row['slice']:,} µs{LEVERS[row['lever']]}"
            what += f": blocks of {row['block']:,} µs" if "block" in row else ""
            rows.append((what, spread(row["latency_us"]), len(row["latency_us"])))
    for row in record.rows:
        if row["row"] == "skipped":
            rows.append((LEVERS[row["lever"]].removeprefix(", "), f"skipped: {row['why']}", "–"))
    return titled("What was tried", ("best-effort", "burst p50 / p99, µs", "bursts"), rows)


def prepared(word):
    kind, _, amount = word.partition(":")
    if kind == "none":
        return "nothing"
    if kind == "host":
        return f"{amount} µs of the host"
    names = {"pinned": "copy from pinned memory", "pageable": "copy from pageable memory", "back": "copy to the host"}
    return f"{names.get(kind, kind)}, {size_of(int(amount))}"


def size_of(count):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def wakes(record):
    rows = []
    for prepare in PREPARES:
        cells = []
        for beside in (None, USUAL[0]):
            found = [record.find("wake", beside=beside, prepare=prepare, wake=wake) for wake in ("none", "kernel")]
            cells.append(" → ".join(spread(row["latency_us"]) for row in found) if all(found) else "–")
        if cells != ["–", "–"]:
            rows.append((prepared(prepare), *cells))
    headings = ("between the first call and the first kernel", "alone, p50 / p99, µs", "beside best-effort at slice 1")
    about = "A burst without → with an empty kernel on another stream at its first call."
    return titled("Early wake", headings, rows, about)


def copies(record):
    rows = []
    for prepare in COPIES:
        found = [record.find("copy", beside=beside, prepare=prepare) for beside in (None, USUAL[0])]
        if all(found):
            alone, beside = (figures.quantile(row["latency_us"], 0.5) for row in found)
            # A switch is more than a hundred microseconds; what does not wait for one varies by a few tens.
            rows.append((prepared(prepare), us(alone), us(beside), "yes" if beside - alone > 100 else "no"))
    headings = ("what", "alone, p50, µs", "beside best-effort at slice 1", "waits for the switch")
    return titled("What goes through the compute group", headings, rows)


def held(record):
    rows = [(f"{size:,}", spread(row["latency_us"])) for size in HELD if (row := record.find("held", slice=size))]
    about = (
        "A kernel that runs until it is told starts at the burst's first call, "
        f"{HOSTS[-1].partition(':')[2]} µs before the first launch: the burst waits until the latency "
        "side's own slice is over."
    )
    return titled("Holding the GPU by a kernel", ("the latency side's slice, µs", "burst p50 / p99, µs"), rows, about)


def two(record):
    rows = []
    for row in record.rows:
        if row["row"] == "two":
            how = {
                "slices": f"slices {row['slice']:,} / {row['slice']:,} µs",
                "disable": f"turns by DISABLE and ENABLE, slice {row['slice']:,}",
                "drain": f"turns by draining, slice {row['slice']:,}",
            }[row["how"]]
            each = " + ".join(f"{rate:.0f}" for rate in row["rates"])
            rows.append((how, each, share(sum(row["rates"]) / row["alone"]) if row["alone"] else "–"))
    alone = record.find("two")
    about = f"Alone {alone['alone']:.0f} grids/s; turns of 30 ms." if alone else ""
    return titled("Two best-effort processes", ("how", "grids/s", "of alone"), rows, about)


def calls(record):
    titles = {
        "get": "GET_TIMESLICE", "set": "SET_TIMESLICE", "preempt": "PREEMPT, waiting", "disable": "DISABLE_CHANNELS",
        "bar": "DISABLE_CHANNELS, what runs let run",
    }  # fmt: skip
    loads = [load[0] if load else None for load in CALLED_UNDER]
    rows = []
    for name in CALLS:
        found = [record.find("calls", beside=beside, name=name) for beside in loads]
        if any(found):
            rows.append((titles[name], *(called(row, "us") for row in found)))
        if name in ("disable", "bar") and any(found):
            rows.append(("the same, to enable", *(called(row, "enable_us") for row in found)))
    headings = ("call", *(f"under {KINDS[beside]}" if beside else "idle: p50 / p99, µs" for beside in loads))
    return titled("How long the calls take", headings, rows)


def called(row, which):
    if not row:
        return "–"
    return spread(row[which]) + (f" (status {row['status']:#x})" if row["status"] else "")


def exact(record):
    loads = [row for row in record.rows if row["row"] == "exact"]
    wrong = sum(row["blocks"] != row["expected"] for row in loads)
    if not loads:
        return ""
    if wrong:
        return f"**In {wrong} of {len(loads)} loads not every block ran once.**"
    return f"Every block of all {len(loads)} loads ran once."
