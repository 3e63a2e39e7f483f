"""The table of Celery with rows."""
