"""Every script says in its header what it takes and answers; the header, the script and the store agree."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from groupjobs.store import Store, scripts
from groupjobs.store.replies import Consumer, Lease, Outcome, Publication
from tests.house.tables import ROOT, header

READ: Final = re.compile(r"\b(?:(?:text|integer|fence|member|order|optional)\('([\w ]+)'|(lease_read)\(\))")
LEASE: Final = ("run", "group", "order", "life", "fence", "alone")
SETTINGS: Final = ("ttl", "consumers", "group_concurrency", "rate", "rate period")
ME: Final = Consumer("c", "w", 1)
HELD: Final = Lease(1, "g", 0, 1, 1, 0)
# One call of each verb in which every list has one item.
CALLS: Final[dict[str, Callable[[Store], object]]] = {
    "enqueue": lambda store: store.enqueue([Publication(1, "g")]),
    "step": lambda store: store.step(ME, 1, 1, [Outcome(2, 1, "done"), Outcome(3, 1, "retry")]),
    "keep": lambda store: store.keep(ME, 0, [HELD]),
    "beat": lambda store: store.beat("w", 1, {"c": 1}),
    "tick": lambda store: store.tick("w", 1),
    "reap": lambda store: store.reap("w", "c", 1, "g", [(1, 1)]),
    "withdraw": lambda store: store.withdraw([(1, "g", 1)]),
    "hold": lambda store: store.hold("g", 1, True),
    "snapshot": lambda store: store.snapshot([(1, "g")]),
    "entries": lambda store: store.entries(),
    "drop": lambda store: store.drop([(1, "g", 1, 1)]),
    "restore": lambda store: store.restore(store.snapshot([]).epoch, [(HELD, "c", "w")]),
    "open": lambda store: store.open("1"),
    "overview": lambda store: store.overview(),
    "ping": lambda store: store.ping(),
}


class Recorded(Store):
    """A real store that remembers its last call."""

    keys: Sequence[str]
    args: Sequence[Any]
    reply: Any

    def call(self, verb: str, *args: Any) -> Any:
        self.args = [*self.settings, *args]
        self.reply = super().call(verb, *args)
        return self.reply


def stated(verb: str, word: str) -> list[str]:
    """The names in the first sentence of a header's part, in order; each {...} of a reply is one."""
    text = re.sub(r"\([^()]*\)", "", header(verb)[word]).partition(". ")[0].rstrip(".")
    while "{" in text:
        text = re.sub(r"\{[^{}]*\}", "list", text)
    text = re.sub(r"\bthen ", "", re.sub(r" of each\b[^;,]*", "", text))
    return [name.strip() for name in re.split(r"[,;]", text)]


def reads(text: str) -> list[str]:
    """The arguments that a piece of Lua reads, in order."""
    return [name for single, lease in READ.findall(text) for name in (LEASE if lease else (single,))]


def normal(name: str) -> str:
    return name.replace("'s ", " ").replace("_", " ")


@pytest.mark.parametrize("verb", scripts.VERBS)
def test_a_header_has_all_five_parts(verb: str) -> None:
    assert list(header(verb)) == ["Purpose", "KEYS", "ARGV", "Returns", "Keeps"]
    assert header(verb)["KEYS"] == "the queue's base key."


@pytest.mark.parametrize("verb", scripts.VERBS)
def test_a_header_names_the_arguments_that_its_script_reads(verb: str) -> None:
    told = stated(verb, "ARGV")
    assert told[0] == "settings"
    read = reads((ROOT / "groupjobs/store/lua" / f"{verb}.lua").read_text())
    assert len(told) - 1 == len(read), (told, read)
    assert [(name, said) for name, said in zip(read, told[1:], strict=True) if normal(name) not in normal(said)] == []


@pytest.mark.parametrize("verb", scripts.VERBS)
def test_the_store_sends_and_gets_what_a_header_says(verb: str, redis_client: redis.Redis) -> None:
    store = Recorded(redis_client, prefix="p", queue="q", ttl=60)
    CALLS[verb](store)
    assert len(store.args) == len(SETTINGS) + len(stated(verb, "ARGV")) - 1
    said = header(verb)["Returns"]
    if said.startswith(("for each", "1 for each")):
        assert len(store.reply) == 1
    elif isinstance(store.reply, list):
        assert len(store.reply) == len(stated(verb, "Returns"))
    else:
        assert said.startswith(("1 when", "how many", "state: "))


def test_every_verb_is_a_file_and_a_call_here() -> None:
    files = {path.stem for path in (ROOT / "groupjobs/store/lua").glob("*.lua")}
    assert files == set(scripts.VERBS) == set(CALLS)


def test_the_settings_are_read_in_the_order_of_the_store() -> None:
    text = (ROOT / "groupjobs/store/lua/lib/args.lua").read_text()
    assert reads(text[text.index("local settings") :]) == list(SETTINGS)


def test_luacheck_finds_nothing(tmp_path: Path) -> None:
    asked = subprocess.run([ROOT / ".ci/luacheck"], capture_output=True, text=True, check=False)
    if asked.returncode:
        pytest.skip(asked.stderr.strip())
    for verb in scripts.VERBS:
        (tmp_path / f"{verb}.lua").write_text(scripts.source(verb).partition("\n")[2])
    options = ("--std", "lua51", "--globals", "redis", "KEYS", "ARGV", "--codes", "--formatter", "plain", "--no-color")
    shown = subprocess.run(
        [asked.stdout.strip(), *options, "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found = shown.stdout.splitlines()
    unused = [re.search(r"unused function '(\w+)'", line) for line in found]
    assert [line for line, function in zip(found, unused, strict=True) if function is None] == []
    names = [function[1] for function in unused if function is not None]
    assert [name for name in set(names) if names.count(name) == len(scripts.VERBS)] == []  # an include that nobody uses
