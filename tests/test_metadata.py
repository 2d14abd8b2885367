"""What archives and newcomers are told about this work."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

import drocox
from drocox import cli

ROOT = Path(__file__).resolve().parents[1]
MANIFEST = yaml.safe_load((ROOT / "codecheck.yml").read_text(encoding="utf8"))["manifest"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))


def test_the_citation_and_the_release_notes_have_the_packages_version():
    assert CITATION["version"] == drocox.__version__
    notes = (ROOT / "book" / "changelog.md").read_text(encoding="utf8")
    released = re.search(r"^\*\*(.*, .*?)\*\*$", notes, re.MULTILINE)[1]  # the next has no date
    assert released == f"{CITATION['version']}, {CITATION['date-released'].isoformat()}"


def test_zenodo_can_read_the_citation():
    """It wants a title, an abstract and one licence, as text."""
    for name in ("title", "abstract", "license"):
        assert isinstance(CITATION[name], str), name


def test_codecheck_lists_every_exhibit():
    found = [entry["comment"].partition(",")[0] for entry in MANIFEST]
    assert found == [*(f"T{number}" for number in range(1, 18)), "F1", "F1", "F1"]


def test_codechecks_commands_are_understood_and_write_the_listed_files():
    parser, _ = cli._parser()
    for entry in MANIFEST:
        command, _, file = entry["comment"].rpartition("; ")[2].partition(" > ")
        program, *arguments = shlex.split(command)
        assert program == "drocox"
        args = parser.parse_args(arguments)
        if not file:  # a panel of the figure, named by the command
            file = args.to / f"alpha_{args.dataset[0]}_{args.protocol}.svg"
        assert Path(file) == Path(entry["file"])


@pytest.mark.parametrize("name", ["CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_commands_and_files_that_newcomers_are_told_of_exist(name):
    text = (ROOT / name).read_text(encoding="utf8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf8")
    for target in set(_words_after("make ", text)):
        assert f"\n{target}:" in makefile, target
    for link in _links(text):
        assert (ROOT / link).exists(), link


def _words_after(lead, text):
    """What follows a command's name in code, such as the target of make."""
    code = [part for number, part in enumerate(text.split("`")) if number % 2 == 1]
    lines = [line for part in code for line in part.splitlines()]
    return [line.removeprefix(lead).split()[0] for line in lines if line.startswith(lead)]


def _links(text):
    """Addresses of links to files of the repository."""
    return [
        part.partition(")")[0]
        for part in text.split("](")[1:]
        if not part.startswith(("http", "#"))
    ]
