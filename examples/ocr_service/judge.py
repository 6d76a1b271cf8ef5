"""A small PyTorch model that says how legible each line is: contrast, and sharpness by a Laplacian."""
from __future__ import annotations

import pictures


class Judge:
    def __init__(self) -> None:
        import torch

        class Legibility(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.laplace = torch.nn.Conv2d(1, 1, 3, padding=1, padding_mode="replicate", bias=False)
                self.laplace.weight.data[:] = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])

            def forward(self, grey):
                edges = self.laplace(grey[None, None]).std()
                contrast = torch.quantile(grey.flatten(), 0.95) - torch.quantile(grey.flatten(), 0.05)
                return contrast, edges / contrast.clamp_min(1e-3)

        self._torch, self._model = torch, Legibility().eval()

    def judge(self, data: bytes, boxes: list) -> list[dict]:
        """[{"contrast": 0 to 1, "sharpness": 0 to about 2}] of each box of a picture file."""
        image = pictures.decode(data)
        result = []
        for box in boxes:
            left, top = (max(int(min(values)), 0) for values in zip(*box))
            right, bottom = (int(max(values)) + 1 for values in zip(*box))
            crop = self._torch.tensor(image[top:bottom, left:right].mean(axis=2) / 255, dtype=self._torch.float32)
            contrast, sharpness = self._judge_crop(crop[:512, :2048])
            result.append({"contrast": contrast, "sharpness": sharpness})
        return result

    def _judge_crop(self, crop) -> tuple:
        if not crop.numel():
            return 0.0, 0.0
        with self._torch.no_grad():
            return tuple(round(float(value), 3) for value in self._model(crop))


def make() -> Judge:
    return Judge()
