"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.api]

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "groupjobs"
LONGEST_FILE = 250
LONGEST_FUNCTION = 30
VAGUE = {"utils", "util", "helpers", "helper", "manager", "managers", "service", "services", "misc", "common"}
# Generated from the models.
GENERATED = {PACKAGE / "migrations"}
TESTS = ROOT / "tests"
# Long ones that are still to be split, and the model, which is one program to be read on its own.
LONG = {
    *(TESTS / "core" / f"test_{name}.py" for name in ("bad_input", "recovery", "windows")),
    TESTS / "admin" / "test_situations.py",
    TESTS / "jobsapp" / "jobs.py",
    TESTS / "model" / "protocol_model.py",
}


def sources(*patterns: str) -> list[Path]:
    found = [path for pattern in patterns for path in PACKAGE.rglob(pattern)]
    return sorted(path for path in found if not GENERATED & set(path.parents))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Its lines without its docstring."""
    docstring = ast.get_docstring(function, clean=False)
    return (function.end_lineno or 0) - function.lineno + 1 - (len(docstring.splitlines()) if docstring else 0)


def test_files_are_short() -> None:
    files = {*sources("*.py", "*.lua"), *TESTS.rglob("*.py")} - LONG
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in files}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    lengths = {
        f"{path.relative_to(ROOT)}:{node.name}": lines_of_code(node)
        for path in sources("*.py")
        for node in functions(path)
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_most_functions_have_a_few_lines() -> None:
    assert statistics.median(lines_of_code(node) for path in sources("*.py") for node in functions(path)) <= 6


def public(node: ast.AST, name: str) -> Iterator[tuple[str, bool]]:
    """Each public module, class, function and method, and whether it has a docstring."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield name, bool(ast.get_docstring(node))
    if isinstance(node, ast.Module | ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and part.name[0] != "_":
                yield from public(part, f"{name}.{part.name}")


def test_public_names_say_what_they_mean() -> None:
    """Properties' setters, overloads, and the Meta and Media of Django's classes say nothing of their own."""
    found = [
        (name, documented)
        for path in sources("*.py")
        if path.read_text()
        for name, documented in public(ast.parse(path.read_text()), str(path.relative_to(ROOT)))
    ]
    missing = [name for name, documented in found if not documented]
    assert len(missing) <= 0.05 * len(found), missing


def test_no_module_has_a_vague_name() -> None:
    assert [path for path in sources("*.py") if {path.stem, path.parent.name} & VAGUE] == []


def test_importing_the_package_is_light() -> None:
    heavy = ("django", "celery", "redis", "kombu")
    program = f"import sys, groupjobs; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_jobs_can_be_declared_before_the_apps_are_loaded() -> None:
    program = (
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'; import groupjobs.jobs, groupjobs.backend"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_no_file_names_a_registry_or_a_place_on_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    suspicious = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|/root/|/work/")
    texts = [ROOT / name for name in listed if (ROOT / name).is_file() and ROOT / name != Path(__file__)]
    assert [path for path in texts if suspicious.search(path.read_text(errors="replace"))] == []
