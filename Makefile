# Everything runs in a virtual environment of its own; nothing is installed outside it.
# Needs: Python >= 3.11 with pip, make, git, a C compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_OUT ?= tacit-demo
# A file is one worker's, and those that tests/conftest.py names begin.
PYTEST := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-fast test-js test-browser check format bench soak docs constraints clean

help:
	@echo "make demo     install and take the two-minute tour"
	@echo "make test     install what the tests need; lint, types, all tests"
	@echo "make test-fast   contracts, privacy, recorded results: to run often"
	@echo "make test-js  the TypeScript client in Node (installs Debian's, if there is none)"
	@echo "make test-browser   dashboard, devices and example in a real Chromium (likewise)"
	@echo "make check    lint and types only"
	@echo "make format   format the code"
	@echo "make bench    speed measurements (minutes)"
	@echo "make soak     kill the service 300 times under load (over an hour)"
	@echo "make docs     build the documentation site"
	@echo "make clean    remove the virtual environment and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tacit needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/core.stamp: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --editable '.[plots,tables]'
	@touch $@

$(VENV)/test.stamp: $(VENV)/core.stamp
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

demo: $(VENV)/core.stamp
	$(BIN)/tacit demo --out $(DEMO_OUT)

check: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

# Types are checked beside the tests; what is wrong with them stands below.
test: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	@echo "$(BIN)/mypy & $(PYTEST) -m 'not slow and not browser'"; \
	report=$$(mktemp); $(BIN)/mypy > $$report 2>&1 & types=$$!; \
	$(PYTEST) -m "not slow and not browser"; tests=$$?; \
	wait $$types; types=$$?; cat $$report; rm $$report; exit $$((tests + types))

test-fast: $(VENV)/test.stamp
	$(PYTEST) -m "not slow" tests/contracts tests/privacy tests/golden tests/test_shape.py

JS := clients/js

$(JS)/node_modules/.stamp: $(JS)/package-lock.json
	@command -v node >/dev/null && command -v npm >/dev/null || \
		{ apt-get update --quiet=2 && apt-get install --quiet=2 --yes nodejs npm; }
	@node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)' || \
		{ echo "the TypeScript client needs Node 20 or newer"; exit 1; }
	cd $(JS) && npm ci --silent
	@touch $@

$(JS)/dist/tacit.min.js: $(JS)/node_modules/.stamp $(wildcard $(JS)/src/*.ts)
	cd $(JS) && npm run --silent build && npm run --silent bundle -- --log-level=warning

test-js: $(JS)/dist/tacit.min.js
	cd $(JS) && npm test --silent

test-browser: $(VENV)/test.stamp $(JS)/dist/tacit.min.js
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		{ apt-get update --quiet=2 && apt-get install --quiet=2 --yes chromium chromium-driver; }
	$(BIN)/pytest -n0 -m browser tests/browser

format: $(VENV)/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/core.stamp
	$(BIN)/python benchmarks/speed.py

$(VENV)/docs.stamp: $(VENV)/core.stamp
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

docs: $(VENV)/docs.stamp
	$(BIN)/sphinx-build -W --keep-going --quiet -b html docs docs/_build/html

soak: $(VENV)/test.stamp
	$(BIN)/python benchmarks/service/soak.py

# Pin what is installed now (names and versions only, no addresses).
constraints: $(VENV)/test.stamp
	$(BIN)/python -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9_.-]+==' > constraints.new
	@mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis tacit-demo $(JS)/node_modules $(JS)/dist
