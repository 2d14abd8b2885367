"""Asserts in a chapter, of what its sentences say: a failed one stops the build; readers, who may
have changed a cell, see a note instead."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from drocox import bookstyle


@pytest.fixture
def shell(monkeypatch):
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    monkeypatch.setattr(bookstyle, "get_ipython", lambda: shell)
    monkeypatch.setattr(bookstyle, "set_matplotlib_formats", lambda *a, **k: None)
    return shell


def test_a_failed_assert_prints_a_note_for_readers(shell, monkeypatch, capsys):
    monkeypatch.delenv("DROCOX_STRICT", raising=False)
    bookstyle.use_book_style()
    result = shell.run_cell("alpha = 0.3\nassert alpha == 0.2, 'written for 0.2'\nreached = True")
    assert result.success and shell.user_ns["reached"]
    assert "`alpha == 0.2` does not hold now" in capsys.readouterr().out
    assert shell.run_cell("assert alpha == 0.3").success
    assert capsys.readouterr().out == ""


def test_a_failed_assert_stops_the_build(shell, monkeypatch, capsys):
    monkeypatch.setenv("DROCOX_STRICT", "1")
    bookstyle.use_book_style()
    assert isinstance(shell.run_cell("assert 1 == 2").error_in_exec, AssertionError)
