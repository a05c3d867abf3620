"""Small files of the formats that Tessera reads but does not write, and of those that it writes."""
import gzip
import shutil
import struct

# Formats in which a changed number cannot be noticed: they hold no checksum of it.
WITHOUT_CHECKSUM = {"legacy_h5", "json", "npy", "csv", "idx", "jpeg", "webp", "bmp", "gif",
                    "layouts", "parquet"}
# Formats that Tessera does not write, but night_reader does with another library.
NOT_WRITTEN = {"parquet"}
# Formats that tessera-hdf5 reads and writes.
HELPED = {"legacy_h5", "weights_h5", "keras"}
# Formats of which an older content is read, or none, if the newest cannot be read.
FALLS_BACK = {"backup"}
# Formats that Tessera writes with checksums, of which every single bit is tried.
EVERY_BIT = ("safetensors", "checkpoint", "export", "gpt", "cache", "weights_h5", "keras")


def bmp(width=7, height=9):
    row = (width * 3 + 3) // 4 * 4
    pixels = bytes(i * 37 % 256 for i in range(row * height))
    head = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 2835,
                              2835, 0, 0) + pixels


def gif(width=4, height=4):
    """Returns an image of four colours whose codes all have three bits: a clear code precedes
    every second pixel."""
    palette = bytes([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    codes = []
    for pixel in range(width * height):
        codes += [4] * (pixel % 2 == 0) + [pixel % 4]
    value = 0
    for at, code in enumerate([*codes, 5]):
        value |= code << (3 * at)
    data = value.to_bytes((3 * (len(codes) + 1) + 7) // 8, "little")
    return (b"GIF89a" + struct.pack("<HHBBB", width, height, 0x91, 0, 0) + palette + b"," +
            struct.pack("<HHHHB", 0, 0, width, height, 0) + bytes([2, len(data)]) + data +
            b"\0;")


def idx():
    return struct.pack(">BBBBIII", 0, 0, 8, 3, 3, 4, 5) + bytes(range(60))


CSV = "".join(["name,number,when,flag\n"] +
              [f"\"row, {i}\",{i * 1.5},2024-01-{i + 1:02},{'true' if i % 2 else 'false'}\n"
               for i in range(12)])


def make(tree, reader, folder):
    """Writes a file or folder of each format that the reader knows. Returns the paths by format."""
    made = {}
    written = {"csv": CSV.encode(), "idx": idx(), "idx_gz": gzip.compress(idx(), mtime=0),
               "bmp": bmp(), "gif": gif()}
    copied = {"legacy_h5": "tests/golden/keras_legacy/sequences.h5",
              "webp": "tests/golden/pictures/lossy.webp",
              "layouts": "apps/mnist/layouts/hybrid.json"}
    for form in reader.formats():
        name, path = form["name"], folder / form["name"] / form["file"]
        path.parent.mkdir(parents=True)
        if form["writes"]:
            answer = reader.write(name, path, 1)
            if answer["outcome"] != "ok":
                raise RuntimeError(f"{name} cannot be written: {answer}")
        elif name in written:
            path.write_bytes(written[name])
        else:
            shutil.copy(tree / copied[name], path)
        made[name] = path
    return made


def files_of(path):
    """Returns a file, or the files of a folder in order."""
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
