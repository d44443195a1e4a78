"""The programs that are measured: jobs of the lab, operations of libraries, and those of the compatibility matrix."""

import json
import sys

from sharing import programs

from . import COMPATIBILITY, HERE

FAKE_EBB = HERE / "programs" / "fake_ebb.py"


class Programs(programs.Programs):
    def job(self, workload, *words):
        """A job of the lab's workers by its description, or a group of operations by its name."""
        if isinstance(workload, dict):
            workload = json.dumps(workload)
        return self._here("fake.py" if self._fake else "job.py", workload, *words)

    def micro(self):
        return self._here("fake.py" if self._fake else "micro.py", "micro")

    def compatibility(self, name):
        """One of the matrix, which ends when it has computed its results."""
        if self._fake:
            return self.job(name, "--steps", 1)
        return [self._python, str(COMPATIBILITY / "programs" / name)]

    def _here(self, name, *words):
        return [self._python, str(HERE / "programs" / name), *(str(word) for word in words)]


def stand_in(folder):
    """A program in the place of ebb, for a try without a GPU."""
    place = folder / "ebb"
    place.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE_EBB}" "$@"\n')
    place.chmod(0o755)
    return str(place)
