"""NCCL with one rank, by torch.distributed: reductions, gathering, and a model trained under DistributedDataParallel.

With one rank NCCL copies instead of adding; a reduction that multiplies first still needs a kernel.
"""

import os
import tempfile

import torch.distributed as dist
from torch_common import Descent, Pictures, Results, add_all, nn, prepare, synchronise, time_launches, torch

prepare()
results = Results()
with tempfile.TemporaryDirectory() as folder:
    torch.cuda.set_device(0)
    store = "file://" + os.path.join(folder, "store")
    dist.init_process_group("nccl", init_method=store, rank=0, world_size=1, device_id=torch.device("cuda", 0))

    x = torch.arange(1 << 16, device="cuda", dtype=torch.float32)
    for operation in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.AVG, dist._make_nccl_premul_sum(0.5)):
        dist.all_reduce(x, op=operation)
    gathered = torch.empty_like(x)
    dist.all_gather_into_tensor(gathered, x)
    scattered = torch.empty_like(x)
    dist.reduce_scatter_tensor(scattered, gathered)
    dist.broadcast(scattered, 0)
    add_all(results, [x, gathered, scattered])

    model = nn.parallel.DistributedDataParallel(Pictures().cuda(), device_ids=[0])
    descent = Descent(model, 0.01)
    for _ in range(4):
        loss = model(torch.randn(16, 3, 32, 32, device="cuda")).square().mean()
        descent.step(loss)
        results.add(loss.item())
    add_all(results, model.parameters())

    small = torch.ones(1, device="cuda")
    half = dist._make_nccl_premul_sum(1.0)
    time_launches(results, lambda: dist.all_reduce(small, op=half), synchronise, batches=100)
    dist.barrier()
    dist.destroy_process_group()
results.print()
