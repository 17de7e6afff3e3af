"""Drawings of a topology: everything that the file names is in them, and nothing else."""

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plimsoll.advice.drawings import BOXES_MAX, topology_drawings
from plimsoll.advice.failover import host_losses
from plimsoll.advice.topology import Topology, read_topology
from tests.support.places import plimsoll

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = EXAMPLES / "topology_virtual_cluster.toml"
GROUP = "{http://www.w3.org/2000/svg}g"


def words_of(svg: str) -> str:
    return "\n".join(ElementTree.fromstring(svg).itertext())


def kinds_of(svg: str) -> Counter[str | None]:
    return Counter(group.get("class") for group in ElementTree.fromstring(svg).iter(GROUP))


@pytest.fixture(scope="module")
def cluster() -> Topology:
    """The published cluster: sixteen machines on two hosts, one array, two switches."""
    return read_topology(CLUSTER)


def test_every_component_is_drawn(cluster: Topology) -> None:
    """A drawing that leaves something out is believed all the same."""
    wiring, machines, *losses, storage = topology_drawings(cluster)
    boxes = kinds_of(wiring.svg)
    assert (boxes["host"], boxes["switch"], boxes["array"]) == (2, 2, 1)
    ports = [port["name"] for host in cluster.entries("hosts") for port in host["ports"]]
    assert all(port in words_of(wiring.svg) for port in [*ports, "0-0", "1-1"])
    assert wiring.svg.count('class="link"') == len(cluster.entries("links"))
    assert kinds_of(machines.svg)["machine"] == 16
    assert [drawing.name for drawing in losses] == ["after-r710-1", "after-r710-2"]
    drives = sum(group["drives"] for group in cluster.entries("disk_groups"))
    assert kinds_of(storage.svg)["disk"] == drives
    assert all(volume["name"] in words_of(storage.svg) for volume in cluster.entries("volumes"))
    assert "mail, active copy on exchange" in words_of(storage.svg)


def test_machines_stand_where_the_rules_put_them_after_a_loss(cluster: Topology) -> None:
    """The picture and the finding come from one placement."""
    loss = host_losses(cluster)[0]
    drawing = next(d for d in topology_drawings(cluster) if d.name == f"after-{loss.host}")
    kinds = kinds_of(drawing.svg)
    assert (kinds["lost"], kinds["moved machine"], kinds["machine"]) == (1, len(loss.moved), 8)
    text = words_of(drawing.svg)
    assert all(f"{name} (moved)" in text for name in loss.moved)
    assert "36 of 48 GB" in text, "the memory of sixteen machines on the host that is left"
    assert set(loss.moved.values()) == {"r710-2"}


def test_machines_that_find_no_place_are_named(tmp_path: Path) -> None:
    """A picture in which they just disappear would be the worst of all."""
    text = CLUSTER.read_text().replace('can_run_on = ["r710-2"]', "can_run_on = []", 1)
    (tmp_path / "t.toml").write_text(text)
    drawings = topology_drawings(read_topology(tmp_path / "t.toml"))
    caption = next(d.caption for d in drawings if d.name == "after-r710-1")
    assert caption.endswith("7 machines moved, 1 have nowhere to go (exchange)")


def test_names_of_strangers_are_text_and_nothing_else(tmp_path: Path) -> None:
    """A name in a file can be markup."""
    text = CLUSTER.read_text().replace('"r710-1', '"<script>x')
    (tmp_path / "t.toml").write_text(text)
    for drawing in topology_drawings(read_topology(tmp_path / "t.toml")):
        assert "<script" not in drawing.svg
        ElementTree.fromstring(drawing.svg)


def test_what_nobody_could_read_is_left_out_with_the_reason(tmp_path: Path) -> None:
    """Hundreds of machines are a table, not a drawing."""
    one = re.search(r"\[\[machines\]\]\nname = \"web-1\".*?\n\n", CLUSTER.read_text(), re.DOTALL)
    assert one is not None
    more = "".join(one[0].replace("web-1", f"more-{number}") for number in range(BOXES_MAX))
    (tmp_path / "t.toml").write_text(CLUSTER.read_text().replace(one[0], one[0] + more))
    drawings = {d.name: d for d in topology_drawings(read_topology(tmp_path / "t.toml"))}
    assert drawings["machines"].svg == "" and "not drawn" in drawings["machines"].caption
    assert drawings["wiring"].svg != ""


def test_advice_shows_the_drawings(tmp_path: Path) -> None:
    """`plimsoll advise --html`; the terminal says where they are."""
    page = tmp_path / "advice.html"
    done = plimsoll("advise", CLUSTER, "--html", page, cwd=tmp_path)
    assert "--html" in done.stdout
    text = page.read_text()
    assert text.count("<svg ") == 5
    assert "After the loss of r710-2: 8 machines moved" in text
