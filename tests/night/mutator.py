"""Changes bytes as damage, bugs and attackers do: structure first, then values."""
import re

NUMBERS = (0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 1 << 31, (1 << 32) - 1,
           1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1000000)
WORDS = (b"-1", b"0", b"1e400", b"NaN", b"99999999999999999999", b"2147483648", b"null", b"[]",
         b"{}", b'""', b'"\\u0000"', b"true", b"1.5", b"[[]]", b"9223372036854775807", b"\xff\xfe",
         b",", b'"', b"\n", b"\r", b"inf")
WORD = re.compile(rb"(?<![\w.])-?\d[\d.eE]*|\"[^\"\\]{0,40}\"|\b[a-zA-Z_]{2,20}\b")
MAX_EDGE = 512


def position(random, size):
    """Returns a position; the first and last bytes, which hold the structure, are likelier."""
    edge = min(size, MAX_EDGE)
    where = random.randrange(3)
    if where == 0:
        return random.randrange(edge)
    return size - 1 - random.randrange(edge) if where == 1 else random.randrange(size)


def flip_bits(random, data, count):
    changed = bytearray(data)
    for _ in range(count):
        changed[position(random, len(data))] ^= 1 << random.randrange(8)
    return changed


def change_byte(random, data):
    changed = bytearray(data)
    changed[position(random, len(data))] = random.randrange(256)
    return changed


def change_length(random, data):
    """Writes a number of 1 to 8 bytes, in either order of bytes."""
    width = 1 << random.randrange(4)
    at = position(random, len(data))
    if random.randrange(2):
        at -= at % width
    value = random.choice((*NUMBERS, len(data), len(data) - 1, len(data) + 1))
    if random.randrange(4) == 0:
        value += random.randrange(-2, 3)
    order = random.choice(("little", "big"))
    field = (value % (1 << 8 * width)).to_bytes(width, order)
    changed = bytearray(data)
    changed[at:at + width] = field[:len(data) - at]
    return changed


def insert(random, data):
    at, count = position(random, len(data)), random.randrange(1, 65)
    added = bytes(random.choice((0, random.randrange(256))) for _ in range(count))
    return data[:at] + added + data[at:]


def delete(random, data):
    at = position(random, len(data))
    return data[:at] + data[at + random.randrange(1, 65):]


def copy_block(random, data):
    to, begin = position(random, len(data)), position(random, len(data))
    block = data[begin:begin + random.randrange(1, 257)]
    changed = bytearray(data)
    changed[to:to + len(block)] = block[:len(data) - to]
    return changed


def truncate(random, data):
    return data[:random.randrange(len(data))]


def change_word(random, data):
    """Replaces a number, a name or a text in quotes."""
    found = list(WORD.finditer(data))
    if not found:
        return data + random.choice(WORDS)
    match = random.choice(found)
    return data[:match.start()] + random.choice(WORDS) + data[match.end():]


KINDS = {
    "bit": lambda random, data: flip_bits(random, data, 1),
    "bits": lambda random, data: flip_bits(random, data, 8),
    "byte": change_byte,
    "length": change_length,
    "insert": insert,
    "delete": delete,
    "copy": copy_block,
    "cut": truncate,
    "word": change_word,
}


def mutate(random, data):
    """Returns (kind, changed bytes), which differ from `data`."""
    while True:
        kind = random.choice(tuple(KINDS))
        changed = bytes(KINDS[kind](random, data))
        if changed != data:
            return kind, changed
