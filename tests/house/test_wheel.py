"""The package as people get it: what is in it, and that it works where nothing else of this tree is."""

from __future__ import annotations

import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from groupjobs.store import scripts
from tests.house.stranger import Stranger
from tests.house.tables import ROOT

USE = """
    import django, json, os
    from pathlib import Path
    os.environ["DJANGO_SETTINGS_MODULE"] = "site_.settings"
    django.setup()
    import groupjobs
    from django.contrib.staticfiles.finders import find
    from django.db import transaction
    from django.template.loader import get_template
    from django.utils import translation
    from groupjobs.store import scripts, store_for
    from work.jobs import add

    package = Path(groupjobs.__file__).parent
    with transaction.atomic():
        result = add.enqueue(2, 3)
    translation.activate("de")
    print(json.dumps({
        "package": str(package),
        "typed": (package / "py.typed").exists(),
        "scripts": [verb for verb in scripts.VERBS if scripts.source(verb)],
        "state": store_for("default").ping(),
        "waits": len(store_for("default").snapshot([(int(result.id), "g:2")]).entries),
        "template": Path(get_template("groupjobs/admin/run.html").origin.name).name,
        "static": Path(find("groupjobs/admin.css")).name,
        "german": translation.gettext("arguments"),
    }))
"""
SETTINGS = """
import django, os
INSTALLED_APPS += ["work", "groupjobs"] + ([] if django.VERSION >= (6, 0) else ["django_tasks"])
GROUPJOBS = {"REDIS": os.environ["REDIS_URL"] + "/1"}
DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE"}
"""
JOBS = """
from groupjobs import job

@job(group="g:{a}")
def add(a: int, b: int) -> int:
    return a + b
"""


def tracked() -> set[str]:
    """Files of the package that are not forgotten to be committed, without those that are empty folders' keepers."""
    listed = subprocess.run(["git", "ls-files", "groupjobs"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = set(listed.stdout.split())
    return names or {str(path.relative_to(ROOT)) for path in (ROOT / "groupjobs").rglob("*") if path.is_file()}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name for name in names if not name.startswith("groupjobs/")} == set()
    assert tracked() - names == set()
    for kind in (".lua", ".html", ".css", ".js", ".mo", "py.typed", "0001_initial.py"):
        assert any(name.endswith(kind) for name in names), kind


def test_the_sdist_holds_what_the_wheel_and_its_tests_are_made_of(wheel: Path) -> None:
    with tarfile.open(next(wheel.parent.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {*tracked(), "pyproject.toml", "README.md", "LICENSE", "Makefile", "manage.py", "mkdocs.yml", ".ci/test"}
    assert wanted - names == set()
    assert any(name.startswith("tests/") for name in names)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_works_in_an_empty_environment(stranger: Stranger) -> None:
    stranger.bash(
        "pip install --quiet groupjobs && django-admin startproject site_ . && python manage.py startapp work"
    )
    (stranger.folder / "work/jobs.py").write_text(JOBS)
    with (stranger.folder / "site_/settings.py").open("a") as settings:
        settings.write(SETTINGS)
    checked = stranger.bash("python -W error manage.py check && python manage.py migrate --verbosity 0")
    assert "no issues" in checked
    shown = json.loads(stranger.python(USE).splitlines()[-1])
    assert Path(shown.pop("package")) == stranger.packages / "groupjobs"
    assert shown == {
        "typed": True,
        "scripts": list(scripts.VERBS),
        "state": "rebuild",
        "waits": 1,
        "template": "run.html",
        "static": "admin.css",
        "german": "Argumente",
    }
