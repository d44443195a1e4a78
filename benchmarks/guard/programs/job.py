"""A job, done over and over: one of the lab's by its description in JSON, or a group of operations by its name.

    job.py WORKLOAD --steps N [--rounds N] [--seconds S]    N steps from the first state, again and again: at least once,
                                                            at most so many rounds, none begun after so many seconds.
                                                            Answers with the digests of every round
                                                            With --progress every step that has ended is a line on
                                                            standard error, with the seconds since the first began
    job.py WORKLOAD                                         is told what to do by lines:
        pace SECONDS                                        a closed loop; answers how many iterations and how long

With --tiny models are small and run without a GPU.
"""

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# The workers first: both folders have a `training`.
sys.path += [str(ROOT / "crates" / "lab" / "workers"), str(ROOT / "benchmarks" / "isolated" / "programs")]

import loops
from common import obey, say


def build(workload, tiny):
    if not workload.startswith("{"):
        import operations

        return operations.build(workload, tiny)
    import workloads

    described = json.loads(workload)
    spec = {"class": "best-effort", "workload": described, "stream": "normal", "tiny": tiny}
    return workloads.build(spec | {"crowd": [spec]})


def one_round(job, steps, ended):
    """A digest of every step, and of a training one of all its weights in the end."""
    job.prepare()
    if not job.queues_ahead:
        return [served(job, number, ended) for number in range(steps)]
    queued = []
    for number in range(steps):
        queued.append(job.hand_over(number))
        if len(queued) > 1:
            job.wait(queued.pop(0))
            ended(number - 1)
    for last in queued:
        job.wait(last)
    fingerprint = getattr(job, "fingerprint", None)
    return job.digests(steps) + ([fingerprint()] if fingerprint else [])


def served(job, number, ended):
    job.request(number)
    ended(number)
    return job.digest(number)


def rounds(job, options):
    begin, done = time.monotonic(), []

    def ended(number):
        if options.progress:
            print(f"step {number} of round {len(done)}: {time.monotonic() - begin:.2f} s", file=sys.stderr, flush=True)

    while not done or (len(done) < options.rounds and time.monotonic() < begin + options.seconds):
        done.append(one_round(job, options.steps, ended))
    say(digests=done, seconds=round(time.monotonic() - begin, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    job = build(options.workload, options.tiny)
    if options.steps:
        rounds(job, options)
        return

    def pace(seconds):
        count, lasted = loops.calibrate(job, True, float(seconds), loops.Clock())
        say(iterations=count, seconds=lasted)

    say(ready=True, load_s=round(time.monotonic() - began, 1))
    obey({"pace": pace})


if __name__ == "__main__":
    main()
