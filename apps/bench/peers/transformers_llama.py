"""A random Llama in transformers, of the sizes of a GenerationWork: greedy texts ("generate"), or training steps with
a fused Adam ("train")."""
import sys

import torch

from lines import answer_steps, quiet

with quiet():
    from transformers import LlamaConfig, LlamaForCausalLM

kind = sys.argv[1]
(blocks, width, heads, shared_heads, hidden, words, prompt, tokens, rows,
 length) = map(int, sys.argv[2:])
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    num_hidden_layers=blocks, hidden_size=width, num_attention_heads=heads,
    num_key_value_heads=shared_heads, intermediate_size=hidden, vocab_size=words,
    tie_word_embeddings=True, bos_token_id=None, eos_token_id=None, pad_token_id=0)).eval()


def generation():
    ids = torch.full((1, prompt), 7)

    def step(_):
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens,
                           do_sample=False)

    return step


def training():
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    ids = (torch.arange(rows * (length + 1)) * 7919 % words).view(rows, length + 1)

    def step(_):
        optimizer.zero_grad()
        logits = model(ids[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        loss.item()

    return step


answer_steps(generation() if kind == "generate" else training())
