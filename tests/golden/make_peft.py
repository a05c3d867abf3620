"""Writes peft.zip: adapters of kind LoRA for models of transformers.zip, as `peft` saves them before and after 20 steps
of Adam, and the losses of these steps by Hugging Face's own program.

Made with peft 0.21.2, transformers 5.24.0 and torch 2.11.0 from PyPI, from transformers.zip beside it. Run it in this
folder: python3 make_peft.py
"""
import pathlib
import tempfile
import warnings
import zipfile

import peft
import torch
import transformers
from safetensors.torch import save

HERE = pathlib.Path(__file__).parent
WORDS, ROWS, LENGTH, STEPS, RATE = 40, 2, 11, 20, 0.01
CASES = {
    "llama": {"r": 2, "lora_alpha": 4, "target_modules": "all-linear"},
    "qwen3": {"r": 3, "lora_alpha": 6, "use_rslora": True, "target_modules": ["q_proj", "v_proj", "o_proj"]},
    "gemma2": {"r": 4, "lora_alpha": 2, "target_modules": ["k_proj", "gate_proj", "up_proj", "down_proj"]},
}


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with zipfile.ZipFile(HERE / "peft.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, \
            zipfile.ZipFile(HERE / "transformers.zip") as models, tempfile.TemporaryDirectory() as scratch:
        def add(name, content):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)

        def add_adapter(model, name):
            folder = pathlib.Path(scratch) / name
            model.save_pretrained(folder)
            for file in ("adapter_config.json", "adapter_model.safetensors"):
                add(f"{name}/{file}", (folder / file).read_bytes())
        models.extractall(scratch)
        for number, (name, options) in enumerate(CASES.items()):
            draw = torch.Generator().manual_seed(100 + number)
            base = transformers.AutoModelForCausalLM.from_pretrained(
                pathlib.Path(scratch) / name, attn_implementation="eager", dtype=torch.float32)
            model = peft.get_peft_model(base, peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **options))
            model.peft_config["default"].base_model_name_or_path = name
            trained = [(key, weight) for key, weight in model.named_parameters() if weight.requires_grad]
            for key, weight in trained:
                scale = 0.3 if "lora_A" in key else 0.1
                weight.data.copy_((torch.randn(weight.shape, generator=draw) * scale).to(torch.bfloat16))
            model.train()
            add_adapter(model, f"{name}/before")
            ids = torch.randint(1, WORDS, (STEPS, ROWS, LENGTH), generator=draw)
            optimizer = torch.optim.Adam([weight for _, weight in trained], lr=RATE)
            losses = []
            for batch in ids:
                logits = model(input_ids=batch[:, :-1]).logits
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
                losses.append(loss.item())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            add_adapter(model, f"{name}/after")
            add(f"{name}/steps.safetensors", save({"ids": ids, "losses": torch.tensor(losses, dtype=torch.float64)}))
            print(name, [round(loss, 4) for loss in losses])


if __name__ == "__main__":
    main()
