"""Writes safetensors_cases.json and reference.safetensors with the reference implementation.

Needs safetensors 0.8.0 and numpy from PyPI. Run it in this folder: python3 make_safetensors.py
"""

import json
import os
import struct
import tempfile

import numpy as np
import safetensors
from safetensors import safe_open
from safetensors.numpy import save_file

TENSOR = '"dtype":"F32","shape":[2],"data_offsets":[0,8]'
PAIR = '{"a":{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]},' \
       '"b":{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}}'


def file(header, data=0, length=None):
    """Returns a file with this header, `data` zero bytes and a header length that may be false."""
    header = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(header) if length is None else length) + header + bytes(data)


def tensor(dtype='"F32"', shape="[2]", offsets="[0,8]", data=8):
    return file('{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}' % (dtype, shape, offsets), data)


CASES = {
    "one tensor": tensor(),
    "empty file": b"",
    "seven bytes": bytes(7),
    "header of length 0": struct.pack("<Q", 0),
    "no tensors": file("{}"),
    "no tensors and a byte": file("{}", 1),
    "header longer than allowed": file("{}", length=100_000_001),
    "header longer than the file": file("{}", length=3),
    "header length of 2^64 - 1": file("{}", length=2**64 - 1),
    "header length of 2^63": file("{}", length=2**63),
    "header not UTF-8": file(b'{"\xff":1}'),
    "blank before": file(" {}"),
    "newline before": file("\n{}"),
    "blank after": file("{} "),
    "newline after": file("{}\n"),
    "NUL after": file("{}\0"),
    "text after": file("{}x"),
    "two objects": file("{}{}"),
    "list": file("[]"),
    "null": file("null"),
    "byte order mark": file(b"\xef\xbb\xbf{}"),
    "cut JSON": file('{"a":{'),
    "comment": file("{/*x*/}"),
    "trailing comma": file('{"a":{%s},}' % TENSOR, 8),
    "tensor twice": file('{"a":{%s},"a":{%s}}' % (TENSOR, TENSOR), 8),
    "field twice": file('{"a":{"dtype":"F32",%s}}' % TENSOR, 8),
    "unknown field twice": file('{"a":{%s,"x":1,"x":2}}' % TENSOR, 8),
    "metadata twice": file('{"__metadata__":{"a":"b"},"__metadata__":{"a":"b"}}'),
    "metadata key twice": file('{"__metadata__":{"a":"b","a":"c"}}'),
    "metadata": file('{"__metadata__":{"a":"b","c":""}}'),
    "metadata of a number": file('{"__metadata__":{"a":1}}'),
    "metadata of null": file('{"__metadata__":{"a":null}}'),
    "metadata of an object": file('{"__metadata__":{"a":{}}}'),
    "metadata null": file('{"__metadata__":null}'),
    "metadata a list": file('{"__metadata__":[]}'),
    "metadata empty": file('{"__metadata__":{}}'),
    "unknown field": file('{"a":{%s,"extra":[1,{}]}}' % TENSOR, 8),
    "unknown field of 1e400": file('{"a":{%s,"x":1e400}}' % TENSOR, 8),
    "unknown field of NaN": file('{"a":{%s,"x":NaN}}' % TENSOR, 8),
    "unknown field 70 deep": file('{"a":{%s,"x":%s}}' % (TENSOR, "[" * 70 + "]" * 70), 8),
    "no dtype": file('{"a":{"shape":[2],"data_offsets":[0,8]}}', 8),
    "no shape": file('{"a":{"dtype":"F32","data_offsets":[0,8]}}', 8),
    "no offsets": file('{"a":{"dtype":"F32","shape":[2]}}', 8),
    "unknown dtype": tensor(dtype='"F31"'),
    "dtype in lower case": tensor(dtype='"f32"'),
    "dtype a number": tensor(dtype="32"),
    "negative extent": tensor(shape="[-2]"),
    "extent 2.0": tensor(shape="[2.0]"),
    "extent a text": tensor(shape='["2"]'),
    "shape null": tensor(shape="null"),
    "shape a number": tensor(shape="2"),
    "extent 2^64": tensor(shape="[18446744073709551616]"),
    "extent -0": tensor(shape="[-0]", offsets="[0,0]", data=0),
    "elements overflow": tensor(shape="[4294967296,4294967296,2]"),
    "elements overflow before a 0": tensor(shape="[4294967296,4294967296,0]", offsets="[0,0]",
                                           data=0),
    "elements overflow after a 0": tensor(shape="[0,4294967296,4294967296]", offsets="[0,0]",
                                          data=0),
    "extent 2^63 after a 0": tensor(shape="[0,9223372036854775808]", offsets="[0,0]", data=0),
    "bytes overflow": tensor(shape="[4611686018427387904]", offsets="[0,0]", data=0),
    "bits overflow": tensor(shape="[1152921504606846976]", offsets="[0,4611686018427387904]"),
    "too few bytes for the shape": tensor(shape="[3]"),
    "too many bytes for the shape": tensor(shape="[1]"),
    "negative offset": tensor(offsets="[-8,0]"),
    "offsets swapped": tensor(offsets="[8,0]"),
    "offset 8.0": tensor(offsets="[0,8.0]"),
    "one offset": tensor(offsets="[0]"),
    "three offsets": tensor(offsets="[0,8,8]"),
    "offsets an object": tensor(offsets="{}"),
    "offset 2^64 - 1": tensor(offsets="[0,18446744073709551615]"),
    "hole before": tensor(offsets="[4,12]", data=12),
    "hole between": file(PAIR % (1, 0, 4, 1, 8, 12), 12),
    "overlap": file(PAIR % (2, 0, 8, 2, 4, 12), 12),
    "same bytes twice": file(PAIR % (2, 0, 8, 2, 0, 8), 8),
    "inside another": file(PAIR % (4, 0, 16, 2, 4, 12), 16),
    "data cut": tensor(data=7),
    "data missing": tensor(data=0),
    "a byte after": tensor(data=9),
    "a zip after": tensor() + b"PK\5\6" + bytes(18),
    "any order": file(PAIR % (1, 4, 8, 1, 0, 4), 8),
    "empty tensors at the ends": file(
        '{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{%s},'
        '"c":{"dtype":"F32","shape":[3,0],"data_offsets":[8,8]}}' % TENSOR, 8),
    "empty tensor inside": file(
        '{"a":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"b":{%s}}' % TENSOR, 8),
    "scalar": tensor(dtype='"F64"', shape="[]"),
    "rank 100": tensor(shape="[%s2]" % ("1," * 99)),
    "empty name": file('{"":{%s}}' % TENSOR, 8),
    "name of a path": file('{"../../x":{%s}}' % TENSOR, 8),
    "name with an escaped NUL": file('{"a\\u0000b":{%s}}' % TENSOR, 8),
    "name with a raw newline": file('{"a\nb":{%s}}' % TENSOR, 8),
    "name of half a surrogate": file('{"\\ud800":{%s}}' % TENSOR, 8),
    "name of 4096 bytes": file('{"%s":{%s}}' % ("n" * 4096, TENSOR), 8),
    "unaligned data": file('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                           '"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}', 5),
    "tensor a number": file('{"a":1}'),
    "tensor null": file('{"a":null}'),
    "tensor as a list": file('{"a":["F32",[2],[0,8]]}', 8),
    "10000 deep": file("[" * 10000),
    "10000 deep in a tensor": file('{"a":' + "[" * 10000),
    "half a byte": tensor(dtype='"F4"', shape="[3]", offsets="[0,2]", data=2),
    "two half bytes": tensor(dtype='"F4"', shape="[4]", offsets="[0,2]", data=2),
}
DTYPES = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8,
          "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16,
          "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64,
          "I64": 64, "U64": 64}
