"""The ways to share a GPU that are compared: what stands in front of a command, and in its environment.

A *mode* is entered afresh for each benchmark, and again after a tenant was lost. What it starts (an MPS daemon, an ebb
daemon) is its own, in private folders, up when the mode is entered and gone when it is left: what a failed client did
to an MPS server does not reach the next row.
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
MPS_PID = f"{MPS_CONTROL}.pid"
# Seconds for a daemon to come, and to go.
MPS_PATIENCE = 8.0
EBB_PATIENCE = 15.0
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


def is_of_mps(process):
    """Whether a process is still there, and no other that was given its number."""
    try:
        command, _, rest = Path("/proc", str(process), "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return False
    return command.startswith("nvidia-cuda-mps") and rest.split()[0] not in "ZX"


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
        for folder in self._folders().values():
            Path(folder).mkdir()
        try:
            self._control_daemon("-d")
            self._await_daemon()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await_daemon(self):
        """Returns once the daemon answers; it starts its server when the first client comes."""
        deadline = time.monotonic() + MPS_PATIENCE
        while True:
            try:
                self._control_daemon(said="get_server_list\n")
                return
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def __exit__(self, *_):
        ours = self._processes()
        with contextlib.suppress(Unavailable):
            self._control_daemon(said="quit\n")
        for last_word in (None, signal.SIGTERM, signal.SIGKILL):
            if not self._end(ours, last_word):
                break
        shutil.rmtree(self._private, ignore_errors=True)

    def _processes(self):
        """The daemon, by its own file, and its servers, by what it says."""
        words = []
        with contextlib.suppress(OSError):
            words += (self._private / "pipe" / MPS_PID).read_text().split()
        with contextlib.suppress(Unavailable):
            words += self._control_daemon(said="get_server_list\n").split()
        return {int(word) for word in words if word.isdigit()}

    def _end(self, processes, word):
        """Says this word to each, and gives them time; which are still there?"""
        for process in filter(is_of_mps, processes if word else ()):
            with contextlib.suppress(OSError):
                os.kill(process, word)
        deadline = time.monotonic() + MPS_PATIENCE
        while (there := [process for process in processes if is_of_mps(process)]) and time.monotonic() < deadline:
            time.sleep(0.05)
        return there

    def _folders(self):
        return {
            "CUDA_MPS_PIPE_DIRECTORY": str(self._private / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(self._private / "log")
        }  # fmt: skip

    def _control_daemon(self, *arguments, said=""):
        answer = self._private / "answer"
        try:
            # Into a file: a daemon keeps the output of the command that starts it, and a pipe would never end.
            with open(answer, "w") as output:
                subprocess.run(
                    [self._control, *arguments], env=dict(os.environ) | self._folders(), input=said, text=True,
                    stdout=output, stderr=subprocess.DEVNULL, timeout=20, check=True,
                )  # fmt: skip
            return answer.read_text()
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"the MPS daemon does not answer: {error}") from error

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
    domain = ()
    """What the daemon is told besides."""

    def __init__(self, folder, ebb):
        super().__init__(folder)
        self._ebb = ebb

    def __enter__(self):
        self._runtime = Path(tempfile.mkdtemp(prefix="ebb-"))
        with open(self.folder / "daemon.log", "ab") as log:
            self._daemon = subprocess.Popen(
                [self._ebb, "daemon", *self.domain], env=self._with_runtime(), stderr=log,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        try:
            self._await_daemon()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await_daemon(self):
        """One that `ebb run` starts by itself, because none answers yet, would be of another kind and outlive this."""
        deadline = time.monotonic() + EBB_PATIENCE
        while self._ask_status().returncode != 0:
            if self._daemon.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"the daemon of ebb does not answer: {self._last_words()}")
            time.sleep(0.05)

    def _last_words(self):
        lines = (self.folder / "daemon.log").read_text(errors="replace").strip().splitlines()
        return " | ".join(lines[-2:])[-300:] or "it said nothing"

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
        done = self._ask_status()
        return done.stdout or done.stderr

    def _ask_status(self):
        command = [self._ebb, "status", "-o", "json"]
        try:
            return subprocess.run(
                command, env=self._with_runtime(), capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            return subprocess.CompletedProcess(command, 1, "", str(error))


class EbbShared(Ebb):
    """All tenants in one domain, under an MPS daemon of ebb's own; best-effort kernels are stopped between blocks, whenever the latency
    tenant has work: what is measured is the mechanism, and no controller."""

    name = "ebb-shared"
    title = "ebb shared"
    domain = ("--domain", "shared", "--policy", "strict")
