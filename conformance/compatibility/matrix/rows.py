"""The rows of the matrix: which program, what it needs, and who counts its kernels."""

from dataclasses import dataclass

# What makes two runs of one program compute the same bits, and keeps what they cache out of the user's folders.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "XLA_FLAGS": "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "NCCL_SOCKET_IFNAME": "lo",
    "NCCL_IB_DISABLE": "1",
}

# Folders under the work folder. One set for both sides: what the first run compiles, the others find.
CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUPY_CACHE_DIR": "cupy",
    "CUDA_CACHE_PATH": "driver",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    program: str
    """A file in programs/."""
    modules: tuple = ()
    """Python modules without which the row is skipped."""
    sanitizer: bool = False
    """Runs under compute-sanitizer, whose words are compared too."""
    counts_itself: bool = False
    """The program says how many kernels it ran, and no other profiler may be beside it."""
    short: bool = False
    """Takes a second or so: run four times as often, because a few milliseconds are more of it."""


SANITIZED = {"sanitizer": True, "counts_itself": True, "short": True}

ROWS = (
    Row("eager", "torch, eager, default stream", "torch_eager.py", ("torch",)),
    Row("graphs", "torch, CUDA graphs", "torch_graphs.py", ("torch",)),
    Row("compile", "torch.compile (inductor, Triton)", "torch_compile.py", ("torch", "triton")),
    Row("threads", "torch, autograd from several threads", "torch_threads.py", ("torch",)),
    Row("loader", "torch data loader, fork and spawn", "torch_loader.py", ("torch",)),
    Row("cupy", "CuPy", "with_cupy.py", ("cupy",), short=True),
    Row("jax", "JAX", "with_jax.py", ("jax",)),
    Row("triton", "Triton, kernels by hand", "with_triton.py", ("torch", "triton")),
    Row("nccl", "NCCL, one rank", "with_nccl.py", ("torch",)),
    Row("static", "CUDA C++, linked statically", "static.cu", short=True),
    Row("sanitizer", "compute-sanitizer, CUDA C++ with a fault", "faulty.cu", **SANITIZED),
    Row("sanitizer-cupy", "compute-sanitizer, CuPy", "sanitized.py", ("cupy",), **SANITIZED),
    Row("profiler", "torch profiler on top", "torch_profiler.py", ("torch",), counts_itself=True),
)
