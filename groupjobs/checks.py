"""System checks: what a project has set that cannot work, or that costs it a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string
from redis.connection import parse_url

from groupjobs import compat, conf, registry

TAG: Final = "groupjobs"
CACHES_IN_REDIS: Final = (
    "django_redis.cache.RedisCache",
    "django.core.cache.backends.redis.RedisCache",
)
Found = Iterable[CheckMessage]
Check = Callable[[conf.Settings], Found]


@register(TAG)
def check_settings(**_: Any) -> list[CheckMessage]:
    """Run every check that needs no server; a wrong `GROUPJOBS` is the only message while there is one."""
    try:
        current = conf.current()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="groupjobs.E001")]
    return [message for check in CHECKS for message in check(current)]


def check_redis(current: conf.Settings) -> Found:
    """Yield what is wrong about the CACHES alias or URL in `GROUPJOBS["REDIS"]`."""
    kind = _url if "://" in current.redis else _factory if "." in current.redis else _alias
    yield from kind(current.redis)
    mine = _places(settings.CACHES.get(current.redis) or {"LOCATION": current.redis})
    for alias, cache in settings.CACHES.items():
        in_redis = cache.get("BACKEND") in CACHES_IN_REDIS
        if alias != current.redis and in_redis and mine & _places(cache):
            yield _shared(f"CACHES[{alias!r}] is in the same Redis database as GROUPJOBS['REDIS']")


def _url(url: str) -> Found:
    try:
        parse_url(url)  # type: ignore[no-untyped-call]
    except ValueError as error:  # the URL itself may hold a password
        yield Error(f"GROUPJOBS['REDIS'] is no URL of a Redis: {error}.", id="groupjobs.E002")


def _alias(alias: str) -> Found:
    cache = settings.CACHES.get(alias)
    if cache is None:
        hint = "Add an alias served by django-redis, or give a URL such as 'redis://...'."
        yield Error(f"GROUPJOBS['REDIS'] is {alias!r}, which is no alias of CACHES.", hint=hint, id="groupjobs.E002")
        return
    if not _served_by_django_redis(cache.get("BACKEND")):
        hint = f"Its BACKEND must be {CACHES_IN_REDIS[0]!r}."
        yield Error(f"CACHES[{alias!r}] is not served by django-redis.", hint=hint, id="groupjobs.E003")
    elif alias == "default":
        yield _shared("GROUPJOBS['REDIS'] is 'default', the alias that Django itself uses as a cache")


def _served_by_django_redis(path: Any) -> bool:
    if path == CACHES_IN_REDIS[0]:
        return True
    try:
        return issubclass(import_string(path), import_string(CACHES_IN_REDIS[0]))
    except Exception:  # Django reports a cache that cannot be imported
        return False


def _factory(path: str) -> Found:
    try:
        found = import_string(path)
    except ImportError as error:
        yield Error(f"GROUPJOBS['REDIS'] is {path!r}, which cannot be imported: {error}.", id="groupjobs.E002")
        return
    if not callable(found):
        yield Error(f"GROUPJOBS['REDIS'] is {path!r}, which is no callable.", id="groupjobs.E002")


def _shared(problem: str) -> Warning:
    hint = "cache.clear() is FLUSHDB and would empty the queues: give groupjobs a database of its own."
    return Warning(f"{problem}.", hint=hint, id="groupjobs.W004")


def _places(cache: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Each server and database of a cache's LOCATION, without credentials."""
    locations = cache.get("LOCATION") or ()
    if isinstance(locations, str):
        locations = locations.split(",")
    options = {str(key).lower(): value for key, value in (cache.get("OPTIONS") or {}).items()}
    return {_place(str(location), options.get("db")) for location in locations if "://" in str(location)}


def _place(location: str, database: Any) -> tuple[str, str]:
    url = urlsplit(location)
    given = parse_qs(url.query).get("db", [None])[0]
    if url.scheme == "unix":
        return url.path, str(given or database or 0)
    path = url.path.strip("/")
    try:
        port = url.port or 6379
    except ValueError:  # no number, which is reported elsewhere
        return location, ""
    return f"{url.hostname or 'localhost'}:{port}", str(given or path or database or 0)


