"""What archives are told about this work: one title, one version, the same people everywhere."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import drocox

ROOT = Path(__file__).resolve().parents[1]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
AUTHORS = [author["name"] for author in CITATION["authors"]]
PAPER = CITATION["references"][0]
PREPRINT = PAPER["identifiers"][0]["value"]


def read(name):
    return json.loads((ROOT / name).read_text(encoding="utf8"))


def test_the_package_has_the_version_of_the_citation():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    assert project["version"] == CITATION["version"] == drocox.__version__


def test_the_release_notes_have_version_and_date():
    notes = (ROOT / "book" / "changelog.md").read_text(encoding="utf8")
    first = re.search(r"^\*\*(.*?)\*\*$", notes, re.MULTILINE)[1]
    assert first == f"{CITATION['version']}, {CITATION['date-released'].isoformat()}"
    assert read(".zenodo.json")["publication_date"] == CITATION["date-released"].isoformat()
    assert read("codemeta.json")["datePublished"] == CITATION["date-released"].isoformat()


def test_zenodo_is_in_step_with_the_citation():
    record = read(".zenodo.json")
    assert record["title"] == CITATION["title"]
    assert record["version"] == CITATION["version"]
    assert record["license"] == CITATION["license"][0]
    assert [creator["name"] for creator in record["creators"]] == AUTHORS
    assert record["keywords"] == CITATION["keywords"]
    assert PREPRINT in [entry["identifier"] for entry in record["related_identifiers"]]


def test_codemeta_is_in_step_with_the_citation():
    record = read("codemeta.json")
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
    assert record["version"] == CITATION["version"]
    assert [licence.rpartition("/")[2] for licence in record["license"]] == CITATION["license"]
    assert [author["name"] for author in record["author"]] == AUTHORS
    assert record["keywords"] == CITATION["keywords"]
    assert record["codeRepository"] == config["repository"]["url"]
    assert record["referencePublication"]["name"] == PAPER["title"]
    assert record["referencePublication"]["identifier"] == PREPRINT


def test_both_descriptions_are_one():
    assert read(".zenodo.json")["description"] == read("codemeta.json")["description"]


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
