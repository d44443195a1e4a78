"""The table, for a terminal or for the documentation."""

HEADINGS = (
    "program", "same results", "start-up", "launch, and what ebb adds", "launch by the framework",
    "counted: ebb / profiler", "verdict",
)  # fmt: skip


def cells(verdict):
    if verdict.skipped:
        return (verdict.title, "", "", "", "", "", "skipped")
    same = {True: "yes", False: "NO", None: "–"}[verdict.same]
    start_up = "–"
    if verdict.start_up:
        without, through = verdict.start_up
        start_up = f"{without:.2f} → {through:.2f} s ({through / without - 1:+.1%})"
    counted = f"{verdict.counted} / {verdict.profiled}" if verdict.counted is not None else "–"
    verdict_word = "pass" if verdict.passed else "FAIL"
    launch, framework = "–", "–"
    if verdict.launch:
        launch = f"{verdict.launch.driver / 1000:.2f} µs {verdict.launch.added:+.0f} ns"
    if verdict.framework:
        costs = verdict.framework
        framework = f"{costs.without / 1000:.2f} → {costs.through / 1000:.2f} µs (±{costs.spread / 1000:.2f})"
    return (verdict.title, same, start_up, launch, framework, counted, verdict_word)


def text(verdicts):
    rows = [HEADINGS, *map(cells, verdicts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def markdown(verdicts, machine, settings):
    lines = [f"*{about(machine)}. {settings}*", ""]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(cells(verdict)) + " |" for verdict in verdicts]
    notes = remarks(verdicts)
    return "\n".join(lines + ([""] + [f"* {note}" for note in notes] if notes else []))


def remarks(verdicts):
    """Whatever the cells have no room for: why a row failed or was skipped, and what is odd about it."""
    said = {}
    for verdict in verdicts:
        for sentence in [verdict.skipped] * bool(verdict.skipped) + verdict.failures + verdict.remarks:
            rows = said.setdefault(sentence, [])
            if verdict.row not in rows:
                rows.append(verdict.row)
    return [f"{', '.join(rows)}: {sentence}" for sentence, rows in said.items()]


def about(machine):
    return ", ".join(f"{name} {value}" for name, value in machine.items() if value)
