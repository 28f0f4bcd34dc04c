"""Steps through a picture with HTML and CSS alone: no kernel, no script, no network.

Each step has a radio button above the picture. The checked button sets the CSS variable --step. A
part of the picture is visible while --step lies between its --from and --to. The arrow keys move
between radio buttons as in any form. The back and forth buttons are labels of the neighbouring
radio buttons.
"""

import html

STYLE = """
.mg-steps{--mg-page:var(--jp-layout-color1,#fff);--mg-ink:var(--jp-content-font-color1,#1f2430);
--mg-soft:var(--jp-content-font-color2,#59616f);margin:0;color:var(--mg-ink);
background:var(--mg-page);font:14px/1.4 system-ui,-apple-system,"Segoe UI",sans-serif}
.mg-bar{position:relative;display:flex;flex-wrap:wrap;align-items:center;gap:3px;
min-height:36px;padding:4px 0 4px 92px}
.mg-bar label{margin:0}
.mg-bar input{appearance:none;-webkit-appearance:none;margin:0;width:11px;height:15px;
border:1.5px solid var(--mg-soft);border-radius:2px;background:none;cursor:pointer;
vertical-align:middle}
.mg-bar input.mg-backward{border-style:dashed;border-radius:8px}
.mg-bar input:checked{background:var(--mg-ink);border-color:var(--mg-ink)}
.mg-bar input:focus-visible{outline:2.5px solid #4c7bd9;outline-offset:2px}
.mg-go,.mg-none{position:absolute;top:4px;left:0;box-sizing:border-box;width:40px;height:32px;
line-height:30px;text-align:center;border:1px solid var(--mg-soft);border-radius:4px;
user-select:none}
.mg-go{display:none;cursor:pointer;background:var(--mg-page);color:var(--mg-ink)}
.mg-none{opacity:.35}
.mg-forth{left:44px}
.mg-said{display:grid;padding:2px 0 6px}
.mg-said span{grid-area:1/1;visibility:hidden}
.mg-steps .mg-picture{overflow:auto;max-height:75vh}
.mg-at{opacity:calc(clamp(0,var(--step) - var(--from) + 1,1)*
clamp(0,var(--to,999999) - var(--step),1))}
@media print{.mg-bar{display:none}}
""".strip().replace("\n", "")


def during(first, end=None):
    """Returns the attributes of a part that is visible from the step `first` until `end`."""
    last = "" if end is None else f";--to:{end}"
    return f'class="mg-at" style="--from:{first}{last}"'


def stepped(picture, captions, backward_from, label):
    """Returns the HTML of a picture under its buttons, which is also well-formed XML.

    Args:
        picture: HTML or SVG whose parts have the attributes of `during`.
        captions: one sentence for each step.
        backward_from: the first step that goes backward; from it on buttons look different.
        label: a name for the whole, for screen readers.
    """
    rules, buttons = [], []
    for step, caption in enumerate(captions):
        on = f".mg-steps:has(.mg-s{step}:checked)"
        rules.append(
            f"{on}{{--step:{step}}}{on} .mg-t{step}{{visibility:visible}}"
            f"{on} :is(.mg-s{step + 1}~.mg-forth,.mg-s{step - 1}~.mg-previous){{display:block}}"
        )
        kind = " mg-backward" if step >= backward_from else ""
        checked = "" if step else ' checked="checked"'
        # without data-lm-suppress-shortcuts JupyterLab takes the arrow keys for itself
        said = html.escape(f"Step {step}: {caption}")
        buttons.append(
            f'<label title="{said}"><input type="radio" name="step" class="mg-s{step}{kind}" '
            f'aria-label="{said}" data-lm-suppress-shortcuts="true"{checked}/>'
            '<span class="mg-go mg-previous" title="Back">\u25c0</span>'
            '<span class="mg-go mg-forth" title="Forth">\u25b6</span></label>'
        )
    said = "".join(
        f'<span class="mg-t{step}">{html.escape(text)}</span>' for step, text in enumerate(captions)
    )
    return (
        f'<form class="mg-steps" role="group" aria-label="{html.escape(label)}">'
        f"<style>{STYLE}{''.join(rules)}</style>"
        '<div class="mg-bar"><span class="mg-none">\u25c0</span>'
        f'<span class="mg-none mg-forth">\u25b6</span>{"".join(buttons)}</div>'
        f'<div class="mg-said" aria-live="polite">{said}</div>'
        f'<div class="mg-picture">{picture}</div></form>'
    )
