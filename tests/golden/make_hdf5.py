"""Writes hdf5_cases.json: small HDF5 files, their contents, and files that must be refused.

Needs h5py 3.14 and numpy from PyPI. Run it in this folder: python3 make_hdf5.py
"""

import io
import json
import zlib

import h5py
import numpy as np

DTYPES = {"f4": "F32", "f8": "F64", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
          "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8", "b1": "BOOL", "V2": "BF16"}


def file(fill, **options):
    out = io.BytesIO()
    with h5py.File(out, "w", **options) as opened:
        fill(opened)
    return out.getvalue()


def numbers(dtype="f4", shape=(5, 7)):
    count = int(np.prod(shape))
    return (np.arange(count) * 3 % 101 - (0 if "u" in dtype else 50)).reshape(shape).astype(dtype)


def dataset(f, name="x", data=None, **options):
    return f.create_dataset(name, data=numbers() if data is None else data, **options)


def compact(f):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    data = numbers(shape=(2, 3))
    space = h5py.h5s.create_simple((2, 3))
    made = h5py.h5d.create(f.id, b"x", h5py.h5t.IEEE_F32LE, space, creation)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, data)


def all_types(f):
    for kind in DTYPES:
        if kind == "V2":
            dataset(f, kind, np.arange(6, dtype="u2").view("V2")).attrs["dtype"] = "bfloat16"
        elif kind == "b1":
            dataset(f, kind, np.array([True, False, True]))
        else:
            dataset(f, kind, numbers(kind, (2, 3)))


def attributes(f):
    g = f.create_group("layers/dense/vars")
    g.attrs["name"] = "caf\u00e9"
    g.attrs["bytes"] = np.bytes_(b"plain")
    g.attrs["list"] = ["a", "", "\u00e9\n"]
    g.attrs["names"] = np.array([b"kernel:0", b"bias:0"])
    g.attrs["number"] = np.int64(-5)
    g.attrs["numbers"] = np.array([1, 2, 3], "u1")
    g.attrs["half"] = 0.5
    g.attrs["floats"] = np.array([0.25, 4], "f4")
    g.attrs["none"] = np.zeros(0)
    g.attrs["empty"] = h5py.Empty("f4")
    g.attrs["truth"] = True
    dataset(g, "0").attrs["name"] = "kernel"


def latin(f):
    h5py.h5g.create(f.id, b"a\xe9")
    f.attrs.create("latin", np.bytes_(b"caf\xe9"))
    dataset(f)


def unlinked_types(f):
    dataset(f, "text", "some text")
    dataset(f, "pair", np.zeros(2, [("a", "f4"), ("b", "i4")]))
    dataset(f, "bytes", np.zeros(3, "V3"))
    dataset(f, "complex", np.zeros(2, "c8"))
    f.create_dataset("nothing", dtype=h5py.Empty("f4").dtype, data=h5py.Empty("f4"))
    dataset(f)


GZIP = {"chunks": (2, 3), "compression": "gzip", "shuffle": True}
GOOD = {
    "contiguous": file(dataset),
    "of every type": file(all_types),
    "highest byte first": file(lambda f: [
        dataset(f, kind, numbers("f4", (2, 3)).astype(">" + kind))
        for kind in ("f4", "f2", "i4", "f8")]),
    "chunks": file(lambda f: dataset(f, chunks=(2, 3))),
    "gzip and shuffle": file(lambda f: dataset(f, **GZIP)),
    "fletcher32": file(lambda f: dataset(f, chunks=(5, 2), fletcher32=True)),
    "scale and offset": file(
        lambda f: dataset(f, data=numbers("i4"), chunks=(5, 2), scaleoffset=0)),
    "compact": file(compact),
    "scalar": file(lambda f: dataset(f, data=np.float32(2.5))),
    "scalar, highest byte first": file(lambda f: dataset(f, data=np.array(7, ">i8"))),
    "empty": file(lambda f: dataset(f, data=np.zeros((0, 3), "f4"))),
    "empty in chunks": file(lambda f: f.create_dataset("x", (0, 3), "f4", maxshape=(None, 3))),
    "never written": file(lambda f: f.create_dataset("x", (2, 3), "f4", fillvalue=7)),
    "chunks never written": file(lambda f: f.create_dataset("x", (2, 3), "f4", chunks=(1, 3))),
    "five axes": file(lambda f: dataset(f, data=numbers("f4", (2, 3, 1, 4, 2)),
                                        chunks=(1, 2, 1, 3, 2), compression="gzip")),
    "latest": file(lambda f: [dataset(f), dataset(f, "y/z", **GZIP)], libver="latest"),
    "many links": file(lambda f: [dataset(f, "g/%02d" % i, np.int32(i)) for i in range(60)],
                       libver="latest"),
    "links in their order": file(lambda f: [dataset(f, "g/" + name, np.int32(ord(name)))
                                            for name in "zyx"], track_order=True),
    "a block before": file(dataset, userblock_size=512),
    "attributes": file(attributes),
    "names of other bytes": file(latin),
    "other types beside": file(unlinked_types),
    "one dataset in two places": file(lambda f: [dataset(f), f.__setitem__("y", f["x"])]),
}


