"""The virtual machine says what this machine lacks, before it downloads anything."""

import shutil

import pytest

from tests.vm import __main__ as command
from tests.vm import machine


def test_what_is_missing_is_a_skip_with_its_package(tmp_path, monkeypatch, capsys) -> None:
    if machine.missing() is not None and "qemu" not in str(machine.missing()):
        pytest.skip(str(machine.missing()))
    monkeypatch.setattr(machine, "PLACE", tmp_path / "vm")
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert command.main(["true"]) == command.LACKS
    assert "package qemu-system-x86" in capsys.readouterr().err
    assert not (tmp_path / "vm").exists()


def test_a_command_is_wanted(capsys) -> None:
    assert command.main([]) == 2
    assert "usage" in capsys.readouterr().err
