"""Nets that look at pictures: torchvision's, a detector, a step of a diffusion, and a net for clouds of points."""

import importlib
import importlib.util
import sys
import types

import torch
from torch import nn

from detector import Detector
from diffusion import Denoiser
from jobs import Unsuitable
from points import PointNet

CLASSES = 1000
SETTLING = 8
"""Pictures whose statistics an untrained net takes for the usual ones."""
BUILDERS = {
    "vgg19": ("vgg", "vgg19", 224),
    "resnet50": ("resnet", "resnet50", 224),
    "resnet152": ("resnet", "resnet152", 224),
    "densenet201": ("densenet", "densenet201", 224),
    "inception-v3": ("inception", "inception_v3", 299),
}


def light_torchvision():
    """The package without what it imports by itself, a compiler among other things: seconds for nothing used here."""
    if "torchvision" in sys.modules:
        return
    for name in ("torchvision", "torchvision.models"):
        found = importlib.util.find_spec(name)
        if found is None:
            raise Unsuitable("there is no torchvision here")
        package = types.ModuleType(name)
        package.__path__ = found.submodule_search_locations
        sys.modules[name] = package
    sys.modules["torchvision"].__version__ = importlib.import_module("torchvision.version").__version__


def torchvision_net(card, model, trained):
    light_torchvision()
    file, name, size = BUILDERS[model]
    extra = {"aux_logits": False, "init_weights": False} if model == "inception-v3" else {}
    with card.building():
        net = getattr(importlib.import_module(f"torchvision.models.{file}"), name)(**extra)
    without_dropout(net)
    if trained and model == "vgg19" and not card.tiny:
        # At this size of picture it changes nothing, and its backward has no deterministic algorithm.
        net.avgpool = nn.Identity()
    return net.to(memory_format=torch.channels_last), 96 if card.tiny else size


def without_dropout(net):
    """Random numbers would come from a generator that tenants of one process share."""
    for module in net.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.Dropout):
                setattr(module, name, nn.Identity())


@torch.no_grad()
def settled(net, *given):
    """With statistics of these pictures in its normalisations: an untrained deep net's answers run off to infinity."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    net.train()
    net(*given)
    return net.eval()


def random_pictures(card, batch, size):
    return torch.randn(batch, 3, size, size, device=card.device).contiguous(memory_format=torch.channels_last)


def classifier(card, model, batch, count):
    net, size = torchvision_net(card, model, trained=False)
    net = settled(net, random_pictures(card, SETTLING, size)).half()
    return net, [(random_pictures(card, batch, size).half(),) for _ in range(count)]


def detector(card, model, batch, count):
    size = 64 if card.tiny else 640
    with card.building():
        net = Detector(scale=0.25 if card.tiny else 1.0).to(memory_format=torch.channels_last)
    net = settled(net, random_pictures(card, SETTLING, size)).half()
    return net, [(random_pictures(card, batch, size).half(),) for _ in range(count)]


def denoiser(card, model, batch, count):
    size = 16 if card.tiny else 64
    with card.building(torch.half):
        net = Denoiser(width=32 if card.tiny else 320).eval().to(memory_format=torch.channels_last)
        given = [
            (torch.randn(batch, 4, size, size), torch.randint(0, 1000, (batch,)), torch.randn(batch, 77, 768))
            for _ in range(count)
        ]
    return net, given


def classes_to_learn(card, model, batch, count):
    net, size = torchvision_net(card, model, trained=True)
    with card.building():
        return net, [
            (random_pictures(card, batch, size).bfloat16(), torch.randint(0, CLASSES, (batch,))) for _ in range(count)
        ]


def clouds_to_learn(card, model, batch, count):
    points = 64 if card.tiny else 2500
    with card.building():
        return PointNet(), [(torch.randn(batch, 3, points), torch.randint(0, 40, (batch,))) for _ in range(count)]


INFERENCE = dict.fromkeys(BUILDERS, classifier) | {"yolo": detector, "unet": denoiser}
TRAINING = dict.fromkeys(BUILDERS, classes_to_learn) | {"pointnet": clouds_to_learn}
