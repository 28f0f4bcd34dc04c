"""Make minigrad/data/digits.npz from scikit-learn's copy of the UCI digits.

Needs scikit-learn, which minigrad itself does not:

    pip install scikit-learn
    python tools/make_digits.py
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TARGET = Path(__file__).resolve().parent.parent / "minigrad" / "data" / "digits.npz"


def main() -> None:
    """Write the 1,797 images as uint8 (0 to 16) and their labels as uint8 (0 to 9)."""
    bunch = load_digits()
    images = bunch.images.astype(np.uint8)
    labels = bunch.target.astype(np.uint8)
    assert images.shape == (1797, 8, 8)
    assert (images == bunch.images).all()
    np.savez_compressed(TARGET, images=images, labels=labels)
    print(f"{TARGET.name}: {len(images)} images, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
