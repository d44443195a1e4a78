"""What ebb says of the kernels of a run: their verdicts, how often they ran guarded, and how long the GPU worked.

It comes from `ebb run --report=json:FILE`. Here every kernel gets one of four *sides*: it is guarded by the plain rule
or by the ordered one, refused, or nobody has judged it.
"""

import json
from dataclasses import dataclass, field

PLAIN, ORDERED, REFUSED, UNJUDGED = SIDES = ("plain", "ordered", "refused", "unjudged")
WORDS = {"guard": PLAIN, "ordered": ORDERED, "refuse": REFUSED}
SUMS = ("stops", "mid_grid", "whole", "relaunched", "watchdog")


@dataclass
class Kernel:
    name: str
    side: str
    reason: str = ""
    """Why it was refused."""
    launches: int = 0
    """Guarded or not; those that are part of graphs are not among them."""
    guarded: int = 0
    in_graphs: int = 0
    cut: int = 0
    gpu_ns: float = 0.0
    """Of all its runs, those in graphs too, by the launches that were timed; 0 if none was."""


@dataclass
class Report:
    kernels: list = field(default_factory=list)
    sums: dict = field(default_factory=dict)
    """By name: how often something was done to launches; a name is missing where nobody counted."""
    sentences: list = field(default_factory=list)

    def all(self, what):
        return sum(getattr(kernel, what) for kernel in self.kernels)


def read(path):
    with open(path) as file:
        return reported(json.load(file))


def reported(report):
    kernels = [kernel_of(each) for process in report["processes"] for each in process["kernels"]]
    told = [process["counters"].get("guard", {}) for process in report["processes"]]
    sums = {name: sum(each.get(name, 0) for each in told) for name in SUMS if any(name in each for each in told)}
    return Report(kernels, sums, report.get("sentences", []))


def kernel_of(told):
    side = WORDS.get(told.get("verdict"), UNJUDGED)
    why = told.get("sentence") or told.get("reason") or ""
    counts = [told.get(name, 0) for name in ("launches", "guarded", "in_graphs", "cut")]
    return Kernel(told["name"], side, why, *counts, told.get("gpu_ns") or 0)


def shares(kernels, weight):
    """The share of each side, by a kernel's weight; None of nothing."""
    whole = sum(weight(kernel) for kernel in kernels)
    if not whole:
        return dict.fromkeys(SIDES)
    return {side: sum(weight(kernel) for kernel in kernels if kernel.side == side) / whole for side in SIDES}


def covered(kernels):
    """The share of GPU time that is under a verdict other than a refusal; None where no time is known."""
    by_time = shares(kernels, lambda kernel: kernel.gpu_ns)
    return None if by_time[PLAIN] is None else by_time[PLAIN] + by_time[ORDERED]


def ran_guarded(kernels):
    """Of the launches of kernels that may be guarded, the share that was."""
    allowed = [kernel for kernel in kernels if kernel.side in (PLAIN, ORDERED)]
    launches = sum(kernel.launches for kernel in allowed)
    return sum(kernel.guarded for kernel in allowed) / launches if launches else None
