"""Who has the GPU to himself. `python3 -m unittest`; no GPU."""

import tempfile
import threading
import unittest

from turns import Turns


class Lock(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # Each opens the file for itself, as processes do.
        self.one, self.other = Turns(folder.name), Turns(folder.name)
        self.addCleanup(self.one._file.close)
        self.addCleanup(self.other._file.close)

    def test_builders_build_together(self):
        with self.one.together(), self.other.together():
            pass

    def test_nobody_is_alone_while_another_builds_or_measures(self):
        for busy in (self.one.together, self.one.alone):
            with busy(), self.other.alone(patience_s=0.02) as mine:
                self.assertFalse(mine)

    def test_whoever_waits_gets_his_turn(self):
        had = []

        def measure():
            with self.other.alone() as mine:
                had.append(mine)

        waiting = threading.Thread(target=measure)
        with self.one.together():
            waiting.start()
        waiting.join()
        self.assertEqual(had, [True])


if __name__ == "__main__":
    unittest.main()
