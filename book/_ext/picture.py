"""Draws the diagram of the method, ``book/_static/method.svg``, for the book's six patients.

``python book/_ext/picture.py`` writes it again; a test holds the file to what is drawn here.
"""

from pathlib import Path

import numpy as np
import torch

import drocox
from drocox.bookstyle import SIX

FILE = Path(__file__).resolve().parents[1] / "_static" / "method.svg"
BLUE = "#0072B2"
PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 332" width="360" height="332" role="img"
 aria-labelledby="method-title method-text" font-family="system-ui, sans-serif" font-size="13"
 fill="#1f2429">
  <title id="method-title">One training step of DRO-COX</title>
  <desc id="method-text">Six patients get scores from the model, the scores give each patient a
    loss, an adversary turns the losses into weights that are largest where the losses are largest,
    and the step changes the parameters θ so that the weighted loss falls. Then it starts again. The
    book's six patients, hazards 2 to the power x; weights for α = {alpha}, sharp rule.</desc>
  <style>
    .box {{ fill: #ffffff; stroke: #8a929b; stroke-width: 1.5 }}
    .name {{ font-size: 15px; font-weight: 600 }}
    g:target .box {{ stroke: #D55E00; stroke-width: 3 }}
  </style>
  <marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6"
   orient="auto">
    <path d="M0 0L8 4L0 8z" fill="#6e7681"/>
  </marker>
  <g fill="none" stroke="#6e7681" stroke-width="2" marker-end="url(#tip)">
    <path d="M161 50h35"/>
    <path d="M278 97v19"/>
    <path d="M278 213v19"/>
    <path d="M199 282h-35"/>
    <path d="M82 235V128Q82 108 102 108H212Q222 108 222 100"/>
  </g>
  <text x="94" y="160" fill="#6e7681">again, with</text>
  <text x="94" y="177" fill="#6e7681">the new θ</text>
  <g id="patients">
    <rect class="box" x="4" y="4" width="156" height="92" rx="7"/>
    <text class="name" x="14" y="22">patients</text>
    <text x="14" y="38">● died  ○ censored</text>
    <g fill="{blue}" stroke="{blue}" stroke-width="2">
      {patients}
    </g>
  </g>
  <g id="scores">
    <rect class="box" x="200" y="4" width="156" height="92" rx="7"/>
    <text class="name" x="210" y="22">scores</text>
    <text x="210" y="38">f(x; θ): who is at risk</text>
    <path d="M212 86h132" stroke="#8a929b" stroke-width="1.5"/>
    <g fill="{blue}">
      {scores}
    </g>
  </g>
  <g id="losses">
    <rect class="box" x="200" y="120" width="156" height="92" rx="7"/>
    <text class="name" x="210" y="138">losses</text>
    <text x="210" y="154">one per patient</text>
    <path d="M212 204h132" stroke="#8a929b" stroke-width="1.5"/>
    <g fill="{blue}">
      {losses}
    </g>
  </g>
  <g id="weights">
    <rect class="box" x="200" y="236" width="156" height="92" rx="7"/>
    <text class="name" x="210" y="254">weights</text>
    <text x="210" y="270">set by an adversary</text>
    <path d="M212 320h132" stroke="#8a929b" stroke-width="1.5"/>
    <g fill="#D55E00">
      {weights}
    </g>
  </g>
  <g id="step">
    <rect class="box" x="4" y="236" width="156" height="92" rx="7"/>
    <text class="name" x="14" y="258">step</text>
    <text x="14" y="280">change θ so that the</text>
    <text x="14" y="298">weighted loss falls</text>
  </g>
</svg>
"""


def lifelines(time, event):
    """A line for each patient, with a filled end for a death."""
    for row, (months, died) in enumerate(zip(time, event, strict=True)):
        y = 48 + 8 * row
        x = 16 + 10 * months
        end = "" if died else ' fill="#ffffff"'
        yield f'<path d="M16 {y}H{x:g}"/><circle cx="{x:g}" cy="{y}" r="3"{end}/>'


def dots(scores):
    """A dot for each patient; equal scores lie on each other."""
    left = scores.min()
    scale = 114 / np.ptp(scores)
    for i, score in enumerate(scores):
        below = np.isclose(scores[:i], score).sum()
        x = 222 + scale * (score - left)
        yield f'<circle cx="{x:.1f}" cy="{78 - 8 * below}" r="3.5"/>'


def bars(values, kind, scale, ground):
    """A bar for each patient, ``scale`` pixels for 1."""
    for i, value in enumerate(scale * values):
        box = f'x="{216 + 22 * i}" y="{ground - value:.2f}" width="14" height="{value:.2f}"'
        yield f'<rect class="{kind}" {box}/>'


def drawn(alpha=0.5):
    """The picture, as text."""
    time, event, x = (SIX[column].to_numpy() for column in ("time", "event", "x"))
    scores = np.log(2) * x
    losses = drocox.cox_losses(torch.tensor(scores), time, event)
    weights = drocox.worst_case_weights(losses, alpha, rule="sharp")
    marks = {
        "patients": lifelines(time, event),
        "scores": dots(scores),
        "losses": bars(losses.numpy(), "loss", 30, 204),
        "weights": bars(weights.numpy(), "weight", 90, 320),
    }
    marks = {name: "\n      ".join(lines) for name, lines in marks.items()}
    return PICTURE.format(alpha=alpha, blue=BLUE, **marks)


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf8")
