"""The torch profiler over a whole program. It counts the kernels itself, through the same CUPTI as every profiler."""

import collections
import json
import os
import tempfile

from torch_common import DEVICE, Results, prepare, synchronise, torch, train_pictures, train_words

prepare()
results = Results()
activities = [torch.profiler.ProfilerActivity.CPU]
if DEVICE == "cuda":
    activities.append(torch.profiler.ProfilerActivity.CUDA)
with torch.profiler.profile(activities=activities) as profile:
    train_pictures(results, steps=2)
    train_words(results, steps=2)
    x = torch.ones(1000, device=DEVICE)
    if DEVICE == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.sqrt(x * 2.0) + 1.0
        for _ in range(10):
            graph.replay()
        results.add(y.cpu().numpy())
    synchronise()

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    profile.export_chrome_trace(path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
kernels = collections.Counter(event["name"] for event in events if event.get("cat") == "kernel")
results.say(kernels=sum(kernels.values()))
results.print()
