"""Real servers and real Celery workers for tests."""
