"""`python -m tests.house.tables`: writes the tables of the documentation that are made from code.

A page marks such a table with `<!-- made from code: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final

from groupjobs import conf, lifecycle
from groupjobs.jobs.options import Options, Overrides
from groupjobs.lifecycle import EntrySeen, RowSeen
from groupjobs.policy import options, rules
from groupjobs.store import keys, scripts

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ("docs/settings.md", "docs/internals.md")
BLOCK: Final = re.compile(r"(<!-- made from code: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
ENTRY: Final = re.compile(r"`(\w+)`: (.*?)(?=\n\s*`\w+`: |(?<=[.]) `\w+`: |\Z)", re.DOTALL)
HEADER: Final = re.compile(r"^-- (Purpose|KEYS|ARGV|Returns|Keeps): ((?:.*\n)(?:--   .*\n)*)", re.MULTILINE)


def described(of: type[Any]) -> dict[str, str]:
    """What the docstring of a class says of each name: `name`: meaning."""
    return {name: " ".join(text.split()) for name, text in ENTRY.findall(of.__doc__ or "")}


def default_of(field: Field[Any]) -> Any:
    """A field's default value."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def shown(value: Any) -> str:
    """A default as settings would say it."""
    if isinstance(value, Mapping):
        return "`{" + ", ".join(f'"{key}": {_inner(item)}' for key, item in value.items()) + "}`"
    if isinstance(value, tuple) and value and isinstance(value[0], type):
        return "`(" + ", ".join(item.__name__ for item in value) + ",)`"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{value:g}`" if isinstance(value, float) else f"`{value!r}`"


def _inner(value: Any) -> str:
    if isinstance(value, conf.Queue):
        return "{}"
    return f"{value:g}" if isinstance(value, float) else repr(value)


def accepts(rule: Callable[[Any], Any]) -> str:
    """What a rule takes, in the words with which it refuses."""
    try:
        rule(object())
    except Exception as refusal:
        return re.sub(r"^must be |^must ", "", str(refusal))
    raise AssertionError(f"{rule} refuses nothing")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def settings_table() -> str:
    """The keys of `GROUPJOBS`."""
    meaning = described(conf.Settings)
    defaults = {field.name: default_of(field) for field in fields(conf.Settings)}
    rows = (
        (f"`{key}`", meaning[key.lower()], accepts(rule), shown(defaults[key.lower()]))
        for key, rule in conf.RULES.items()
    )
    return table(("key", "meaning", "takes", "default"), rows)


def queues_table() -> str:
    """The options of one queue."""
    meaning = described(conf.Queue)
    defaults = {field.name: default_of(field) for field in fields(conf.Queue) if field.name != "name"}
    rows = ((f"`{key}`", meaning[key], accepts(rule), shown(defaults[key])) for key, rule in conf.QUEUE_RULES.items())
    return table(("option", "meaning", "takes", "default"), rows)


def options_table() -> str:
    """The options of a job."""
    meaning = described(options.Policy)
    defaults = {field.name: default_of(field) for field in fields(options.Policy)} | {"backoff": None}
    rows = (
        (f"`{name}`", meaning[name], accepts(rules.RULES[name]), shown(defaults[name]), _where(name))
        for name in defaults
        if name != "literal_group"
    )
    return table(("option", "meaning", "takes", "default", "where"), rows)


def _where(name: str) -> str:
    job = name in Options.__annotations__ or name == "takes_context"
    call = name in Overrides.__annotations__
    return " ".join(["`@job`"] * job + ["`using`"] * call)


def transitions_table() -> str:
    """The life of a run."""
    rows = (
        (f"`{name}`", _statuses(edge.sources), edge.target, edge.meaning)
        for name, edge in lifecycle.TRANSITIONS.items()
    )
    return table(("transition", "from", "to", "what has happened"), rows)


def _statuses(names: frozenset[str]) -> str:
    return ", ".join(name for name in lifecycle.STATUSES if name in names)


ROWS: Final = {
    "READY": RowSeen("READY", 3, 1, False, 0, 2),
    "READY, a suspect": RowSeen("READY", 3, 1, True, 0, 2),
    "READY, life 2": RowSeen("READY", 3, 2, False, 0, 2),
    "RUNNING": RowSeen("RUNNING", 5, 1, True, 0, 2),
}
ENTRIES: Final = {
    "nothing": None,
    "waits": EntrySeen(False, 1, 3, False),
    "leased": EntrySeen(True, 1, 5, True),
    "leased, no beat for a while": EntrySeen(True, 1, 5, True, silent=True),
    "leased by a ghost": EntrySeen(True, 1, 5, True, ghost=True),
    "leased under an older fence": EntrySeen(True, 1, 4, True),
}
WORDS: Final = {
    lifecycle.FINE: "nothing",
    lifecycle.KEPT: "kept as it is",
    lifecycle.PUBLISH: "published again",
    lifecycle.RELEASE: "its lease is healed, no loss",
    lifecycle.LOST: "a loss: to its place, or ABANDONED",
}


def verdicts_table() -> str:
    """What recovery decides, asked of the code for each thing that can be seen."""
    judged = ((row, entry, lifecycle.verdict(ROWS[row], ENTRIES[entry])) for row in ROWS for entry in ENTRIES)
    rows = ((row, entry, found.reason, WORDS[found.word]) for row, entry, found in judged)
    return table(("the row says", "Redis says", "so", "what is done"), rows)


def keys_table() -> str:
    """The keys of a queue in Redis."""
    rows = ((f"`{name}`", text) for name, text in {**keys.SINGLE, **keys.FAMILIES}.items())
    return table(("key", "holds"), rows)


def header(verb: str) -> dict[str, str]:
    """What the header of a script says under each word."""
    text = (ROOT / "groupjobs/store/lua" / f"{verb}.lua").read_text()
    return {word: " ".join(said.replace("\n--", " ").split()) for word, said in HEADER.findall(text)}


def scripts_table() -> str:
    """The scripts, one verb each."""
    rows = ((f"`{verb}`", header(verb)["Purpose"], header(verb)["Keeps"]) for verb in scripts.VERBS)
    return table(("script", "does", "keeps"), rows)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "settings": settings_table,
    "queues": queues_table,
    "options": options_table,
    "transitions": transitions_table,
    "verdicts": verdicts_table,
    "keys": keys_table,
    "scripts": scripts_table,
}


def fresh(page: str) -> str:
    """The text of a page with its tables made anew; KeyError for a table that there is none of."""
    return BLOCK.sub(lambda found: found[1] + "\n" + TABLES[found[2]]() + "\n" + found[3], (ROOT / page).read_text())


def write() -> None:
    """Make the tables of all pages anew."""
    for page in PAGES:
        (ROOT / page).write_text(fresh(page))


if __name__ == "__main__":
    write()
