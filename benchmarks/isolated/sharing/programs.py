"""The tenants' programs: how each is started, and those that must be compiled."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .modes import BEST_EFFORT, LATENCY, Unavailable

HERE = Path(__file__).resolve().parent.parent / "programs"
TOOLKITS = ("/usr/local/cuda/bin", "/opt/cuda/bin")
TRAININGS = ("gpt2", "resnet50")
TITLES = {"gpt2": "GPT-2", "resnet50": "ResNet-50"}


class Programs:
    def __init__(self, work, python=sys.executable, fake=False):
        self._work = Path(work)
        self._python = python
        self._fake = fake

    def burst(self, kind):
        if self._fake:
            return self._python_program("fake.py", kind)
        return [str(self._compiled("burst.cu")), kind]

    def bert(self):
        return self._python_program(*(("fake.py", LATENCY) if self._fake else ("bert.py",)))

    def training(self, name):
        return self._python_program(*(("fake.py", BEST_EFFORT) if self._fake else ("training.py", name)))

    def _python_program(self, name, *arguments):
        return [self._python, str(HERE / name), *arguments]

    def floor(self, words):
        program = self._python_program("fake_floor.py") if self._fake else [str(self._compiled("floor.cu"))]
        return [*program, str(words)]

    def levers(self):
        """What is preloaded into the program above."""
        if self._fake:
            return None
        compiler = [found("cc", "gcc", "clang"), "-O2", "-std=gnu11", "-shared", "-fPIC", "-pthread"]
        return self._made("levers.so", compiler, "levers.c")

    def _compiled(self, source):
        nvcc = [found("nvcc"), "-O2", "-std=c++17", "-arch=native", "-cudart", "static"]
        return self._made(Path(source).stem, nvcc, source)

    def _made(self, name, compiler, source):
        target = self._work / name
        if not target.exists():
            command = [*compiler, "-o", str(target), str(HERE / source)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
            if done.returncode != 0:
                raise Unavailable(f"{Path(command[0]).name} failed: {done.stderr.strip()[-400:]}")
        return target


def found(*compilers):
    """The first of these that is there."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *TOOLKITS])
    for compiler in compilers:
        if place := shutil.which(compiler, path=path):
            return place
    raise Unavailable(f"there is no {compilers[0]}")
