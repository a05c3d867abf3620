"""PyTorch's DataLoader with two workers: an epoch of a folder's JPEGs, decoded by Pillow at full
size and resized to 224 x 224 without antialiasing, in batches of 32."""
import pathlib
import sys

import numpy as np
import torch
from PIL import Image

from lines import answer_steps


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(pathlib.Path(folder).glob("*/*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, row):
        with Image.open(self.paths[row]) as picture:
            pixels = torch.from_numpy(np.array(picture.convert("RGB")))
        pixels = pixels.permute(2, 0, 1).unsqueeze(0).float()
        resized = torch.nn.functional.interpolate(pixels, (224, 224), mode="bilinear",
                                                  align_corners=False)
        return resized.squeeze(0), int(self.paths[row].parent.name == "odd")


loader = torch.utils.data.DataLoader(Pictures(sys.argv[1]), batch_size=32, num_workers=2,
                                     persistent_workers=True)


def epoch(_):
    return sum(len(labels) for _, labels in loader)


if __name__ == "__main__":
    answer_steps(epoch)
