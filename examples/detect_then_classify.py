"""Two frameworks that take turns: Paddle finds where something is, PyTorch says what it is.

The script that is often recommended, with its own class replaced by one line: the import of GPUFrameworkManager.
Needs paddle, torch and numpy in one environment: python detect_then_classify.py
"""
import os

os.environ["CUDA_MODULE_LOADING"] = "LAZY"
os.environ["FLAGS_allocator_strategy"] = "auto_growth"

import numpy as np

from cohabit import GPUFrameworkManager

manager = GPUFrameworkManager()

SHAPES = {
    "cross": ["..##..", "..##..", "######", "######", "..##..", "..##.."],
    "box": ["######", "######", "##..##", "##..##", "######", "######"],
    "ring": ["######", "#....#", "#....#", "#....#", "#....#", "######"],
}


def bitmap(name):
    return np.array([[c == "#" for c in row] for row in SHAPES[name]], dtype="float32")


def run_paddle_detection(image):
    """The corner of the 6 x 6 square with the most in it."""
    import paddle

    pixels = paddle.to_tensor(image)[None, None]
    sums = paddle.nn.functional.avg_pool2d(pixels, kernel_size=6, stride=1)[0, 0]
    best = int(sums.flatten().argmax())
    return best // sums.shape[1], best % sums.shape[1]


def run_pytorch_model(crop):
    """The shape that is most like it."""
    import torch

    templates = torch.stack([torch.tensor(bitmap(name)).flatten() for name in SHAPES])
    scores = torch.nn.functional.cosine_similarity(templates, torch.tensor(crop).flatten()[None])
    return list(SHAPES)[int(scores.argmax())]


def find(image):
    manager.switch_to_paddle()
    row, column = run_paddle_detection(image)
    manager.switch_to_torch()
    return row, column, run_pytorch_model(image[row:row + 6, column:column + 6])


if __name__ == "__main__":
    for name, row, column in (("cross", 3, 17), ("box", 20, 5), ("ring", 11, 11)):
        image = np.zeros((32, 32), dtype="float32")
        image[row:row + 6, column:column + 6] = bitmap(name)
        print(*find(image))
    print(manager.report())
