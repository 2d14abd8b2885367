"""The command line: names, refusals, widths, exit statuses; and what the README shows."""

import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import invented
import pandas as pd
import pytest

from drocox import __version__, cli
from drocox.beyond import STUDIES
from drocox.paper import claims, selection, store, sweep, tables
from drocox.paper import cli as paper
from drocox.paper.protocol import METHODS

ROOT = Path(__file__).parents[1]
COMMANDS = ["audit", "data", "sweep", "verify", "table", "figure", "claims"]


@pytest.fixture(scope="module")
def runs():
    return invented.runs(datasets=("flc", "seer"), repeats=(1, 2))


@pytest.fixture
def asked(runs, monkeypatch):
    """Invented runs instead of the stored ones, and the folders that were asked for."""
    folders = []

    def load(protocol, *, out=None):
        folders.append(out)
        return runs.copy()

    monkeypatch.setattr(store, "load_runs", load)
    return folders


def refused(capsys, *argv):
    """The answer to arguments that are refused, on one line, once its width is checked."""
    with pytest.raises(SystemExit) as stop:
        cli.main(list(argv))
    assert stop.value.code == 2
    answer = capsys.readouterr().err
    assert max(map(len, answer.splitlines())) <= 80
    return " ".join(answer.split())


def printed(capsys, *argv):
    """What a command prints, once its status and width are checked."""
    assert cli.main(list(argv)) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    return out


