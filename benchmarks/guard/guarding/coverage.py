"""Part `coverage`: which share of kernels, launches and GPU time is under which verdict, and every refusal by name."""

from dataclasses import asdict, dataclass, field

from matrix.rows import ENVIRONMENT
from sharing.table import lines

from . import verdicts
from .runs import Task
from .verdicts import ORDERED, PLAIN, REFUSED, UNJUDGED, Kernel

BUDGET = 200.0
AT_ONCE = 5
STEPS = 4
LIMIT = 90.0
BAR, STRICT_BAR = 0.95, 0.99
STRICT = ("resnet50", "gpt2-large", "bert")


@dataclass
class Workload:
    name: str
    title: str
    described: object = None
    """A job of the lab, or a group of operations."""
    program: str = ""
    """Else one of the compatibility matrix."""
    bar: float = BAR
    environment: dict = field(default_factory=dict)


def lab(model, task, batch, form="eager", **more):
    described = {"model": model, "task": task, "form": form, "batch": batch, **more}
    ways = {"eager": "", "compile": ", compiled", "graph": ", as a CUDA graph"}
    # What helps to compile are processes that never touch the GPU.
    environment = {"TORCHINDUCTOR_COMPILE_THREADS": "4"} if form == "compile" else {}
    bar = STRICT_BAR if model in STRICT and form == "eager" else BAR
    return Workload(f"{model}-{task}-{form}", f"{model} {task}{ways[form]}", described, "", bar, environment)


def matrix(name, title):
    return Workload(name, title, program=f"{name}.py", environment=ENVIRONMENT | {"COMPAT_MODE": "count"})


# In the order of what matters most, because the time may not suffice for all.
WORKLOADS = (
    lab("resnet50", "training", 128), lab("gpt2-large", "training", 4, tokens=1024),
    lab("bert", "training", 32, tokens=128), lab("resnet50", "inference", 1),
    lab("gpt2-large", "inference", 1, tokens=128), lab("bert", "inference", 1, tokens=128),
    Workload("products", "cuBLAS and cuBLASLt products", "products"),
    Workload("convolutions", "cuDNN convolutions", "convolutions"),
    Workload("attention", "fused attentions, cuDNN's among them", "attention"),
    Workload("scans", "sorts, scans, picks (CUB)", "scans"),
    matrix("with_triton", "Triton, kernels by hand"), matrix("with_cupy", "CuPy"), matrix("with_jax", "JAX"),
    lab("bert", "training", 32, "compile", tokens=128), lab("resnet50", "inference", 1, "compile"),
    lab("whisper", "training", 16, tokens=500), lab("pegasus", "training", 4, tokens=512),
    lab("pointnet", "training", 128), lab("yolo", "inference", 1), lab("unet", "inference", 1),
    lab("llama", "inference", 1, prompt=512, output=16), lab("whisper", "inference", 1),
    Workload("elements", "torch's own kernels", "elements"),
    Workload("algebra", "cuSOLVER, cuFFT, cuSPARSE", "algebra"),
    Workload("stencil", "stencil (CuPy)", {"model": "stencil"}),
    Workload("traversal", "traversal (CuPy)", {"model": "traversal"}),
    matrix("torch_compile", "torch.compile, small layer, graphs too"),
    lab("vgg19", "inference", 1), lab("inception-v3", "inference", 1), lab("densenet201", "inference", 1),
    lab("resnet152", "inference", 1), lab("distilbert", "inference", 1, tokens=128),
)  # fmt: skip


def task(programs, workload):
    if workload.program:
        command = programs.compatibility(workload.program)
    else:
        command = programs.job(workload.described, "--steps", STEPS)
    return Task(workload.name, command, "now", LIMIT, workload.environment)


def measure(bench):
    by_name = {workload.name: workload for workload in WORKLOADS}
    runner = bench.runner()
    tasks = [task(bench.programs, workload) for workload in WORKLOADS]
    for ended in runner.together(tasks, AT_ONCE):
        workload = by_name[ended.task.name]
        if ended.failure:
            bench.remark(f"coverage, {workload.title}: {ended.failure}")
        if ended.report and ended.report.kernels:
            kernels = ended.report.kernels
            bench.record.add(
                "coverage", workload=workload.name, seconds=round(ended.seconds, 1), whole=not ended.failure,
                kernels=[asdict(kernel) for kernel in kernels], sentences=ended.report.sentences,
            )  # fmt: skip
            bench.say(f"coverage, {workload.title}: {percent(verdicts.covered(kernels))} of the GPU time")


# The tables.


def percent(value):
    return "–" if value is None else f"{100 * value:.1f}%"


def rows(record):
    """(workload, its kernels), in the order of the list."""
    for workload in WORKLOADS:
        if found := record.find("coverage", workload=workload.name):
            yield workload, [Kernel(**kernel) for kernel in found["kernels"]]


def sides(kernels, weight):
    found = verdicts.shares(kernels, weight)
    return " / ".join(percent(found[side]) for side in (PLAIN, ORDERED, REFUSED, UNJUDGED))


def markdown(record):
    cells = [
        (
            workload.title, len(kernels), sides(kernels, lambda _: 1), sides(kernels, lambda kernel: kernel.launches),
            sides(kernels, lambda kernel: kernel.gpu_ns), percent(verdicts.ran_guarded(kernels)),
            f"{sum(kernel.in_graphs for kernel in kernels):,}",
        )
        for workload, kernels in rows(record)
    ]  # fmt: skip
    if not cells:
        return ""
    headings = (
        "workload", "kernels", "of kernels", "of launches", "of GPU time", "of the guarded kernels' launches, guarded",
        "runs in graphs",
    )  # fmt: skip
    about = "Shares: plain rule / ordered rule / refused / not judged."
    return f"### Coverage\n\n{about}\n\n" + lines(headings, cells) + "\n\n" + refusals(record)


def refusals(record):
    cells = []
    for workload, kernels in rows(record):
        whole = sum(kernel.gpu_ns for kernel in kernels)
        for kernel in sorted(kernels, key=lambda kernel: -kernel.gpu_ns):
            if kernel.side in (REFUSED, UNJUDGED):
                part = percent(kernel.gpu_ns / whole) if whole and kernel.gpu_ns else "–"
                why = kernel.reason or "not judged"
                cells.append((workload.title, f"`{kernel.name[:100]}`", why, f"{kernel.launches:,}", part))
    if not cells:
        return "Nothing was refused."
    return "Every kernel that is not guarded:\n\n" + lines(("workload", "kernel", "why", "launches", "GPU time"), cells)


def judged(record):
    for workload, kernels in rows(record):
        reached = verdicts.covered(kernels)
        if reached is not None:
            bar = workload.bar
            yield f"{workload.title}: GPU time not refused", reached, f"at least {bar:.2f}", reached >= bar
