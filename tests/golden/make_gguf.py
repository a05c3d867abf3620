"""Writes gguf/types.gguf: a tensor of each type that the reader has, and the numbers that the package
gguf (the reference implementation in Python, of llama.cpp's authors) reads from it, in
gguf/types.json. Needs gguf 0.19.0 from PyPI: make_gguf.py"""
import json
import pathlib

import gguf
import numpy

folder = pathlib.Path(__file__).parent / "gguf"
folder.mkdir(exist_ok=True)
random = numpy.random.default_rng(11)
writer = gguf.GGUFWriter(folder / "types.gguf", "llama")
writer.add_uint32("llama.block_count", 2)
writer.add_float32("llama.rope.freq_base", 10000.5)
writer.add_bool("tokenizer.ggml.add_bos_token", True)
writer.add_int32("minus", -7)
writer.add_array("tokenizer.ggml.tokens", ["a", "bc", "\u20ac"])
writer.add_array("numbers", [1, 2, 3])
expected = {}
for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"):
    kind = gguf.GGMLQuantizationType[name]
    values = random.normal(size=(3, 64)).astype(numpy.float32)
    values[0, :3] = [0, 1e-7, -60000]  # in float16: zero, a subnormal number, one that is large
    stored = gguf.quants.quantize(values, kind)
    writer.add_tensor(name, stored, raw_dtype=kind)
    expected[name] = gguf.quants.dequantize(stored, kind).astype(float).flatten().tolist()
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
(folder / "types.json").write_text(json.dumps(expected) + "\n")
