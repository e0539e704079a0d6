# Everything a newcomer needs: python3 (3.11 or later) and make. Nothing is installed outside .venv.
.DEFAULT_GOAL := help
.PHONY: help setup demo test short test-long lint style types shipped shape record lock clean

PYTHONS = python3 python3.11 python3.12 python3.13 python3.14
NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))
REPO ?=
BASE ?=
VENV = .venv
# Two more than a small machine has cores: tests of real processes wait for much of their time.
TESTERS ?= 4
# What a file sets up is set up once; the longest files begin first.
SPREAD = --dist loadfile --no-loadscope-reorder
PYTHON = $(VENV)/bin/python
# What was compiled once serves the next run: rewriting the assertions takes as long as all else.
unexport PYTHONDONTWRITEBYTECODE
STAMP = $(VENV)/locked.stamp
# Of a part of what is locked: all that the demonstration shows.
DEMO_STAMP = $(VENV)/demo.stamp

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(STAMP) ## Make .venv from requirements.lock; a second time it is already there

demo: $(DEMO_STAMP) ## Review a small example, or REPO=path, or its changes since BASE=revision; no key, no model
	@$(PYTHON) starter.py demo $(if $(REPO),"$(REPO)") $(if $(BASE),--base "$(BASE)")

test: $(STAMP) ## Style, types and what a change is most likely to break, in minutes; offline
	@$(MAKE) --no-print-directory --jobs 3 style shipped short

short: $(STAMP)
	@# In a fresh clone one tester compiles for all, while the types are checked beside it.
	@[ -d tests/__pycache__ ] || $(PYTHON) -m pytest --collect-only -qq -m "not long" >/dev/null || true
	$(PYTHON) -m pytest -n $(TESTERS) $(SPREAD) -m "not long"

test-long: types ## The rest: types of tests, real processes killed, browsers, every page's snippets; offline
	$(PYTHON) -m pytest -n $(TESTERS) $(SPREAD) -m long

lint: style types ## Style and types alone, of tests, too

style: $(STAMP)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-logo --no-cache

types: $(STAMP)
	$(PYTHON) -m mypy

shipped: $(STAMP)
	@# Without tests and benches, which take as long again: test-long has them.
	$(PYTHON) -m mypy holdfast worker.py starter.py

shape: $(STAMP) ## The largest modules, functions and folders: for a reader, no gate
	@$(PYTHON) bench/shape.py

record: $(STAMP) ## Write the recorded histories of tests/histories anew
	$(PYTHON) tests/record.py

# A bare environment, so that no index of this machine gets into the file.
RESOLVE = env -i PATH="$$PATH" HOME="$$HOME" $${SSL_CERT_FILE:+SSL_CERT_FILE="$$SSL_CERT_FILE"} \
	uv --no-config pip compile --quiet --universal --upgrade --generate-hashes \
	--no-emit-index-url --no-header --no-annotate --python-version 3.11 pyproject.toml

lock: ## Resolve pyproject.toml into requirements.lock and demo.lock anew (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@$(RESOLVE) --all-extras --group dev --output-file requirements.new
	@{ echo "# What holdfast runs and is tested with, with hashes. Renewed from pyproject.toml by"; \
		echo "# \`make lock\`; not edited by hand."; cat requirements.new; } >requirements.lock
	@$(RESOLVE) --extra embedded --extra review --constraint requirements.lock \
		--output-file requirements.new
	@{ echo "# What \`make demo\` shows: a part of requirements.lock. Renewed by \`make lock\`; not"; \
		echo "# edited by hand."; cat requirements.new; } >demo.lock
	@rm requirements.new

clean: ## Remove .venv and caches; the state directory stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock
$(DEMO_STAMP): demo.lock
$(STAMP) $(DEMO_STAMP):
	@for each in $(PYTHONS); do \
		if "$$each" -c "$(NEW_ENOUGH)" 2>/dev/null; then found="$$each"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Python 3.11 or later is needed; none of these is: $(PYTHONS)" >&2; exit 1; \
	fi; \
	"$$found" -I holdfast/deployment/installing.py $(VENV) $<
	@touch $@ $(DEMO_STAMP)
