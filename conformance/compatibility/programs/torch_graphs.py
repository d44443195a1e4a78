"""CUDA graphs in torch: a whole training step is captured once and replayed, with dropout's random numbers in it."""

from torch_common import Descent, Pictures, Results, add_all, nn, prepare, synchronise, time_launches, torch

REPLAYS = 200

prepare()
results = Results()
model = nn.Sequential(Pictures(), nn.Dropout(0.1)).cuda()
descent = Descent(model, 0.01)
pictures = torch.zeros(16, 3, 32, 32, device="cuda")
classes = torch.randint(0, 10, (16,), device="cuda")


def step():
    loss = nn.functional.cross_entropy(model(pictures), classes)
    descent.step(loss)
    return loss


# Capture wants everything that is made on first use to exist already, and made on a stream of its own.
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)

training = torch.cuda.CUDAGraph()
with torch.cuda.graph(training):
    loss = step()

for index in range(REPLAYS):
    pictures.normal_()
    training.replay()
    if index % 20 == 0:
        results.add(loss.item())
add_all(results, model.parameters())

# Two graphs in one memory pool, replayed in turn.
x = torch.zeros(1, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    y = x + 1
with torch.cuda.graph(second, pool=first.pool()):
    x.copy_(y * 0.5)
for _ in range(50):
    first.replay()
    second.replay()
add_all(results, [x])

time_launches(results, first.replay, synchronise)
results.print()
