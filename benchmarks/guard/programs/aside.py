"""What requests pay, and a training gets, when it goes on beside them on some of the SMs instead of being stopped.

    aside.py --ebb PATH [--pair NAME]... [--seconds S] [--out FILE]    all pairs, or those named; a line of JSON for each figure
    aside.py serve WORKLOAD                                            one latency tenant, told what to do by lines:
        serve SECONDS       requests one after the other, with a pause as long as each took; answers how long they took

A pair is a latency tenant and a training of the lab, both under one daemon of ebb in the shared domain with the policy `slo`. Between
rows the dial `confine` is turned in the daemon's configuration, with `beside` at nought, so that the controller has no say in what is compared:
0 stops the training while a request is under way, 25 lets it go on, on a quarter of the SMs, and so on.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path += [str(ROOT / "crates" / "lab" / "workers"), str(ROOT / "benchmarks" / "isolated" / "programs")]

from common import obey, say

BERT = {"model": "bert", "task": "inference", "form": "graph", "batch": 1, "tokens": 128}
GPT = {"model": "gpt2-large", "task": "inference", "form": "graph", "batch": 1, "tokens": 128}
LLAMA = {"model": "llama", "task": "inference", "form": "graph", "batch": 1, "prompt": 512, "output": 32}
GPT_TRAINING = {"model": "gpt2-large", "task": "training", "form": "eager", "batch": 1, "tokens": 1024}
RESNET_TRAINING = {"model": "resnet50", "task": "training", "form": "eager", "batch": 128}
PAIRS = {
    "llama beside gpt2-large": (LLAMA, GPT_TRAINING),
    "gpt2-large beside resnet50": (GPT, RESNET_TRAINING),
    "bert beside gpt2-large": (BERT, GPT_TRAINING),
}
SHARES = (0, 25, 50, 75)
"""In hundredths of the SMs."""
SETTLE = 0.5


def serve(workload):
    import workloads

    spec = {"class": "latency", "workload": json.loads(workload), "stream": "normal", "tiny": False}
    job = workloads.build(spec | {"crowd": [spec]})

    def requests(seconds):
        took, until = [], time.monotonic() + float(seconds)
        while time.monotonic() < until:
            begin = time.monotonic()
            job.request(len(took))
            took.append(time.monotonic() - begin)
            time.sleep(took[-1])
        took.sort()
        right = job.is_right(len(took) - 1)
        p50, p99 = (round(took[min(int(len(took) * q), len(took) - 1)] * 1e6, 1) for q in (0.5, 0.99))
        say(requests=len(took), p50_us=p50, p99_us=p99, right=bool(right))

    job.prepare()
    say(ready=True)
    obey({"serve": requests})


class Tenant:
    def __init__(self, bench, words, *command):
        place = open(bench.folder / "tenants.log", "ab")
        self._process = subprocess.Popen(
            [bench.ebb, "run", *words, "--", sys.executable, *map(str, command)], env=bench.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=place, text=True,
        )  # fmt: skip

    def tell(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a tenant has ended; see tenants.log")
        return json.loads(line)

    def end(self):
        self._process.kill()
        self._process.wait()


class Bench:
    """A daemon of its own, whose dial is turned."""

    def __init__(self, ebb, folder):
        import os

        self.ebb, self.folder = ebb, Path(folder)
        self.environment = dict(os.environ) | {"EBB_RUNTIME_DIR": str(folder)}
        self.turn(0)
        words = [ebb, "daemon", "--domain", "shared", "--config", str(self.folder / "ebb.toml")]
        self._daemon = subprocess.Popen(words, env=self.environment, stderr=open(self.folder / "daemon.log", "wb"))
        while self.status() is None:
            if self._daemon.poll() is not None:
                raise RuntimeError((self.folder / "daemon.log").read_text())
            time.sleep(0.05)

    def turn(self, share):
        text = f'schema_version = 1\n[policy]\nkind = "slo"\nbeside = "0us"\nconfine = {share}\n'
        new = self.folder / "new.toml"
        new.write_text(text)
        new.rename(self.folder / "ebb.toml")

    def status(self):
        words = ["timeout", "5", self.ebb, "status", "-o", "json"]
        asked = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return json.loads(asked.stdout) if asked.returncode == 0 else None

    def confined(self):
        processes = [process for gpu in self.status()["gpus"] for process in gpu["processes"]]
        return sum(process["counters"]["confined"] for process in processes)

    def end(self):
        self._daemon.terminate()
        self._daemon.wait(timeout=10)


def measure(bench, name, seconds, note):
    latency, training = PAIRS[name]
    server = Tenant(bench, ["--class", "latency", "--name", "server", "--slo-p99", "10s"], __file__, "serve", json.dumps(latency))
    trainer = Tenant(bench, ["--name", "trainer"], HERE / "job.py", json.dumps(training))
    try:
        server.answer(), trainer.answer()
        server.tell(f"serve {seconds}")
        note(pair=name, row="alone", **server.answer())
        trainer.tell(f"pace {seconds}")
        note(pair=name, row="alone", **trainer.answer())
        for share in SHARES:
            bench.turn(share)
            before = bench.confined()
            trainer.tell(f"pace {seconds + 2 * SETTLE}")
            time.sleep(SETTLE)
            server.tell(f"serve {seconds}")
            served, trained = server.answer(), trainer.answer()
            note(pair=name, row="together", confine=share, confined=bench.confined() - before, **served | trained)
    finally:
        server.end(), trainer.end()


def main():
    if sys.argv[1:2] == ["serve"]:
        return serve(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ebb", required=True)
    parser.add_argument("--pair", action="append", choices=sorted(PAIRS))
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--out")
    options = parser.parse_args()
    rows = open(options.out, "a") if options.out else None

    def note(**row):
        say(**row)
        if rows:
            print(json.dumps(row), file=rows, flush=True)

    with tempfile.TemporaryDirectory(prefix="ebb-") as folder:
        bench = Bench(options.ebb, folder)
        try:
            for name in options.pair or PAIRS:
                measure(bench, name, options.seconds, note)
        finally:
            bench.end()


if __name__ == "__main__":
    main()
