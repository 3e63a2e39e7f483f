"""compose.yaml: its shape here, and its validity where a client of Docker Compose is."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest

from tests.house.tables import ROOT

yaml = pytest.importorskip("yaml")

UNITS = {"mb": 2**20, "m": 2**20}


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([a-z]+)", text).groups()  # type: ignore[union-attr]
    return int(number) * UNITS[unit]


def test_valkey_has_a_limit_that_is_kept_and_evicts_nothing() -> None:
    valkey = compose()["services"]["valkey"]
    told = dict(zip(valkey["command"][1::2], valkey["command"][2::2], strict=True))
    assert told["--maxmemory-policy"] == "noeviction"
    assert size(told["--maxmemory"]) < size(valkey["mem_limit"])


def test_there_are_two_workers_a_web_server_and_a_database() -> None:
    services = compose()["services"]
    assert set(services) == {"migrate", "web", "worker", "valkey", "database"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert all(port.startswith("127.0.0.1:") for service in services.values() for port in service.get("ports", ()))


def test_what_the_image_copies_exists() -> None:
    for line in re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE):
        assert [name for name in line.split() if not (ROOT / name).exists()] == []


def test_docker_compose_takes_it() -> None:
    clients = [["docker", "compose"], ["docker-compose"]]
    client = next((words for words in clients if _runs([*words, "version"])), None)
    if client is None:
        pytest.skip("no client of Docker Compose is installed")
    command = [*client, "-f", "compose.yaml", "config", "--quiet"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")


def _runs(command: list[str]) -> bool:
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True, check=False).returncode == 0
