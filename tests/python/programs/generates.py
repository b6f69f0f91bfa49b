"""Writes 12 tokens with a small GPT-2, one forward a token, and prints them."""
import torch
import transformers

torch.manual_seed(0)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=100, n_embd=48, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=99)).eval()
written = model.generate(torch.tensor([[1, 2, 3, 4]]), attention_mask=torch.ones(1, 4, dtype=torch.long),
                         max_new_tokens=12, min_new_tokens=12, do_sample=False, pad_token_id=0)
print(written.tolist())
