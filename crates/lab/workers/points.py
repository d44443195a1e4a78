"""PointNet's published shape: two nets that learn how to turn a cloud of points, and the classifier."""

import torch
from torch import nn

KINDS = 40


class Shared(nn.Sequential):
    """The same layer for every point."""

    def __init__(self, given, made):
        super().__init__(nn.Conv1d(given, made, 1, bias=False), nn.BatchNorm1d(made), nn.ReLU(inplace=True))


class Dense(nn.Sequential):
    def __init__(self, given, made):
        super().__init__(nn.Linear(given, made, bias=False), nn.BatchNorm1d(made), nn.ReLU(inplace=True))


class Turn(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.points = nn.Sequential(Shared(width, 64), Shared(64, 128), Shared(128, 1024))
        self.whole = nn.Sequential(Dense(1024, 512), Dense(512, 256), nn.Linear(256, width * width))

    def forward(self, x):
        turned = self.whole(self.points(x).amax(2)).view(-1, self.width, self.width)
        return torch.bmm(turned + torch.eye(self.width, device=x.device), x)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Sequential(Turn(3), Shared(3, 64), Shared(64, 64), Turn(64))
        self.points = nn.Sequential(Shared(64, 64), Shared(64, 128), Shared(128, 1024))
        self.whole = nn.Sequential(Dense(1024, 512), Dense(512, 256), nn.Linear(256, KINDS))

    def forward(self, x):
        return self.whole(self.points(self.enter(x)).amax(2))
