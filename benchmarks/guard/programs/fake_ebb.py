"""Stands in for ebb where there is no GPU: runs the command as it is, and reports kernels that nobody launched."""

import json
import os
import subprocess
import sys
import time

KERNELS = [
    {"name": "plain", "verdict": "guard", "launches": 900, "guarded": 890, "cut": 40, "gpu_ns": 90_000},
    {"name": "scan", "verdict": "ordered", "launches": 90, "guarded": 90, "gpu_ns": 9_000},
    {"name": "whole", "verdict": "refuse", "reason": "cooperative", "launches": 10, "in_graphs": 5, "gpu_ns": None},
]
SUMS = {"stops": 50, "mid_grid": 40, "whole": 12, "relaunched": 52, "watchdog": 0}


def run(words):
    at = words.index("--")
    reports = [word.partition("json:")[2] for word in words[:at] if word.startswith("--report=json:")]
    if not reports:
        os.execvp(words[at + 1], words[at + 1 :])
    status = subprocess.run(words[at + 1 :], check=False).returncode
    with open(reports[0], "w") as file:
        process = {"pid": 1, "kernels": KERNELS, "counters": {"guard": SUMS}}
        json.dump({"processes": [process], "sentences": []}, file)
    return status


def main():
    word, *words = sys.argv[1:]
    if word == "run":
        return run(words)
    if word == "daemon":
        time.sleep(600)
    if word == "status":
        print(json.dumps({"gpus": []}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
