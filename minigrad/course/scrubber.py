"""Shows a picture with a slider, and stills for those who read without a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def scrub(
    draw: Callable[[Any, Any], None],
    values: Sequence[Any],
    *,
    label: str,
    show: Sequence[Any],
    columns: int = 3,
    width: float = 3.2,
    height: float = 2.8,
) -> Any:
    """Show stills of `draw(axis, value)` side by side, and all values under a slider.

    Args:
        draw: draws one value on a matplotlib axis.
        values: the slider's values, in order.
        label: the slider's label.
        show: the values of the stills.
        columns: the number of stills in a row.
        width: the width of a still in inches; a row should be at most 10 wide, since JupyterLab
            shrinks wider pictures, text included.
        height: the height of a still in inches.

    Returns:
        The slider with its picture; None if ipywidgets is not installed.
    """
    import matplotlib.pyplot as plt

    rows = -(-len(show) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False
    )
    # With less padding, a title would touch the label of the row above.
    figure.set_layout_engine("constrained", h_pad=0.1)
    for axis, value in zip(axes.ravel(), show, strict=True):
        draw(axis, value)
    plt.show()
    try:
        import ipywidgets
    except ImportError:
        return None

    large = max(width, min(1.8 * width, 7.8)), 1.4 * height

    def picture(value: Any) -> None:
        _, axis = plt.subplots(figsize=large, layout="constrained")
        draw(axis, value)
        plt.show()

    slider = ipywidgets.SelectionSlider(
        options=[(str(value), value) for value in values],
        description=label,
        continuous_update=False,
    )
    return ipywidgets.VBox([slider, ipywidgets.interactive_output(picture, {"value": slider})])