def test_version_and_help_with_an_example(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for argv in (["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)):
        with pytest.raises(SystemExit) as stop:
            cli.main(argv)
        assert stop.value.code == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        if argv == ["--version"]:
            assert out == f"drocox {__version__}\n"
        elif argv == ["--help"]:
            assert all(f"  {name} " in out for name in COMMANDS)
        else:
            assert f"example: drocox {argv[0]}" in out


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["tabel"], "did you mean 'table'? choose one of: audit, data, sweep, verify"),
        (["table", "tt2"], "unknown table 'tt2'; did you mean 't2'? choose one of: flc, support"),
        (["table", "t2", "--tune-by", "f_a"], "t2 is a table of the paper as it stands: drop --tu"),
        (["table", "t2", "race"], "drop the attribute"),
        (["table", "t16", "age", "--tune-by", "CI"], "drop --tune-by, the attribute"),
        (["table", "t1", "--protocol", "corrected"], "drop --protocol"),
        (["table", "flc"], "which attribute? flc has age, gender"),
        (["table", "FLC", "race"], "no attribute 'race': flc has age, gender"),
        (["table", "flc", "age", "--protocol", "forensic"], "one of: as_published, corrected"),
        (["table", "flc", "age", "--selection", "best"], "stated, one_setting, recovered"),
        (["figure", "beta"], "choose one of: alpha"),
        (["figure", "alpha", "--dataset", "sear"], "did you mean 'seer'?"),
        (["sweep", "--method", "dro-cocks"], "did you mean 'DRO-COX'? choose one of: Cox, Cox_I("),
        (["sweep", "--repeats", "11"], "--repeats: invalid choice: 11 (choose from 1, 2, 3"),
        (["sweep", "--jobs", "0"], "--jobs is 0; choose 1 or more"),
        (["sweep", "--jobs", "many"], "argument --jobs: invalid int value: 'many'"),
        (["sweep", "--protocol", "published"], "as_published, corrected, forensic"),
        (["verify", "--work", "here"], "drop --work"),
        (["verify", "--jobs", "0"], "--jobs is 0; choose 1 or more"),
        (["sweep", "--method", "Cox", "rivals"], "as_published has no rivals; choose"),
        (["sweep", "--protocol", "beyond", "--method", "rivals", "Cox"], "beyond has no Cox"),
        (["sweep", "--protocol", "forensic", "--method", "Cox"], "forensic has no Cox"),
        (["sweep", "--protocol", "forensic", "--method", "dro-cox-split"], "no DRO-COX (SPLIT);"),
        (["verify", "--protocol", "as_publish"], "did you mean 'as_published'?"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "refused",
)
def test_wrong_or_ineffective_arguments_are_refused(capsys, argv, expected):
    assert expected in refused(capsys, *argv)


def test_a_usage_error_does_not_wait_for_slow_imports():
    """No argument that can be refused at once needs torch or pandas."""
    code = (
        "import sys; from drocox import cli\n"
        "for argv in (['table', 't2', 'race'], ['sweep', '--method', 'x'], ['tabel'],"
        " ['verify', '--work', 'here'], ['sweep', '--method', 'rivals'],"
        " 'audit none.csv --time t --event e --groups g'.split(), ['--version']):\n"
        "    try: cli.main(argv)\n"
        "    except SystemExit as stop: print(stop.code)\n"
        "slow = {'torch', 'pandas', 'sklearn', 'sksurv', 'numba', 'matplotlib'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["2"] * 6 + ["drocox " + __version__, "0", "[]", ""]


@pytest.mark.slow
def test_a_closed_pipe_gives_no_traceback():
    """As in ``drocox data | head -1``, but with a reader who is gone for certain."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "drocox.cli", "data"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode == 141 and done.stderr == ""


@pytest.mark.parametrize(
    ("command", "kept"), [("sweep", True), ("verify --all", True), ("verify", False)]
)
def test_ctrl_c_says_where_finished_runs_are_kept(capsys, monkeypatch, command, kept):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "sweep", interrupted)
    monkeypatch.setattr(sweep, "verify_plan", interrupted)
    assert cli.main(command.split()) == 130
    assert ("what was finished is kept" in capsys.readouterr().err) == kept


def test_unexpected_errors_keep_their_traceback(monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr(sweep, "sweep", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main(["sweep"])


@pytest.mark.parametrize(
    ("argv", "module", "package"),
    [
        (["claims"], "drocox.paper.claims", "yaml"),
        (["figure", "f1"], "drocox.paper.figures", "matplotlib.pyplot"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    capsys, monkeypatch, tmp_path, argv, module, package
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, module, raising=False)  # so that it is imported anew
    assert cli.main(argv) == 2
    answer = " ".join(capsys.readouterr().err.split())
    assert package.partition(".")[0] in answer
    assert answer.endswith('; run: pip install "drocox[paper]"')


def test_names_are_accepted_in_any_case(capsys, monkeypatch, tmp_path):
    got = []
    monkeypatch.setattr(sweep, "sweep", lambda *args, **how: got.append(how["methods"]) or 7)

    def methods(*names):
        printed(capsys, "sweep", "--method", *names, "--out", str(tmp_path))
        return got.pop()

    assert methods("cox_∩(keya)") == methods("COX CAP KEYA") == ["Cox_cap(Keya)"]
    assert methods("dro-cox-split") == ["DRO-COX (SPLIT)"]
    assert methods(*(name.swapcase() for name in METHODS)) == list(METHODS)


def test_names_known_before_slow_imports_equal_those_of_the_tables():
    assert tuple(paper.SELECTION_WORDS) == selection.SELECTIONS
    assert tuple(paper.METRIC_WORDS) == selection.TUNE_BY
    assert paper.TABLE_NAMES == ["t1", *tables.EXHIBITS, *tables.SPLIT_EXHIBITS]
    assert {m for block in paper.BLOCKS for m in block} == set(tables.METRICS)


def test_sweep_passes_its_arguments_on(capsys, monkeypatch, tmp_path):
    got = []
    monkeypatch.setattr(sweep, "sweep", lambda *args, **how: got.append((args, how)) or 7)
    argv = "--protocol Corrected --dataset SEER flc --method dro-cox cox --repeats 1 10"
    parts = {"datasets": ["seer", "flc"], "methods": ["DRO-COX", "Cox"], "repeats": [1, 10]}
    out = printed(capsys, "sweep", *argv.split(), "--jobs", "3", "--out", str(tmp_path))
    assert got.pop() == (("corrected",), {**parts, "jobs": 3, "out": tmp_path, "dry_run": False})
    assert "trained: 7 models" in out
    assert "missing: 7 models" in printed(capsys, "sweep", "--dry-run")
    assert got.pop()[1]["dry_run"]


def test_verify_fails_on_problems(capsys, monkeypatch, tmp_path):
    advice = "drocox sweep --protocol corrected --out " + "a/long/path/" * 5
    problem = "corrected.csv.gz is truncated or was edited; " * 3 + f"run: {advice}"
    asked = []

    def verify(plan, *, jobs, everything):
        asked.append((plan.store.name, plan.store.folder, everything))
        return sweep.Verification(["stable: 9 rows"], [problem] * (plan.store.name == "corrected"))

    monkeypatch.setattr(sweep, "verify_plan", verify)
    assert cli.main(["verify"]) == 1
    studies = [f"beyond/{study}" for study in STUDIES]
    assert [name for name, *_ in asked] == ["as_published", "corrected", "forensic", *studies]
    out = capsys.readouterr().out
    assert "as_published: complete and unchanged\n  stable: 9 rows" in out
    text = out.partition("corrected: PROBLEMS\n")[2].partition("\n  stable")[0]
    *wrapped, command = text.splitlines()
    assert max(map(len, wrapped)) <= 80
    assert command.strip() == advice  # whole, to be copied
    argv = ["verify", "--all", "--protocol", "As Published", "--out", str(tmp_path)]
    assert cli.main([*argv, "--work", "again"]) == 0
    assert asked[-1] == ("as_published", tmp_path, Path("again"))


def test_data_describes_each_data_set_in_a_block(capsys):
    out = printed(capsys, "data")
    blocks = re.split(r"^(?=FLC|SUPPORT|SEER)", out, flags=re.MULTILINE)[1:]
    for block, name in zip(blocks, ("flc", "support", "seer"), strict=True):
        facts = tables.dataset_summary().loc[name]
        words = " ".join(block.split())
        assert f"rows: {facts['rows']}" in words and f"doi: {facts['doi']}" in words
        assert f"sha256: {facts['sha256']}" in words and facts["licence"] in words


def test_a_table_has_title_directions_means_deviations_and_distances(capsys, asked):
    out = printed(capsys, "table", "T4", "--selection", "one-setting")
    assert out.startswith("T4  SEER, race, tuned by CI\nprotocol as_published\n")
    assert "selection one_setting: the paper's rule, one setting for all repeats" in out
    assert "mean over 2 repeats; below: SD, distance to the paper in its SDs" in out
    fair, accurate = out.split("\n\n")[1:]
    assert fair.split("\n")[0].split() == ["CI", "(%)", "F_A", "F_I", "F_G", "F_cap"]
    assert fair.split("\n")[1].split() == ["better:", *["lower"] * 5]
    assert accurate.split("\n")[0].split() == ["c-index", "AUC", "LPL", "IBS"]
    assert accurate.split("\n")[1].split() == ["better:", "higher", "higher", "higher", "lower"]
    table = tables.main_table("seer", "race", selection="one_setting")
    for block, metrics in zip((fair, accurate), paper.BLOCKS, strict=True):
        lines = [line for line in block.split("\n")[2:] if line.startswith("  ")]
        rows = table.groupby("method", sort=False)
        assert len(lines) == 2 * 16 and list(rows.groups) == list(METHODS)
        for i, (method, row) in enumerate(rows):
            first, second = lines[2 * i : 2 * i + 2]
            assert f"{first[:20].strip()} {second[:20].strip()}".strip() == method
            for k, metric in enumerate(metrics):
                cell = row.set_index("metric").loc[metric]
                gap = (cell["mean"] - cell["paper_mean"]) / cell["paper_std"]
                column = slice(20 + 12 * k, 32 + 12 * k)
                assert float(first[column]) == pytest.approx(cell["mean"], abs=6e-5)
                std, distance = second[column].split()
                assert float(std) == pytest.approx(cell["std"], abs=6e-5)
                if abs(gap) >= 999:
                    assert distance == "far"
                else:
                    assert float(distance) == pytest.approx(gap, abs=0.051 if abs(gap) < 9 else 0.6)


def test_a_table_without_published_numbers_has_no_distances(capsys, asked, tmp_path):
    argv = ["table", "flc", "Gender", "--tune-by", "F_A", "--protocol", "corrected"]
    out = printed(capsys, *argv, "--out", str(tmp_path))
    assert out.startswith("T10  FLC, gender, tuned by F_A\nprotocol corrected\nselection stated:")
    assert "below: SD\n" in out and not re.search(r"\d [+-]\d", out)
    assert set(asked) == {tmp_path}


def test_tables_1_16_and_17_are_printed_and_written_as_csv(capsys, asked, tmp_path):
    for name in ("t16", "T17"):
        out = printed(capsys, "table", name)
        assert "\nlinear\n" in out and "\nnonlinear\n" in out
    assert "(SPLIT, ONE SIDE)" in out
    assert cli.main(["table", "t16", "--csv", "--out", str(tmp_path)]) == 0
    assert asked[-1] == tmp_path
    assert len(pd.read_csv(io.StringIO(capsys.readouterr().out))) == 90
    assert "4,024" in printed(capsys, "table", "t1")
    assert cli.main(["table", "t1", "--csv"]) == 0
    assert len(pd.read_csv(io.StringIO(capsys.readouterr().out))) == 12


def test_numbers_of_any_size_fit_their_column():
    for value in (0.00012, 9.99999, 10, 123.456, 99999.4, 1e7, float("inf"), float("nan")):
        assert len(paper._short(value)) <= 7 and len(paper._short(-value)) <= 8
        assert float(paper._short(value)) == pytest.approx(value, rel=0.01, abs=1e-4, nan_ok=True)
    cell = pd.Series({"mean": 1.0, "std": 0.1, "paper_mean": 3.0, "paper_std": 1e-3})
    assert paper._spread(cell) == "0.1000 far"
    assert paper._spread(cell.replace(1e-3, 0.5)) == "0.1000 -4.0"
    assert paper._spread(cell.replace(1e-3, 0.05)) == "0.1000 -40"


def test_a_store_without_the_wanted_runs_says_so(capsys, asked, tmp_path):
    assert cli.main(["table", "support", "age"]) == 2
    assert "drocox: the store holds no runs on support" in capsys.readouterr().err


@pytest.mark.slow
def test_tables_and_figures_of_a_users_own_store(capsys, tmp_path, monkeypatch):
    invented.save(tmp_path / "mine", datasets=["seer"], methods=["Cox", "DRO-COX"], repeats=(1,))
    out = printed(capsys, "table", "seer", "age", "--out", str(tmp_path / "mine"))
    assert "mean over 1 repeats" in out and "DRO-COX" in out and "DeepSurv" not in out
    monkeypatch.chdir(tmp_path)
    argv = ["figure", "F1", "--dataset", "SEER", "--out", "mine"]
    assert cli.main(argv) == 0
    assert cli.main([*argv, "--to", "pictures/new"]) == 0
    for folder in (tmp_path, tmp_path / "pictures" / "new"):
        assert "<svg" in (folder / "alpha_seer_as_published.svg").read_text()
    capsys.readouterr()
    assert cli.main([*argv, "--protocol", "corrected"]) == 2  # another file, and other runs
    assert "drocox sweep --protocol corrected --out mine\n" in capsys.readouterr().err


def test_claims_are_wrapped_and_percentages_look_like_it(capsys, monkeypatch, tmp_path):
    made = pd.DataFrame(
        [
            ("C2", "printed", 3, 3, "flc age linear, " * 6, "reproduced", ""),
            ("C2", "corrected, one setting", 1, 3, "", "not", "0.9 to 1.4"),
            ("C6", "corrected", 100 * 26 / 54, 54, "SPLIT in 26", "partly", ""),
        ],
        columns=["id", "view", *claims.Count._fields, "verdict", "detectable"],
    )
    asked = []
    monkeypatch.setattr(claims, "ledger", lambda out=None: asked.append(out) or made)
    out = printed(capsys, "claims", "--out", str(tmp_path))
    assert asked == [tmp_path]
    words = " ".join(out.split())
    assert "corrected partly 48.1 % SPLIT in 26" in words and "48.1481" not in out
    assert "one setting not 1 of 3 detectable: 0.9 to 1.4" in words
    assert "reproduced from 25 %, partly from 10 %" in words
    assert "printed reproduced 3 of 3 flc age linear," in words
    assert "see book/experiments/main-tables.md" in words


def readme(language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["flc", "support", "seer"])
def test_the_readme_works_as_printed_on_every_data_set(capsys, monkeypatch, tmp_path, dataset):
    monkeypatch.chdir(tmp_path)
    (snippet,) = readme("python")
    assert snippet.count('"flc"') == 1 and len(snippet.splitlines()) <= 8
    names = {}
    exec(snippet.replace('"flc"', f'"{dataset}"'), names)
    assert names["data"].name == dataset
    out = capsys.readouterr().out
    assert "By age, " in out
    assert "<h1>Audit of" in Path("audit.html").read_text(encoding="utf-8")


def test_the_readme_starts_with_a_command_that_is_understood():
    install, audit = readme("sh")[0].strip().splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    address = re.search(r"url: (https://github\S+)", (ROOT / "_config.yml").read_text("utf-8"))[1]
    assert install.startswith(f'pip install "{project} @ git+{address}"')
    parsed = cli._parser()[0].parse_args(shlex.split(audit)[1:])
    assert parsed.groups == ["sex,age>65"] and parsed.score == ["score"]


def test_the_readme_names_every_command():
    rows = re.findall(r"^\| `drocox (\w+)(.*?)` \|", (ROOT / "README.md").read_text("utf-8"), re.M)
    assert sorted(name for name, _ in rows) == sorted(COMMANDS)
    for name, arguments in rows:
        cli._parser()[0].parse_args([name, *arguments.split()])
