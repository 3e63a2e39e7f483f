"""What people read: links lead somewhere, examples are Python, and name nothing that there is not."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

import redis

from groupjobs import conf
from groupjobs.jobs.options import Options, Overrides
from groupjobs.store import Publication, Store, scripts
from tests.house.tables import HEADER, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}
JOB_OPTIONS = {*Options.__annotations__, "takes_context"}


def examples(text: str) -> Iterator[ast.Module]:
    """The Python of a page, also that which a command writes into a file; SyntaxError where it is none."""
    blocks = re.findall(r"^([ ]*)```python\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    written = re.findall(r"^cat >+ \S+\.py <<'EOF'\n(.*?)^EOF$", text, re.DOTALL | re.MULTILINE)
    for block in [*(block for _, block in blocks), *written]:
        yield ast.parse(textwrap.dedent(block))


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Everything in all examples, with the page on which it stands."""
    for name, text in TEXTS.items():
        for tree in examples(text):
            for node in ast.walk(tree):
                yield name, node


def keywords(call: ast.Call) -> set[str]:
    return {keyword.arg for keyword in call.keywords if keyword.arg}


def test_options_in_examples_exist() -> None:
    for name, node in nodes():
        match node:
            case ast.Call(func=ast.Name("job")):
                assert keywords(node) - JOB_OPTIONS == set(), name
            case ast.Call(func=ast.Attribute(attr="using")):
                assert keywords(node) - set(Overrides.__annotations__) == set(), name


def test_imports_in_examples_exist() -> None:
    for name, node in nodes():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("groupjobs"):
            module = import_module(str(node.module))
            for alias in node.names:
                assert hasattr(module, alias.name) or find_spec(f"{node.module}.{alias.name}"), (name, alias.name)


def test_settings_in_examples_are_taken() -> None:
    for _, node in nodes():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GROUPJOBS":
            conf.load(ast.literal_eval(ast.unparse(node.value).replace("REDIS_URL + ", "")))


def test_settings_and_files_in_text_exist() -> None:
    for name, text in TEXTS.items():
        assert set(re.findall(r"""GROUPJOBS\[["'](\w+)["']\]""", text)) - set(conf.RULES) == set(), name
        for file in re.findall(r"`((?:groupjobs|tests|docs|project)/[\w/.-]+)`", text):
            assert (ROOT / file).exists(), (name, file)


def test_links_lead_somewhere() -> None:
    """Those inside docs/ are MkDocs' to check."""
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text) if "/" not in name else ():
            file, _, anchor = target.partition("#")
            if not target.startswith(("http", "#")):
                assert (ROOT / file).exists(), (name, target)
                assert not anchor or f"\n## {anchor.capitalize()}\n" in (ROOT / file).read_text(), (name, target)


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
