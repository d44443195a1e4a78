"""torch.compile: inductor writes Triton kernels, forward and backward; then the same with CUDA graphs under it."""

from torch_common import DEVICE, Results, Words, add_all, nn, prepare, synchronise, time_launches, torch

prepare()
results = Results()
model = Words().to(DEVICE)
compiled = torch.compile(model)
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(6):
    tokens = torch.randint(0, 101, (8, 33), device=DEVICE)
    logits = compiled(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    results.add(loss.item())
add_all(results, model.parameters())


@torch.compile(mode="reduce-overhead")
def smooth(x):
    return torch.softmax(torch.sin(x) * torch.sigmoid(x) + x.mean(dim=-1, keepdim=True), dim=-1)


with torch.no_grad():
    x = torch.randn(64, 256, device=DEVICE)
    for _ in range(6):
        add_all(results, [smooth(x)])

    time_launches(results, lambda: smooth(x), synchronise, batches=100)
results.print()
