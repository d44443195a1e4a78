"""The tables, in Markdown, and whether the bars were met; made from the rows of a record and nothing else."""

from . import figures
from .campaign import ALONE, BLOCKS, OURS, RATES, SHARED, TWO
from .programs import TITLES, TRAININGS

SHARINGS = {
    ALONE: "alone", "time-slicing": "time-slicing", "mps": "MPS", "mps-priority": "MPS with priorities",
    "ebb": "**ebb isolated**", "ebb-shared": "**ebb shared**",
}  # fmt: skip

# Of each of ebb's domains: graph-BERT's service p50 and p99 at most so many times alone, by what trains beside it, and
# best-effort throughput at least this share of ideal.
BARS = {
    "ebb": {"domain": "isolated", "gpt2": (1.40, 1.45), "resnet50": (1.40, 1.45), "of_ideal": 0.90},
    "ebb-shared": {"domain": "shared", "gpt2": (1.25, 1.35), "resnet50": (1.10, 1.35), "of_ideal": 0.85},
}


def markdown(record, described=""):
    parts = [f"*{described}*"] if described else []
    parts += [bursts(record), serving(record), two(record), histograms(record), bars(record), remarks(record)]
    return "\n\n".join(part for part in parts if part) + "\n"


def lines(headings, rows):
    if not rows:
        return ""
    return "\n".join(
        ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
        + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    )


# Cells.


def us(value):
    return "–" if value is None else f"{value:,.0f}"


def ms(value):
    return "–" if value is None else f"{value / 1000:.2f}"


def share(value):
    return "–" if value is None else f"{value:.2f}"


def ratio(value, alone):
    return "–" if not value or not alone else f"{value / alone:.2f}"


def yes(value):
    return {True: "yes", False: "**NO**", None: "–"}[value]


# The microbenchmark.


def burst_facts(record, sharing, block, state):
    """What a row of the microbenchmark comes to, or None."""
    row = record.find("bursts", sharing=sharing, block=block, state=state)
    alone = record.find("bursts", sharing=ALONE)
    by_itself = record.find("bursts-alone", block=block, state=state)
    if not row or not alone or not by_itself:
        return None
    usual = figures.quantile(alone["latency_us"], 0.5)
    busy = figures.busy_share(len(row["latency_us"]), alone["gpu_us"], row["to"] - row["from"])
    return {
        "latency": figures.summary(row["latency_us"]),
        "extra_us": [latency - usual for latency in row["latency_us"]],
        "of_alone": row["rate"] / by_itself["rate"] if by_itself["rate"] else None,
        "of_ideal": figures.of_ideal(row["rate"], by_itself["rate"], busy),
        "exact": row["exact"],
    }


def bursts(record):
    alone = record.find("bursts", sharing=ALONE)
    if not alone:
        return ""
    base = figures.summary(alone["latency_us"])
    rows = [("alone", "–", base["n"], us(base["p50"]), us(base["p99"]), "–", "–", "–", "–")]
    for sharing in SHARED:
        for block, state in BLOCKS:
            facts = burst_facts(record, sharing, block, state)
            if facts:
                extra, latency = facts["extra_us"], facts["latency"]
                rows.append((
                    SHARINGS[sharing], f"{block:,} µs, {state}", latency["n"], us(latency["p50"]), us(latency["p99"]),
                    f"{us(figures.quantile(extra, 0.5))} / {us(figures.quantile(extra, 0.99))}",
                    share(facts["of_alone"]), share(facts["of_ideal"]), yes(facts["exact"]),
                ))  # fmt: skip
    headings = (
        "sharing", "best-effort blocks", "bursts", "burst p50, µs", "p99, µs", "over alone, p50 / p99, µs",
        "best-effort of alone", "of ideal", "every block once",
    )  # fmt: skip
    about = (
        f"A row ends after {base['n']} bursts, or when its time is up; a burst keeps the GPU busy for "
        f"{us(alone['gpu_us'])} µs."
    )
    return f"### Bursts\n\n{about}\n\n" + lines(headings, rows)


# Serving beside training.


def busy_alone(record, phase):
    """The share of a phase in which the latency tenant keeps the GPU busy when it is alone: by the GPU's time for a
    request, and by the whole of each request, in which nobody else can use the GPU without a switch there and back."""
    alone = record.find("serving", sharing=ALONE, phase=phase)
    if not alone:
        return None, None
    seconds = alone["to"] - alone["from"]
    by_gpu = figures.busy_share(len(alone["service_us"]), alone["gpu_us"], seconds)
    return by_gpu, min(1.0, sum(alone["service_us"]) / 1e6 / seconds)


