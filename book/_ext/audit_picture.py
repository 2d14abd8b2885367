"""Draws the README's picture of an audit, ``book/_static/audit.svg``: the one of the audit's page.

``python book/_ext/audit_picture.py`` writes it again; a test holds the file to what is drawn here.
"""

import re
from pathlib import Path

import drocox
from drocox.auditing import audit as report
from drocox.tuning import cross_fit

FILE = Path(__file__).resolve().parents[1] / "_static" / "audit.svg"
STYLE = """<style>circle { fill: #0072b2 } line, path { stroke: #0072b2 }
text { fill: #1f2429; font: 13px system-ui, sans-serif }</style>"""


def drawn() -> str:
    """The picture, as text."""
    data = drocox.load_dataset("flc")
    page = report.page({"": drocox.audit(data, **cross_fit(data))})
    tag, inside = re.search(r"<svg (.*?)>(.*?)</svg>", page, re.DOTALL).groups()
    height = re.search(r'viewBox="0 0 400 (\d+)"', tag)[1]
    size = f'xmlns="http://www.w3.org/2000/svg" width="440" height="{1.1 * int(height):g}"'
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f"<svg {size} {tag}>{STYLE}{ground}{inside}</svg>\n"


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf8")