def deep(f):
    for _ in range(70):
        f = f.create_group("g")
    dataset(f)


def virtual(f, shape, maximum):
    layout = h5py.VirtualLayout(shape=shape, dtype="f4", maxshape=maximum)
    source = h5py.VirtualSource("/etc/hostname", "x", shape=shape, maxshape=maximum)
    everything = slice(None) if maximum is None else slice(0, h5py.h5s.UNLIMITED)
    layout[everything] = source[everything]
    f.create_virtual_dataset("x", layout)


def virtual_here(f):
    dataset(f, "y")
    layout = h5py.VirtualLayout(shape=(5, 7), dtype="f4")
    layout[:] = h5py.VirtualSource(".", "y", shape=(5, 7))
    f.create_virtual_dataset("x", layout)


def linked(f, link):
    dataset(f, "vars/0")
    f["x"] = link


def slash(link):
    """Makes a link whose name is a path to another one."""
    made = file(lambda f: [f.create_group("sub"), f["sub"].__setitem__("x", link),
                           dataset(f, "abc_x")])
    return made.replace(b"abc_x", b"sub/x")


def shared_text(f):
    """Makes an attribute whose elements all share one text in the file."""
    f.attrs["name"] = ["t" * 40000] + ["u%03d" % i for i in range(400)]


def same_texts():
    made = bytearray(file(shared_text))
    data = bytes(made)
    heap = data.index(b"GCOL")
    # Elements of an attribute: 4 bytes of length, 8 of the heap's address, 4 of the object's index.
    long = (40000).to_bytes(4, "little")
    at = data.index(long + heap.to_bytes(8, "little"))
    first = made[at:at + 16]
    while made[at + 4:at + 12] == first[4:12]:
        made[at:at + 16] = first
        at += 16
    return bytes(made)


def larger(content, before, after):
    """Replaces an extent."""
    was, now = (b"".join(n.to_bytes(8, "little") for n in shape) for shape in (before, after))
    assert was in content
    return content.replace(was, now)


