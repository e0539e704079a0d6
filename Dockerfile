# By version; docs/running.md, Containers, has the command that pins it by digest.
FROM python:3.12.12-slim-bookworm

# The tools read repositories through git.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 holdfast \
    && install --directory --owner holdfast /var/lib/holdfast /store

WORKDIR /app
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --require-hashes -r requirements.lock
COPY worker.py starter.py ./
COPY holdfast/ holdfast/
COPY workflows/ workflows/
COPY activities/ activities/
COPY roles/ roles/
COPY prompts/ prompts/
COPY playbooks/ playbooks/
COPY evals/ evals/

USER holdfast
ENV PYTHONUNBUFFERED=1 \
    HOLDFAST_STATE_DIR=/var/lib/holdfast \
    STORE_URL=file:///store
# In the form of a list: SIGTERM reaches Python, which drains.
CMD ["python", "worker.py"]
