"""Addresses of stores: what each means, and what is said of text that means none."""

import pytest

from plimsoll.workloads.store.address import Address, StoreAddressError, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqlite:store.db", Address("sqlite", file="store.db")),
        (
            "postgres://shop@db.example/ds2",
            Address("postgresql", "", "db.example", 5432, "shop", "ds2"),
        ),
        ("mariadb://shop@10.0.0.6:3307/ds2", Address("mysql", "", "10.0.0.6", 3307, "shop", "ds2")),
        ("postgresql://sh%40p@[::1]/d%2F2", Address("postgresql", "", "::1", 5432, "sh@p", "d/2")),
    ],
)
def test_what_an_address_means(text: str, expected: Address) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgresql://shop:hush-9@h/d", "holds a password"),
        ("postgresql://shop:@h/d", "holds a password"),
        # One that ends the part of the address where passwords belong.
        ("postgresql://shop:hush-9/8@h/d", "holds a password"),
        ("mysql://shop:hush-9?8@h/d", "holds a password"),
        ("postgresql://shop:12#hush-9@h/d", "holds a password"),
        ("postgressql://shop:hush-9@h/d", "holds a password"),
        ("mssql://sa:hush-9@h/d", "holds a password"),
        ("postgresql://:hush-9@h/d", "holds a password"),
        ("postgresql://h/d", "names no user"),
        ("mysql://shop@h", "names no database"),
        ("mysql://", "names no user and no host and no database"),
        ("postgresql://shop@h:99999/d", "cannot be read"),
        ("postgresql://shop@h/d?sslmode=require", "means nothing"),
        ("mssql://shop@h/d", "SQL Server is not a target"),
        ("sqlite:", "names no file"),
        ("oracle://shop@h/d", "is not the address of a store"),
    ],
)
def test_what_is_said_of_text_that_is_none(text: str, said: str) -> None:
    with pytest.raises(StoreAddressError, match=said) as told:
        parse(text)
    assert told.value.hint and "hush-9" not in str(told.value)
