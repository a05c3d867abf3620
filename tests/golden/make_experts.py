"""Writes experts.json: the results of three implementations for the same logits, for
MixtureOfExperts.

    pip download --no-deps --only-binary=:all: --python-version 3.9 lingvo==0.14.2
    python3 make_experts.py lingvo-0.14.2-*.whl experts.json

Needs tensorflow, torch, fairscale 0.4.13 and transformers 4.57.1. Lingvo's wheel needs an older
Python: only Top2GatingOnLogits is run, from the wheel's source, without the 1e-6 in the
denominators of its means. fairscale's noise is 0. The results are slots, gates, losses and the
gradients of
    sum(combine * upstream) + aux_loss + z_loss.
Logits are computed by numbers() below, which the test repeats.
"""
import json
import sys
import zipfile

import numpy as np
import tensorflow as tf
import torch
from fairscale.nn.moe import top2gate
from transformers import SwitchTransformersConfig
from transformers.models.switch_transformers import modeling_switch_transformers as switch


def numbers(shape, seed):
    """Returns numbers in [-1, 1] that hardly repeat."""
    index = np.arange(int(np.prod(shape)), dtype=np.int64)
    values = (index * 7919 + seed * 104729 + index * index * 31) % 2003
    return (values / 1001 - 1).reshape(shape)


def logits_of(case):
    logits = 3 * numbers(case["shape"], case["seed"])
    if case["ties"]:
        logits = np.round(logits)
    if case["favourite"] >= 0:
        logits[..., case["favourite"]] += 8
    return logits


def upstream_of(case):
    return numbers(case["shape"], case["seed"] + 1)


def lingvo_gating(wheel):
    """Returns Lingvo's function without its summaries."""
    text = zipfile.ZipFile(wheel).read("lingvo/core/gshard_layers.py").decode()
    begin = text.index("def Top2GatingOnLogits")
    source = text[begin:text.index("\ndef ", begin)]
    assert source.count("[:, tf.newaxis] + 1e-6") == 1

    class Nothing:
        def __getattr__(self, name):
            return lambda *args, **kwargs: None

    names = {"tf": tf.compat.v1, "np": np, "tpu_summary": Nothing(), "py_utils": Nothing()}
    exec(source.replace("[:, tf.newaxis] + 1e-6", "[:, tf.newaxis]"), names)
    return names["Top2GatingOnLogits"]


def run_lingvo(gating, case):
    logits = tf.constant(logits_of(case))
    groups, tokens, experts = case["shape"]
    paddings = None
    if case["lengths"]:
        paddings = tf.constant([[float(s >= n) for s in range(tokens)] for n in case["lengths"]],
                               tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        aux, combine, dispatch = gating(
            None, paddings, logits, 1, experts, 0, tf.float64, use_xla_sharding=False,
            capacity_factor=case["factor"], legacy_mtf_behavior=case["legacy"])
        z = tf.reduce_mean(tf.square(tf.reduce_logsumexp(logits, -1)))
        loss = tf.reduce_sum(tf.reduce_sum(combine, -1) * upstream_of(case)) + aux
        if not case["lengths"]:
            loss += z
    assert np.array_equal(dispatch.numpy(), combine.numpy() != 0)
    return combine.numpy(), aux.numpy(), z.numpy(), tape.gradient(loss, logits).numpy()


def run_fairscale(case):
    logits = torch.tensor(logits_of(case), dtype=torch.float32, requires_grad=True)
    experts = case["shape"][2]
    groups = [top2gate.top2gating(group) for group in logits]
    # The function returns the mean over experts.
    aux = torch.stack([group[0] for group in groups]).mean() * experts**2
    combine = torch.stack([group[1] for group in groups])
    dispatch = torch.stack([group[2] for group in groups])
    assert torch.equal(dispatch, combine != 0)
    z = switch.router_z_loss_func(logits)
    upstream = torch.tensor(upstream_of(case), dtype=torch.float32)
    ((combine.sum(-1) * upstream).sum() + aux + z).backward()
    return combine.detach().numpy(), aux.item(), z.item(), logits.grad.numpy()


def run_switch(case):
    groups, tokens, experts = case["shape"]
    capacity = max(1, int(tokens * case["factor"] / experts))
    router = switch.SwitchTransformersTop1Router(SwitchTransformersConfig(
        num_experts=experts, hidden_size=experts, expert_capacity=capacity,
        router_jitter_noise=0.0))
    with torch.no_grad():
        router.classifier.weight.copy_(torch.eye(experts))
    logits = torch.tensor(logits_of(case), dtype=torch.float32, requires_grad=True)
    mask, best, seen = router(logits)
    probabilities = torch.softmax(seen, -1)
    aux = switch.load_balancing_loss_func(probabilities, probabilities.argmax(-1))
    z = switch.router_z_loss_func(seen)
    upstream = torch.tensor(upstream_of(case), dtype=torch.float32)
    ((mask * best * upstream).sum() + aux + z).backward()
    # Tokens fill an expert's slots in order.
    position = (torch.cumsum(mask, -2) - 1) * mask
    slots = torch.nn.functional.one_hot(position, capacity) * mask[..., None]
    combine = slots * best[..., None]
    return combine.detach().numpy(), aux.item(), z.item(), logits.grad.numpy()


def cases():
    for number in range(200):
        source = "lingvo" if number < 120 else "fairscale" if number < 160 else "switch"
        experts = 2 + number % 5
        tokens = 3 + number * 7 % 11
        if source == "fairscale":
            experts, tokens = 2 + number % 3, (2 + number % 3) * (2 + number % 2 * 2)
        lengths = []
        groups = 1 + number % 2
        if source == "lingvo" and number % 3 == 0:
            lengths = [1 + (number + 5 * g) % tokens for g in range(groups)]
        yield {"from": source, "shape": [groups, tokens, experts], "seed": 2 * number,
               "top_k": 1 if source == "switch" else 2,
               "factor": 2.0 if source == "fairscale" else [0.5, 1.0, 1.25, 2.0][number % 4],
               "legacy": source == "lingvo" and number // 2 % 2 == 0, "ties": number % 5 == 1,
               "favourite": number % experts if number % 7 == 2 else -1, "lengths": lengths}


def rounded(values):
    return [float(f"{value:.8g}") for value in np.ravel(values)]


def main(wheel, path):
    top2gate.gumbel_rsample = lambda shape, device: torch.zeros(shape)
    gating = lingvo_gating(wheel)
    runs = {"lingvo": lambda case: run_lingvo(gating, case), "fairscale": run_fairscale,
            "switch": run_switch}
    done = []
    for case in cases():
        combine, aux, z, gradient = runs[case["from"]](case)
        at = np.flatnonzero(combine)
        case |= {"capacity": combine.shape[-1], "at": at.tolist(),
                 "gates": rounded(combine.ravel()[at]), "aux_loss": rounded(aux)[0],
                 "z_loss": rounded(z)[0], "gradient": rounded(gradient)}
        done.append(json.dumps(case, separators=(",", ":")))
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"cases":[\n' + ",\n".join(done) + "\n]}\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
