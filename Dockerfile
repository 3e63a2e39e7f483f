# The demo project; compose.yaml runs it as web server and as worker.
FROM python:3.13-slim
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY groupjobs groupjobs
RUN pip install --no-cache-dir -c constraints.txt ".[hiredis,postgres]" && useradd --create-home app
COPY manage.py ./
COPY project project
COPY templates templates
USER app
ENV PYTHONUNBUFFERED=1
CMD ["celery", "-A", "project", "worker"]
