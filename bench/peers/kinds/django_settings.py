"""Django's settings for the systems that need Django; BENCH_APPS (separated by commas) says with which apps."""

import os
from urllib.parse import parse_qs, urlsplit

_url = urlsplit(os.environ["DATABASE_URL"])
REDIS_URL = os.environ["REDIS_URL"]
SECRET_KEY = "bench"
INSTALLED_APPS = ["django.contrib.contenttypes", *os.environ.get("BENCH_APPS", "").split(",")]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.path.strip("/"),
        "USER": _url.username,
        "HOST": parse_qs(_url.query)["host"][0],
        "CONN_MAX_AGE": None,
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
RQ_QUEUES = {"default": {"URL": REDIS_URL, "DEFAULT_TIMEOUT": 600}}
Q_CLUSTER = {
    "name": "bench",
    "workers": 2,
    "timeout": 600,
    "retry": 1200,
    "queue_limit": 50,
    "save_limit": 0,
    "redis": REDIS_URL,
}


def ready():
    """Set Django up."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", __name__)
    django.setup()
