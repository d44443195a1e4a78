"""A data loader with worker processes and pinned memory, in a process that has already used the GPU.

First with fork, so that the children inherit a process with CUDA in it; then with spawn, so that they start anew.
"""

from torch_common import DEVICE, Descent, Pictures, Results, add_all, nn, prepare, time_torch, torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 32, 32, generator=generator), index % 10


def learn(results, model, start, workers, epochs):
    descent = Descent(model, 0.01)
    loader = DataLoader(
        Noise(), batch_size=16, num_workers=workers, pin_memory=DEVICE == "cuda", multiprocessing_context=start,
        persistent_workers=True, shuffle=True, generator=torch.Generator().manual_seed(7),
    )  # fmt: skip
    for _ in range(epochs):
        for pictures, classes in loader:
            pictures = pictures.to(DEVICE, non_blocking=True)
            classes = classes.to(DEVICE, non_blocking=True)
            loss = nn.functional.cross_entropy(model(pictures), classes)
            descent.step(loss)
            results.add(loss.item())


def main():
    prepare()
    results = Results()
    model = Pictures().to(DEVICE)
    results.add(model(torch.ones(1, 3, 32, 32, device=DEVICE)).sum().item())
    learn(results, model, "fork", workers=4, epochs=2)
    learn(results, model, "spawn", workers=1, epochs=1)
    add_all(results, model.parameters())
    time_torch(results)
    results.print()


if __name__ == "__main__":
    main()
