"""What `ebb run --report=json:FILE` counted, summed over all processes of the command."""

import collections
import json
from dataclasses import dataclass, field

OWN_LAUNCHES = ("plain", "extended", "cooperative")
NAME_BYTES = 320
"""Longer names of kernels are cut in the ledger, so names are compared up to here."""


@dataclass
class Counts:
    processes: int
    own: int
    """Kernels launched by themselves, whichever way."""
    in_graphs: int
    """Kernels that ran as nodes of launched graphs."""
    captured: int
    """Launches that became nodes of a graph instead of running."""
    kernels: collections.Counter = field(default_factory=collections.Counter)
    """By name; what the ledger could not list is missing here and present in the sums."""
    sentences: list = field(default_factory=list)
    """What ebb says in words: whether it could not see something, and why."""
    round_ebb: int = 0
    """Processes that reached the driver without ebb."""

    @property
    def total(self):
        return self.own + self.in_graphs


def read(path):
    with open(path) as file:
        return summed(json.load(file))


def summed(report):
    counts = Counts(0, 0, 0, 0, sentences=report["sentences"], round_ebb=len(report["round_ebb"]))
    for process in report["processes"]:
        counters = flat(process["counters"])
        counts.processes += 1
        for name, value in counters.items():
            if name.startswith("launches.") and name.split(".")[1] in OWN_LAUNCHES:
                counts.own += value
        counts.in_graphs += counters.get("kernels.in_graphs", 0)
        counts.captured += counters.get("kernels.captured", 0)
        for kernel in process["kernels"]:
            counts.kernels[cut(kernel["name"])] += kernel["launches"] + kernel["in_graphs"]
    return counts


def flat(counters, prefix=""):
    """`{"launches": {"plain": 3}}` and `{"launches.plain": 3}` say the same."""
    result = {}
    for name, value in counters.items():
        if isinstance(value, dict):
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[prefix + name] = value
    return result


def cut(name):
    return name.encode()[:NAME_BYTES].decode(errors="ignore")
