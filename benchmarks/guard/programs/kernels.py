"""How long every kernel of a job takes on the GPU, and how much of the time lies between kernels.

    kernels.py WORKLOAD --steps N --out FILE    N steps to warm up and N under the profiler; WORKLOAD as for job.py
    kernels.py --compare ONE OTHER              of two such files: where the time of the second went

Run without ebb and under EBB_GUARD=now, the two say whether guarding costs inside kernels or between them, and which ones.
"""

import argparse
import collections
import json
from pathlib import Path

MOST = 25


def profiled(workload, steps):
    from torch.profiler import ProfilerActivity, profile

    from job import build, one_round

    job = build(workload, tiny=False)
    one_round(job, steps)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        one_round(job, steps)
    spans = [
        (event.name, event.time_range.start, event.time_range.end)
        for event in profiler.events()
        if event.device_type.name == "CUDA"
    ]
    return summary(spans, steps)


def summary(spans, steps):
    """Microseconds of each step: all of it, with a kernel on the GPU, and by kernel (launches and time)."""
    spans = sorted(spans, key=lambda span: span[1])
    kernels = collections.defaultdict(lambda: [0, 0.0])
    busy, reached = 0.0, 0.0
    for name, begin, end in spans:
        kernels[name][0] += 1
        kernels[name][1] += end - begin
        busy += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    whole = reached - spans[0][1] if spans else 0.0
    by_name = {name: [count / steps, round(time / steps, 2)] for name, (count, time) in kernels.items()}
    return {"whole_us": round(whole / steps, 1), "busy_us": round(busy / steps, 1), "kernels": by_name}


def compared(one, other):
    between = {key: file["whole_us"] - file["busy_us"] for key, file in (("one", one), ("other", other))}
    launches = sum(count for count, _ in other["kernels"].values()) or 1
    yield f"{'':60} {'one':>12} {'other':>12} {'more, per launch':>18}"
    for label, before, after in [
        ("a step, us", one["whole_us"], other["whole_us"]),
        ("in kernels", one["busy_us"], other["busy_us"]),
        ("between kernels", between["one"], between["other"]),
    ]:
        yield f"{label:60} {before:12.1f} {after:12.1f} {(after - before) / launches:18.2f}"
    more = []
    for name, (count, time) in other["kernels"].items():
        before = one["kernels"].get(name, [0, 0.0])[1]
        more.append((time - before, name, before, time, count))
    for difference, name, before, time, count in sorted(more, reverse=True)[:MOST]:
        yield f"{name[:60]:60} {before:12.1f} {time:12.1f} {difference / count:18.2f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", nargs="?")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path)
    options = parser.parse_args()
    if options.compare:
        print("\n".join(compared(*(json.loads(path.read_text()) for path in options.compare))))
        return
    if not options.workload or not options.out:
        parser.error("a workload and --out FILE, or --compare")
    options.out.write_text(json.dumps(profiled(options.workload, options.steps)))


if __name__ == "__main__":
    main()
