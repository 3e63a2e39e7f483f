"""`python -m tests.servers.mariadb`: exits 0 when a MariaDB for tests is reachable, else 1."""

from __future__ import annotations

import os
import sys
from typing import Any

LOCAL = "mysql://root@127.0.0.1:3306/test"
CONNECT_TIMEOUT = 3


def url() -> str:
    """MARIADB_URL, else the usual port of this machine with its first user; tests make a database `test_...`."""
    return os.environ.get("MARIADB_URL") or LOCAL


def reachable() -> bool:
    """Whether it lets us in and may be given a database; says why not on stderr."""
    import pymysql

    from project.databases import database

    settings: dict[str, Any] = database(url())
    try:
        with (
            pymysql.connect(
                host=settings["HOST"] or "localhost",
                port=int(settings["PORT"] or 3306),
                user=settings["USER"],
                password=settings["PASSWORD"],
                connect_timeout=CONNECT_TIMEOUT,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT VERSION()")
            return True
    except pymysql.MySQLError as error:
        print(error, file=sys.stderr)
        return False


if __name__ == "__main__":
    sys.exit(0 if reachable() else 1)
