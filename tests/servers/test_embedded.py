from __future__ import annotations

import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from kombu import Connection

from project import embedded_postgres
from project.embedded import EmbeddedValkey, NotStarted
from project.embedded_postgres import EmbeddedPostgres
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.once

ORPHANS = """
import os, signal, threading
from project.embedded import EmbeddedValkey
from project.embedded_postgres import EmbeddedPostgres
started = []
thread = threading.Thread(target=lambda: started.extend([EmbeddedValkey().start(), EmbeddedPostgres().start()]))
thread.start()
thread.join()
assert started[0].client().ping()
print(*(server.pid for server in started), *(server.folder for server in started), flush=True)
{ending}
"""


def test_data_addresses_and_password_survive_a_kill_and_a_start() -> None:
    with EmbeddedValkey() as server:
        url, broker_url = server.url, server.broker_url
        redis.Redis.from_url(url).set("name", "value")
        wait_until(lambda: b"name" in b"".join(path.read_bytes() for path in server.folder.rglob("*.aof")))
        server.kill()
        with pytest.raises(redis.ConnectionError):
            server.client().ping()
        server.start()
        assert server.client().get("name") == b"value"
        assert (server.url, server.broker_url) == (url, broker_url)
    assert not server.folder.exists()


def test_valkey_is_private() -> None:
    with EmbeddedValkey() as server:
        shown = " ".join(psutil.Process(server.pid).cmdline())
        files = [path for path in server.folder.rglob("*") if path.is_file()]
        assert server.password not in shown
        assert not any(server.password.encode() in path.read_bytes() for path in files)
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        assert len(str(server.socket)) < 104
        assert not psutil.Process(server.pid).net_connections("inet")
        with pytest.raises(redis.AuthenticationError):
            server.client(password="").ping()


def test_valkey_evicts_nothing_and_celery_has_a_database_of_its_own() -> None:
    with EmbeddedValkey({"maxmemory": "50mb"}) as server:
        settings = server.client().config_get("maxmemory*")
        assert (settings["maxmemory"], settings["maxmemory-policy"]) == ("52428800", "noeviction")
        with Connection(server.broker_url) as connection:
            connection.SimpleQueue("bells").put("ring")
        assert server.client().keys() == []


def test_a_paused_valkey_answers_again_and_can_be_stopped_while_paused() -> None:
    with EmbeddedValkey() as server:
        server.pause()
        with pytest.raises(redis.TimeoutError):
            server.client(timeout=0.1).ping()
        server.resume()
        assert server.client().ping()
        server.pause()


def test_a_server_that_cannot_start_says_why() -> None:
    server = EmbeddedValkey({"no-such-option": "1"})
    with pytest.raises(NotStarted, match="no-such-option"):
        server.start()
    server.stop()


@pytest.mark.parametrize("how", ["kill", "halt"])
def test_rows_survive_an_end_of_postgres(how: str) -> None:
    with EmbeddedPostgres() as server:
        with psycopg.connect(server.url()) as connection:
            connection.execute("create table kept as select 1 as one")
        idle = psycopg.connect(server.url())
        getattr(server, how)()
        with pytest.raises(psycopg.OperationalError):
            idle.execute("select 1")
        server.start()
        with psycopg.connect(server.url()) as connection:
            assert connection.execute("table kept").fetchall() == [(1,)]
    assert not server.folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands PostgreSQL to another user")
def test_postgres_runs_where_its_user_cannot_reach_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_postgres, "reachable", lambda folder, user: False)
    with EmbeddedPostgres() as server, psycopg.connect(server.url()) as connection:
        assert connection.execute("show data_directory").fetchall() == [(str(server.data),)]
        assert psutil.Process(server.pid).username() == embedded_postgres.UNPRIVILEGED


def test_reachable_asks_every_folder_above(tmp_path: Path) -> None:
    assert embedded_postgres.reachable(Path("/usr/bin"), "nobody")
    inner = tmp_path / "inner"
    inner.mkdir()
    tmp_path.chmod(0o700)
    assert not embedded_postgres.reachable(inner, "nobody")


@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), signal.SIGKILL)", "raise SystemExit(0)", "raise OSError"])
def test_servers_end_with_their_process_however_it_ends(ending: str) -> None:
    if "SIGKILL" in ending and sys.platform != "linux":
        pytest.skip("only Linux tells a process of its parent's death")
    program = [sys.executable, "-c", ORPHANS.replace("{ending}", ending)]
    shown = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    valkey, postgres, *folders = shown.split()
    for pid in (int(valkey), int(postgres)):
        wait_until(partial(ended, pid), what=f"{pid} has ended")
    wait_until(lambda: not [folder for folder in folders if Path(folder).exists()], 5, "their folders are removed")


def ended(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_a_fork_that_exits_leaves_the_server_to_its_parent() -> None:
    with EmbeddedValkey() as server:
        pid = os.fork()
        if pid == 0:
            server._at_exit()
            os._exit(0)
        os.waitpid(pid, 0)
        assert server.client().ping()
