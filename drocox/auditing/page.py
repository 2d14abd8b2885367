"""The page of an audit: one file of HTML that needs no other, for one model or several."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from drocox import __version__
from drocox.auditing.findings import digits_for, number_text
from drocox.auditing.judging import FEWEST_AT_HORIZON, MEASURES
from drocox.auditing.plots import as_svg, draw_calibration, draw_funnels, draw_groups

if TYPE_CHECKING:
    from drocox.auditing.audit import Audit

SHOWN_ROWS = 40  # of a table on the page; all of them are in to_csv


def page(
    audits: Mapping[str, "Audit"],
    facts: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """The audits of one or several models as a page, laid out by ``page.html`` beside this module.

    Parameters
    ----------
    audits : mapping of str to Audit
        By the name of the model, which may be empty. The second is compared with the first.
    facts : mapping of str to str, optional
        What else the page says about its making, such as the command.
    warnings : sequence of str
        What was said while the models were fitted, such as that a coefficient runs away.

    Returns
    -------
    str
        HTML without scripts, styles, fonts or pictures from elsewhere; names are escaped.
    """
    layout = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True)
    environment.filters["number_text"] = number_text
    about = {"Made on": date.today().isoformat(), "With": f"drocox {__version__}"}
    first = next(iter(audits.values()))
    compared = []
    for title, other in list(audits.items())[1:]:
        compared.append((title, other.compare(first)))
    numbers = count()

    def drawn(draw: Callable, content: object) -> str:
        return as_svg(draw, content, salt=f"drocox {next(numbers)}")

    return environment.from_string(layout).render(
        audits=audits,
        facts=about | dict(facts or {}),
        titles={name: measure.title for name, measure in MEASURES.items()},
        compared=compared,
        base=next(iter(audits)),
        most=SHOWN_ROWS,
        at_horizon=FEWEST_AT_HORIZON,
        digits_for=digits_for,
        warnings=warnings,
        drawn=drawn,
        draw_groups=draw_groups,
        draw_funnels=draw_funnels,
        draw_calibration=draw_calibration,
    )
