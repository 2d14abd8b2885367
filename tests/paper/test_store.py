"""The committed results: whole, complete, and still what the code computes; and their hash."""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import fresh
import numpy as np
import pytest

from drocox.beyond import STUDIES
from drocox.paper import provenance, runner, store, sweep
from drocox.paper.protocol import ATTRIBUTES, KEYS, STORES, stacks
from drocox.paper.provenance import code_form
from drocox.paper.run import TWICE, columns
from drocox.paper.work import Work

pytestmark = pytest.mark.slow

PACKAGE = Path(store.__file__).parents[1]
MODELS = {"as_published": 8280, "corrected": 8280, "forensic": 1440}


@pytest.fixture(scope="module", params=STORES)
def protocol(request):
    return request.param


@pytest.fixture(scope="module")
def runs(protocol):
    return store.load_runs(protocol)


def test_the_store_verifies(protocol):
    """Completeness, hashes, and a stack chosen by the code's hash recomputed."""
    assert sweep.verify(protocol, size=1) == []


def test_every_model_is_there_once_with_every_column(protocol, runs):
    assert list(runs) == columns()
    assert len(runs) == MODELS[protocol] and not runs.duplicated(KEYS).any()
    assert (runs["protocol"] == protocol).all()


def test_metrics_are_known_for_every_attribute_of_a_data_set(protocol, runs):
    for dataset, rows in runs.groupby("dataset"):
        others = {"age", "gender", "race"} - set(ATTRIBUTES[dataset])
        unknown = {
            name for name in rows if name.startswith(("val_", "test_")) and rows[name].isna().any()
        }
        expected = {name for name in columns() if name.endswith(tuple(f"_{a}" for a in others))}
        assert unknown - {"test_ibs_misaligned"} == expected
        assert ("test_ibs_misaligned" in unknown) == (protocol == "corrected")


def test_signed_differences_and_fractions_are_those_of_ci(runs):
    for dataset, rows in runs.groupby("dataset"):
        for name in ATTRIBUTES[dataset]:
            gap = 100 * (rows[f"test_cf_1_{name}"] - rows[f"test_cf_0_{name}"])
            np.testing.assert_allclose(rows[f"test_ci_signed_{name}"], gap, atol=1e-6)
            np.testing.assert_allclose(rows[f"test_ci_percent_{name}"], gap.abs(), atol=1e-6)


def test_stability_is_known_where_it_was_measured(runs):
    measured = runs["repeat"].isin(TWICE)
    assert (runs.loc[measured, "moved"] >= 0).all()
    assert runs.loc[measured, "unstable"].isin([0, 1]).all()
    assert runs.loc[~measured, ["moved", "unstable"]].isna().all(axis=None)


def test_most_stacks_of_the_sample_have_rows_to_compare(protocol, runs):
    pool = runner.drawn(runs, protocol)
    held = [(store.rows_of(runs, s)["moved"] <= sweep.HELD).any() for s in pool]
    assert np.mean(held) > 0.5


def test_provenance_says_what_it_cost(protocol):
    record = store.load_provenance()[protocol]
    assert record["rows"] == MODELS[protocol]
    assert {"command", "cores", "machine", "packages", "peak_gb_per_worker"} <= set(record)
    assert 0 < record["wall_minutes"] and 0 < record["core_hours"]
    methods = {stack.method for stack in stacks(protocol)}
    for by_method in (record["core_minutes"], record["seconds_per_model"]):
        assert set(by_method) == methods and min(by_method.values()) > 0
    minutes = sum(record["core_minutes"].values())
    assert minutes / 60 == pytest.approx(record["core_hours"], abs=0.02)


# What the hash of the code sees.

SOURCE = '''"""A module."""

def f(x):
    """Doc."""
    total = 0.0
    for value in x:
        total += value
        total /= 2  # halved for every value
    return [total, (total,)]
'''


