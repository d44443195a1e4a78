"""The floor's arithmetic and tables, and all its sections with a made-up program. `python3 -m unittest`; no GPU."""

import contextlib
import ctypes
import io
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import floor
from sharing import floor_table
from sharing.campaign import Record
from sharing.floor import SECTIONS, Floor, rate, refusal, switches
from sharing.programs import HERE, Programs


class Arithmetic(unittest.TestCase):
    def test_a_burst_is_put_beside_the_time_in_which_the_other_stood_still(self):
        ran = [1_000_000, 1_200_000, 9_000_000, 9_200_000]
        gaps = [100_000, 120_000, 850_000, 1_360_000]
        self.assertEqual(switches(ran, gaps), ([150.0], [160.0], [1]))

    def test_one_who_came_in_between_counts_as_two_pieces(self):
        ran, gaps = [1_000, 9_000], [500, 2_000, 3_000, 9_900]
        self.assertEqual(switches(ran, gaps), ([0.5], [0.9], [2]))
        self.assertEqual(switches([], gaps), ([], [], []))

    def test_a_rate_is_by_the_grids_ends_or_by_the_counts(self):
        before, after = {"ended": 10, "last": 1e6, "at": 1.5e6}, {"ended": 20, "last": 2e6, "at": 2.75e6}
        self.assertEqual(rate(before, after), 8.0)
        self.assertEqual(rate(before, after, "last"), 10.0)
        self.assertEqual(rate(before, before, "last"), 0.0)

    def test_a_refusal_is_in_words(self):
        self.assertIn("privilege", refusal(0x1B))
        self.assertIn("0x22", refusal(0x22))


class Tables(unittest.TestCase):
    def test_what_best_effort_loses_is_per_burst(self):
        row = {"rate": 90.0, "alone": 100.0, "seconds": 1.0, "latency_us": [400.0] * 200}
        self.assertAlmostEqual(floor_table.lost_us(row), 500.0)

    def test_what_is_over_alone_is_of_the_medians(self):
        found = {"kind": "small", "block": 1000, "slice": 1, "rate": 90.0, "alone": 100.0, "seconds": 1.0}
        rows = [
            {"row": "alone", "latency_us": [240.0, 250.0, 900.0], "gpu_us": 216.0},
            {"row": "extra", "latency_us": [430.0] * 200} | found,
        ]
        text = floor_table.extra(Record(rows=rows))
        self.assertIn("| 16 blocks of 128 threads an SM | 1,000 | 1 | 430 / 430 | 180 | 500 | 284 |", text)

    def test_what_was_done_before_the_first_kernel_is_in_words(self):
        self.assertEqual(floor_table.prepared("none"), "nothing")
        self.assertEqual(floor_table.prepared("host:200"), "200 µs of the host")
        self.assertEqual(floor_table.prepared("pinned:4194304"), "copy from pinned memory, 4 MiB")
        self.assertEqual(floor_table.prepared("memset:4"), "memset, 4 B")

    def test_a_lever_that_was_refused_says_why(self):
        record = Record(rows=[{"row": "skipped", "lever": "interleave", "status": 0x1B, "why": refusal(0x1B)}])
        self.assertIn("skipped: it needs a privilege", floor_table.tried(record))

    def test_a_block_too_many_is_loud(self):
        rows = [{"row": "exact", "blocks": 10, "expected": 10}, {"row": "exact", "blocks": 11, "expected": 10}]
        self.assertIn("**In 1 of 2 loads", floor_table.exact(Record(rows=rows)))
        self.assertIn("all 1 loads", floor_table.exact(Record(rows=rows[:1])))

    def test_an_empty_record_makes_an_empty_table(self):
        self.assertEqual(floor_table.markdown(Record()).strip(), "")


class AllSections(unittest.TestCase):
    def measure(self, programs=Programs, **more):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        record = Record(Path(folder.name, "rows"))
        made = programs(folder.name, fake=True)
        Floor(made, record, Path(folder.name), pace=0.02, say=lambda _: None, **more).run()
        self.assertEqual(Record.read(Path(folder.name, "rows")), record.rows)
        return record

    def test_every_table_is_there(self):
        record = self.measure()
        self.assertIsNone(record.find("remark"))
        text = floor_table.markdown(record, "a machine")
        titles = ("A switch", "What a burst", "What was tried", "Early wake", "What goes", "Holding", "Two", "How long")
        for title in titles:
            self.assertIn(f"### {title}", text)
        self.assertIn("| one warp an SM | 150 / 150 | 160 / 160 |", text)
        self.assertIn("Every block", text)

    def test_one_section_alone(self):
        record = self.measure(only=("calls",))
        self.assertEqual({row["row"] for row in record.rows} - {"ready", "exact"}, {"calls"})

    def test_a_lost_process_costs_its_section_and_no_other(self):
        class Forgetful(Programs):
            begun = 0

            def floor(self, words):
                self.begun += 1
                ready = "print('{\"groups\": 1}', flush=True); input()"
                return [sys.executable, "-c", ready] if self.begun == 1 else super().floor(words)

        record = self.measure(Forgetful, only=("wake", "calls"))
        self.assertIn("wake: latency ended with status 0", floor_table.markdown(record))
        self.assertIsNotNone(record.find("calls", name="disable", beside="stream"))

    def test_nothing_is_measured_where_no_group_is_seen(self):
        class Blind(Programs):
            def floor(self, words):
                return [sys.executable, "-c", "print('{\"groups\": 0}', flush=True); input()"]

        record = self.measure(Blind)
        self.assertEqual([row["row"] for row in record.rows], ["ready", "remark"])

    def test_nothing_new_is_begun_when_the_time_is_up(self):
        self.assertEqual({row["row"] for row in self.measure(limit=1e-9).rows}, {"remark"})


