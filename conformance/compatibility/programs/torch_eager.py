"""Torch, one operation at a time, on the default stream: a convolutional network and a transformer block learn."""

from torch_common import DEVICE, Results, add_all, prepare, time_torch, torch, train_pictures, train_words

prepare()
results = Results()
train_pictures(results)
train_words(results)

# The fused attention of libraries, forward only, in half precision; sorting; a factorisation; a transform.
q, k, v = (torch.randn(2, 4, 64, 32, device=DEVICE).bfloat16() for _ in range(3))
with torch.no_grad():
    attention = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    matrix = torch.randn(96, 96, device=DEVICE)
    solution = torch.linalg.solve(matrix @ matrix.T + 96 * torch.eye(96, device=DEVICE), matrix)
    spectrum = torch.view_as_real(torch.fft.rfft2(matrix))
    order = torch.sort(torch.randn(5000, device=DEVICE), stable=True).indices
add_all(results, [attention, solution, spectrum, order])

time_torch(results)
results.print()
