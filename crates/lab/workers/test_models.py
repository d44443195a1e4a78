"""The models, made tiny, on a processor. `python3 -m unittest`; needs torch and torchvision, else it is skipped."""

import importlib.util
import unittest

MISSING = [name for name in ("torch", "torchvision") if importlib.util.find_spec(name) is None]
WHY = f"there is no {' and no '.join(MISSING)} here"


def build(model, kind="latency", task="inference", batch=1, **more):
    import workloads

    workload = {"model": model, "task": task, "form": "eager", "batch": batch, **more}
    crowd = [{"workload": workload}]
    spec = {"name": "t", "class": kind, "workload": workload, "stream": "normal", "tiny": True, "crowd": crowd}
    return workloads.build(spec)


@unittest.skipIf(MISSING, WHY)
class Serving(unittest.TestCase):
    def test_every_model_answers_as_it_did_at_the_start(self):
        lengths = {model: {"tokens": 16} for model in ("bert", "distilbert", "gpt2-large", "whisper")}
        lengths["llama"] = {"prompt": 12, "output": 4}
        for model in ("resnet50", "inception-v3", "yolo", "unet", *lengths):
            with self.subTest(model):
                job = build(model, **lengths.get(model, {}))
                for number in (0, 3, 11):
                    job.request(number)
                    self.assertTrue(job.is_right(number))
                self.assertFalse(job.is_right(12), "another input has another answer")

    def test_a_changed_weight_is_a_wrong_answer_and_another_digest(self):
        import torch

        job = build("bert", tokens=16)
        job.request(2)
        before = job.digest(2)
        with torch.no_grad():
            job._net.norm.weight[3] += 0.5
        job.request(2)
        self.assertFalse(job.is_right(2))
        self.assertNotEqual(job.digest(2), before)

    def test_a_step_of_fixed_shape_gives_the_same_words(self):
        import torch

        from llama import Llama, Shape

        torch.manual_seed(3)
        shape = Shape(tiny=True)
        net = Llama(shape, batch=2, longest=12).eval()
        text = torch.randint(0, shape.vocabulary, (2, 6))
        with torch.inference_mode():
            first = word = net(text, 0)
            plain = [word := net(word, at) for at in range(6, 12)]
            net.cache.zero_()
            self.assertTrue(torch.equal(word := net(text, 0), first))
            fixed = [word := net.fixed(word, torch.tensor([at])) for at in range(6, 12)]
            again = [net(torch.cat([text, first, *plain[:count]], 1), 0) for count in range(6)]
        self.assertTrue(all(map(torch.equal, plain, fixed)))
        self.assertTrue(all(map(torch.equal, plain, again)), "the cache remembers what was read")


@unittest.skipIf(MISSING, WHY)
class Learning(unittest.TestCase):
    def iterations(self, job, count):
        for number in range(count):
            job.wait(job.hand_over(number))
        return job.digests(count)

    def test_a_training_begins_again_with_the_same_bits(self):
        for model in ("pointnet", "bert", "whisper", "pegasus"):
            with self.subTest(model):
                job = build(model, "best-effort", "training", batch=2, tokens=8)
                once = self.iterations(job, 11)
                job.prepare()
                self.assertEqual(self.iterations(job, 11), once)
                self.assertEqual(len(set(once)), 11, "and it goes on")
                self.assertIn("-", once[9], "the tenth tells of the weights")

    def test_a_changed_weight_is_seen(self):
        import torch

        job = build("distilbert", "best-effort", "training", batch=2, tokens=8)
        first = job.fingerprint()
        once = self.iterations(job, 10)
        job.prepare()
        self.assertEqual(job.fingerprint(), first)
        with torch.no_grad():
            job._weights[0][5] += 1
        self.assertNotEqual(job.fingerprint(), first)
        self.assertNotEqual(self.iterations(job, 10)[9], once[9])

    def test_what_cannot_be_had_is_said(self):
        for words, arguments in [
            ("best-effort", ("bert", "latency", "training")),
            ("only served", ("yolo", "best-effort", "training")),
            ("only trained", ("pegasus", "latency", "inference")),
            ("no task `guessing`", ("bert", "latency", "guessing")),
        ]:
            with self.assertRaisesRegex(Exception, words):
                build(*arguments)


if __name__ == "__main__":
    unittest.main()
