#!/usr/bin/env python3
"""Two users on one GPU, each with the daemon that `ebb run` starts for them, and programs without ebb beside them.

Needs root, to be several users; every tenant is an ordinary user's. Nothing of the card is set; what is started is ended.
Exit status: 0 if what was measured met its bars, 1 if not, 125 if nothing could be measured.
"""

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKERS = HERE.parents[1] / "crates/lab/workers"
sys.path.insert(0, str(HERE.parent / "isolated"))
from servers import BertServer, LabServer  # noqa: E402
from sharing.tenants import Lost, Tenant  # noqa: E402

USERS = {"anna": 61001, "bert": 61002}
KINDS = ("products", "gpt2", "resnet50")
PARTS = ("pairs", "latency", "plain", "alone")
LOAD_S = 150.0
# Whose requests are seen alone, and how many come in a second.
SERVERS = (
    (BertServer, "graph", 600), (BertServer, "eager", 90), (BertServer, "graph", 60),
    (LabServer, "resnet50-graph", 300), (LabServer, "distilbert-eager", 100), (LabServer, "yolo-eager", 25),
)  # fmt: skip
# How often the cases of a latency tenant are gone through in turn.
ROUNDS = 3


class Machine:
    """Where programs lie that other users must be able to read, and how a tenant is started."""

    def __init__(self, ebb, python, keep):
        self.folder = Path(tempfile.mkdtemp(prefix="strangers-"))
        os.chmod(self.folder, 0o755)
        installed = Path(shutil.which(ebb) or ebb).resolve().parent
        shutil.copytree(installed, self.folder / "ebb", symlinks=True)
        for source in (HERE.parent / "isolated/programs", HERE / "programs"):
            shutil.copytree(source, self.folder / "programs", dirs_exist_ok=True)
        shutil.copytree(WORKERS, self.folder / "workers")
        for path in self.folder.rglob("*"):
            if not path.is_symlink():
                os.chmod(path, 0o755)
        self.ebb, self.python, self.keep = self.folder / "ebb/ebb", python, keep
        self.tenants = []

    def as_user(self, user, words):
        number = str(USERS[user])
        return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--", *map(str, words)]

    def environment(self, user):
        home = self.folder / f"home-{user}"
        home.mkdir(exist_ok=True)
        os.chown(home, USERS[user], USERS[user])
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("EBB_", "XDG_"))}
        return keep | {"HOME": str(home), "USER": user, "EBB_DAEMON_IDLE": "1", "TORCHINDUCTOR_CACHE_DIR": str(home)}

    def folder_of(self, user, name):
        folder = self.folder / f"{name}-of-{user}"
        folder.mkdir()
        os.chown(folder, USERS[user], USERS[user])
        return folder

    def start(self, user, kind, options=("--class", "best-effort"), name=None):
        """A tenant under ebb, or without it where there are no options."""
        name = name or f"{user}-{kind}"
        program = {"gpt2": ["training.py", "gpt2"], "resnet50": ["training.py", "resnet50"]}.get(kind, [f"{kind}.py"])
        return self.launch(user, [self.folder / "programs" / program[0], *program[1:]], options, name)

    def launch(self, user, program, options, name):
        words = [self.python, *program]
        if options is not None:
            words = [self.ebb, "run", *options, "--name", name, "--", *words]
        log = self.keep / f"{name}.err"
        tenant = Tenant(name, self.as_user(user, words), self.environment(user), log)
        self.tenants.append(tenant)
        return tenant

    def status(self, user):
        words = self.as_user(user, [self.ebb, "status", "-o", "json"])
        done = subprocess.run(words, env=self.environment(user), capture_output=True, text=True)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {"gpus": [], "sentences": [done.stderr.strip()]}

    def process(self, user, name):
        for gpu in self.status(user)["gpus"]:
            for process in gpu["processes"]:
                if process["name"] == name:
                    return process
        return None

    def end(self, *tenants):
        for tenant in tenants or tuple(self.tenants):
            tenant.close()
            self.tenants = [one for one in self.tenants if one is not tenant]

    def close(self):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Utilization:
    """What NVML says of each process: the share of its samples in which the process had a kernel on the GPU."""

    class Sample(ctypes.Structure):
        _fields_ = [("pid", ctypes.c_uint), ("stamp", ctypes.c_ulonglong)] + [
            (name, ctypes.c_uint) for name in ("sm", "memory", "encoder", "decoder")
        ]

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlInit_v2()
        self.device = ctypes.c_void_p()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))
        self.since = ctypes.c_ulonglong(int(time.time() * 1e6))

    def begin(self):
        self.since = ctypes.c_ulonglong(int(time.time() * 1e6))

    def shares(self):
        count = ctypes.c_uint(0)
        ask = self.library.nvmlDeviceGetProcessUtilization
        ask(self.device, None, ctypes.byref(count), self.since)
        samples = (self.Sample * max(count.value, 1))()
        status = ask(self.device, samples, ctypes.byref(count), self.since)
        if status:
            return {"error": status}
        found = {}
        for sample in samples[: count.value]:
            found.setdefault(sample.pid, []).append(sample.sm)
        return {pid: round(sum(values) / len(values) / 100, 3) for pid, values in found.items()}


