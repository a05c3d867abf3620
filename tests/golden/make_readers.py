"""Writes arrays.npz, and pictures/: small pictures of each kind, with the results of Pillow,
TensorFlow and Keras in pixels.npz.

Made with numpy, pillow and tensorflow-cpu 2.21.0 from PyPI. Run it in this folder:
python3 make_readers.py

Arrays: NAME_MODE holds a file's pixels by Pillow, photo_jpg_stored_L the luminance stored in the
file; tf_METHOD is colours.png resized to 31 x 24 by tf.image.resize, tf_crop and tf_pad by Keras'
crop_to_aspect_ratio and pad_to_aspect_ratio; pillow_METHOD is photo.jpg resized by Pillow;
order_SEED holds the numbers 0 to 29 as shuffled by index_directory.
"""
import pathlib

import numpy as np
import tensorflow as tf
from PIL import Image

FOLDER = pathlib.Path(__file__).parent / "pictures"
HEIGHT, WIDTH = 23, 37
SIZE = (31, 24)


def photo():
    """Returns a picture of smooth colours with an edge."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    red = 127 + 120 * np.sin(x / 5.0)
    green = 255 * y / HEIGHT
    blue = np.where(x + y > 30, 220, 30)
    return np.stack([red, green, blue], -1).round().astype(np.uint8)


def save_pictures(rgb):
    picture = Image.fromarray(rgb)
    alpha = np.linspace(0, 255, HEIGHT * WIDTH).astype(np.uint8).reshape(HEIGHT, WIDTH)
    rgba = Image.fromarray(np.dstack([rgb, alpha]))
    picture.save(FOLDER / "photo.jpg", quality=90)
    picture.save(FOLDER / "progressive.jpg", quality=80, progressive=True)
    picture.convert("L").save(FOLDER / "grey.jpg", quality=90)
    picture.convert("CMYK").save(FOLDER / "inks.jpg", quality=90)
    picture.save(FOLDER / "colours.png")
    rgba.save(FOLDER / "alpha.png")
    rgba.convert("LA").save(FOLDER / "grey_alpha.png")
    picture.convert("1").save(FOLDER / "bits.png")
    picture.quantize(16).save(FOLDER / "palette.png", transparency=3)
    picture.save(FOLDER / "lossy.webp", quality=80)
    rgba.save(FOLDER / "lossless.webp", lossless=True)


def main():
    np.savez_compressed(FOLDER.parent / "arrays.npz", x=np.arange(6.0).reshape(3, 2),
                        y=np.array([1, 0, 1], np.int32))
    FOLDER.mkdir(exist_ok=True)
    save_pictures(photo())
    arrays = {}
    for path in sorted(FOLDER.glob("*.*")):
        if path.suffix == ".npz":
            continue
        name = path.name.replace(".", "_")
        with Image.open(path) as picture:
            if path.name == "photo.jpg":
                with Image.open(path) as stored:
                    stored.draft("L", stored.size)
                    arrays["photo_jpg_stored_L"] = np.asarray(stored)
            for mode in ("RGBA",) if "alpha" in name or "less" in name else ("RGB", "L"):
                arrays[f"{name}_{mode}"] = np.asarray(picture.convert(mode))
    pixels = tf.io.decode_image(tf.io.read_file(str(FOLDER / "colours.png")), channels=3)
    for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian",
                   "mitchellcubic"):
        arrays[f"tf_{method}"] = np.asarray(tf.image.resize(pixels, SIZE, method), np.float16)
    # Crops the middle like smart_resize.
    width = int(HEIGHT * SIZE[1] / SIZE[0])
    left = int((WIDTH - width) / 2)
    arrays["tf_crop"] = np.asarray(tf.image.resize(pixels[:, left:left + width], SIZE), np.float16)
    arrays["tf_pad"] = np.asarray(tf.image.resize_with_pad(pixels, *SIZE), np.float16)
    with Image.open(FOLDER / "photo.jpg") as picture:
        for method in ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"):
            resample = getattr(Image.Resampling, method.upper())
            arrays[f"pillow_{method}"] = np.asarray(picture.resize(SIZE[::-1], resample))
    for seed in (0, 1337):
        order = list(range(30))
        np.random.RandomState(seed).shuffle(order)
        arrays[f"order_{seed}"] = np.array(order)
    np.savez_compressed(FOLDER / "pixels.npz", **arrays)


if __name__ == "__main__":
    main()
