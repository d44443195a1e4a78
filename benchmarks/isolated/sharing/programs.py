"""The tenants' programs: how each is started, and the one that must be compiled."""

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

    def _compiled(self, source):
        target = self._work / Path(source).stem
        if not target.exists():
            nvcc = shutil.which("nvcc") or next((p for t in TOOLKITS if (p := shutil.which("nvcc", path=t))), None)
            if nvcc is None:
                raise Unavailable("there is no nvcc")
            command = [nvcc, "-O2", "-std=c++17", "-arch=native", "-cudart", "static", "-o", target, HERE / source]
            done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
            if done.returncode != 0:
                raise Unavailable(f"nvcc failed: {done.stderr.strip()[-400:]}")
        return target
