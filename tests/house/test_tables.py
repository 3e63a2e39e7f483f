"""The pages that are made from code say what the code says."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from groupjobs import conf
from groupjobs.policy import options
from groupjobs.store import keys
from tests.house import tables


@pytest.mark.parametrize("page", tables.PAGES)
def test_tables_of_the_documentation_are_those_of_the_code(page: str) -> None:
    assert tables.fresh(page) == (tables.ROOT / page).read_text(), "`make docs` makes them anew"


def test_every_table_is_on_a_page() -> None:
    texts = "".join((tables.ROOT / page).read_text() for page in tables.PAGES)
    assert {name for _, name, _ in tables.BLOCK.findall(texts)} == set(tables.TABLES)


@pytest.mark.parametrize("of", [conf.Settings, conf.Queue, options.Policy])
def test_every_setting_and_option_is_described(of: type) -> None:
    assert set(tables.described(of)) == {field.name for field in fields(of)} - {"name"}


def test_every_key_that_a_script_touches_is_described() -> None:
    sources = "".join(path.read_text() for path in (tables.ROOT / "groupjobs/store/lua").rglob("*.lua"))
    touched = set(re.findall(r"base \.\. ':(\w+)'", sources))
    families = set(re.findall(r"base \.\. ':(\w+):'", sources))
    assert touched == set(keys.SINGLE)
    assert families | {"turn"} == {name.partition(":")[0] for name in keys.FAMILIES}
