"""Picture files of strangers as arrays."""
from __future__ import annotations

import io

MOST_PIXELS = 40_000_000


def decode(data: bytes):
    """RGB, height x width x 3. Raises ValueError for what is no picture, or too large a one."""
    import numpy
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data), formats=["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"]) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise ValueError(f"the picture has {picture.width} x {picture.height} pixels: at most {MOST_PIXELS} are read")
            return numpy.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError("this is not a picture that can be read") from error
