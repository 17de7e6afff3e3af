"""The wheel works where there is no Rust.

Built once, installed into a clean environment, used from there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATURIN = ROOT / ".tools" / "bin" / "maturin"
PYTHON = ROOT / ".venv" / "bin" / "python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release wheel of this checkout."""
    if not MATURIN.exists():
        pytest.skip("maturin is not installed; `make setup` installs it")
    out = tmp_path_factory.mktemp("dist")
    command = [str(MATURIN), "build", "--release", "--locked", "--quiet", "--out", str(out)]
    # With the interpreter that `make` builds the native part for, it is not compiled once more.
    command += ["--interpreter", str(PYTHON)] if PYTHON.exists() else []
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    (built,) = out.glob("*.whl")
    return built


@pytest.mark.slow
def test_one_wheel_serves_every_python(wheel: Path) -> None:
    """abi3: a wheel for each minor version would have to be built and tested for each."""
    assert "-cp311-abi3-" in wheel.name


@pytest.mark.slow
def test_it_runs_the_demo_without_a_rust_toolchain(wheel: Path, tmp_path: Path) -> None:
    """What a user of the wheel does first."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    # The dependencies are those of the running environment: the registry is not what is tested
    # here.
    packages = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(install, check=True)
    (own,) = environment.glob("lib/python*/site-packages")
    for entry in packages.iterdir():
        if (
            "plimsoll" not in entry.name
            and not (own / entry.name).exists()
            and entry.suffix != ".pth"
        ):
            (own / entry.name).symlink_to(entry)
    clean = {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    assert shutil.which("cargo", path=clean["PATH"]) is None
    arguments = [
        "demo",
        str(tmp_path / "disk"),
        "--seconds",
        "2",
        "--size-mib",
        "64",
        "--backend",
        "raw_files",
    ]
    result = subprocess.run(
        [str(environment / "bin" / "plimsoll"), *arguments, "--out", str(tmp_path / "run")],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert "rehearsal" in result.stdout.lower()
    assert (tmp_path / "run" / "report.html").exists()
    where = subprocess.run(
        [str(python), "-c", "import plimsoll; print(plimsoll.__file__)"],
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(environment) in where.stdout
    assert os.environ["PATH"] != clean["PATH"]
