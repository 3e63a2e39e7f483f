"""Database settings from a URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

ENGINES = {
    "sqlite": "django.db.backends.sqlite3",
    "postgres": "django.db.backends.postgresql",
    "postgresql": "django.db.backends.postgresql",
    "mysql": "django.db.backends.mysql",
    "mariadb": "django.db.backends.mysql",
}
# Several processes write: wait for the lock when a transaction begins, not in its middle.
SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}
MYSQL_OPTIONS = {"charset": "utf8mb4", "isolation_level": "read committed"}


def database(url: str) -> dict[str, Any]:
    """Django's settings for `sqlite:///file`, `postgres://user:password@host:port/name` or `mysql://...`.

    `?host=/folder` or `?unix_socket=/path` name a socket. ImproperlyConfigured for any other scheme.
    """
    parts = urlsplit(url)
    if parts.scheme not in ENGINES:
        raise ImproperlyConfigured(f"DATABASE_URL must begin with one of {', '.join(ENGINES)}, not {parts.scheme!r}")
    engine = ENGINES[parts.scheme]
    if parts.scheme == "sqlite":
        return sqlite(Path(unquote(parts.path[1:])))
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    settings: dict[str, Any] = {
        "ENGINE": engine,
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or query.get("user", "")),
        "PASSWORD": unquote(parts.password or query.get("password", "")),
        "HOST": query.get("host") or query.get("unix_socket") or parts.hostname or "",
        "PORT": str(parts.port or query.get("port", "")),
    }
    if engine.endswith("mysql"):
        settings["OPTIONS"] = dict(MYSQL_OPTIONS)
        _mysql_driver()
    return settings


def sqlite(path: Path) -> dict[str, Any]:
    """Django's settings for a SQLite file that several processes write."""
    name = str(path.absolute())
    return {
        "ENGINE": ENGINES["sqlite"],
        "NAME": name,
        "OPTIONS": dict(SQLITE_OPTIONS),
        "TEST": {"NAME": f"{name}.test"},
    }


def address(settings: dict[str, Any]) -> str:
    """The URL that `database()` turns into these settings (name, user, password, host and port)."""
    from urllib.parse import quote

    scheme = settings["ENGINE"].rpartition(".")[2].replace("sqlite3", "sqlite")
    if scheme == "sqlite":
        return f"sqlite:///{quote(str(settings['NAME']))}"
    query = {
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "host": settings["HOST"],
        "port": settings["PORT"],
    }
    named = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in query.items() if value)
    return f"{scheme}:///{quote(str(settings['NAME']))}?{named}"


def _mysql_driver() -> None:
    """Let PyMySQL, which needs no compiler, stand in where mysqlclient is not installed."""
    try:
        import MySQLdb  # noqa: F401
    except ImportError:
        import pymysql

        pymysql.version_info = (2, 2, 8, "final", 0)  # what Django asks of mysqlclient
        pymysql.install_as_MySQLdb()
