"""Greedy texts of a random Llama in transformers: the sizes of a GenerationWork."""
import sys

import torch

from lines import answer_steps, quiet

with quiet():
    from transformers import LlamaConfig, LlamaForCausalLM

blocks, width, heads, shared_heads, hidden, words, prompt, tokens = map(int, sys.argv[1:])
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    num_hidden_layers=blocks, hidden_size=width, num_attention_heads=heads,
    num_key_value_heads=shared_heads, intermediate_size=hidden, vocab_size=words,
    tie_word_embeddings=True, bos_token_id=None, eos_token_id=None, pad_token_id=0)).eval()
ids = torch.full((1, prompt), 7)


def step(_):
    with torch.inference_mode():
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens,
                       do_sample=False)


answer_steps(step)
