"""A wrong path leads to the system disk.

What is not there, or lies on the root file system, is tested only where the user says so.
"""

from pathlib import Path

import pytest

import plimsoll
from plimsoll import exit_codes
from plimsoll.cli import run_program
from plimsoll.databases import consent, preflight
from plimsoll.databases.consent import Consent
from plimsoll.databases.preflight import PreflightError
from tests.support.places import plimsoll as program

SMALL = ("--databases", "1", "--size-mib", "64", "--minutes", "0.05", "--dry-run")


def device_of(path: str) -> int:
    return Path(path).stat().st_dev


@pytest.fixture(autouse=True)
def nothing_is_agreed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests work in new directories, usually on the system disk, and agree to that for all.

    Not here.
    """
    monkeypatch.delenv(consent.CREATE_VARIABLE)
    monkeypatch.delenv(consent.SYSTEM_DISK_VARIABLE)


def on_system_disk(monkeypatch: pytest.MonkeyPatch, *, is_there: bool) -> None:
    """Take the file system of the temporary directory for the root's, or another one, wherever it
    is on this machine.
    """
    monkeypatch.setattr(consent, "ROOT", Path("/tmp" if is_there else "/proc"))


def run_of(path: Path) -> plimsoll.RunSpec:
    plan = plimsoll.build_plan(
        {
            "target": [{"name": "disk", "path": str(path)}],
            "instance": [{"name": "one", "backend": "raw_files", "database_size_mib": 64}],
        }
    )
    return plan.run


def refused(path: Path, agreed: Consent = Consent()) -> str:  # noqa: B008 -- frozen
    try:
        preflight.inspect(run_of(path), None, agreed)
    except PreflightError as error:
        return "\n".join(error.problems)
    return ""


def test_a_target_that_is_not_there_is_refused_unless_it_is_to_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/mnt/aray was made on the system disk, tested, and passed."""
    on_system_disk(monkeypatch, is_there=False)
    assert f"{tmp_path / 'aray'} does not exist; mount its storage" in refused(tmp_path / "aray")
    assert "--create" in refused(tmp_path / "aray")
    assert refused(tmp_path / "aray", Consent(create=True)) == ""
    assert refused(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_target_on_the_root_file_system_is_refused_unless_it_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount point whose storage is not mounted is an empty directory there, and looks like any
    other.
    """
    on_system_disk(monkeypatch, is_there=True)
    assert "is on the root file system: the system disk would be tested" in refused(tmp_path)
    assert "is on the root file system" in refused(tmp_path / "new", Consent(create=True))
    assert refused(tmp_path, Consent(system_disk=True)) == ""
    assert "does not exist" in refused(tmp_path / "new", Consent(system_disk=True))


def test_a_directory_of_logs_is_a_target_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs on the system disk instead of the mirror they were meant for decide the latency of every
    commit.
    """
    on_system_disk(monkeypatch, is_there=False)
    run = run_of(tmp_path)
    run = run.replace(
        instances=[run.instances[0].replace(log_directory=str(tmp_path / "losg" / "one"))]
    )
    with pytest.raises(PreflightError, match="losg does not exist"):
        preflight.inspect(run)


def test_the_environment_agrees_for_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One word for a whole suite of runs; anything but 1 agrees to nothing."""
    on_system_disk(monkeypatch, is_there=True)
    monkeypatch.setenv(consent.CREATE_VARIABLE, "no")
    monkeypatch.setenv(consent.SYSTEM_DISK_VARIABLE, "1")
    assert "does not exist" in refused(tmp_path / "new")
    monkeypatch.setenv(consent.CREATE_VARIABLE, "1")
    assert refused(tmp_path / "new") == ""


def test_every_run_of_a_series_keeps_what_was_agreed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run looks at the places again, and must not ask again."""
    on_system_disk(monkeypatch, is_there=True)
    plan = plimsoll.build_plan(
        {
            "target": [{"name": "d", "path": str(tmp_path)}],
            "instance": [{"name": "one", "database_size_mib": 64}],
        }
    )
    found = plimsoll.check(plan, create=True, allow_system_disk=True)
    assert found.consent == Consent((), True, True)
    assert preflight.inspect(plan.run, None, found.consent).bytes_to_prepare == 64 << 20


@pytest.mark.skipif(
    device_of("/") != device_of("/var") or device_of("/dev/shm") == device_of("/"),
    reason="wants a directory on the root file system and one that is not",
)
@pytest.mark.parametrize("command", [("test", "performance"), ("test", "backup"), ("capacity",)])
def test_commands_refuse_and_say_how_to_agree(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The whole way from the option to the directory, for tests with options of their own and those
    that share them.
    """
    size = ("--size-mib", "64", "--dry-run")
    answer = program(*command, "/plimsoll-is-not-there", *size, cwd=tmp_path)
    assert answer.returncode == 2, answer.stdout
    assert "does not exist" in answer.stderr and "--create" in answer.stderr
    answer = program(*command, "/plimsoll-is-not-there", *size, "--create", cwd=tmp_path)
    assert answer.returncode == 2
    assert "--allow-system-disk" in answer.stderr
    agreed = ("--create", "--allow-system-disk")
    assert program(*command, "/plimsoll-is-not-there", *size, *agreed, cwd=tmp_path).returncode == 0
    assert not Path("/plimsoll-is-not-there").exists()


@pytest.mark.skipif(
    device_of("/") != device_of("/var"), reason="wants a directory on the root file system"
)
def test_calibrations_and_power_cuts_ask_as_well(tmp_path: Path) -> None:
    """A preset of the system disk under the array's name would mislead every forecast made with
    it.
    """
    answer = program("calibrate", "--measure", "/var", "--quick", "--dry-run", cwd=tmp_path)
    assert (answer.returncode, "--allow-system-disk" in answer.stderr) == (2, True)
    answer = program("powercut", "/var", "--witness", "127.0.0.1:1", cwd=tmp_path)
    assert (answer.returncode, "--allow-system-disk" in answer.stderr) == (2, True)


def test_the_demo_agrees_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two minutes to see how it works, in a new directory beside the checkout."""
    agreed: dict[str, object] = {}

    def check(plan: object, **given: object) -> None:
        agreed.update(given)
        raise PreflightError(["far enough"])

    monkeypatch.setattr(plimsoll, "check", check)
    monkeypatch.chdir(tmp_path)
    assert run_program(["demo", "new", "--quiet"]) == exit_codes.USAGE
    assert (agreed["create"], agreed["allow_system_disk"]) == (True, True)


@pytest.mark.parametrize("mistyped", ["sqlit:shop.db", "mariadb:shop"])
def test_a_mistyped_address_is_no_missing_directory_alone(tmp_path: Path, mistyped: str) -> None:
    (told,) = consent.refusals([tmp_path / mistyped], Consent())
    assert "for an address begin with sqlite:" in told
    (told,) = consent.refusals([tmp_path / "shop"], Consent())
    assert "sqlite" not in told
