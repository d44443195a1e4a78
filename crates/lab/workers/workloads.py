"""From a workload's description to a job. Frameworks are imported when something needs them: a start is short."""

import os

from jobs import Unsuitable

PICTURES = ("vgg19", "resnet50", "resnet152", "densenet201", "inception-v3", "yolo", "unet", "pointnet")
WORDS = ("bert", "distilbert", "gpt2-large", "whisper", "pegasus")
ARRAYS = ("stencil", "traversal")
MODELS = (*PICTURES, *WORDS, "llama", *ARRAYS)
FORMS = ("eager", "graph", "compile")
TASKS = ("inference", "training")


def build(spec):
    workload = spec["workload"]
    model = workload.get("model")
    if model not in MODELS:
        raise Unsuitable(f"there is no model `{model}`; there are {', '.join(MODELS)}")
    for key, allowed in (("task", TASKS), ("form", FORMS)):
        if workload.get(key, allowed[0]) not in allowed:
            raise Unsuitable(f"there is no {key} `{workload[key]}`; there are {', '.join(allowed)}")
    if model in ARRAYS:
        import arrays

        return arrays.build(model, spec)
    return build_torch(model, spec)


def build_torch(model, spec):
    workload, best_effort = spec["workload"], spec["class"] == "best-effort"
    trains = workload.get("task") == "training"
    if trains and not best_effort:
        raise Unsuitable("a training is best-effort: nobody waits for one iteration of it")
    # What is compiled is compiled in this process: no helpers that have to be ended.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    from card import Card

    crowd = [one["workload"].get("task") for one in spec["crowd"]]
    card = Card(spec["stream"], best_effort, spec["tiny"], deterministic="training" in crowd)
    if trains:
        import training

        return training.build(card, model, workload)
    if model == "llama":
        import generation

        return generation.build(card, workload)
    import inference

    return inference.build(card, model, workload)


def about():
    """Versions of what was used, and the GPU."""
    import sys

    versions, gpu = {"python": sys.version.split()[0]}, {"name": "none", "sms": 0}
    if torch := sys.modules.get("torch"):
        versions |= {"torch": torch.__version__, "cuda": str(torch.version.cuda)}
        if torch.cuda.is_available():
            card = torch.cuda.get_device_properties(0)
            gpu = {"name": card.name, "sms": card.multi_processor_count}
            versions["cudnn"] = str(torch.backends.cudnn.version())
    if torchvision := sys.modules.get("torchvision"):
        versions["torchvision"] = torchvision.__version__
    if cupy := sys.modules.get("cupy"):
        versions["cupy"] = cupy.__version__
        card = cupy.cuda.runtime.getDeviceProperties(0)
        gpu = {"name": card["name"].decode(), "sms": card["multiProcessorCount"]}
    return versions, gpu
