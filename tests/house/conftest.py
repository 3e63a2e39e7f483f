from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from project.embedded import EmbeddedValkey
from tests.house.stranger import Stranger, build


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, with an sdist beside it."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture
def tcp_valkey() -> Iterator[str]:
    """The address of a Valkey on a port of 127.0.0.1, as a stranger would have one; without a database number."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with EmbeddedValkey({"port": str(port), "bind": "127.0.0.1"}) as server:
        yield f"redis://:{server.password}@127.0.0.1:{port}"


@pytest.fixture
def stranger(tmp_path: Path, wheel: Path, tcp_valkey: str) -> Stranger:
    """A machine without groupjobs; REDIS_URL names a Valkey."""
    return Stranger(tmp_path, wheel.parent, {"REDIS_URL": tcp_valkey})