def check_database(current: conf.Settings) -> Found:
    """Yield what is wrong about the alias of the rows."""
    database = settings.DATABASES.get(current.database)
    if database is None:
        problem = f"GROUPJOBS['DATABASE'] is {current.database!r}, which is no alias of DATABASES."
        yield Error(problem, id="groupjobs.E005")
        return
    if current.database != "default":
        problem = f"Runs are written to the database {current.database!r}, not to 'default'."
        hint = "enqueue() is part of transactions on that alias only: after a rollback on another one the run stays."
        yield Warning(problem, hint=hint, id="groupjobs.W005")
    mode = (database.get("OPTIONS") or {}).get("transaction_mode") or ""
    if database.get("ENGINE", "").endswith("sqlite3") and mode.upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        problem = f"DATABASES[{current.database!r}] is SQLite without the transaction mode IMMEDIATE."
        hint = "Set OPTIONS = {'transaction_mode': 'IMMEDIATE', 'timeout': 20}, else writers fail with 'locked'."
        yield Warning(problem, hint=hint, id="groupjobs.W006")


def check_tasks(_: conf.Settings) -> Found:
    """Yield what is wrong about django.tasks: the backport not installed as an app, several aliases."""
    if not compat.CORE and not apps.is_installed(compat.MODULE):
        problem = "Django before 6.0 has no tasks of its own, and the backport is not installed as an app."
        yield Warning(problem, hint="Add 'django_tasks' to INSTALLED_APPS.", id="groupjobs.W007")
    aliases = compat.own_aliases()
    if len(aliases) > 1:
        problem = f"TASKS has several aliases that groupjobs serves: {', '.join(aliases)}."
        hint = f"A job that names no backend uses {aliases[0]!r}."
        yield Warning(problem, hint=hint, id="groupjobs.W012")


def check_celery(current: conf.Settings) -> Found:
    """Yield what is wrong about the project's Celery app, as far as it can be found."""
    app = _celery_app(current.celery_app)
    if app is None:
        problem = f"GROUPJOBS['CELERY_APP'] is {current.celery_app!r}, which cannot be imported."
        yield Error(problem, id="groupjobs.E011")
        return
    if app.conf.task_always_eager:
        hint = "No bell is sent, so nothing runs. In tests use groupjobs.testing, which runs jobs as a worker would."
        yield Warning("Celery's task_always_eager is on.", hint=hint, id="groupjobs.W008")
    if app.conf.worker_pool not in ("prefork", "processes") and (limited := _hard_limits()):
        problem = f"The jobs {', '.join(limited)} have a time_limit, and the pool {app.conf.worker_pool!r} has no"
        hint = "Use the prefork pool, or soft_time_limit."
        yield Warning(f"{problem} process to kill.", hint=hint, id="groupjobs.W010")


def _celery_app(path: str | None) -> Any:
    if path is None:
        from celery import current_app

        return current_app
    try:
        return import_string(path.replace(":", "."))
    except ImportError:
        return None


def _hard_limits() -> list[str]:
    jobs = registry.registered().items()
    return sorted(name for name, task in jobs if getattr(task, "time_limit", None) is not None)


CHECKS: Final[tuple[Check, ...]] = (check_redis, check_database, check_tasks, check_celery)


@register(TAG, deploy=True)
def check_server(**_: Any) -> list[CheckMessage]:
    """Ask the server whether it may forget keys; done by `check --deploy` only."""
    from groupjobs.store import connect

    try:
        policy = connect(conf.current()).info("memory").get("maxmemory_policy", "noeviction")
    except ImproperlyConfigured:
        return []
    except Exception as error:  # whatever a client, a factory or a server may raise
        problem = f"Redis cannot be asked for its settings ({type(error).__name__}: {error})."
        return [Warning(problem, id="groupjobs.W013")]
    if policy == "noeviction":
        return []
    hint = "Set maxmemory-policy noeviction: else a full server throws queues away, and they are rebuilt."
    return [Warning(f"Redis evicts keys: maxmemory-policy is {policy}.", hint=hint, id="groupjobs.W009")]
