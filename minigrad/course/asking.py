"""Asks for a prediction in a notebook, with buttons or a field for a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any


def ask(
    head: str, choices: Sequence[Any], said: Any, note: str, take: Callable[[Any], None]
) -> dict[str, Any]:
    """Return an answerable question as display formats; none without ipywidgets.

    Args:
        head: HTML with the question.
        choices: one button each; if empty, there is a field for a number.
        said: the answer so far, `...` for none.
        note: a sentence below.
        take: receives the answer, one of the choices or the typed text.
    """
    try:
        import ipywidgets
    except ImportError:
        return {}
    if choices:
        answers = [_button(ipywidgets, choice, choice == said, take) for choice in choices]
    else:
        # The value changes on Enter, or on a click elsewhere, such as on the button.
        field = ipywidgets.Text(
            value="" if said is ... else str(said),
            placeholder="a number",
            continuous_update=False,
            layout={"width": "12em"},
        )
        field.observe(lambda change: take(change["new"]), "value")
        answers = [field, ipywidgets.Button(description="predict", layout={"width": "auto"})]
    row = ipywidgets.HBox(answers, layout={"flex_flow": "row wrap", "margin": "0 0 0 16px"})
    quiet = "color:var(--jp-ui-font-color2);line-height:1.5;padding-left:18px"
    below = [ipywidgets.HTML(f'<div style="{quiet}">{escape(note)}</div>')] if note else []
    style = "line-height:1.5;font-size:var(--jp-content-font-size1)"
    box = ipywidgets.VBox([ipywidgets.HTML(f'<div style="{style}">{head}</div>'), row, *below])
    return box._repr_mimebundle_() or {}


def _button(ipywidgets: Any, choice: Any, is_chosen: bool, take: Callable[[Any], None]) -> Any:
    button = ipywidgets.Button(
        description=str(choice),
        button_style="primary" if is_chosen else "",
        layout={"width": "auto", "min_width": "4em"},
    )
    button.on_click(lambda _: take(choice))
    return button
