"""What the machine has: compilers, CUPTI, the sanitizer; and what is built with them."""

import glob
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
TOOLKITS = ("/usr/local/cuda", "/opt/cuda")


class Missing(Exception):
    """Something a row needs is not on this machine; the text says what."""


def find_program(name):
    found = shutil.which(name)
    for toolkit in TOOLKITS:
        for folder in ("bin", "compute-sanitizer"):
            candidate = Path(toolkit, folder, name)
            if not found and os.access(candidate, os.X_OK):
                found = str(candidate)
    if not found:
        raise Missing(f"{name} is not on the PATH nor in {' or '.join(TOOLKITS)}")
    return found


def ask(command):
    """The output of a short command, or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def build(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise Missing(f"`{' '.join(map(str, command))}` failed: {(done.stderr or done.stdout).strip()[-600:]}")


def toolkit_include():
    return Path(find_program("nvcc")).resolve().parent.parent / "include"


@dataclass
class Cupti:
    library: Path
    include: Path
    record: str
    """The newest kernel record that the header declares."""


def find_cupti(site_packages):
    """The CUPTI that the frameworks bring along, else the toolkit's: two in one process would not do."""
    patterns = [f"{site_packages}/nvidia/cu*/lib/libcupti.so.*", f"{site_packages}/nvidia/cuda_cupti/lib/libcupti.so.*"]
    for toolkit in TOOLKITS:
        patterns += [f"{toolkit}/extras/CUPTI/lib64/libcupti.so.[0-9]*", f"{toolkit}/lib64/libcupti.so.[0-9]*"]
    for library in (Path(path) for pattern in patterns for path in sorted(glob.glob(pattern))):
        beside = [library.parent.parent / "include", library.resolve().parent.parent / "include", toolkit_include()]
        for include in beside:
            header = include / "cupti_activity.h"
            if header.exists():
                numbers = re.findall(r"CUpti_ActivityKernel(\d+);", header.read_text(errors="replace"))
                if numbers:
                    return Cupti(library, include, f"CUpti_ActivityKernel{max(map(int, numbers))}")
    raise Missing("CUPTI with its headers was found neither beside the frameworks nor in the toolkit")


def build_profiler(work, site_packages):
    cupti = find_cupti(site_packages)
    target = work / "libprofiler.so"
    build([
        "gcc", "-O2", "-shared", "-fPIC", f"-DKERNEL_RECORD={cupti.record}", f"-I{cupti.include}",
        f"-I{toolkit_include()}", "-o", target, HERE / "native/profiler.c", f"-L{cupti.library.parent}",
        f"-l:{cupti.library.name}", f"-Wl,-rpath,{cupti.library.parent}",
    ])  # fmt: skip
    return target


def build_launch(work):
    target = work / "liblaunch.so"
    build(["gcc", "-O2", "-shared", "-fPIC", "-o", target, HERE / "native/launch.c", "-ldl"])
    return target


def build_program(work, source):
    """For the GPU at hand, with the runtime inside the program."""
    target = work / Path(source).stem
    if not target.exists():
        build(
            [find_program("nvcc"), "-O2", "-cudart", "static", "-arch=native", "-o", target, HERE / "programs" / source]
        )
    return target