def same(old, new, source=SOURCE):
    assert old in source
    return code_form(source) == code_form(source.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# halved for every value", "# why"),
        ('"""Doc."""', '"""Other\n\n    words."""'),
        ('    """Doc."""\n', ""),
        ('"""A module."""\n', ""),
        ("\n\ndef", "\n\n\n# a remark\ndef"),
        ("[total, (total,)]", "[\n        total,\n        (total,),\n    ]"),
        ("f(x)", "f(\n    x,\n)"),
        ("total /= 2", "total  /=  2"),
        ("return [total", "return [(total)"),
        ("total = 0.0", "'''why'''\n    total = 0.0"),
    ],
)
def test_the_hash_does_not_see_words_and_layout(old, new):
    assert same(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        total /= 2", "    total /= 2"),  # the meaning changes with the indentation only
        ("(total,)", "(total)"),
        ("= 2", "= 3"),
        ("[total, (total,)]", "{total, (total,)}"),
        ("0.0", "'0.0'"),
        ("in x:", "in x[0,]:"),
        ("for value in x", "for value in 'x'"),
        ("def f(x)", "def f(x, *, y=None)"),
        ("def f(x)", "def f(*x)"),
    ],
)
def test_the_hash_sees_what_changes_meaning(old, new):
    assert not same(old, new)


def test_a_comma_that_makes_a_tuple_is_seen_and_another_is_not():
    for make, plain, equal in [
        ("y = (a,)\n", "y = (a)\n", False),
        ("y = x[a,]\n", "y = x[a]\n", False),
        ("return_ = a in (b,)\n", "return_ = a in (b)\n", False),
        ("y = f(a,)\n", "y = f(a)\n", True),
        ("y = f(a)(b,)\n", "y = f(a)(b)\n", True),
        ("y = [a,]\n", "y = [a]\n", True),
        ("y = {a,}\n", "y = {a}\n", True),
        ("y = (a, b,)\n", "y = (a, b)\n", True),
        ("y = x[a, b,]\n", "y = x[a, b]\n", True),
    ]:
        assert (code_form(make) == code_form(plain)) is equal, make


def test_a_string_that_is_used_is_not_a_docstring():
    assert code_form("x = 'a'\n") != code_form("x = 'b'\n")
    assert code_form("f(\n    'a'\n)\n") != code_form("f(\n    'b'\n)\n")
    assert code_form('class A: """Doc."""\n') != code_form('class B: """Doc."""\n')


def test_the_form_is_that_of_every_version_of_python():
    """Versions of Python differ in whether they show what is empty, and in f-strings."""
    source = """def f(x): return f"{x + 1:.{n}f} and {{}} {f'{y}'}"\n"""
    digest = hashlib.sha256(code_form(source).encode()).hexdigest()
    assert digest[:16] == "6992e10ec7fc969e"


def test_a_formatter_leaves_the_hash_alone(tmp_path):
    """Compact code, formatted: brackets opened, commas added, blank lines moved."""
    long = ", ".join(f"argument_{i}" for i in range(12))
    source = f"def f({long}):\n  x = [{long}]\n\n\n\n  return g(x,\n     y=1)\n"
    path = tmp_path / "module.py"
    path.write_text(source)
    ruff = Path(sys.executable).with_name("ruff")
    subprocess.run([ruff, "format", "--quiet", path], check=True)
    assert path.read_text().count("\n") > 20
    assert code_form(path.read_text()) == code_form(source)


@pytest.mark.parametrize("name", [*STORES, *STUDIES, "beyond"])
def test_every_store_hashes_all_that_its_runs_import(name):
    """By the modules that a fresh process has loaded: none can be forgotten."""
    begins = [f"beyond.{study}" for study in STUDIES] if name == "beyond" else [f"beyond.{name}"]
    begins = ["paper.run"] if name in STORES else begins
    code = f"import sys\nimport {', '.join(f'drocox.{module}' for module in begins)}\n"
    code += "print(*(name for name in sys.modules if name.startswith('drocox.')))"
    loaded = fresh.run("-c", code)
    packages = {"beyond", "paper", "paper.work"}  # what the door opens
    modules = {module.removeprefix("drocox.") for module in loaded.stdout.split()} - packages
    assert modules == set(provenance.deciding(name))
    assert {"_checks", "kernels", *begins} <= modules


@pytest.fixture
def own_package(tmp_path, monkeypatch):
    """A package of five modules: the run of "one" imports b and c, c imports d."""
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "__init__.py").write_text("KIND = 1\n")
    (tmp_path / "paper" / "run.py").write_text("from drocox import b\nimport drocox.c as c\n")
    (tmp_path / "b.py").write_text("import numpy\n")
    (tmp_path / "c.py").write_text("def f():\n    from drocox.d import g\n")
    (tmp_path / "d.py").write_text("from drocox.paper import KIND\n")
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    begins = {"one": "paper.run", "other": "b"}
    monkeypatch.setattr(
        provenance, "WORK", {name: Work("", (), {name: begins[name]}) for name in begins}
    )
    monkeypatch.setattr(provenance, "known_stores", lambda: ["one", "other"])
    return tmp_path


