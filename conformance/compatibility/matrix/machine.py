"""What the figures were measured on."""

import datetime
import json
import os
import platform

from . import tools

PACKAGES = ("torch", "triton", "cupy-cuda13x", "cupy-cuda12x", "jax", "jaxlib", "numpy")


def describe(python, ebb):
    gpu = tools.ask(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    card, _, driver = (gpu or "").splitlines()[0].partition(", ") if gpu else ("", "", "")
    machine = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "GPU": card,
        "driver": driver,
        "kernel": platform.release(),
        "CPUs": str(os.cpu_count()),
        "Python": (tools.ask([python, "--version"]) or "").removeprefix("Python "),
        "ebb": (tools.ask([ebb, "version"]) or "").removeprefix("ebb ") if ebb else "",
    }
    return machine | packages(python) | compiler()


def packages(python):
    """Versions without importing anything, because importing torch takes seconds."""
    program = (
        "import importlib.metadata, json, sys\n"
        "all = {d.metadata['Name']: d.version for d in importlib.metadata.distributions()}\n"
        "print(json.dumps({name: all[name] for name in sys.argv[1:] if name in all}))"
    )
    answer = tools.ask([python, "-c", program, *PACKAGES])
    return json.loads(answer) if answer else {}


def compiler():
    try:
        answer = tools.ask([tools.find_program("nvcc"), "--version"]) or ""
    except tools.Missing:
        return {}
    releases = [line.split("release ")[1].split(",")[0] for line in answer.splitlines() if "release " in line]
    return {"nvcc": releases[0]} if releases else {}
