"""Reads text with PP-OCR models on PaddlePaddle: detection, direction, recognition (the package rapidocr-paddle carries them)."""
from __future__ import annotations

import pictures


class Reader:
    def __init__(self) -> None:
        from rapidocr_paddle import RapidOCR

        self._engine = RapidOCR()

    def read(self, data: bytes) -> dict:
        """A picture file -> {"width", "height", "lines": [{"text", "score", "box": four [x, y]}]}."""
        image = pictures.decode(data)
        found, _ = self._engine(image[:, :, ::-1])  # it wants blue first
        lines = [{"text": text, "score": round(float(score), 4), "box": [[float(x), float(y)] for x, y in box]}
                 for box, text, score in found or []]
        return {"width": image.shape[1], "height": image.shape[0], "lines": lines}


def make() -> Reader:
    return Reader()
