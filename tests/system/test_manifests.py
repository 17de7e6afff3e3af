"""What the Dockerfile and the Job say.

No root, nothing written outside of the volumes, a stop that is waited for.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli import load
from plimsoll.live.metrics_server import PORT
from tests.support.yaml_subset import read_yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
USER = 65532


def instructions() -> list[tuple[str, str]]:
    """Instruction and argument, lines put together, comments left out."""
    text = re.sub(r"(?m)^#.*\n", "", DOCKERFILE).replace("\\\n", " ")
    return [
        (line.split(None, 1)[0], line.split(None, 1)[1])
        for line in text.splitlines()
        if line.strip()
    ]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    start = max(place for place, (word, _) in enumerate(found) if word == "FROM")
    return found[start:]


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    document: dict[str, Any] = read_yaml((ROOT / "deploy" / "kubernetes-job.yaml").read_text())
    return document


def test_the_image_runs_as_nobody_and_without_a_shell() -> None:
    """A shell as the first process keeps signals to itself, and a root writes where it should
    not.
    """
    stage = dict(last_stage())
    assert stage["USER"] == f"{USER}:{USER}"
    assert stage["ENTRYPOINT"] == '["plimsoll"]'
    assert stage["STOPSIGNAL"] == "SIGTERM"
    words = [word for word, _ in last_stage()]
    assert words.index("USER") > max(
        place for place, word in enumerate(words) if word in ("RUN", "COPY")
    )
    assert stage["VOLUME"] == '["/data", "/runs"]'
    assert "PYTHONDONTWRITEBYTECODE=1" in stage["ENV"]


def test_the_image_holds_what_was_locked_and_no_compiler() -> None:
    """Every package by its hash, the wheel without resolving anything, and the tools of the build
    left behind.
    """
    installs = [text for word, text in instructions() if word == "RUN" and "pip install" in text]
    assert len(installs) == 3
    assert all(
        "--require-hashes" in text or ("--no-deps" in text and "--no-index" in text)
        for text in installs
    )
    copied = [text for word, text in last_stage() if word == "COPY"]
    assert [text for text in copied if "--from=build" in text] == ["--from=build /dist /dist"]
    assert "://" not in DOCKERFILE


def test_everything_the_image_is_built_from_exists_and_is_let_in() -> None:
    """A renamed file, or one the ignore file keeps out, would show only where images are built."""
    let_in = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for word, text in instructions():
        if word == "COPY" and "--from" not in text:
            for source in text.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in let_in, source


def test_the_job_keeps_to_the_restricted_standard(job: dict[str, Any]) -> None:
    """What clusters call `restricted`.

    No root, no escalation, no capabilities, a read-only root, the default filter.
    """
    pod = job["spec"]["template"]["spec"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


def test_storage_and_results_lie_on_two_claims(job: dict[str, Any]) -> None:
    """Results written to the storage under test would disturb it, and be lost with it."""
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert {mounts[name] for name in claims} == {"/data", "/runs"}
    assert len(set(claims.values())) == 2
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts)
    assert container["args"][container["args"].index("--out") + 1].startswith("/runs/")


def test_a_run_is_done_once_and_stopped_in_peace(job: dict[str, Any]) -> None:
    """A second run would hide the first one's result.

    A grace shorter than a stop would leave databases open.
    """
    assert job["spec"]["backoffLimit"] == 0
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["terminationGracePeriodSeconds"] >= 60
    resources = pod["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"]


def test_its_command_is_one_that_exists(job: dict[str, Any]) -> None:
    """The manifest outlives options; each of its words must still mean something."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    name, _, *words = container["args"]
    known = {option for parameter in load(name).params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    assert container["ports"] == [{"name": "metrics", "containerPort": PORT}]
    assert f"0.0.0.0:{PORT}" in words


@pytest.mark.parametrize(
    "text", ["a: &x 1\n", "a: {b: 1}\n", "a:\n", "a: 1\na: 2\n", "a: |\n  b\n", "a: 'b'\n"]
)
def test_the_reader_refuses_what_it_does_not_know(text: str) -> None:
    """A reader that skips what it cannot read would pass a manifest that nobody read."""
    with pytest.raises(ValueError):
        read_yaml(text)
