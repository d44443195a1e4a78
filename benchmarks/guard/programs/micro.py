"""Single operations, timed by the GPU: what a prologue adds to one kernel shows where the kernel is short.

time NAME CALLS     answers with microseconds for one call, of so many in a row
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "isolated" / "programs"))

import torch
from common import obey, say
from torch.nn import functional


def made():
    def normal(*shape, dtype=torch.half):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    square, flat = normal(4096, 4096), normal(1 << 26, dtype=torch.float32)
    q, k, v = (normal(8, 16, 1024, 64) for _ in range(3))
    x, weight = (
        each.contiguous(memory_format=torch.channels_last) for each in (normal(64, 256, 56, 56), normal(256, 256, 3, 3))
    )
    small, large = ((normal(n, n), normal(n, n)) for n in (2048, 8192))
    return {
        "softmax": lambda: torch.softmax(square, 1),
        "add": lambda: flat.add_(1.0),
        "sum": lambda: flat.sum(),
        "gemm-2048": lambda: small[0] @ small[1],
        "gemm-8192": lambda: large[0] @ large[1],
        "attention": lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        "convolution": lambda: functional.conv2d(x, weight, padding=1),
    }


@torch.inference_mode()
def timed(operation, calls):
    """The host has handed over everything before the first call begins: it waits behind a sleep of the GPU."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(int(calls * 60e3))
    begin.record()
    for _ in range(calls):
        operation()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / calls


def main():
    operations = made()
    for operation in operations.values():
        timed(operation, 3)
    say(ready=True)
    obey({"time": lambda name, calls: say(us=timed(operations[name], int(calls)))})


if __name__ == "__main__":
    main()
