"""The arithmetic of run.py."""

import unittest

import run
import servers


class Figures(unittest.TestCase):
    def test_iterations_at_the_edges_count_by_the_part_inside(self):
        answer = {"stamps": [0.0, 1.0, 2.0, 3.0]}
        self.assertAlmostEqual(run.rate(answer, 0.5, 2.5), 1.0)
        self.assertAlmostEqual(run.rate(answer, 4.0, 5.0), 0.0)

    def test_the_longest_pause_may_be_at_an_edge(self):
        self.assertAlmostEqual(run.longest_pause({"stamps": [1.0, 1.5]}, 0.0, 4.0), 2.5)
        self.assertAlmostEqual(run.longest_pause({"stamps": []}, 0.0, 4.0), 4.0)

    def test_quantiles(self):
        self.assertEqual(run.quantile([3, 1, 2], 0.5), 2)
        self.assertNotEqual(run.quantile([], 0.5), run.quantile([], 0.5))

    def test_arrivals_have_their_rate_and_repeat(self):
        due = servers.arrivals(500, 10, 7)
        self.assertEqual(due, servers.arrivals(500, 10, 7))
        self.assertEqual(due, sorted(due))
        self.assertTrue(4_500 < len(due) < 5_500 and due[-1] < 10e6)


if __name__ == "__main__":
    unittest.main()
