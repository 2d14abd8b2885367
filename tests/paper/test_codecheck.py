"""The CODECHECK manifest lists every exhibit, with a command that the program understands."""

import shlex
from pathlib import Path

import yaml

from drocox import cli

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = yaml.safe_load((ROOT / "codecheck.yml").read_text(encoding="utf-8"))["manifest"]


def test_all_exhibits_are_listed():
    found = [entry["comment"].partition(",")[0] for entry in MANIFEST]
    assert found == [*(f"T{number}" for number in range(1, 18)), "F1", "F1", "F1"]


def test_commands_are_understood_and_write_the_listed_files():
    parser, _ = cli._parser()
    for entry in MANIFEST:
        command, _, file = entry["comment"].rpartition("; ")[2].partition(" > ")
        program, *arguments = shlex.split(command)
        assert program == "drocox"
        args = parser.parse_args(arguments)
        if not file:  # a panel of the figure, named by the command
            file = args.to / f"alpha_{args.dataset[0]}_{args.protocol}.svg"
        assert Path(file) == Path(entry["file"])
