"""The ways to share a GPU that are compared: what stands in front of a command, and in its environment.

A *mode* is entered once for all its measurements, because tenants stay up across phases. What a mode starts (an MPS
daemon, an ebb daemon) is its own, in private folders, and is gone when the mode is left.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

LATENCY, BEST_EFFORT = "latency", "best-effort"
MPS_CONTROL = "nvidia-cuda-mps-control"
MPS_OF_THE_MACHINE = Path("/tmp/nvidia-mps/control")
PLACES_OF_MPS = ("/usr/local/nvidia/bin", "/usr/bin", "/usr/local/bin", "/opt/nvidia/bin")


class Unavailable(Exception):
    """This machine cannot do the mode; the text says why."""


class Mode:
    """Time-slicing by the driver, and the tenants alone: nothing in front of anything."""

    name = "time-slicing"
    title = "time-slicing"

    def __init__(self, folder):
        self.folder = Path(folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def command(self, _kind, command):
        return list(command)

    def arguments(self, _kind):
        """For the program itself."""
        return []

    def environment(self, _kind):
        environment = dict(os.environ)
        if "CUDA_MPS_PIPE_DIRECTORY" in environment or MPS_OF_THE_MACHINE.exists():
            # A folder in which nobody listens, so that the machine's own MPS daemon does not change what is measured.
            environment["CUDA_MPS_PIPE_DIRECTORY"] = str(self.folder / "no-mps")
        return environment

    def status(self):
        """What the mode says about its tenants, for the record."""
        return None


class Mps(Mode):
    name = "mps"
    title = "MPS"

    def __enter__(self):
        places = os.pathsep.join([os.environ.get("PATH", ""), *PLACES_OF_MPS])
        self._control = shutil.which(MPS_CONTROL, path=places)
        if self._control is None:
            raise Unavailable(f"there is no {MPS_CONTROL}")
        # Short, because a socket's name may have 107 bytes.
        self._private = Path(tempfile.mkdtemp(prefix="mps-"))
        try:
            self._run(["-d"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Unavailable):
            self._run([], said="quit\n")
        self._end_daemon()
        shutil.rmtree(self._private, ignore_errors=True)

    def _folders(self):
        return {
            "CUDA_MPS_PIPE_DIRECTORY": str(self._private / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(self._private / "log")
        }  # fmt: skip

    def _run(self, arguments, said=""):
        for folder in self._folders().values():
            Path(folder).mkdir(exist_ok=True)
        try:
            subprocess.run(
                [self._control, *arguments], env=dict(os.environ) | self._folders(), input=said, text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"the MPS daemon does not answer: {error}") from error

    def _end_daemon(self):
        """After `quit` there is none; one that did not hear it is known by its own file."""
        file = self._private / "pipe" / f"{MPS_CONTROL}.pid"
        for _ in range(50):
            if not file.exists():
                return
            time.sleep(0.1)
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(file.read_text()), signal.SIGTERM)

    def environment(self, kind):
        return super().environment(kind) | self._folders()


class MpsPriority(Mps):
    """MPS with all the priority it knows: of the client, and of the latency tenant's streams."""

    name = "mps-priority"
    title = "MPS with priorities"

    def arguments(self, kind):
        return ["--high"] if kind == LATENCY else []

    def environment(self, kind):
        below_normal = {LATENCY: "0", BEST_EFFORT: "1"}[kind]
        return super().environment(kind) | {"CUDA_MPS_CLIENT_PRIORITY": below_normal}


class Ebb(Mode):
    name = "ebb"
    title = "ebb isolated"

    def __init__(self, folder, ebb):
        super().__init__(folder)
        self._ebb = ebb

    def __enter__(self):
        self._runtime = Path(tempfile.mkdtemp(prefix="ebb-"))
        with open(self.folder / "daemon.log", "wb") as log:
            self._daemon = subprocess.Popen(
                [self._ebb, "daemon"], env=self._with_runtime(), stderr=log,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        # One that `ebb run` starts by itself would outlive this script.
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        self._daemon.terminate()
        try:
            self._daemon.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()
        shutil.rmtree(self._runtime, ignore_errors=True)

    def _with_runtime(self):
        return super().environment(BEST_EFFORT) | {"EBB_RUNTIME_DIR": str(self._runtime)}

    def environment(self, kind):
        return self._with_runtime()

    def command(self, kind, command):
        return [self._ebb, "run", "--class", kind, "--", *command]

    def status(self):
        try:
            done = subprocess.run(
                [self._ebb, "status", "-o", "json"], env=self._with_runtime(), capture_output=True, text=True,
                timeout=5, check=False,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        return done.stdout or done.stderr
