"""Settings of the demo project; everything that differs between machines comes from the environment.

DATABASE_URL (default: a SQLite file), REDIS_URL (default: port 6379 of this machine), BROKER_URL (default:
the same Redis), SECRET_KEY (default: a new one in each process), DEBUG, ALLOWED_HOSTS, and GROUPJOBS
(JSON: overrides of the setting of that name, such as {"WORKER_TTL": 5}).
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

import django

from project.addresses import broker_url
from project.databases import database

BASE_DIR = Path(__file__).resolve().parent.parent
CORE_TASKS = django.VERSION >= (6, 0)

SECRET_KEY = os.environ.get("SECRET_KEY") or secrets.token_urlsafe(48)
DEBUG = os.environ.get("DEBUG", "") not in ("", "0", "false", "no")
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *([] if CORE_TASKS else ["django_tasks"]),
    "groupjobs",
    "project.logbook",
]

MIDDLEWARE = [
    "project.csp.ContentSecurityPolicy",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
ASGI_APPLICATION = "project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "project.demo.views.stage",
            ]
        },
    }
]

DATABASES = {"default": database(os.environ.get("DATABASE_URL") or f"sqlite:///{BASE_DIR / 'db.sqlite3'}")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = os.environ.get("REDIS_URL") or "redis://localhost:6379/0"
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # No cache is kept in it: `clear()` would empty the queues.
    "groupjobs": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS_URL},
}

CELERY_BROKER_URL = os.environ.get("BROKER_URL") or broker_url(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

TASKS = {"default": {"BACKEND": "groupjobs.backend.GroupJobsBackend"}}
GROUPJOBS = {
    "REDIS": "groupjobs",
    "CELERY_APP": "project.celery.app",
    **json.loads(os.environ.get("GROUPJOBS") or "{}"),
}

# The folder of the `make serve` that stands behind this web server; empty: the pages offer no damage.
DEMO_DESK = os.environ.get("DEMO_DESK", "")

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]  # the admin, as the browser asks
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    # One line a task signal would cost more than a small run: its TaskResult is built for the line.
    "loggers": {"django_tasks": {"level": "WARNING"}, "django.tasks": {"level": "WARNING"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("LOG_LEVEL", "INFO")},
}