def test_modules_are_followed_through_all_imports(own_package):
    assert provenance.deciding("one") == ("b", "c", "d", "paper", "paper.run")
    assert provenance.deciding("other") == ("b",)


@pytest.mark.parametrize(
    "line", ["import drocox", "from drocox import dro_risk", "from . import c"]
)
def test_an_import_that_names_no_module_is_refused(own_package, line):
    (own_package / "b.py").write_text(line + "\n")
    with pytest.raises(ValueError, match=r"drocox\.b: import .* from the module it stands in"):
        provenance.deciding("one")


def test_the_hash_is_that_of_the_modules_of_the_store(own_package):
    hashed = provenance.code_hash.__wrapped__  # without memory
    hashes = []
    for text in ("x = 1\n", "x = 1  # why\n", "x = 2\n"):
        (own_package / "d.py").write_text(text)
        hashes.append((hashed("one"), hashed("other")))
    first, second, third = hashes
    assert first == second
    assert first[0] != third[0]
    assert first[1] == third[1]


@pytest.mark.parametrize("name", [*STORES, "beyond"])
def test_a_change_of_the_checks_makes_a_store_stale(name, tmp_path, monkeypatch):
    """They decide: the order of the codes of two groups is the sign of a difference."""
    package = shutil.copytree(
        PACKAGE, tmp_path / "drocox", ignore=shutil.ignore_patterns("results")
    )
    checks = package / "_checks.py"
    monkeypatch.setattr(provenance, "PACKAGE", package)
    hashed = provenance.code_hash.__wrapped__
    assert hashed(name) == provenance.code_hash(name)
    changed = checks.read_text(encoding="utf-8").replace("return_inverse=True", "return_index=True")
    checks.write_text(changed, encoding="utf-8")
    assert hashed(name) != provenance.code_hash(name)


# Where runs are written, and what is advised.


def test_an_installed_package_writes_into_the_current_folder(tmp_path, monkeypatch):
    assert store.own_folder() == store.DEFAULT  # in this checkout
    monkeypatch.setattr(store, "__file__", str(tmp_path / "drocox" / "paper" / "store.py"))
    assert store.own_folder() == Path("results")
    (tmp_path / "pyproject.toml").touch()
    assert store.own_folder() == store.DEFAULT


def test_advice_repeats_the_folder():
    assert store.command("corrected") == "drocox sweep --protocol corrected"
    assert store.command("corrected", store.DEFAULT) == "drocox sweep --protocol corrected"
    advice = store.command("corrected", Path("my try"), "--revalidate")
    assert advice == "drocox sweep --protocol corrected --revalidate --out 'my try'"


@pytest.mark.parametrize(
    "text", ['{"corrected": {"rows"', "", "[]", '{"corrected": 3}', '{"corrected": {}}']
)
def test_a_damaged_provenance_is_named_with_what_to_do(tmp_path, text):
    path = tmp_path / "provenance.json"
    path.write_text(text)
    for read in (store.load_provenance, lambda out: store.load_runs("corrected", out=out)):
        with pytest.raises(
            store.DamagedError, match=f"{path} is truncated or was edited; restore it"
        ):
            read(tmp_path)
    path.write_text(json.dumps({"corrected": {"sha256": "0"}}))
    assert list(store.load_provenance(tmp_path)) == ["corrected"]


def test_runs_are_read_again_when_their_file_has_changed(tmp_path):
    """They are kept in memory, by the time at which the file was last written."""
    path = tmp_path / "corrected.csv.gz"
    for i, value in enumerate((0.25, 0.75)):
        content = f"attribute,test_auc\n,{value}\n".encode()
        path.write_bytes(gzip.compress(content))
        os.utime(path, (1e9 + i, 1e9 + i))
        record = {"corrected": {"sha256": provenance.sha256(content)}}
        (tmp_path / "provenance.json").write_text(json.dumps(record))
        runs = store.load_runs("corrected", out=tmp_path, any_code=True)
        assert runs["test_auc"].tolist() == [value]
