"""The page of an audit: one HTML file without scripts, laid out by ``page.html`` beside this."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import numpy as np
import pandas as pd

from drocox import __version__
from drocox.auditing.findings import digits_for, number_text
from drocox.auditing.group_measures import FEWEST_AT_HORIZON
from drocox.auditing.measures import DECISIONS, MEASURES
from drocox.auditing.plots import as_svg, draw_calibration, draw_funnels, draw_groups
from drocox.heldout.intervals import DIFFER

if TYPE_CHECKING:
    from drocox.auditing.audit import Audit, Audits

NUMBERS = re.compile(r"\. (?=It is |The c-index is |\d+ of \d+ groups )")  # after a verdict


@cache
def _layout() -> jinja2.Template:
    """``page.html``, compiled once."""
    environment = jinja2.Environment(autoescape=True)
    environment.filters |= {"number_text": number_text, "minus": _minus, "parts": _parts}
    return environment.from_string(
        Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    )


def page(
    audits: Mapping[str, "Audit"],
    facts: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """The audits of one or several models, by name, as a page of HTML.

    It loads no scripts, styles, fonts or pictures from elsewhere, and names are escaped. ``facts``
    are what else the page says about its making, such as the command; ``warnings`` are messages of
    fitting the models.
    """
    about = {"Made on": date.today().isoformat(), "With": f"drocox {__version__}"}
    first = next(iter(audits.values()))
    folds = len(np.unique(first._predictions.patients.fold))
    models = f"by a model for each of {folds} folds, " if folds > 1 else ""
    about["Features"] = ", ".join(first.features) or "none named; no model was fitted"
    about["Predictions"] = (
        f"passed to drocox.audit, {models}and taken to be of patients the model has not seen"
    )
    funnels = {name: one.funnels() for name, one in audits.items()}
    crowded = [one.attribute for one in next(iter(funnels.values()))]
    crossed = [one.attribute for one in first._groupings[1:] if not one.compared]
    elsewhere = [*crowded, *crossed]  # in a funnel, or in the table alone
    in_forest = {}
    for name, one in audits.items():
        known = one.table["c_index"].notna() & ~one.table["attribute"].isin(elsewhere)
        in_forest[name] = one.table[known]
    if any(one.titles != first.titles for one in audits.values()):
        # a ratio of events and one of risks do not go into one panel
        in_forest = {name: table.assign(calibration=np.nan) for name, table in in_forest.items()}
    drawable = all(len(table) > 1 for table in in_forest.values())
    measures = first.measures
    tables = {name: one.table for name, one in audits.items()}
    numbers = count()

    def drawn(draw: Callable, *content: object) -> str:
        return as_svg(draw, *content, salt=f"drocox {next(numbers)}")

    return _layout().render(
        audits=audits,
        first=first,
        facts=about | dict(facts or {}),
        answered={name for name in measures if _known(tables, name)},
        judges_risks=_known(tables, "calibration"),
        several=audits if len(audits) > 1 else None,
        in_forest=in_forest if drawable else None,
        funnels=funnels,
        crowded=crowded,
        crossed=bool(crossed),
        side_by_side=_side_by_side,
        measures=measures,
        rows_of=_rows,
        beside_expected=_beside_expected,
        between_groups=[name for name, one in measures.items() if one.pairs_on_page],
        titles=first.titles,
        digits_for=digits_for,
        at_horizon=FEWEST_AT_HORIZON,
        decisions={name: MEASURES[name].title for name in DECISIONS},
        decided=_decided,
        warnings=warnings,
        known=_known,
        drawn=drawn,
        draw_groups=draw_groups,
        draw_funnels=draw_funnels,
        draw_calibration=draw_calibration,
    )


def _minus(text: str) -> str:
    """Hyphens before numbers as minus signs."""
    return re.sub(r"(?<![\w-])-(?=\d)", "−", text)


def _parts(line: str) -> tuple[str, str]:
    """The verdict of a finding, which may name groups such as "St. Mary", and its numbers."""
    verdict, *numbers = NUMBERS.split(line, maxsplit=1)
    return (f"{verdict}.", numbers[0]) if numbers else (verdict, "")


def _rows(audit: "Audit", names: list[str], *same: str) -> list[dict]:
    """Differences in these measures, those of a group or pair in a row; what differs first."""
    rows: dict[tuple, dict] = {}
    for row in audit.differences[audit.differences["measure"].isin(names)].itertuples():
        key = tuple(getattr(row, name) for name in same)
        rows.setdefault(key, {"group": row.group, "versus": row.versus})[row.measure] = row

    def quiet(row: dict) -> bool:
        return not any(row[name].says == DIFFER for name in names if name in row)

    return sorted(rows.values(), key=quiet)


def _decided(audit: "Audit") -> list[dict]:
    """Rows of the table of decisions: groups with intervals, then pairs that differ."""
    rows = []
    for row in audit.table.to_dict("records"):
        values = {name: [row[name + end] for end in ("", "_low", "_high")] for name in DECISIONS}
        rows.append({"name": row["group"], "pair": False, **values})
    pairs: dict[tuple, dict] = {}
    for row in audit.differences[audit.differences["measure"].isin(DECISIONS)].itertuples():
        pair = (row.attribute, row.group, row.versus)
        name = f"{row.group} against {row.versus}"
        pairs.setdefault(pair, {"name": name, "pair": True})[row.measure] = row
    return rows + list(pairs.values())


def _known(tables: Mapping[str, pd.DataFrame], *names: str) -> bool:
    """Whether some model answers one of these measures."""
    return any(table[list(names)].notna().any(axis=None) for table in tables.values())


def _beside_expected(audit: "Audit") -> tuple[list[str], list[dict]]:
    """Measures that are differences themselves, and a row for each group."""
    known = audit.differences["measure"].unique()
    names = [name for name in known if audit.measures[name].versus]
    return names, _rows(audit, names, "attribute", "group")


def _side_by_side(audits: "Audits", model: str, versus: str) -> list[dict]:
    """A row for each group and measure: the values of two models, and their difference."""
    tables = {}
    for name in (model, versus):
        tables[name] = audits[name].table.set_index(["attribute", "group"])
    paired = audits.paired
    measures = audits[model].measures
    shown = [name for name, one in measures.items() if one.on_page or name in DECISIONS]
    mine = paired[paired["model"].eq(model) & paired["measure"].isin(shown)]
    rows = []
    for row in mine.itertuples():
        where = (row.attribute, row.group)
        both = {name: table.loc[where, row.measure] for name, table in tables.items()}
        rows.append({"row": row, "model": both[model], "versus": both[versus]})
    return rows
