"""Several Python threads learn at once, each with a model and a stream of its own; torch adds its autograd threads.

What a thread computes depends on nothing but its number, so the results do not depend on how threads interleave.
"""

import threading

from torch_common import DEVICE, Descent, Results, Words, add_all, nn, prepare, synchronise, time_torch, torch

THREADS = 4
STEPS = 8


def model_of(number):
    torch.manual_seed(100 + number)
    return Words().to(DEVICE)


def learn(number, model, generator, losses):
    stream = torch.cuda.Stream() if DEVICE == "cuda" and number % 2 else None
    with torch.cuda.stream(stream):
        descent = Descent(model, 0.05)
        for _ in range(STEPS):
            tokens = torch.randint(0, 101, (8, 33), device=DEVICE, generator=generator)
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            descent.step(loss)
            losses[number].append(loss.item())


prepare()
results = Results()
models = [model_of(number) for number in range(THREADS)]
generators = [torch.Generator(device=DEVICE).manual_seed(number) for number in range(THREADS)]
synchronise()
losses = [[] for _ in range(THREADS)]
threads = [
    threading.Thread(target=learn, args=(number, models[number], generators[number], losses))
    for number in range(THREADS)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
synchronise()
for number in range(THREADS):
    if len(losses[number]) != STEPS:
        raise SystemExit(f"thread {number} ended after {len(losses[number])} of {STEPS} steps")
    results.add(*losses[number])
    add_all(results, models[number].parameters())

time_torch(results)
results.print()
