"""Operations of closed libraries and of torch, in groups, as jobs: each step runs the whole group on the same inputs.

Results do not depend on anything but the inputs: sums are of integers where their order is not fixed, and algorithms
are the deterministic ones. The digest of a step is that of the first where all bits are the same.
"""

import hashlib

import torch
from card import Card, same_bits
from jobs import Job
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

# A processor has not all operations in half precision.
HALF = torch.half if torch.cuda.is_available() else torch.float32


def build(group, tiny):
    card = Card("normal", best_effort=True, tiny=tiny, deterministic=group not in ANY_ORDER)
    return Operations(card, GROUPS[group])


class Operations(Job):
    def __init__(self, card, make):
        self._card = card
        with card.building():
            self._work = make(16 if card.tiny else 1)
        self.request(0)
        self._first = [each.clone() for each in self._answers]
        self._digest = digest(self._first)

    def request(self, _number):
        self._answers = [each.detach().contiguous().flatten() for each in self._work()]
        self._card.wait()

    def digest(self, _number):
        same = all(map(same_bits, self._answers, self._first))
        return self._digest if same else digest(self._answers)


def digest(tensors):
    hashed = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        hashed.update(tensor.view(torch.uint8).cpu().numpy().tobytes())
    return hashed.hexdigest()


# Each makes its inputs, `small` times smaller in every direction, and says what is done with them.


