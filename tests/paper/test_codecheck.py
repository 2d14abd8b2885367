"""The CODECHECK manifest: in step with the exhibits, and with commands that exist."""

import shlex
import sys
from pathlib import Path

import pytest
import yaml

from drocox import cli

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import codecheck  # noqa: E402

IDS = [*(f"T{number}" for number in range(1, 18)), "F1"]


def test_the_file_is_what_the_generator_writes():
    assert (ROOT / "codecheck.yml").read_text(encoding="utf-8") == codecheck.manifest()


def test_the_file_is_a_document_with_the_paper_and_relative_files():
    text = codecheck.manifest()
    assert text.startswith("---\n")
    content = yaml.safe_load(text)
    assert content["paper"]["title"] in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert content["paper"]["reference"] in (ROOT / "book" / "references.bib").read_text()
    assert content["repository"] in (ROOT / "_config.yml").read_text(encoding="utf-8")
    files = [entry["file"] for entry in content["manifest"]]
    assert len(set(files)) == len(files)
    assert not any(Path(file).is_absolute() for file in files)


def test_all_eighteen_exhibits_are_listed():
    found = [entry["comment"].partition(",")[0] for entry in codecheck.entries()]
    assert list(dict.fromkeys(found)) == IDS


@pytest.mark.parametrize("entry", codecheck.entries(), ids=lambda entry: Path(entry["file"]).stem)
def test_commands_are_understood_and_say_where_they_write(entry):
    command, _, target = entry["comment"].rpartition("; ")[2].partition(" > ")
    program, *arguments = shlex.split(command)
    assert program == "drocox"
    parser, _ = cli._parser()
    args = parser.parse_args(arguments)
    if target:
        assert target == entry["file"]
    else:
        assert args.to / f"alpha_{args.dataset[0]}_{args.protocol}.svg" == Path(entry["file"])


@pytest.mark.slow
def test_make_exhibits_writes_what_the_manifest_lists(tmp_path):
    entries = codecheck.entries()
    some = [entries[0], entries[16], entries[17]]  # T1, T17 and a panel of F1
    codecheck.write(tmp_path, some)
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*"))
    assert written == sorted(entry["file"] for entry in some)
    assert all((tmp_path / entry["file"]).stat().st_size > 300 for entry in some)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "codecheck.py --write ." in makefile