EXTERNAL = h5py.ExternalLink("/etc/hostname", "/x")
# Files that are refused when they are opened, or when "x" is read.
REFUSED = {
    "an external link": (file(lambda f: linked(f, EXTERNAL)), "links to other places or files"),
    "an external link to itself": (
        file(lambda f: linked(f, h5py.ExternalLink("case.h5", "/vars"))), "links to other places"),
    "a soft link": (file(lambda f: linked(f, h5py.SoftLink("/vars"))), "links to other places"),
    "a soft link in a group": (file(lambda f: linked(f.create_group("g"), h5py.SoftLink("/"))),
                               "/g/: links to other places"),
    "a link to nowhere": (file(lambda f: linked(f, h5py.SoftLink("/none"))),
                          "links to other places"),
    "an external link of the latest format": (
        file(lambda f: linked(f, EXTERNAL), libver="latest"), "links to other places or files"),
    "a name that leads to an external link": (slash(EXTERNAL), "/sub/x: a name with a \"/\""),
    "a name that leads to a soft link": (slash(h5py.SoftLink("/")), "a name with a \"/\""),
    "a virtual dataset": (file(lambda f: virtual(f, (4,), None)),
                          "/x: its data are in other datasets"),
    # Uses a version of the format that earlier libraries do not know.
    "a virtual dataset without end": (
        file(lambda f: virtual(f, (4,), (None,)), libver="latest"), "/x: "),
    "a virtual dataset of the same file": (file(virtual_here),
                                           "/x: its data are in other datasets"),
    "data in another file": (
        file(lambda f: f.create_dataset("x", (4,), "f4", external=[("/etc/hostname", 0, 16)])),
        "/x: its data are in other files"),
    "data in several other files": (
        file(lambda f: f.create_dataset("x", (4,), "f4",
                                        external=[("a", 0, 8), ("/dev/zero", 8, 8)])),
        "/x: its data are in other files"),
    "a group in itself": (file(lambda f: f.__setitem__("x", f["/"])),
                          "/x: a group with two paths"),
    "a group in two places": (file(lambda f: [f.create_group("g"), f.__setitem__("x", f["g"])]),
                              "a group with two paths"),
    "groups in a circle": (
        file(lambda f: [f.create_group("a/b"), f["a/b"].__setitem__("c", f["a"])]),
        "a group with two paths"),
    "a type": (file(lambda f: f.__setitem__("x", np.dtype("f4"))),
               "/x: neither a group nor a dataset"),
    "70 groups deep": (file(deep), "groups nest deeper than 64"),
    "more elements than there can be": (
        file(lambda f: f.create_dataset("x", (2**40, 2**40), "f4", chunks=(1, 1))), "x"),
    "a tebibyte that is not there": (
        file(lambda f: f.create_dataset("x", (2**38,), "f4", chunks=(1,))),
        "more than a thousand times its stored bytes"),
    "extents beyond the file": (
        larger(file(lambda f: dataset(f, data=numbers(shape=(5, 7)))), (5, 7), (5, 2**33)), "x"),
    "a filter that nobody has": (
        file(lambda f: dataset(f, chunks=(2, 3), compression="lzf")), "x"),
    "a text in many elements": (same_texts(), "names and attributes longer than the file"),
    "no HDF5": (b"PK\3\4" + bytes(600), "not an HDF5 file"),
    "nothing": (b"", "not an HDF5 file"),
    "the first bytes alone": (b"\x89HDF\r\n\x1a\n" + bytes(100), "not an HDF5 file"),
}


def listing(content):
    found = []

    def add(path, made):
        if not isinstance(made, h5py.Dataset):
            return
        kind = made.dtype.str[1:]
        known = made.shape is not None and kind in DTYPES
        known = known and (kind != "V2" or "dtype" in made.attrs)
        known = known and (kind != "b1" or made.dtype == bool)
        data = np.asarray(made[()]).astype(made.dtype.newbyteorder("<")) if known else None
        found.append({"path": "/" + path, "dtype": DTYPES[kind] if known else "",
                      "shape": list(made.shape or []),
                      "data": data.tobytes().hex() if known else ""})

    with h5py.File(io.BytesIO(content)) as f:
        # visititems() would visit each object only once.
        def visit(group, path):
            for name in (name for name in group if isinstance(name, str)):
                inner = path + name
                add(inner, group[name])
                if isinstance(group[name], h5py.Group):
                    visit(group[name], inner + "/")
        visit(f, "")
    return sorted(found, key=lambda one: one["path"])


def packed(content):
    return zlib.compress(content, 9).hex()


def main():
    good = [{"name": name, "size": len(content), "datasets": listing(content),
             "bytes": packed(content)} for name, content in GOOD.items()]
    refused = [{"name": name, "size": len(content), "says": says, "bytes": packed(content)}
               for name, (content, says) in REFUSED.items()]
    lines = ",\n".join(json.dumps(case) for case in good)
    refusals = ",\n".join(json.dumps(case) for case in refused)
    with open("hdf5_cases.json", "w") as out:
        out.write('{"made_with": {"h5py": "%s", "hdf5": "%s"},\n'
                  '"good": [\n%s\n],\n"refused": [\n%s\n]}\n'
                  % (h5py.__version__, h5py.version.hdf5_version, lines, refusals))


main()
