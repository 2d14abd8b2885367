"""The table and the diagram of the data sets say what the rules say."""

import matplotlib.pyplot as plt

from drocox.beyond import survset
from drocox.chapters import flow


def test_tables_and_diagram_agree_with_the_rules():
    stays = flow.tell_data_sets()
    included = stays.index[stays["shown"] == "included"]
    assert sorted(included) == survset.included()
    assert list(stays.index[-2:]) == ["flchain", "support2"]
    assert stays.loc["uis", "attributes"] == "age, race"
    left = flow.tell_exclusions()
    assert sorted([*stays.index, *left.index]) == survset.NAMES
    assert left.loc["acath", "reason"].startswith("its time is how long symptoms had lasted")
    fig = flow.draw_flow()
    texts = [text.get_text() for text in fig.axes[0].texts]
    assert "76 data sets" in texts
    assert f"{len(included)} included" in texts
    assert any(text.startswith("2: several rows per patient\ndiabetes") for text in texts)
    plt.close(fig)
