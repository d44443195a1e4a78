"""What a trace becomes, and how many blocks an SM holds. `python3 -m unittest`; no GPU."""

import unittest

import recorder
import residency


def launch(at, correlation, name="cudaLaunchKernel", kind="cuda_runtime"):
    return {"cat": kind, "name": name, "ts": at, "dur": 2.0, "args": {"correlation": correlation}}


def kernel(at, length, correlation, grid=(132, 1, 1), block=(256, 1, 1)):
    told = {"correlation": correlation, "grid": grid, "block": block, "registers per thread": 32, "shared memory": 0}
    return {"cat": "kernel", "name": "k", "ts": at, "dur": length, "args": told}


def boundary(at):
    return launch(at, -1 - at, recorder.BOUNDARY) | {"dur": 1.0}


class Traces(unittest.TestCase):
    def test_the_repetition_in_the_middle_counts_from_its_own_beginning(self):
        events = []
        for repetition in range(3):
            begin = 1000.0 * repetition
            events += [boundary(begin), launch(begin + 5, repetition), kernel(begin + 9, 3.0 + repetition, repetition)]
            events.append(boundary(begin + 500))
        self.assertEqual(recorder.kernels_of(events, 132), [[4.0, 132, 256, 8, 4.0]])

    def test_a_kernel_longer_than_a_wave_has_shorter_blocks(self):
        events = [boundary(0), launch(2, 1), kernel(9, 40.0, 1, grid=(132, 8, 4)), boundary(90)]
        self.assertEqual(recorder.kernels_of(events, 132), [[1.0, 4224, 256, 8, 10.0]])

    def test_kernels_stand_in_the_order_in_which_they_were_handed_over(self):
        late, soon = launch(8, 2, "cuLaunchKernelEx", "cuda_driver"), launch(3, 1)
        events = [boundary(0), kernel(20, 1.0, 2), kernel(10, 2.0, 1), late, soon, boundary(90)]
        self.assertEqual([row[0] for row in recorder.kernels_of(events, 132)], [2.0, 7.0])

    def test_a_graph_is_handed_over_at_once_in_the_order_of_its_kernels(self):
        events = [boundary(0), launch(30, 7, "cudaGraphLaunch"), kernel(50, 2.0, 7), kernel(40, 1.0, 7), boundary(90)]
        self.assertEqual([(row[0], row[4]) for row in recorder.kernels_of(events, 132)], [(0.0, 1.0), (0.0, 2.0)])

    def test_a_graph_is_not_handed_over_before_what_stands_before_it(self):
        events = [boundary(0), launch(5, 1), kernel(8, 1.0, 1), launch(30, 7, "cudaGraphLaunch"), kernel(50, 2.0, 7)]
        self.assertEqual([row[0] for row in recorder.kernels_of([*events, boundary(90)], 132)], [4.0, 4.0])

    def test_an_empty_trace_has_no_kernels(self):
        self.assertEqual(recorder.kernels_of([boundary(0), launch(2, 1), boundary(9)], 132), [])

    def test_a_workload_is_named_as_the_scenarios_name_it(self):
        bert = {"model": "bert", "task": "inference", "form": "graph", "batch": 1, "tokens": 64}
        llama = {"model": "llama", "task": "inference", "form": "eager", "batch": 8, "prompt": 512, "output": 32}
        self.assertEqual(recorder.identity(bert), "bert-inference-graph-b1-t64")
        self.assertEqual(recorder.identity(llama), "llama-inference-eager-b8-p512-o32")
        self.assertEqual(recorder.identity({"model": "stencil"}), "stencil")


class Residency(unittest.TestCase):
    """Against what the driver's own occupancy call says for compute capability 9.0."""

    def test_threads_registers_shared_memory_and_blocks_limit(self):
        for wanted, case in [
            (32, (32, 16, 0)),  # the number of blocks
            (8, (256, 32, 0)),  # threads
            (1, (1024, 40, 0)),  # registers
            (1, (384, 168, 200 * 1024)),  # shared memory
            (2, (128, 32, 100 * 1024)),
            (5, (128, 90, 0)),
        ]:
            self.assertEqual(residency.per_sm(*case), wanted, case)

    def test_a_kernel_that_ran_had_room(self):
        self.assertEqual(residency.per_sm(1024, 255, 300 * 1024), 1)

    def test_waves_are_whole(self):
        self.assertEqual([residency.waves(blocks, 2, 132) for blocks in (1, 264, 265)], [1, 1, 2])


if __name__ == "__main__":
    unittest.main()
