"""Every known way to fail has a test that carries its code: `test_a1_...` shows that A1 cannot happen here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

TESTS = Path(__file__).resolve().parent
# Ghosts, twice at once, order, lost, faults of servers, scale.
LAST = {"a": 12, "b": 10, "c": 4, "d": 10, "e": 6, "f": 6}
CODES = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)] + ["e2b"]


def test_every_trap_has_a_test_named_after_it() -> None:
    texts = [path.read_text() for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    named = {code for text in texts for code in re.findall(r"^def test_([a-f]\d+b?)_", text, re.MULTILINE)}
    assert [code for code in CODES if code not in named] == []
