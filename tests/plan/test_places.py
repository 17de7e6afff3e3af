"""Targets of servers: where a plan puts what is not ours, and what it is told where it does not."""

from typing import Any

import pytest

from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import plan_of_options


def completed(*targets: dict[str, Any], shop_on: str | None = None):
    """A plan of records and of a store on a server, on these targets."""
    shop = {"name": "shop", "store_address": "postgresql://shop@127.0.0.1/shop"}
    return plan_of_options(
        {
            "target": list(targets),
            "instance": [
                {"name": "mail"},
                shop if shop_on is None else {**shop, "target": shop_on},
            ],
            "workload": [
                {"name": "mail", "instances": ["mail"], "load": {"transactions_per_s": 5}},
                {"name": "orders", "instances": ["shop"], "load": {"sessions": 2}},
            ],
            "phase": [
                {"kind": "prepare"},
                {"kind": "measure", "duration_s": 60},
                {"kind": "stop"},
                {"kind": "checksum"},
            ],
        }
    )


ARRAY, SERVER = {"name": "array", "path": "/mnt/a"}, {"name": "server", "data_path": "/mnt/b"}


def test_a_server_has_a_target_of_its_own_with_the_place_of_its_storage() -> None:
    targets = completed(ARRAY, SERVER, shop_on="server").run.targets
    assert [target.path for target in targets] == ["/mnt/a", "/mnt/b"]


@pytest.mark.parametrize(
    ("targets", "shop_on", "where", "hint"),
    [
        (
            [ARRAY],
            None,
            "target[1]",
            'add [[target]] name = "server", and target = "server" in shop',
        ),
        ([{**ARRAY, "data_path": "/mnt/a"}], None, "target[1]", "add [[target]]"),
        (
            [ARRAY, {**SERVER, "path": "/mnt/b"}],
            "server",
            "target[2].path",
            "remove it, or write data_path",
        ),
        (
            [ARRAY, {"name": "other", "data_path": "/mnt/b", "path": "/mnt/b"}],
            "array",
            "target[2].data_path",
            'write target = "other" in the instance of the server',
        ),
    ],
)
def test_a_server_next_to_databases_is_told_what_to_write(
    targets: list[dict[str, Any]], shop_on: str | None, where: str, hint: str
) -> None:
    """`data_path` was told to be `path` where only the instance did not name its target."""
    with pytest.raises(InputError) as found:
        completed(*targets, shop_on=shop_on)
    told = {mistake.where: mistake.hint for mistake in found.value.mistakes}
    assert hint in told[where], told
    assert "write path" not in told.values()
