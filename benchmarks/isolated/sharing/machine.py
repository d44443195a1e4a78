"""What the figures were measured on, in a line."""

import datetime
import json
import os
import platform
import subprocess

PACKAGES = ("torch", "torchvision", "transformers")


def ask(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def describe(python=None, ebb=None, seconds=None):
    gpu = ask(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).splitlines()
    card, _, driver = gpu[0].partition(", ") if gpu else ("no GPU", "", "")
    program = (
        "import importlib.metadata as m, json, sys; have = {d.metadata['Name']: d.version for d in m.distributions()}; "
        "print(json.dumps({name: have[name] for name in sys.argv[1:] if name in have}))"
    )
    versions = ask([python, "-c", program, *PACKAGES]) if python else ""
    facts = {
        "GPU": card, "driver": driver, "kernel": platform.release(), "CPUs": os.cpu_count(),
        **(json.loads(versions) if versions else {}),
        "ebb": ask([ebb, "version"]).removeprefix("ebb ") if ebb else "",
    }  # fmt: skip
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    said = ", ".join(f"{name} {value}" for name, value in facts.items() if value)
    return f"{date}, {said}." + (f" Phases of {seconds:g} s." if seconds else "")