for name, bits in DTYPES.items():
    CASES["dtype " + name] = tensor('"%s"' % name, "[8]", "[0,%d]" % bits, bits)


def accepted(content, folder):
    path = os.path.join(folder, "case.safetensors")
    with open(path, "wb") as out:
        out.write(content)
    try:
        with safe_open(path, "np") as opened:
            opened.keys()
        return True
    except safetensors.SafetensorError:
        return False


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = [{"name": name, "accepted": accepted(content, folder), "bytes": content.hex()}
                 for name, content in CASES.items()]
    text = ",\n".join(json.dumps(case) for case in cases)
    with open("safetensors_cases.json", "w") as out:
        out.write('{"made_with": {"safetensors": "%s"},\n"cases": [\n%s\n]}\n'
                  % (safetensors.__version__, text))
    types = ["f4", "f8", "i8", "u8", "bool", "f2", "i4", "u1", "i1", "i2", "u4", "u2", "c8"]
    tensors = {"layer_%d/%s" % (i, name): np.arange(i + 3).astype(name)
               for i, name in enumerate(types)}
    tensors["caf\u00e9 \"quoted\"\n"] = np.array(2.5, "f4")
    tensors["a/empty"] = np.zeros((2, 0, 3), "f4")
    save_file(tensors, "reference.safetensors", {"format": "tessera \u00e9\t"})


main()
