"""English and German: the catalogue is whole, compiled, and its placeholders are those of the source."""

from __future__ import annotations

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from django.test.utils import override_settings
from django.utils import translation

from groupjobs.explain import NAMES
from groupjobs.moves import publish
from groupjobs.store import Store
from tests.admin.conftest import MakeRun

PACKAGE = Path(__file__).parents[2] / "groupjobs"
CATALOGUE = PACKAGE / "locale" / "de" / "LC_MESSAGES" / "django.po"
DJANGO_HAS = {"Clear selection", "History"}
PLACEHOLDER = re.compile(r"%\(\w+\)s|%s")

Messages = dict[str, list[str]]


def parsed(text: str) -> Messages:
    """Each msgid with its translations."""
    found: Messages = {}
    for entry in re.split(r"\n\n+", text):
        values: dict[str, str] = {}
        key = ""
        for line in entry.splitlines():
            if match := re.match(r'(msgid_plural|msgid|msgstr(?:\[\d\])?) (".*")$', line):
                key = match[1]
                values[key] = ast.literal_eval(match[2])
            elif line.startswith('"'):
                values[key] += ast.literal_eval(line)
        if values.get("msgid"):
            found[values["msgid"]] = [text for name, text in values.items() if name.startswith("msgstr")]
    return found


def test_the_compiled_catalogue_is_that_of_the_source() -> None:
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for message, translations in parsed(CATALOGUE.read_text("utf-8")).items():
        assert all(translations), message
        if len(translations) == 1:
            assert compiled.gettext(message) == translations[0]
        for text in translations:
            assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(message)), message


def test_every_text_of_the_package_is_translated(tmp_path: Path) -> None:
    if shutil.which("xgettext") is None:
        pytest.skip("gettext's tools are not installed")
    shutil.copytree(PACKAGE, tmp_path / "groupjobs", ignore=shutil.ignore_patterns("*.po", "*.mo", "__pycache__"))
    (tmp_path / "groupjobs" / "locale" / "de").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "django", "makemessages", "-l", "de", "--no-location", "-v0"]
    environment = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=tmp_path / "groupjobs", env=environment, check=True)
    made = tmp_path / "groupjobs" / "locale" / "de" / "LC_MESSAGES" / "django.po"
    assert set(parsed(made.read_text("utf-8"))) - DJANGO_HAS == set(parsed(CATALOGUE.read_text("utf-8")))


def test_pages_speak_german(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run(group="a")
    publish([run])
    with override_settings(LANGUAGE_CODE="de"):
        groups = boss.get("/admin/groupjobs/jobgroup/").content.decode()
        page = boss.get(f"/admin/groupjobs/jobrun/{run.pk}/change/").content.decode()
        runs = boss.get("/admin/groupjobs/jobrun/").content.decode()
    assert "kein Worker läuft" in groups
    assert "Wiederherstellen" in page
    assert "Abbrechen" in runs
    with translation.override("de"):
        assert str(NAMES["backing_off"]) == "wartet nach Fehler"