def rate(answer, begin, end):
    """Iterations per second between two moments; the first and the last by the part that lies inside."""
    stamps, done = answer["stamps"], 0.0
    for before, after in zip(stamps, stamps[1:]):
        inside = min(after, end) - max(before, begin)
        if inside > 0:
            done += inside / (after - before)
    return done / (end - begin)


def longest_pause(answer, begin, end):
    stamps = [begin, *(stamp for stamp in answer["stamps"] if begin <= stamp <= end), end]
    return max(after - before for before, after in zip(stamps, stamps[1:]))


def together(tenants, seconds, settle=3.0, during=None):
    """All of them at work at once; the answer of each, and the counted time."""
    for tenant in tenants:
        tenant.ask("go")
    time.sleep(settle)
    begin = time.monotonic()
    found = during(begin, seconds) if during else time.sleep(seconds)
    end = time.monotonic()
    for tenant in tenants:
        tenant.tell("stop")
    return [tenant.answer(120) for tenant in tenants], begin, end, found


def quantile(values, part):
    return sorted(values)[int((len(values) - 1) * part)] if values else float("nan")


class Bench:
    def __init__(self, machine, seconds, out):
        self.machine, self.seconds, self.out = machine, seconds, out
        self.missed = []

    def row(self, part, **figures):
        line = {"part": part, **figures}
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()
        print("  ".join(f"{key} {value}" for key, value in line.items()), flush=True)

    def bar(self, what, held):
        if not held:
            self.missed.append(what)
            print(f"MISSED: {what}", flush=True)

    def pairs(self, kinds):
        """One best-effort tenant of each user, with nothing between them but the GPU."""
        for kind in kinds:
            pair = [self.machine.start(user, kind) for user in USERS]
            for tenant in pair:
                tenant.await_ready(LOAD_S)
            alone = []
            for tenant in pair:
                (answer,), begin, end, _ = together([tenant], self.seconds / 2)
                alone.append(rate(answer, begin, end))
            slices = lambda *_: (time.sleep(self.seconds), self.slices(kind))[1]
            answers, begin, end, seen = together(pair, self.seconds, during=slices)
            shares = [rate(answer, begin, end) / one for answer, one in zip(answers, alone)]
            pauses = [round(longest_pause(answer, begin, end), 2) for answer in answers]
            wrong = sum(answer.get("wrong", 0) for answer in answers)
            self.row("pairs", kind=kind, alone=[round(one, 2) for one in alone], shares=[round(one, 3) for one in shares],
                     together=round(sum(shares), 3), longest_pause_s=pauses, slices_ns=seen, wrong=wrong)  # fmt: skip
            self.bar(f"{kind}: together {sum(shares):.2f} of 0.9", sum(shares) >= 0.9)
            self.machine.end(*pair)

    def slices(self, kind):
        found = [self.machine.process(user, f"{user}-{kind}") for user in USERS]
        return [one and one["slice_ns"] for one in found]

    def latency(self, kinds):
        """A latency tenant of the first user beside one best-effort tenant, and beside one of each user."""
        server = self.machine.start("anna", "bert", ("--class", "latency"), "anna-server")
        pair = [self.machine.start(user, kind) for user, kind in zip(USERS, kinds)]
        for tenant in (server, *pair):
            tenant.await_ready(LOAD_S)
        cases = {"own": pair[:1], "other": pair[1:], "both": pair}
        # Requests that processors are slow with differ from one moment to the next, so the cases are measured in turn.
        order = ["alone", *(list(cases) * ROUNDS)]
        figures = {}
        for name in order:
            beside = cases.get(name, [])
            for tenant in beside:
                tenant.ask("go")
            time.sleep(2)
            for kind, requests in (("graph", 600), ("eager", 90)):
                answer = server.ask("phase", kind, requests, self.seconds, 5, seconds=self.seconds + 60)
                known = figures.setdefault((name, kind), {"service": [], "arrival": [], "wrong": 0, "unserved": 0})
                for key in ("service", "arrival"):
                    known[key] += answer[f"{key}_us"]
                for key in ("wrong", "unserved"):
                    known[key] += answer[key]
            for tenant in beside:
                tenant.ask("stop", seconds=120)
        percentiles = {}
        for (name, kind), known in figures.items():
            service, arrival = ([round(quantile(known[key], part)) for part in (0.5, 0.99)] for key in ("service", "arrival"))
            percentiles[name, kind] = service[1]
            self.row("latency", beside=name, kind=kind, wrong=known["wrong"], unserved=known["unserved"],
                     requests=len(known["service"]), service_us=service, arrival_us=arrival)  # fmt: skip
        for kind in ("graph", "eager"):
            ratio = percentiles["both", kind] / max(percentiles["own", kind], percentiles["other", kind])
            self.bar(f"latency {kind}: p99 beside both {ratio:.2f} of its figure beside one, bar 1.1", ratio <= 1.1)
        self.machine.end(server, *pair)

    def plain(self, kinds):
        """A best-effort tenant beside a program without ebb: what status, NVML and the tenant itself say."""
        for kind in kinds:
            tenant, other = self.machine.start("anna", "products"), self.machine.start("bert", kind, None, f"plain-{kind}")
            for one in (tenant, other):
                one.await_ready(LOAD_S)
            alone = []
            for one in (tenant, other):
                (answer,), begin, end, _ = together([one], self.seconds / 2)
                alone.append(rate(answer, begin, end))
            usage = Utilization()

            def watch(_, seconds):
                usage.begin()
                before = self.machine.process("anna", "anna-products")
                time.sleep(seconds)
                after, whole = self.machine.process("anna", "anna-products"), self.machine.status("anna")
                spent = after["counters"]["gpu_ns"] - before["counters"]["gpu_ns"]
                return {"status": round(spent / 1e9 / seconds, 3), "nvml": usage.shares(), "pid": after["pid"],
                        "share_permille": after["share_permille"], "decision": after["decision"],
                        "sentences": whole["sentences"], "slice_ns": after["slice_ns"]}  # fmt: skip

            answers, begin, end, seen = together([other, tenant], self.seconds, during=watch)
            own = rate(answers[1], begin, end) / alone[0]
            self.row("plain", beside=kind, other=round(rate(answers[0], begin, end) / alone[1], 3), own=round(own, 3), **seen)
            self.bar(f"plain {kind}: status says {seen['status']}, it had {own:.3f}", abs(seen["status"] - own) <= 0.1)
            self.machine.end(tenant, other)

    def alone(self, kinds):
        """What ebb believes a latency tenant's requests take alone, learned beside a training. What they really take is
        measured in the same process once the training has stopped: two processes differ by more than the bar."""
        training = self.machine.start("anna", kinds[-1])
        servers = [make(self.machine, name, rate) for make, name, rate in SERVERS]
        training.await_ready(LOAD_S)
        for server in servers:
            server.await_ready(LOAD_S)
        for server in servers:
            training.ask("go")
            time.sleep(1)
            beside = server.serve(10, 6)
            seat = self.machine.process("anna", server.name)
            if seat is None:
                raise Lost(f"{server.name} has no seat")
            known = seat["requests"]
            training.ask("stop", seconds=120)
            time.sleep(1)
            taken = server.serve(self.seconds, 5)
            truth = [quantile(taken, part) for part in (0.5, 0.99)]
            said = [known["alone"][key] for key in ("p50_ns", "p99_ns")]
            off = [ns and round(ns / 1e3 / value, 3) for ns, value in zip(said, truth)]
            self.row("alone", server=server.name, rate=server.rate, alone_us=[round(value) for value in truth], said_ns=said,
                     off=off, beside_us=[round(quantile(beside, part)) for part in (0.5, 0.99)], requests=known)  # fmt: skip
            for value, name in zip(off, ("p50", "p99")):
                what = f"alone {server.name} at {server.rate}/s, {name}: said {value} of what it is"
                self.bar(what, bool(value) and abs(value - 1) <= 0.1)
        self.machine.end()

def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ebb", default="ebb", metavar="PATH", help="the ebb program, with its libraries beside it")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch and transformers")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these best-effort tenants")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of a measurement [default: 8]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every row as a line of JSON, as it comes")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what the tenants said on standard error")
    return parser.parse_args()


def main():
    options = arguments()
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("only root can be several users, with setpriv", file=sys.stderr)
        return 125
    keep = options.keep or Path(tempfile.mkdtemp(prefix="strangers-said-"))
    keep.mkdir(parents=True, exist_ok=True)
    machine = Machine(options.ebb, options.python, keep)
    kinds = tuple(options.kind or KINDS)
    with open(options.out or os.devnull, "w") as out:
        bench = Bench(machine, options.seconds, out)
        try:
            for part in options.part or PARTS:
                try:
                    getattr(bench, part)(kinds)
                except (Lost, ValueError) as lost:
                    bench.bar(f"{part}: {lost}", False)
                    machine.end()
        finally:
            machine.close()
    print(f"{len(bench.missed)} bars missed", flush=True)
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
