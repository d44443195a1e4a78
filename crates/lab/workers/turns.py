"""Having the GPU to oneself among workers that are started together.

How long the GPU works for a request is measured when a worker has built what it serves, and then others still build:
a time that was shared with them is several times too long. So all who build hold a lock together, and who measures
holds it alone. It lies beside the specification, and a process that ends lets go of it.
"""

import contextlib
import fcntl
import os
import time

PATIENCE_S = 30.0
"""One who hangs while he builds must not keep all waiting for ever: then a time is measured that may be too long."""
POLL_S = 0.005


class Turns:
    def __init__(self, folder):
        self._file = open(os.path.join(folder, "turn.lock"), "a")

    @contextlib.contextmanager
    def together(self):
        fcntl.flock(self._file, fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def alone(self, patience_s=PATIENCE_S):
        """Yields whether nobody else builds or measures."""
        last, mine = time.monotonic() + patience_s, False
        while not mine and time.monotonic() < last:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine = True
            except BlockingIOError:
                time.sleep(POLL_S)
        try:
            yield mine
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
