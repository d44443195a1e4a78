"""One step of a diffusion: a U-Net of Stable Diffusion 1.5's published shape (860 million weights, 64 x 64 latents),
with attention to itself and to a text of 77 tokens.
"""

import math

import torch
from torch import nn
from torch.nn import functional

HEADS = 8
TEXT = 768


class Residual(nn.Module):
    def __init__(self, given, made, time):
        super().__init__()
        self.enter = nn.Sequential(nn.GroupNorm(32, given), nn.SiLU(), nn.Conv2d(given, made, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, made))
        self.leave = nn.Sequential(nn.GroupNorm(32, made), nn.SiLU(), nn.Conv2d(made, made, 3, padding=1))
        self.skip = nn.Conv2d(given, made, 1) if given != made else nn.Identity()

    def forward(self, x, time, text):
        return self.skip(x) + self.leave(self.enter(x) + self.time(time)[:, :, None, None])


class Attention(nn.Module):
    def __init__(self, width, memory):
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(memory, width, bias=False)
        self.value = nn.Linear(memory, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x, memory):
        q, k, v = (
            made.unflatten(2, (HEADS, -1)).transpose(1, 2)
            for made in (self.query(x), self.key(memory), self.value(memory))
        )
        return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Spatial(nn.Module):
    """A transformer's layer over all places of a picture."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(32, width)
        self.enter, self.leave = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.itself, self.text = Attention(width, width), Attention(width, TEXT)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, time, text):
        y = self.enter(self.norm(x)).flatten(2).transpose(1, 2)
        normed = self.norms[0](y)
        y = y + self.itself(normed, normed)
        y = y + self.text(self.norms[1](y), text)
        value, gate = self.up(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(value * functional.gelu(gate))
        return x + self.leave(y.transpose(1, 2).unflatten(2, x.shape[2:]))


class Stage(nn.ModuleList):
    def forward(self, x, time, text):
        for piece in self:
            x = piece(x, time, text)
        return x


class Resize(nn.Module):
    def __init__(self, width, up):
        super().__init__()
        self.up = up
        self.conv = nn.Conv2d(width, width, 3, 1 if up else 2, 1)

    def forward(self, x, time, text):
        return self.conv(functional.interpolate(x, scale_factor=2.0) if self.up else x)


class Denoiser(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.width, time = width, 4 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        levels = [width, 2 * width, 4 * width, 4 * width]
        kept, now = [width], width
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for level, made in enumerate(levels):
            for _ in range(2):
                self.down.append(Stage([Residual(now, made, time)] + ([Spatial(made)] if level < 3 else [])))
                kept.append(now := made)
            if level < 3:
                self.down.append(Stage([Resize(now, up=False)]))
                kept.append(now)
        self.middle = Stage([Residual(now, now, time), Spatial(now), Residual(now, now, time)])
        for level, made in reversed(list(enumerate(levels))):
            for piece in range(3):
                stage = [Residual(now + kept.pop(), made, time)] + ([Spatial(made)] if level < 3 else [])
                self.up.append(Stage(stage + ([Resize(made, up=True)] if piece == 2 and level else [])))
                now = made
        self.leave = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, 4, 3, padding=1))

    def forward(self, x, step, text):
        half = self.width // 2
        waves = torch.exp(torch.arange(half, device=x.device) * (-math.log(10_000) / half))
        angles = step[:, None].float() * waves
        time = self.time(torch.cat([angles.cos(), angles.sin()], 1).to(x.dtype))
        kept = [x := self.enter(x)]
        for stage in self.down:
            kept.append(x := stage(x, time, text))
        x = self.middle(x, time, text)
        for stage in self.up:
            x = stage(torch.cat([x, kept.pop()], 1), time, text)
        return self.leave(x).contiguous()
