"""The package as a stranger installs it: a wheel, tried in an empty folder."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import fresh
import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED_AS = {"scikit-learn": "sklearn", "scikit-survival": "sksurv", "pyyaml": "yaml"}
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of a copy of the sources, so that building leaves nothing beside them."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    skipped = shutil.ignore_patterns("__pycache__", "parts", ".lock", "*.tmp")
    shutil.copytree(ROOT / "drocox", source / "drocox", ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source]
    subprocess.run([*PIP, *build], check=True)
    (path,) = folder.glob("drocox-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder that holds what the wheel installs."""
    target = tmp_path_factory.mktemp("installed")
    subprocess.run([*PIP, "install", "--no-deps", "--target", target, wheel], check=True)
    for source in (ROOT / "drocox").rglob("*"):  # what numba has compiled here need not be again
        if source.suffix in (".nbi", ".nbc"):
            place = target / source.relative_to(ROOT)
            place.parent.mkdir(exist_ok=True)
            shutil.copy(source, place)
        elif source.suffix == ".py":  # it compares the times of the sources
            shutil.copystat(source, target / source.relative_to(ROOT))
    return target


def files(folder):
    """Sizes of the files of a folder, without compiled code."""
    paths = [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return {str(p.relative_to(folder)): p.stat().st_size for p in paths}


@pytest.fixture
def drocox(installed, tmp_path):
    """Run the installed command line in an empty folder; nothing installed may change."""
    before = files(installed)

    def run(*arguments, start=("-m", "drocox.cli")):
        return fresh.run(*start, *arguments, folder=tmp_path, PYTHONPATH=str(installed))

    yield run
    assert files(installed) == before


def test_the_wheel_has_all_code_and_data(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = [path for path in (ROOT / "drocox").rglob("*") if path.is_file()]
    kept = [path for path in package if not {"__pycache__", "parts"} & set(path.parts)]
    wanted = {path.relative_to(ROOT).as_posix() for path in kept if path.name != ".lock"}
    assert wanted == {name for name in names if name.startswith("drocox/")}


def test_the_installed_wheel_is_what_runs(installed, tmp_path):
    code = "import drocox.paper.store as s; print(s.DEFAULT, s.own_folder())"
    done = fresh.run("-c", code, folder=tmp_path, PYTHONPATH=str(installed))
    assert done.stdout.split() == [str(installed / "drocox" / "paper" / "results"), "results"]


def test_the_wheel_tells_its_data_sets(drocox):
    done = drocox("data")
    assert done.returncode == 0, done.stderr
    assert "support" in done.stdout.lower()


def test_the_wheel_makes_a_table_of_the_stored_runs(drocox):
    done = drocox("table", "t2", "--csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 + 16 * 9


def test_a_sweep_without_a_folder_writes_into_the_current_one(drocox, tmp_path):
    done = drocox("sweep", "--dataset", "seer", "--method", "Cox", "--repeats", 4, "--jobs", 1)
    assert done.returncode == 0, done.stderr
    assert "--out results" in done.stderr
    parts = tmp_path / "results" / "parts" / "as_published"
    assert [path.name for path in parts.iterdir()] == ["seer_cox_r4.csv"]
    done = drocox("table", "seer", "race", "--csv", "--out", "results")
    assert done.returncode == 0, done.stderr
    assert "linear,Cox,c_index" in done.stdout


@pytest.mark.parametrize("version", ["3.10", "3.15"])
def test_make_refuses_a_python_that_the_lock_is_not_built_for(tmp_path, version):
    """A stand-in for another Python: the version is all that it tells."""
    fake = tmp_path / "python"
    claim = f"import sys; sys.version_info = (*map(int, '{version}'.split('.')), 0)"
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} -S -c "{claim}; exec(sys.argv[1])" "$2"\n')
    fake.chmod(0o755)
    command = ["make", "setup", f"VENV={tmp_path}/venv", f"PYTHON=nothing {fake}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and not (tmp_path / "venv").exists()
    assert "drocox needs Python 3.11 to 3.14" in done.stderr


def requirements(*extras):
    """Names by which what is required is imported."""
    texts = PROJECT["dependencies"] + [
        text for extra in extras for text in PROJECT["optional-dependencies"][extra]
    ]
    return {IMPORTED_AS.get(name, name) for name in map(project, texts)}


def project(requirement):
    """The name at the beginning of a requirement."""
    return re.match(r"[\w.\[\]-]+", requirement)[0]


def imports(paths):
    """Packages imported by some modules, anywhere in them."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"drocox"}


def test_the_library_imports_what_it_requires_and_the_reproduction_what_paper_adds():
    # of the book's chapters: need what runs them
    explorables = sorted((ROOT / "drocox" / "explorables").glob("*.py"))
    style = [ROOT / "drocox" / "bookstyle.py", *explorables]
    rooms = [ROOT / "drocox" / room for room in (".", "auditing", "heldout", "solver")]
    library = imports({path for room in rooms for path in room.glob("*.py")} - set(style))
    paper = imports((ROOT / "drocox" / "paper").glob("*.py"))
    assert library - requirements() == requirements("torch") - requirements() == {"torch"}
    assert paper <= requirements("torch", "paper")
    assert {"joblib", "threadpoolctl", "yaml"} <= paper - library
    with_kernel = {"IPython", "matplotlib_inline", "myst_nb"}  # all come with myst-nb
    assert imports(style) <= requirements("torch", "paper") | with_kernel


WITHOUT = """
import importlib.util, sys
absent = {absent}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in absent:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *at: None if name in absent else found(name, *at)
sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def without(installed, tmp_path):
    """Run code where some packages are not installed, in a folder with the file of an audit."""
    rng = np.random.default_rng(0)
    n = 200
    score = rng.normal(size=n)
    time = rng.exponential(np.exp(-score))
    columns = {"t": time, "e": rng.integers(0, 2, n), "g": rng.choice(["a", "b"], n), "s": score}
    pd.DataFrame(columns).to_csv(tmp_path / "patients.csv", index=False)

    def run(code, *absent):
        code = WITHOUT.format(absent=absent) + code
        return fresh.run("-c", code, folder=tmp_path, PYTHONPATH=str(installed))

    return run


AUDIT = (
    "from drocox import cli\nsys.exit(cli.main('audit patients.csv --time t --event e --groups g"
)


def test_patients_are_audited_the_same_without_compiler(without, tmp_path):
    """By a model of the command's own; as in a browser, where numba does not exist."""
    code = f"{AUDIT} --features s'.split()))"
    pages = []
    for absent in (("torch", "sksurv"), ("torch", "sksurv", "numba")):
        done = without(code, *absent)
        assert done.returncode == 0, done.stderr
        pages.append((tmp_path / "patients-audit.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]


def test_models_of_other_libraries_are_cross_fitted_without_torch(without):
    done = without(
        "import drocox, pandas\n"
        "from sksurv.linear_model import CoxPHSurvivalAnalysis\n"
        "df = pandas.read_csv('patients.csv')\n"
        "data = drocox.SurvivalData.from_frame(df, time='t', event='e', groups=['g'])\n"
        "found = drocox.cross_fit(data, CoxPHSurvivalAnalysis(alpha=0.1))\n"
        "print(drocox.audit(data, **found).sentence)",
        "torch",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("By g")


LINEAR = """
import drocox, json, pandas
df = pandas.read_csv("patients.csv")
data = drocox.SurvivalData.from_frame(df, time="t", event="e", groups=["g"], features=["s"])
for options in ({}, {"alpha": 0.2}, {"alpha": 0.2, "rule": "cvar"}, {"alpha": 0.2, "split": True}):
    model = drocox.DROCox(recalibrate=True, **options).fit(data.X, data.y)
    scores = model.predict(data.X)
    print(json.dumps([model.gap_ < 1e-6, model.slope_, *model.coef_]))
    print(json.dumps(model.predict_survival_function(data.X)[0](0.5)))
print(json.dumps(drocox.evaluate(data, data, scores, scores, "g")))
print(drocox.audit(data, **drocox.cross_fit(data)).sentence)
print("torch" in sys.modules)
"""


def test_linear_models_do_without_torch_or_compiler(without, tmp_path):
    """Fits, curves, metrics, cross-fitting and the audit; nothing imports torch unasked."""
    compiled, bare = (without(LINEAR, *absent) for absent in ((), ("torch", "sksurv", "numba")))
    assert bare.returncode == 0, bare.stderr
    assert compiled.stdout.endswith("False\n")
    pairs = zip(compiled.stdout.splitlines(), bare.stdout.splitlines(), strict=True)
    for one, other in pairs:
        if one[0] in "[{":
            assert json.loads(other) == pytest.approx(json.loads(one), rel=1e-9)
        else:
            assert one == other


def test_without_torch_a_name_says_what_to_install(without):
    code = """
import drocox, numpy as np
y = drocox.SurvivalData.from_arrays([2, 1], [1, 1], groups={"g": [0, 1]}).y
uses = {
    "drocox.cox_losses": lambda: drocox.cox_losses,
    "drocox.regularizers": lambda: drocox.regularizers,
    "a network or solver='adam'": lambda: drocox.DROCox(hidden_units=2).fit(np.eye(2), y),
}
for name, use in uses.items():
    try:
        use()
    except ModuleNotFoundError as error:
        print(str(error) == f'{name} needs torch; run: pip install "drocox[torch]"')
"""
    assert without(code, "torch").stdout.split() == ["True"] * 3


def test_the_lock_pins_what_is_required():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").lower().splitlines()
    pinned = {line.partition("==")[0].replace("_", "-") for line in lines if line[0] != "#"}
    extras = PROJECT["optional-dependencies"].values()
    texts = PROJECT["dependencies"] + [text for extra in extras for text in extra]
    names = {project(text).lower() for text in texts}
    own = ["beyond", "book", "notebooks", "paper", "torch"]
    assert sorted(names - pinned) == [f"drocox[{extra}]" for extra in own]
