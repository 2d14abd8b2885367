"""The page for users of other libraries: its code runs as printed, and says what the page says."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "book" / "from-other-libraries.md"


@pytest.fixture(scope="module")
def names():
    """What the code of the page leaves behind: audits, what it prints, and outputs on the page."""
    text = PAGE.read_text(encoding="utf-8")
    names, audits, printed = {}, [], []
    for snippet in re.findall(r"```python\n(.*?)```", text, re.S):
        assert max(map(len, snippet.splitlines())) <= 90
        with redirect_stdout(StringIO()) as out:
            exec(snippet, names)
        printed.append(out.getvalue())
        if "found" in names:
            audits.append(names.pop("found"))
    shown = re.findall(r"```text\n(.*?)```", text, re.S)
    return names | {"audits": audits, "printed": printed, "shown": shown}


# lifelines fits by autograd, which meets the odd overflow on the way, and uses old numpy
@pytest.mark.filterwarnings("ignore")
def test_the_examples_run(names):
    np.testing.assert_allclose(names["ours"].coef_, names["sksurv"].coef_, atol=1e-6)
    np.testing.assert_allclose(names["ours"].coef_, names["lifelines"].params_, atol=0.01)
    np.testing.assert_allclose(names["ridge"].coef_, names["sksurv_ridge"].coef_, atol=1e-6)
    forest, weibull = names["audits"]
    for found in (forest, weibull):
        assert found.notes == () and found.table["calibration"].notna().all()
        assert "By sex, " in found.sentence
        assert 0.65 < found.table["c_index"].iloc[0] < 0.9
        assert 0.6 < found.table["calibration"].iloc[0] < 1.5
        assert 0.05 < found.table["brier"].iloc[0] < 0.25


@pytest.mark.filterwarnings("ignore")
def test_the_page_shows_what_the_examples_print(names):
    """But for where its lines are broken."""
    assert len(names["shown"]) == len(names["printed"])
    for shown, printed in zip(names["shown"], names["printed"], strict=True):
        assert shown.split() == printed.split()


@pytest.mark.filterwarnings("ignore")
def test_an_accelerated_failure_time_model_ranks_like_its_expectation(names):
    """One model as curves, and as expected lifetimes with the sign turned."""
    import drocox

    half = names["half"]
    weibull, table = names["weibull"], names["table"]
    data = names["data"].subset(~half)
    lifetimes = weibull.predict_median(table[~half]).to_numpy()
    curves = names["audits"][1]
    by_lifetime = drocox.audit(data, -lifetimes)
    np.testing.assert_allclose(by_lifetime.table["c_index"], curves.table["c_index"], atol=1e-9)
    backwards = drocox.audit(data, lifetimes)
    assert "look like times to the event: pass -scores" in backwards.sentence
    assert backwards.table["calibration"].isna().all()
