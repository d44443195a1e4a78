"""Latency tenants whose requests come by chance: the BERT of `../isolated`, and servers of the lab."""

import json
import os
import random
import time

LATENCY = ("--class", "latency")


class BertServer:
    def __init__(self, machine, kind, rate):
        self.name, self.rate, self._kind = f"bert-{kind}-{rate}", rate, kind
        self._tenant = machine.start("anna", "bert", LATENCY, self.name)

    def await_ready(self, seconds):
        self._tenant.await_ready(seconds)

    def serve(self, seconds, seed):
        """How long requests took, in microseconds, without the time that they waited in line."""
        answer = self._tenant.ask("phase", self._kind, self.rate, seconds, seed, seconds=seconds + 60)
        return answer["service_us"]


class LabServer:
    """A worker of the lab with one model, spoken to as the lab does."""

    def __init__(self, machine, name, rate):
        self.name, self.rate = name, rate
        model, _, form = name.rpartition("-")
        workload = {"model": model, "task": "inference", "form": form, "batch": 1, "tokens": 128}
        tenant = {"name": name, "class": "latency", "workload": workload, "stream": "high"}
        # Workers leave files beside what they are told.
        folder = machine.folder_of("anna", name)
        spec = folder / "spec.json"
        spec.write_text(json.dumps({"tenants": [tenant], "slowdown": 1.0}))
        os.chmod(spec, 0o644)
        self._tenant = machine.launch("anna", [machine.folder / "workers/worker.py", spec], LATENCY, name)

    def await_ready(self, seconds):
        self._answer(self._tenant.answer(seconds), "ready")

    def serve(self, seconds, seed):
        due_us = arrivals(self.rate, seconds, seed)
        order = {"do": "run", "tenant": 0, "begin_ns": time.monotonic_ns() + 20_000_000, "due_us": due_us,
                 "until_us": int(seconds * 1e6), "drain_us": 0}  # fmt: skip
        ran = self._answer(self._tenant.ask(json.dumps(order), seconds=seconds + 60), "ran")
        return [end - start for start, end in zip(ran["start_us"], ran["end_us"])]

    def _answer(self, answer, word):
        if answer.get("say") != word:
            raise ValueError(f"{self.name} said {answer}")
        return answer


def arrivals(rate, seconds, seed):
    """When requests are due, in whole microseconds: Poisson, the same for the same seed."""
    chance, due, found = random.Random(seed), 0.0, []
    while True:
        due += chance.expovariate(rate)
        if due >= seconds:
            return found
        found.append(int(due * 1e6))
