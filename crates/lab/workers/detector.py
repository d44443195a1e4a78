"""A detector of YOLOv8m's published shape: a backbone of cross-stage blocks, a neck that goes up and down, and three
decoupled heads, 79 GFLOP at 640 x 640 (YOLOv6m, which the papers use, has 86). The hundred best boxes are picked on the
GPU.
"""

import torch
from torch import nn
from torch.nn import functional

BINS = 16
CLASSES = 80
BEST = 100


class Convolution(nn.Sequential):
    def __init__(self, given, made, kernel=3, stride=1):
        super().__init__(
            nn.Conv2d(given, made, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(made), nn.SiLU(inplace=True)
        )


class Bottleneck(nn.Module):
    def __init__(self, width, shortcut):
        super().__init__()
        self.steps = nn.Sequential(Convolution(width, width), Convolution(width, width))
        self.shortcut = shortcut

    def forward(self, x):
        return x + self.steps(x) if self.shortcut else self.steps(x)


class CrossStage(nn.Module):
    def __init__(self, given, made, depth, shortcut=False):
        super().__init__()
        self.enter = Convolution(given, made, 1)
        self.blocks = nn.ModuleList(Bottleneck(made // 2, shortcut) for _ in range(depth))
        self.leave = Convolution((2 + depth) * (made // 2), made, 1)

    def forward(self, x):
        pieces = list(self.enter(x).chunk(2, 1))
        for block in self.blocks:
            pieces.append(block(pieces[-1]))
        return self.leave(torch.cat(pieces, 1))


class Pooling(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.enter = Convolution(width, width // 2, 1)
        self.leave = Convolution(width * 2, width, 1)

    def forward(self, x):
        pieces = [self.enter(x)]
        for _ in range(3):
            pieces.append(functional.max_pool2d(pieces[-1], 5, 1, 2))
        return self.leave(torch.cat(pieces, 1))


class Head(nn.Module):
    def __init__(self, width, boxes, classes):
        super().__init__()
        self.boxes, self.classes = (
            nn.Sequential(Convolution(width, inner), Convolution(inner, inner), nn.Conv2d(inner, made, 1))
            for inner, made in ((boxes, 4 * BINS), (classes, CLASSES))
        )

    def forward(self, x):
        return torch.cat([self.boxes(x), self.classes(x)], 1).flatten(2)


class Detector(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        a, b, c, d, e = (int(width * scale) for width in (48, 96, 192, 384, 576))
        self.stem = nn.Sequential(Convolution(3, a, 3, 2), Convolution(a, b, 3, 2), CrossStage(b, b, 2, True))
        self.third = nn.Sequential(Convolution(b, c, 3, 2), CrossStage(c, c, 4, True))
        self.fourth = nn.Sequential(Convolution(c, d, 3, 2), CrossStage(d, d, 4, True))
        self.fifth = nn.Sequential(Convolution(d, e, 3, 2), CrossStage(e, e, 2, True), Pooling(e))
        self.up = nn.ModuleList([CrossStage(e + d, d, 2), CrossStage(d + c, c, 2)])
        self.stride = nn.ModuleList([Convolution(c, c, 3, 2), Convolution(d, d, 3, 2)])
        self.down = nn.ModuleList([CrossStage(c + d, d, 2), CrossStage(d + e, e, 2)])
        self.heads = nn.ModuleList(Head(width, max(64, c // 4), c) for width in (c, d, e))
        self.register_buffer("bins", torch.arange(BINS, dtype=torch.float32), persistent=False)

    def forward(self, x):
        third = self.third(self.stem(x))
        fourth = self.fourth(third)
        fifth = self.fifth(fourth)
        middle = self.up[0](torch.cat([functional.interpolate(fifth, scale_factor=2.0), fourth], 1))
        large = self.up[1](torch.cat([functional.interpolate(middle, scale_factor=2.0), third], 1))
        medium = self.down[0](torch.cat([self.stride[0](large), middle], 1))
        small = self.down[1](torch.cat([self.stride[1](medium), fifth], 1))
        found = torch.cat([head(level) for head, level in zip(self.heads, (large, medium, small))], 2)
        return self.best(found)

    def best(self, found):
        """The boxes of the highest scores, each with its score and its class."""
        sides, classes = found.split([4 * BINS, CLASSES], 1)
        sides = sides.unflatten(1, (4, BINS)).softmax(2).mul(self.bins.to(sides.dtype)[:, None]).sum(2)
        scores, kinds = classes.sigmoid().max(1)
        scores, places = scores.topk(min(BEST, scores.shape[1]))
        picked = [sides.gather(2, places[:, None].expand(-1, 4, -1)), scores[:, None], kinds.gather(1, places)[:, None]]
        return torch.cat([each.to(scores.dtype) for each in picked], 1)