# Stands in for the kernel: makes and frees what it is asked to, and keeps the control calls.
KERNEL = """
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
struct call { uint32_t client, object, command, fd; unsigned char parameters[536]; } calls[16];
int calls_made;
uint32_t refuse;
long fake_syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    int fd = va_arg(arguments, int);
    unsigned long request = va_arg(arguments, unsigned long);
    uint32_t *word = va_arg(arguments, uint32_t *);
    va_end(arguments);
    if ((request & 0xffff) != 0x462a) return 0;
    struct call *call = &calls[calls_made++];
    *call = (struct call){word[0], word[1], word[2], fd, {0}};
    memcpy(call->parameters, *(void **)(word + 4), word[6]);
    word[7] = refuse;
    return 0;
}
"""


class Call(ctypes.Structure):
    names = ("client", "object", "command", "fd")
    _fields_ = [(name, ctypes.c_uint32) for name in names] + [("parameters", ctypes.c_ubyte * 536)]


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Levers(unittest.TestCase):
    CLIENT, SUBDEVICE, GROUP, COPIES, FD = 0xC1D0, 0x5C00, 0x6000, 0x7000, 33

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        kernel, library = Path(folder.name, "kernel.c"), Path(folder.name, "levers.so")
        kernel.write_text(KERNEL)
        flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-Dsyscall=fake_syscall"]
        subprocess.run(["cc", *flags, "-o", library, HERE / "levers.c", kernel], check=True, timeout=60)
        self.library = ctypes.CDLL(str(library))
        self.library.levers_pull.restype = ctypes.c_long

    def pull(self, lever, value=0):
        word = ctypes.c_uint64(value)
        return self.library.levers_pull(lever.encode(), ctypes.byref(word)), word.value

    def make(self, parent, handle, object_class, engine=0, status=0):
        parameters = struct.pack("<4I", 0, 0, 0, engine)
        place = ctypes.create_string_buffer(parameters, len(parameters))
        address = ctypes.addressof(place) if engine else 0
        head = struct.pack("<4IQ", self.CLIENT, parent, handle, object_class, address)
        self.ioctl(0xC030462B, head + struct.pack("<Q4I", 0, 0, 0, status, 0))

    def ioctl(self, request, argument):
        place = ctypes.create_string_buffer(argument, len(argument))
        self.library.ioctl(self.FD, ctypes.c_ulong(request), place)

    def context(self):
        self.make(0xD0, self.SUBDEVICE, 0x2080)
        for group, engine in ((self.GROUP, 1), (self.COPIES, 11)):
            self.make(0xD0, group, 0xA06C, engine)
            for channel in (1, 2):
                self.make(group, group + channel, 0xC86F)

    def calls(self):
        made = ctypes.c_int.in_dll(self.library, "calls_made").value
        return list((Call * 16).in_dll(self.library, "calls"))[:made]

    def test_it_pulls_nothing_where_there_is_nothing(self):
        self.make(0xD0, self.GROUP, 0xA06C, 1, status=0x1A)
        for lever in ("set", "get", "preempt", "disable", "bar", "enable", "interleave", "mode"):
            self.assertEqual(self.pull(lever, 1)[0], -2, lever)
        self.assertEqual(self.pull("channels"), (0, 0))
        self.assertEqual(self.pull("clocks")[0], -3)
        self.assertEqual(self.calls(), [])

    def test_a_slice_is_set_for_the_group_of_kernels_only(self):
        self.context()
        self.assertEqual((self.pull("groups"), self.pull("channels")), ((0, 1), (0, 2)))
        self.assertEqual(self.pull("set", 1)[0], 0)
        (call,) = self.calls()
        self.assertEqual((call.client, call.object, call.fd), (self.CLIENT, self.GROUP, self.FD))
        self.assertEqual((call.command, bytes(call.parameters[:8])), (0xA06C0103, struct.pack("<Q", 1)))

    def test_the_channels_of_kernels_are_disabled_by_the_subdevice(self):
        self.context()
        self.assertEqual(self.pull("disable")[0], 0)
        (call,) = self.calls()
        self.assertEqual((call.object, call.command), (self.SUBDEVICE, 0x2080110B))
        words = struct.unpack("<134I", bytes(call.parameters))
        self.assertEqual((words[:3], words[6:9]), ((1, 2, 0), (self.CLIENT, self.CLIENT, 0)))
        self.assertEqual(words[70:73], (self.GROUP + 1, self.GROUP + 2, 0))

    def test_barred_channels_are_disabled_and_let_run(self):
        self.context()
        self.assertEqual(self.pull("bar")[0], 0)
        (call,) = self.calls()
        self.assertEqual(struct.unpack("<134I", bytes(call.parameters))[:3], (1, 2, 1))

    def test_what_was_freed_is_left_alone(self):
        self.context()
        self.ioctl(0xC0104629, struct.pack("<4I", self.CLIENT, 0xD0, self.GROUP, 0))
        self.assertEqual((self.pull("groups"), self.pull("channels")), ((0, 0), (0, 0)))
        self.assertEqual(self.pull("preempt")[0], -2)

    def test_a_refusal_is_the_drivers_status(self):
        self.context()
        ctypes.c_uint32.in_dll(self.library, "refuse").value = 0x1B
        self.assertEqual(self.pull("interleave", 2)[0], 0x1B)


class Arguments(unittest.TestCase):
    def test_sections_are_named(self):
        self.assertEqual(floor.arguments(["--only", "two", "--only", "calls"]).only, ["two", "calls"])
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            floor.arguments(["--only", "clocks"])
        self.assertIn(SECTIONS[0], said.getvalue())


if __name__ == "__main__":
    unittest.main()
