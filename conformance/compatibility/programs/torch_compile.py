"""torch.compile: inductor writes Triton kernels, forward and backward, in processes of its own.

Where kernels are counted, the layer is also compiled with CUDA graphs under it. Where it is timed, everything is in
the cache already, and starting processes to compile in would be most of what is timed.
"""

import os

from common import MODE

if MODE == "time":
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
from torch_common import DEVICE, Descent, Results, add_all, host, nn, prepare, synchronise, time_launches, torch


class Layer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into = nn.Linear(width, 4 * width)
        self.out = nn.Linear(4 * width, width)

    def forward(self, x):
        return torch.softmax(x + self.out(nn.functional.gelu(self.into(self.norm(x)))), dim=-1)


prepare()
torch.use_deterministic_algorithms(True)
results = Results()
layer = Layer().to(DEVICE)
compiled = torch.compile(layer)
descent = Descent(layer, 0.05)
for _ in range(6):
    x = torch.randn(32, 64, device=DEVICE)
    loss = (compiled(x) - x).square().mean()
    descent.step(loss)
    results.add(loss.item())
add_all(results, layer.parameters())

if MODE == "count" and DEVICE == "cuda":
    graphed = torch.compile(layer, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(5):
            difference = host(graphed(x)) - host(layer(x))
    if abs(difference).max() > 1e-4:
        raise SystemExit("compiled with CUDA graphs, the layer computes something else")

time_launches(results, lambda: compiled(x), synchronise, batches=20)
results.print()
