"""Loads the 8 x 8 handwritten digits."""

from importlib.resources import files

import numpy as np

from minigrad.hints import teaching


@teaching
def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns real handwritten digits: images (1797, 8, 8) float32, labels (1797,) int64.

    Pixels range from 0 (paper) to 1 (ink) in steps of 1/16. Each class has 174 to 183 images.
    Each call returns new arrays, which you may change.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository, 1998 (CC BY 4.0), as shipped by scikit-learn; made by
    ``tools/make_digits.py``.

    >>> images, labels = load_digits()
    >>> images.shape, images.dtype, float(images.min()), float(images.max())
    ((1797, 8, 8), dtype('float32'), 0.0, 1.0)
    >>> labels[:10].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    with files("minigrad.data").joinpath("digits.npz").open("rb") as file:
        archive = np.load(file)
        images = archive["images"].astype(np.float32) / np.float32(16)
        labels = archive["labels"].astype(np.int64)
    return images, labels
