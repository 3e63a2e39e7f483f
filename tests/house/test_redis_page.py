"""What docs/redis.md says of rights, and the clients of docs/how-to/sentinel-cluster.md, on real servers."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from groupjobs import conf
from groupjobs.store import Store
from groupjobs.store.connect import timeouts
from project import child
from project.embedded import EmbeddedValkey, end, valkey_binary
from tests.house.tables import ROOT
from tests.house.test_lua import CALLS
from tests.servers.waiting import wait_until

CLIENT = {"HELLO", "AUTH", "SELECT", "PING", "CLIENT|SETINFO", "CLIENT|SETNAME", "EVALSHA", "SCRIPT|LOAD", "SET"}


def use(client: Any) -> None:
    """Send every verb, and what else the store sends."""
    store = Store(client, prefix="groupjobs", queue="default", ttl=60)
    assert store.turn("sweep", 1)
    for call in CALLS.values():
        call(store)
    assert store.overview().state == "rebuild"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def described(name: str) -> Any:
    """A function of the how-to page, as it stands there."""
    text = (ROOT / "docs/how-to/sentinel-cluster.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n# myproject/redis.py\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(block, names)
    return names[name]


def test_the_rights_of_the_page_suffice(valkey: EmbeddedValkey) -> None:
    (line,) = re.findall(r"^ACL SETUSER .*$", (ROOT / "docs/redis.md").read_text(), re.MULTILINE)
    with valkey.client() as owner:
        assert owner.execute_command(*line.split()) in (b"OK", "OK", True)
        with redis.Redis(
            unix_socket_path=str(valkey.socket), username="groupjobs", password="password", db=1
        ) as client:
            use(client)
            assert client.info("memory")["maxmemory_policy"] == "noeviction"
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.set("another key", 1)
        owner.execute_command("ACL", "DELUSER", "groupjobs")


def test_the_page_grants_what_is_sent_and_nothing_else() -> None:
    scripts = "".join(path.read_text() for path in (ROOT / "groupjobs/store/lua").rglob("*.lua"))
    sent = set(re.findall(r"call\('([A-Z]+)'", scripts)) | CLIENT
    (line,) = re.findall(r"^ACL SETUSER .*$", (ROOT / "docs/redis.md").read_text(), re.MULTILINE)
    assert {word[1:].upper() for word in line.split() if word.startswith("+")} == sent


@pytest.fixture
def cluster() -> Iterator[EmbeddedValkey]:
    """A cluster of one node that has all slots."""
    port = free_port() % 40000 + 10000  # its bus is ten thousand above
    with EmbeddedValkey({"port": str(port), "bind": "127.0.0.1", "cluster-enabled": "yes"}) as server:
        with server.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(
                lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), what="the cluster is up"
            )
        yield server


def test_a_cluster_serves_with_the_client_of_the_page(cluster: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch) -> None:
    real = redis.cluster.RedisCluster
    port = int(cluster.options["port"])

    def here(host: str, port: int = port, **options: Any) -> Any:
        return real(host="127.0.0.1", port=int(cluster.options["port"]), password=cluster.password, **options)

    monkeypatch.setattr(redis.cluster, "RedisCluster", here)
    client = described("cluster")(**timeouts(conf.Settings(), "serve"))
    use(client)
    client.close()


def test_a_sentinel_leads_to_the_primary_with_the_client_of_the_page(tmp_path: Path) -> None:
    port, watched = free_port(), free_port()
    with EmbeddedValkey({"port": str(watched), "bind": "127.0.0.1"}) as server:
        settings = tmp_path / "sentinel.conf"
        settings.write_text(
            f"port {port}\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {watched} 1\n"
            f"sentinel auth-pass mymaster {server.password}\n"
        )
        process = child.start([valkey_binary(), settings, "--sentinel"], log=tmp_path / "log", folder=tmp_path)
        try:
            primary = described("primary")
            primary.__globals__["SENTINELS"][:] = [("127.0.0.1", port)]
            client = primary(password=server.password, **timeouts(conf.Settings(), "serve"))
            wait_until(lambda: _answers(client), what="the sentinel knows the primary")
            use(client)
            client.close()
        finally:
            end(process, signal.SIGTERM)


def _answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