def products(small):
    """cuBLAS and cuBLASLt: types, shapes that want their sums split, batches, epilogues."""
    sizes = [(4096, 4096, 4096), (8192, 1024, 8192), (128, 256, 32768), (16, 8192, 8192), (1, 4096, 4096)]
    pairs = []
    for dtype in (torch.bfloat16, HALF, torch.float32):
        for m, n, k in sizes:
            m, n, k = max(1, m // small), max(16, n // small), max(16, k // small)
            pairs.append((torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)))
    many = [torch.randn(64, 512 // small, 512 // small).to(HALF) for _ in range(2)]
    bias = torch.randn(pairs[0][1].shape[1]).bfloat16()

    def work():
        answers = [a @ b for a, b in pairs] + [torch.bmm(*many), torch.addmm(bias, *pairs[0])]
        return answers + eighths(pairs[0]) + [pairs[2][0].double() @ pairs[2][1].double()]

    return work


def eighths(pair):
    """fp8 and int8, which not every card and every torch has."""
    if not pair[0].is_cuda:
        return []
    one = torch.ones((), device="cuda")
    a, b = (each.clamp(-4, 4).to(torch.float8_e4m3fn) for each in pair)
    c, d = ((each * 20).clamp(-100, 100).to(torch.int8) for each in pair)
    turned = b.t().contiguous().t()
    return [torch._scaled_mm(a, turned, one, one, out_dtype=torch.bfloat16), torch._int_mm(c, d)]


def convolutions(small):
    """cuDNN, forward and backward: plain, strided, grouped, along one and three directions, and backwards."""
    side = 64 // small
    cases = [
        (functional.conv2d, (32, 64, side, side), (128, 64, 3, 3), {"padding": 1}),
        (functional.conv2d, (32, 256, side // 2, side // 2), (512, 256, 1, 1), {"stride": 2}),
        (functional.conv2d, (32, 128, side, side), (128, 1, 3, 3), {"padding": 1, "groups": 128}),
        (functional.conv1d, (16, 128, 16 * side), (256, 128, 3), {"padding": 1}),
        (functional.conv3d, (4, 32, 8, side, side), (64, 32, 3, 3, 3), {"padding": 1}),
        (functional.conv_transpose2d, (16, 128, side // 2, side // 2), (128, 64, 2, 2), {"stride": 2}),
    ]
    made = []
    for convolve, shape, filters, how in cases:
        x, weight = torch.randn(shape).to(HALF), (torch.randn(filters) * 0.05).to(HALF)
        if x.dim() == 4:
            x, weight = (each.contiguous(memory_format=torch.channels_last) for each in (x, weight))
        made.append((convolve, x.requires_grad_(), weight.requires_grad_(), how))

    def work():
        answers = []
        for convolve, x, weight, how in made:
            y = convolve(x, weight, **how)
            answers += [y, *torch.autograd.grad(y, (x, weight), torch.ones_like(y))]
        return answers

    return work


def attention(small):
    """Every fused attention there is: torch's flash and memory-efficient ones, cuDNN's, and the one written out."""
    q, k, v = (torch.randn(8, 16, 1024 // small, 64).to(HALF).requires_grad_() for _ in range(3))
    backends = [SDPBackend.MATH]
    if q.is_cuda:
        backends += [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]

    def work():
        answers = []
        for backend in backends:
            with sdpa_kernel([backend]):
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            answers += [y, *torch.autograd.grad(y, (q, k, v), torch.ones_like(y))]
        return answers

    return work


def scans(small):
    """What CUB does: sorts, scans in which blocks look back at lower-numbered ones, picks."""
    count = (1 << 26) // small**2
    numbers = torch.randint(-1000, 1000, (count,), dtype=torch.int32)
    keys, floats = torch.randint(0, 1 << 30, (count // 4,), dtype=torch.int32), torch.randn(64, count // 256)

    def work():
        found = torch.unique(keys % 100_003, return_counts=True)
        picked = [
            numbers.cumsum(0),
            numbers[numbers > 900],
            torch.nonzero(numbers == 7),
            *torch.sort(keys, stable=True),
        ]
        return [
            *picked,
            *found,
            floats.topk(50).values,
            floats.sort().values,
            torch.bincount(keys % 512, minlength=512),
        ]

    return work


def clusters(small):
    """Products and convolutions that are large enough for persistent kernels and for clusters of blocks."""
    pairs = [
        (torch.randn(n // small, n // small).to(dtype), torch.randn(n // small, n // small).to(dtype))
        for n in (4096, 6144, 8192)
        for dtype in (torch.bfloat16, HALF)
    ]
    x = torch.randn(64, 256, 56 // small, 56 // small).to(HALF).contiguous(memory_format=torch.channels_last)
    weight = (torch.randn(256, 256, 3, 3) * 0.02).to(HALF).contiguous(memory_format=torch.channels_last)

    def work():
        return [a @ b for a, b in pairs] + [functional.conv2d(x, weight, padding=1)]

    return work


def algebra(small):
    """cuSOLVER, cuFFT, cuSPARSE."""
    matrix = torch.randn(1024 // small, 1024 // small)
    square = matrix @ matrix.T + 1024 * torch.eye(matrix.shape[0])
    many = torch.randn(64, 32, 32)
    sparse = (matrix * (matrix > 2)).to_sparse_csr()

    def work():
        factors = [torch.linalg.cholesky(square), torch.linalg.solve(square, matrix), torch.linalg.qr(many)[0]]
        values = [torch.linalg.eigvalsh(square), torch.linalg.svdvals(many), torch.linalg.inv(many)]
        return [*factors, *values, torch.view_as_real(torch.fft.rfft2(matrix)), sparse @ matrix]

    return work


def elements(small):
    """Torch's own kernels: elementwise, reductions, normalisations, random numbers, lookups."""
    x = torch.randn(4096 // small, 4096 // small, requires_grad=True)
    table, places = torch.randn(50257 // small, 1024 // small), torch.randint(0, 50257 // small, (8192 // small,))

    def work():
        torch.manual_seed(3)
        y = functional.gelu(functional.layer_norm(functional.dropout(x, 0.1), x.shape[1:]))
        slope = torch.autograd.grad(y.square().mean(), x)[0]
        rows = [torch.softmax(x, 1), x.logsumexp(0), x.var(1), x.norm(dim=1), x.amax(), x.argmax(1)]
        drawn = [torch.rand_like(x), torch.randperm(table.shape[0], device=x.device)]
        moved = [functional.embedding(places, table), x.t().contiguous(), torch.cat([x, x.bfloat16()], 1), x.tril()]
        return [y, slope, *rows, *drawn, *moved, torch.where(x > 0, x, x.exp())]

    return work


GROUPS = {
    "products": products, "convolutions": convolutions, "attention": attention, "scans": scans, "clusters": clusters,
    "algebra": algebra, "elements": elements,
}  # fmt: skip
ANY_ORDER = ("attention", "algebra")
"""Some of these have no deterministic form; only what they are covered by is looked at."""
