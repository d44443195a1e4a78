"""Stands in for the programs where there is no GPU: the same words in, made-up figures out."""

import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "isolated" / "programs"))

from common import obey, say


def pace(_seconds):
    time.sleep(0.01)
    say(iterations=100, seconds=1.0)


def main():
    _, workload, *words = sys.argv
    if "--steps" in words:
        steps = int(words[words.index("--steps") + 1])
        many = int(words[words.index("--rounds") + 1]) if "--rounds" in words else 1
        say(digests=[[f"{workload}-{step}" for step in range(steps)]] * many, seconds=0.1)
        return
    say(ready=True)
    obey({"pace": pace, "time": lambda _name, _calls: say(us=100.0)})


if __name__ == "__main__":
    main()
