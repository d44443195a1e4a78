"""A data loader with worker processes and pinned memory, in a process that has already used the GPU.

With fork, so that the children inherit a process with CUDA in it. Where kernels are counted, also with spawn: that
child starts anew and imports torch, which takes too long for every run, so its batches are compared with those made
here.
"""

from common import MODE

from torch_common import DEVICE, Descent, Pictures, Results, add_all, nn, prepare, time_torch, torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 32, 32, generator=generator), index % 10


def loader(start, workers, shuffle):
    return DataLoader(
        Noise(), batch_size=16, num_workers=workers, pin_memory=DEVICE == "cuda", multiprocessing_context=start,
        persistent_workers=True, shuffle=shuffle, generator=torch.Generator().manual_seed(7),
    )  # fmt: skip


def learn(results, model):
    descent = Descent(model, 0.01)
    batches = loader("fork", workers=4, shuffle=True)
    for _ in range(2):
        for pictures, classes in batches:
            pictures = pictures.to(DEVICE, non_blocking=True)
            classes = classes.to(DEVICE, non_blocking=True)
            loss = nn.functional.cross_entropy(model(pictures), classes)
            descent.step(loss)
            results.add(loss.item())


def compare_spawned():
    noise = Noise()
    for number, (pictures, _) in enumerate(loader("spawn", workers=1, shuffle=False)):
        here = torch.stack([noise[index][0] for index in range(16 * number, 16 * (number + 1))])
        if not torch.equal(pictures.to(DEVICE, non_blocking=True).cpu(), here):
            raise SystemExit(f"batch {number} of a spawned worker is not what it should be")


def main():
    prepare()
    results = Results()
    model = Pictures().to(DEVICE)
    results.add(model(torch.ones(1, 3, 32, 32, device=DEVICE)).sum().item())
    learn(results, model)
    if MODE == "count":
        compare_spawned()
    add_all(results, model.parameters())
    time_torch(results)
    results.print()


if __name__ == "__main__":
    main()
