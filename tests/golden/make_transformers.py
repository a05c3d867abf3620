"""Writes transformers.zip: small random models of every type that load_pretrained() reads, as Hugging Face's
`transformers` saves them, and what its own program computes: outputs, and the losses of three steps of SGD.

Made with transformers 5.24.0 and torch 2.11.0 from PyPI. Run it in this folder: python3 make_transformers.py
"""
import json
import pathlib
import tempfile
import warnings
import zipfile

import torch
import transformers
from safetensors.torch import save

HERE = pathlib.Path(__file__).parent
WORDS, ROWS, STEPS, RATE = 40, 2, 10, 0.01
SIZES = {"vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 44, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 16}
# Gemma's classes need the id of padding to be a row.
GEMMA = SIZES | {"head_dim": 12, "pad_token_id": 0, "tie_word_embeddings": True}
CASES = {
    "gpt2": ("GPT2", {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16,
                      "bos_token_id": 1, "eos_token_id": 2}),
    "llama": ("Llama", SIZES | {"rope_parameters": LLAMA3, "tie_word_embeddings": False}),
    "llama_yarn": ("Llama", SIZES | {"rope_parameters": YARN, "tie_word_embeddings": True}),
    "llama_mscale": ("Llama", SIZES | {"rope_parameters": YARN | {"mscale": 0.7, "mscale_all_dim": 1.5,
                                                                   "beta_fast": 4.0, "beta_slow": 0.5}}),
    "mistral": ("Mistral", SIZES | {"sliding_window": 4}),
    "qwen2": ("Qwen2", SIZES | {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}),
    "qwen3": ("Qwen3", SIZES | {"head_dim": 12, "tie_word_embeddings": True}),
    "gemma": ("Gemma", GEMMA | {"num_key_value_heads": 1}),
    "gemma2": ("Gemma2", GEMMA | {"sliding_window": 4, "query_pre_attn_scalar": 10, "attn_logit_softcapping": 2.0,
                                  "final_logit_softcapping": 3.0}),
    "gemma3": ("Gemma3", GEMMA | {"sliding_window": 4, "query_pre_attn_scalar": 10,
                                  "layer_types": ["sliding_attention", "full_attention"]}),
    "bert": ("Bert", {"vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 44, "num_hidden_layers": 2,
                      "num_attention_heads": 4, "max_position_embeddings": 16, "type_vocab_size": 2}),
}


def model_of(kind, options):
    options = options | {"attn_implementation": "eager"}
    if kind == "Bert":
        return transformers.BertModel(transformers.BertConfig(**options), add_pooling_layer=False)
    name = kind + ("TextConfig" if kind == "Gemma3" else "Config")
    model = transformers.GPT2LMHeadModel if kind == "GPT2" else getattr(transformers, kind + "ForCausalLM")
    return model(getattr(transformers, name)(**options))


def draw_weights(model, kind, draw):
    """Replaces the weights by random ones with 8 bits, which a zip archive holds in half of the space."""
    for name, weight in model.named_parameters():
        is_scale = weight.dim() == 1 and name.endswith("weight")
        values = torch.randn(weight.shape, generator=draw) * (0.2 if weight.dim() == 1 else 0.35)
        values += 1 if is_scale and not kind.startswith("Gemma") else 0
        weight.data.copy_(values.to(torch.bfloat16))


def expected(model, kind, draw):
    """Returns inputs, outputs and the losses of three steps."""
    # Row 0 of some tables is that of padding, which torch.nn.Embedding does not train.
    ids = torch.randint(1, WORDS, (ROWS, STEPS + 1), generator=draw)
    inputs = {"input_ids": ids[:, :-1].contiguous()}
    result = {"ids": inputs["input_ids"], "labels": ids[:, 1:].contiguous()}
    if kind == "Bert":
        mask = torch.ones(ROWS, STEPS, dtype=torch.int64)
        mask[1, 7:] = 0
        types = torch.randint(0, 2, (ROWS, STEPS), generator=draw)
        inputs |= {"attention_mask": mask, "token_type_ids": types}
        result |= {"mask": mask, "types": types, "labels": torch.randn(ROWS, STEPS, 32, generator=draw)}
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(3):
        outputs = model(**inputs)
        y = outputs.last_hidden_state if kind == "Bert" else outputs.logits
        result.setdefault("outputs", y.detach().clone())
        loss = ((y - result["labels"]).square().mean() if kind == "Bert" else
                torch.nn.functional.cross_entropy(y.flatten(0, 1), result["labels"].flatten()))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return result | {"losses": torch.tensor(losses, dtype=torch.float64)}


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with zipfile.ZipFile(HERE / "transformers.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, content):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
        for number, (name, (kind, options)) in enumerate(CASES.items()):
            draw = torch.Generator().manual_seed(number)
            model = model_of(kind, options).eval()
            draw_weights(model, kind, draw)
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                for file in ("config.json", "model.safetensors"):
                    add(f"{name}/{file}", (pathlib.Path(folder) / file).read_bytes())
            values = expected(model, kind, draw)
            add(f"{name}/expected.safetensors", save(values))
            print(name, json.dumps(values["losses"].tolist()), float(values["outputs"].abs().max()))


if __name__ == "__main__":
    main()
