"""Every error of the library is answered by one sentence and an exit code."""

from __future__ import annotations

import pytest

from legnn.cli.entry_point import main
from legnn.errors import FolderInUse, InputError, Interrupted, LegnnError, OutOfMemory
from legnn.locks import hold_folder


@pytest.mark.parametrize("kind", [OutOfMemory, FolderInUse, Interrupted])
def test_only_wrong_input_is_an_input_error(kind):
    assert issubclass(kind, LegnnError)
    assert not issubclass(kind, ValueError)
    assert issubclass(InputError, LegnnError)
    assert issubclass(InputError, ValueError)


def exit_of(monkeypatch, *arguments: str) -> object:
    monkeypatch.setattr("sys.argv", ["legnn", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_command_that_needs_too_much_memory_exits_with_2(monkeypatch, capsys):
    assert exit_of(monkeypatch, "train", "digits", "--hidden", "9000000") == 2
    assert "give a smaller" in capsys.readouterr().err


def test_command_on_a_folder_in_use_exits_with_2(monkeypatch, capsys, tmp_path):
    with hold_folder(tmp_path / "run"):
        assert exit_of(monkeypatch, "train", "digits", "--epochs", "1", "--out", str(tmp_path / "run")) == 2
    assert "is writing to" in capsys.readouterr().err