def training_facts(record, sharing, beside, phases=tuple(RATES)):
    """Throughput over the named phases, as shares: of alone, of ideal, and of what whole requests leave."""
    done = ideal = leaves = possible = 0.0
    for phase in phases:
        row = record.find("serving", sharing=sharing, phase=phase, beside=beside)
        if not row:
            return None
        seconds = row["to"] - row["from"]
        by_gpu, by_requests = busy_alone(record, phase) if phase in RATES else (0.0, 0.0)
        if by_gpu is None:
            return None
        for name, rate in row["rates"].items():
            alone = record.find("training-alone", name=name)
            if not alone or not alone["rate"]:
                return None
            # Of several trainings each counts as a share of itself alone; together they could have one GPU.
            done += rate / alone["rate"] * seconds
        possible += seconds
        ideal += (1.0 - by_gpu) * seconds
        leaves += (1.0 - by_requests) * seconds
    divided = lambda whole: done / whole if whole > 0 else None  # noqa: E731
    return {"of_alone": divided(possible), "of_ideal": divided(ideal), "of_left": divided(leaves)}


def phase_facts(record, sharing, phase, **keys):
    row = record.find("serving", sharing=sharing, phase=phase, **keys)
    if not row:
        return None
    due = len(row["service_us"]) + row["unserved"]
    unserved = row["unserved"] / due if due else 0.0
    service, arrival = figures.summary(row["service_us"]), figures.summary(row["arrival_us"])
    return {"service": service, "arrival": arrival, "unserved": unserved, "wrong": row["wrong"], "due": due}


def served(*phases):
    """Of the requests that were due in each phase."""
    return " / ".join(f"{facts['service']['n']:,} of {facts['due']:,}" if facts else "–" for facts in phases)


def phase_cells(facts, alone):
    if not facts or not facts["service"]["n"]:
        return ("–", "–", "–")
    service, base = facts["service"], alone["service"] if alone else {}
    times = f"{ratio(service['p50'], base.get('p50'))} / {ratio(service['p99'], base.get('p99'))}"
    # A server that left more than a hundredth of its requests has no latency from arrival worth a number.
    arrival = "overload" if facts["unserved"] > 0.01 else ms(facts["arrival"]["p99"])
    return (f"{ms(service['p50'])} / {ms(service['p99'])}", times, arrival)


def serving(record):
    alone = {phase: phase_facts(record, ALONE, phase) for phase in RATES}
    if not any(alone.values()):
        return ""
    by_itself = [cell for phase in RATES for cell in phase_cells(alone[phase], None)]
    rows = [("alone", "–", *by_itself, served(*alone.values()), "–", "–", "–", "–")]
    for sharing in SHARED:
        for name in TRAININGS:
            facts = {phase: phase_facts(record, sharing, phase, beside=name) for phase in RATES}
            if not any(facts.values()):
                continue
            found = [record.find("serving", sharing=sharing, phase=phase, beside=name) for phase in RATES]
            rates = " / ".join(f"{row['rates'][name]:.2f}" if row else "–" for row in found)
            by_phase = [training_facts(record, sharing, name, (phase,)) for phase in RATES]
            both = training_facts(record, sharing, name)
            shown = [share(f["of_ideal"]) if f else "–" for f in (*by_phase, both)]
            left = share(both["of_left"]) if both else "–"
            same = record.find("results", sharing=sharing, name=name)
            rows.append((
                SHARINGS[sharing], TITLES[name], *phase_cells(facts["graph"], alone["graph"]),
                *phase_cells(facts["eager"], alone["eager"]), served(*facts.values()), rates, " / ".join(shown), left,
                results(same),
            ))  # fmt: skip
    trainings = [record.find("training-alone", name=name) for name in TRAININGS]
    trained = ", ".join(f"{TITLES[row['name']]} {row['rate']:.2f} iterations/s" for row in trainings if row)
    shares = {phase: busy_alone(record, phase) for phase in RATES}
    busy = "; ".join(f"{phase} {share(g)} ({share(r)})" for phase, (g, r) in shares.items())
    headings = (
        "sharing", "beside", "graph: service p50 / p99, ms", "times alone", "arrival p99, ms",
        "eager: service p50 / p99, ms", "times alone", "arrival p99, ms", "served, graph / eager",
        "iterations/s graph / eager", "of ideal: graph / eager / both", "of what requests leave", "same results",
    )  # fmt: skip
    about = (
        f"Alone: {trained or '–'}. Share of the time in which the latency tenant alone keeps the GPU busy, by the "
        f"GPU's time of its requests (by the requests' whole time): {busy}."
    )
    return f"### Serving beside training\n\n{about}\n\n" + lines(headings, rows)


def results(row):
    if not row:
        return "–"
    words = {True: f"yes ({row['compared']})", False: f"**NO** (from {row['compared']})", None: "–"}
    return words[row["same"]]


