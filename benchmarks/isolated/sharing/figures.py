"""The arithmetic: quantiles, throughput in a window, the ideal share, and whether results are the same.

Nothing here knows a GPU or a process; times are in seconds on the clock that all processes share, latencies in
microseconds.
"""

import math


def quantile(values, q):
    """The smallest of the values that at least a share q of them do not exceed; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def summary(values):
    if not values:
        return {"n": 0}
    return {
        "n": len(values), "p50": quantile(values, 0.5), "p99": quantile(values, 0.99),
        "p99.9": quantile(values, 0.999), "max": max(values),
    }  # fmt: skip


def iterations_between(stamps, begin, end):
    """How many iterations, with fractions at both ends, were done in a window.

    `stamps` are the moment of the start and then the moment at which each iteration had ended. What an iteration did
    is spread evenly over its time, so that a window of a few seconds measures iterations of a tenth of one.
    """
    done = 0.0
    for before, after in zip(stamps, stamps[1:]):
        inside = min(after, end) - max(before, begin)
        if inside > 0 and after > before:
            done += inside / (after - before)
    return done


def rate_between(stamps, begin, end):
    return iterations_between(stamps, begin, end) / (end - begin) if end > begin else 0.0


def busy_share(requests, each_us, seconds):
    """The share of a window that requests of so many microseconds each fill."""
    return min(1.0, requests * each_us / 1e6 / seconds) if seconds > 0 else 0.0


def of_ideal(rate, alone, busy):
    """Best-effort throughput over what would be ideal: all that the latency tenant leaves when it runs alone."""
    ideal = alone * (1.0 - busy)
    return rate / ideal if ideal > 0 else None


def same_results(reference, measured):
    """Compares the digests of a run with those of a run alone, which did at least as much.

    True or False, with how many iterations were compared. None if there is nothing to compare, or if the reference is
    shorter and equal as far as it goes.
    """
    common = min(len(reference), len(measured))
    if common == 0:
        return None, 0
    for index in range(common):
        if reference[index] != measured[index]:
            return False, index
    return (True if common == len(measured) else None), common


def histogram(values, width=25.0):
    """Counts by buckets of equal width: [(from, to, count)], without the empty ones at both ends."""
    if not values:
        return []
    lowest = math.floor(min(values) / width)
    highest = math.floor(max(values) / width)
    counts = [0] * (highest - lowest + 1)
    for value in values:
        counts[math.floor(value / width) - lowest] += 1
    return [((lowest + i) * width, (lowest + i + 1) * width, count) for i, count in enumerate(counts)]


def folded(buckets):
    """The same histogram without the empty buckets that lie next to an empty one; the gap shows in the bounds."""
    empty = [count == 0 for *_, count in buckets]
    beside = [any(empty[max(0, i - 1) : i] + empty[i + 1 : i + 2]) for i in range(len(buckets))]
    return [bucket for bucket, none, near in zip(buckets, empty, beside) if not (none and near)]


def coarse(buckets, most=24):
    """The same histogram with a tail in one bucket, where there are too many to print."""
    if len(buckets) <= most:
        return buckets
    head, tail = buckets[: most - 1], buckets[most - 1 :]
    return [*head, (tail[0][0], tail[-1][1], sum(count for _, _, count in tail))]
