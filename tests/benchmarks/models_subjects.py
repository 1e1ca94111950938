"""What is timed of GPT and the later models, in PyTorch: ours and those of `transformers`; see torch_subjects.py.

The peer opens the folder that ours wrote, so that both have the same weights. A job may name a `device`, and `autocast`
to have it compute in bfloat16.
"""

import tempfile

import numpy as np
import torch
from problems import model_problem
from torch.nn import functional as F
from torch_subjects import LEARNING_RATE, WEIGHT_DECAY, gemm, set_threads  # noqa: F401 (the worker's)

import course_lib.torch as ours
from course_lib.decoding.search import greedy

CLASSES = {  # of the library, of transformers
    "gpt": (ours.GPT, "GPT2LMHeadModel"),
    "t5": (ours.T5, "T5ForConditionalGeneration"),
    "vit": (ours.ViT, "ViTForImageClassification"),
    "whisper": (ours.Whisper, "WhisperForConditionalGeneration"),
    "decision": (ours.DecisionTransformer, "DecisionTransformerModel"),
}


def our_model(job):
    """A model of course_lib with its fused attention."""
    problem = model_problem(job)
    model = _built(job, problem)

    def logits(*inputs):
        said = model(*inputs)
        return said.actions if job["model"] == "decision" else said.logits

    def generate(source):
        if job["model"] == "gpt":
            return greedy(model.next_logits(len(source)), source, None, job["T"])
        first = np.full((len(source), 1), problem["config"].start_id)
        return greedy(model.next_logits(source), first, None, job["T"])

    return _model(job, problem, model, logits, generate)


def peer_model(job):
    """The same model of transformers, with the attention that it takes by itself."""
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    problem = model_problem(job)
    with tempfile.TemporaryDirectory() as folder:
        _built(job, problem).save_pretrained(folder)
        model = getattr(transformers, CLASSES[job["model"]][1]).from_pretrained(folder).to(_device(job))

    def logits(first, *more):
        if job["model"] == "vit":
            return model(pixel_values=first).logits
        if job["model"] == "decision":
            actions, returns, times = more
            return model(states=first, actions=actions, returns_to_go=returns, timesteps=times).action_preds
        if job["model"] == "whisper":
            return model(input_features=first, decoder_input_ids=more[0], use_cache=False).logits
        return model(input_ids=first, **({"decoder_input_ids": more[0]} if more else {}), use_cache=False).logits

    def generate(source):
        settings = {"max_new_tokens": job["T"], "min_new_tokens": job["T"], "do_sample": False, "pad_token_id": 0}
        source = torch.from_numpy(source).to(model.device)
        if job["model"] == "whisper":  # the search of all models; Whisper's own writes down times besides
            first = torch.full((len(source), 1), problem["config"].start_id, device=model.device)
            settings |= {"decoder_input_ids": first}
        else:
            settings |= {"attention_mask": torch.ones_like(source)}
        return transformers.GenerationMixin.generate(model, source, **settings)[:, -job["T"] :].cpu()

    return _model(job, problem, model, logits, generate)


def _built(job, problem):
    torch.manual_seed(0)
    return CLASSES[job["model"]][0](problem["config"], attention=ours.fused_attention).to(_device(job))


def _device(job):
    return job.get("device", "cpu")


def _model(job, problem, model, logits, generate):
    *inputs, labels = [torch.from_numpy(x).to(_device(job)) for x in (*problem["inputs"], problem["labels"])]
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)

    def mixed():
        return torch.autocast(_device(job), torch.bfloat16, enabled=job.get("autocast", False))

    def loss():
        with mixed():
            said = logits(*inputs)
            if job["model"] == "decision":
                return F.mse_loss(said, labels)
            return F.cross_entropy(said.flatten(0, -2), labels.flatten())

    def call():
        if job["task"] == "train":
            model.train()
            optimizer.zero_grad()
            value = loss()
            value.backward()
            optimizer.step()
            return value
        model.eval()
        with torch.inference_mode(), mixed():
            return generate(problem["inputs"][0]) if job["task"] == "generate" else logits(*inputs)

    def outputs():
        if job["task"] == "generate":
            return {"tokens": np.asarray(call())}
        if job["task"] == "forward":
            return {"logits": call().float().cpu().numpy()}
        model.eval()  # without dropout
        model.zero_grad()
        value = loss()
        value.backward()
        norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        return {"loss": value.detach().cpu().numpy(), "norm of the gradient": torch.stack(norms).norm().cpu().numpy()}

    return call, outputs