def two(record):
    beside, rows = " and ".join(TRAININGS), []
    for phase in ("nobody", *RATES):
        facts = training_facts(record, TWO, beside, (phase,))
        if not facts:
            continue
        latency = phase_facts(record, TWO, phase, beside=beside) if phase in RATES else None
        cells = phase_cells(latency, phase_facts(record, ALONE, phase) if phase in RATES else None)
        rates = record.find("serving", sharing=TWO, phase=phase, beside=beside)["rates"]
        each = " + ".join(f"{rates[name]:.2f}" for name in TRAININGS)
        rows.append((phase, each, share(facts["of_alone"]), share(facts["of_ideal"]), *cells, served(latency)))
    if not rows:
        return ""
    same = "; ".join(f"{TITLES[name]}: {results(record.find('results', sharing=TWO, name=name))}" for name in TRAININGS)
    headings = (
        "latency tenant", "iterations/s, " + " + ".join(TITLES[name] for name in TRAININGS), "sum of shares of alone",
        "of ideal", "service p50 / p99, ms", "times alone", "arrival p99, ms", "served",
    )  # fmt: skip
    return f"### Two trainings under ebb\n\nSame results as alone: {same}.\n\n" + lines(headings, rows)


# The stop latency of the switch rung.


def histograms(record):
    parts = []
    for block, state in BLOCKS:
        facts = burst_facts(record, "ebb", block, state)
        if facts:
            parts.append(histogram(f"bursts, blocks of {block:,} µs, {state} state", facts["extra_us"]))
    alone = record.find("serving", sharing=ALONE, phase="graph")
    for name in TRAININGS:
        row = record.find("serving", sharing="ebb", phase="graph", beside=name)
        if row and alone:
            usual = figures.quantile(alone["service_us"], 0.5)
            extra = [latency - usual for latency in row["service_us"]]
            parts.append(histogram(f"graph-BERT beside {TITLES[name]}", extra))
    if not parts:
        return ""
    return "### Stop latency of the switch rung: what it takes longer than the median alone\n\n" + "\n\n".join(parts)


def histogram(title, extra):
    p50, p99 = figures.quantile(extra, 0.5), figures.quantile(extra, 0.99)
    buckets = figures.coarse(figures.folded(figures.histogram(extra)))
    most = max(count for _, _, count in buckets)
    drawn, end = [], buckets[0][0]
    for low, high, count in buckets:
        drawn += ["    ..."] if low != end else []
        drawn.append(f"{low:>7,.0f} .. {high:>7,.0f}  {count:>5}  {'#' * round(40 * count / most)}".rstrip())
        end = high
    return f"{title}: p50 {us(p50)} µs, p99 {us(p99)} µs\n\n```\n" + "\n".join(drawn) + "\n```"


# The bars of the issue that this benchmark is for.


def judged(record):
    """(what, measured, bar, whether it is met) for everything that was measured."""
    for sharing in BARS:
        for name in TRAININGS:
            yield from judged_beside(record, sharing, name)
    pair = training_facts(record, TWO, " and ".join(TRAININGS), ("nobody",))
    if pair:
        yield "two trainings together, of one alone", pair["of_alone"], "at least 0.95", pair["of_alone"] >= 0.95
    ours = [row for row in record.rows if row["row"] == "results" and row["sharing"] in OURS]
    if ours:
        equal = sum(row["same"] is True for row in ours)
        yield "runs under ebb with the results of a run alone", equal, f"all {len(ours)}", equal == len(ours)


def judged_beside(record, sharing, name):
    alone, facts = phase_facts(record, ALONE, "graph"), phase_facts(record, sharing, "graph", beside=name)
    bars, domain = BARS[sharing], BARS[sharing]["domain"]
    if facts and alone and facts["service"]["n"]:
        for q, bar in zip(("p50", "p99"), bars[name]):
            what, times = f"graph-BERT service {q} beside {TITLES[name]}", facts["service"][q] / alone["service"][q]
            yield f"{domain}: {what}, times alone", times, f"at most {bar:.2f}", times <= bar
    shares = training_facts(record, sharing, name)
    if shares and shares["of_ideal"] is not None:
        reached, bar = shares["of_ideal"], bars["of_ideal"]
        yield f"{domain}: {TITLES[name]} of ideal, both phases", reached, f"at least {bar:.2f}", reached >= bar


def bars(record):
    return bars_of(judged(record))


def bars_of(judgements):
    rows = [
        (what, f"{value:.2f}" if isinstance(value, float) else value, bar, "met" if met else "**missed**")
        for what, value, bar, met in judgements
    ]
    return "### Bars\n\n" + lines(("what", "measured", "bar", ""), rows) if rows else ""


def remarks(record):
    said = [row["text"] for row in record.rows if row["row"] == "remark"]
    wrong = sum(row.get("wrong", 0) for row in record.rows if row["row"] == "serving")
    if wrong:
        said.append(f"{wrong} answers of the latency tenant were not those it gives alone")
    return "\n".join(f"* {text}" for text in said)
