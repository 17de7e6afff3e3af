"""A topology file: every dangling reference, impossible value and repeated name at once, with its
line.
"""

from __future__ import annotations

import pytest

from plimsoll.advice.topology import check_topology
from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.toml_lines import parse_located


def mistakes(text: str) -> list[str]:
    """What the reader says about a topology, one line per mistake."""
    with pytest.raises(InputError) as caught:
        check_topology(parse_located("design.toml", text))
    return [
        f"{mistake.line} {mistake.where}: {mistake.message}; {mistake.hint}"
        for mistake in caught.value.mistakes
    ]


def test_ADV_02_every_dangling_reference_is_named_with_the_nearest_name(two_hosts: str) -> None:
    """A misspelt name would otherwise silently remove a path from the analysis."""
    text = two_hosts.replace('between = ["mbx1.san0", "san-1"]', 'between = ["mbx1.sna0", "san-1"]')
    text = text.replace('array = "array-a"', 'array = "array-c"').replace(
        'disk_group = "group-a"\nuse = "log"', 'disk_group = "group-x"\nuse = "log"', 1
    )
    text = text.replace('witness = "dc"', 'witness = "fs"').replace(
        'power = ["feed-a"]', 'power = ["feed-c"]', 1
    )
    text = text.replace(
        'server = "mbx2", database_volume = "db3-b"', 'server = "mbx3", database_volume = "db9-b"'
    )
    found = mistakes(text)
    assert [line.split(":")[0].split(" ", 1)[1] for line in found] == [
        "witness",
        "switches[1].power[1]",
        "disk_groups[1].array",
        "volumes[2].disk_group",
        "databases[3].copies[2].database_volume",
        "databases[3].copies[2].server",
        "links[1].between[1]",
    ]
    assert (
        'is "mbx1.sna0", which is no port or switch of this file; did you mean `mbx1.san0`'
        in found[-1]
    )


def test_DAG_01_copies_of_one_database_on_one_server_are_refused(two_hosts: str) -> None:
    """One copy of a database per server, and one active copy at a time."""
    text = two_hosts.replace(
        'server = "mbx2", database_volume = "db1-b", log_volume = "log1-b", active = false',
        'server = "mbx1", database_volume = "db1-b", log_volume = "log1-b", active = true',
    )
    found = mistakes(text)
    assert len(found) == 2
    assert "has more than one active copy" in found[0]
    assert 'is "mbx1", which already holds a copy; one copy of a database per server' in found[1]


def test_DAG_01_a_group_of_seventeen_servers_is_refused() -> None:
    """Sixteen is the limit of a group."""
    hosts = "".join(f'[[hosts]]\nname = "h{number}"\n' for number in range(17))
    copies = ", ".join(
        f'{{ server = "h{number}", database_volume = "v", log_volume = "v" }}'
        for number in range(17)
    )
    text = (
        f'kind = "topology"\nname = "x"\n{hosts}[[arrays]]\nname = "a"\ncontrollers = [{{ name = '
        f'"c", ports = [{{ name = "p" }}] }}]\n'
        f'[[disk_groups]]\nname = "g"\narray = "a"\nraid = "RAID 10"\ndrives = 4\n'
        f'[[volumes]]\nname = "v"\ndisk_group = "g"\nuse = "database"\n[[databases]]\nname = '
        f'"d"\ncopies = [{copies}]\n'
    )
    assert ["tie 17 servers together" in line for line in mistakes(text)] == [True]
    sixteen = text.replace(', { server = "h16", database_volume = "v", log_volume = "v" }', "")
    assert check_topology(parse_located("design.toml", sixteen)).content["name"] == "x"


def test_all_wrong_values_come_at_once(two_hosts: str) -> None:
    """Negative memory, a speed without its unit, an unknown network, RAID 1 of three drives, a
    repeated name.
    """
    text = two_hosts.replace("memory_gb = 64", "memory_gb = -64", 1).replace(
        "speed_gbit_per_s = 1, mtu", "speed = 1, mtu", 1
    )
    text = text.replace('networks = ["storage"]\n', 'networks = ["storrage"]\n', 1).replace(
        "threads = 16", 'threads = "16"', 1
    )
    found = mistakes(text)
    assert [line.split(":")[0].split(" ", 1)[1] for line in found] == [
        "switches[1].networks[1]",
        "hosts[1].memory_gb",
        "hosts[1].threads",
        "hosts[1].ports[1].speed",
    ]
    assert "the unit belongs in the key: write `speed_gbit_per_s`" in found[-1]
    found = mistakes(
        two_hosts.replace('name = "san-2"', 'name = "san-1"').replace('"san-2"', '"san-1"')
    )
    assert 'repeats "san-1", first used on line 15' in found[0]
    found = mistakes(
        two_hosts.replace('raid = "RAID 50"\ndrives = 46', 'raid = "RAID 1"\ndrives = 3', 1)
    )
    assert found[0].startswith(
        "129 disk_groups[1].raid: is impossible: RAID 1 cannot be built of 3 drives"
    )


def test_wrong_values_do_not_hide_dangling_references(two_hosts: str) -> None:
    """A file with a wrong number, a repeated name and a misspelt reference needs one round of
    correction, not three.
    """
    text = two_hosts.replace("threads = 16", "threads = -16", 1).replace(
        'name = "lan-2"', 'name = "lan-1"'
    )
    found = mistakes(text.replace('array = "array-b"', 'array = "array-z"'))
    assert len([line for line in found if "threads" in line]) == 1
    assert len([line for line in found if 'repeats "lan-1"' in line]) == 1
    assert len([line for line in found if 'is "array-z", which is no array' in line]) == 1
    assert len([line for line in found if 'is "lan-2", which is no port or switch' in line]) >= 1


def test_a_port_takes_one_cable(two_hosts: str) -> None:
    """Two cables in one port would let the analysis lead traffic through a host."""
    found = mistakes(
        two_hosts.replace('between = ["mbx2.san0", "san-1"]', 'between = ["mbx1.san0", "san-1"]')
    )
    assert len(found) == 1
    assert 'is "mbx1.san0", which has a cable already on line' in found[0]
