"""Draws the pictures of the README and the docs: `make pictures`.

One file per picture, each with a function `draw(theme)` that returns an SVG;
`canvas.py` has what they draw with. Every picture is written for light and dark pages.

`cast.py` draws a recording of the demo, which `demo_recording.py` makes; Chromium takes
pictures of the dashboard in `screenshots.py`, from the queue of `demo_shop.py`.
"""
