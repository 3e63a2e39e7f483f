"""What people read: links lead somewhere, examples are Python, and name nothing that there is not."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis

from groupjobs import conf
from groupjobs.jobs.options import Options, Overrides
from groupjobs.store import Publication, Store, scripts
from tests.house.tables import HEADER, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
JOB_OPTIONS = {*Options.__annotations__, "takes_context"}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def examples(page: Path) -> Iterator[ast.Module]:
    """The Python of a page, also that which a command writes into a file; SyntaxError where it is none."""
    text = page.read_text()
    blocks = re.findall(r"^([ ]*)```python\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    written = re.findall(r"^cat >+ \S+\.py <<'EOF'\n(.*?)^EOF$", text, re.DOTALL | re.MULTILINE)
    for block in [*(block for _, block in blocks), *written]:
        yield ast.parse(textwrap.dedent(block))


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def keywords(call: ast.Call) -> set[str]:
    return {keyword.arg for keyword in call.keywords if keyword.arg}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_options_in_examples_exist(page: Path) -> None:
    for tree in examples(page):
        for call in calls(tree):
            match call.func:
                case ast.Name("job"):
                    assert keywords(call) - JOB_OPTIONS == set()
                case ast.Attribute(attr="using"):
                    assert keywords(call) - set(Overrides.__annotations__) == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_imports_in_examples_exist(page: Path) -> None:
    for tree in examples(page):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("groupjobs"):
                module = import_module(str(node.module))
                for alias in node.names:
                    assert hasattr(module, alias.name) or find_spec(f"{node.module}.{alias.name}"), alias.name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_in_examples_are_taken(page: Path) -> None:
    for tree in examples(page):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GROUPJOBS":
                expression = re.sub(r"REDIS_URL \+ ", "", ast.unparse(node.value))
                conf.load(ast.literal_eval(expression))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_options_and_keys_in_text_exist(page: Path) -> None:
    """`GROUPJOBS["KEY"]` and `option=` between backquotes."""
    text = page.read_text()
    assert set(re.findall(r"""GROUPJOBS\[["'](\w+)["']\]""", text)) - set(conf.RULES) == set()
    for file in re.findall(r"`((?:groupjobs|tests|docs|project)/[\w/.-]+)`", text):
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == ROOT], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """Those inside docs/ are MkDocs' to check."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not target.startswith(("http", "#")):
            file, _, anchor = target.partition("#")
            assert (ROOT / file).exists(), target
            assert not anchor or f"\n## {anchor.capitalize()}\n" in (ROOT / file).read_text(), target


def test_the_script_that_is_worked_out_for_contributors_runs(redis_client: redis.Redis) -> None:
    (block,) = re.findall(
        r"^    ```lua\n(.*?)^    ```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE
    )
    text = textwrap.dedent(block)
    assert [word for word, _ in HEADER.findall(text)] == ["Purpose", "KEYS", "ARGV", "Returns", "Keeps"]
    store = Store(redis_client, prefix="p", queue="q", ttl=60)
    store.enqueue([Publication(1, "g"), Publication(2, "g")])
    whole = scripts.source("ping").removesuffix((ROOT / "groupjobs/store/lua/ping.lua").read_text()) + text
    assert redis_client.register_script(whole)(keys=[store.base], args=[*store.settings, "g"]) == 2
