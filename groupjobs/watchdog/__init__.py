"""The watchdog: one small process beside each Celery worker that beats for it and reaps what has died.

It loads no Django apps. The worker gives it its assignment over stdin; both meet in the worker's home.
"""
