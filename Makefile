# Everything the course does from a shell. `make help` lists it; `make book` and `make test` each
# need nothing but Python 3.11 or later, make and a network the first time.
#
# .ci/setup makes .venv once and says in one sentence what to do when it cannot. An active conda
# environment made from environment.yml is used as it is. Nothing here needs a GPU.

BIN := $(shell sh .ci/setup --bin)
PY := "$(BIN)/python"

# nbgrader starts `alembic` and Jupyter starts its kernels by their bare names.
export PATH := $(BIN):$(PATH)
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.PHONY: help book archive pdf test mutation lab notebooks release grade bench lint clean ready

help:            ## list these targets
	@echo "usage: make TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{printf "%-12s %s\n", $$1, $$2}'

book: ready      ## build the book and say where it is
	@$(PY) -m course_lib.data fetch
	@"$(BIN)/jupyter-book" build . -W -n --keep-going --quiet >/dev/null
	@$(PY) -c "from pathlib import Path; print('The book stands in _build/html: open', \
	    Path('_build/html/index.html').resolve().as_uri(), 'in a browser,')"
	@echo "or run 'python3 -m http.server --directory _build/html' and open http://localhost:8000/"

archive: book    ## pack the built book into one file that opens without a server
	@$(PY) book/make_archive.py

pdf: book        ## print the built book into one PDF: FRAMEWORK=torch or tensorflow leaves out the other's tabs
	@$(PY) book/make_pdf.py $(FRAMEWORK)

# nbval takes a second to load, in each process, and is wanted only by those that run lectures, which load it.
test: ready      ## check the style, then run the tests, on all cores: ARGS="tests/unit -k masks" chooses
	@$(PY) -m ruff check .
	@$(PY) -m course_lib.data fetch  # here, as a lecture that fetches says so in its output
	@$(PY) -m pytest -n auto -p no:nbval $(ARGS)

mutation: ready  ## plant every bug and record that the tests notice all: ARGS=--changed, ARGS="-k attention"
	@$(PY) tests/mutation/plant_all.py $(ARGS)

lab: ready       ## open the lectures in JupyterLab
	@$(PY) -m course_lib.lecture.kernel register || true
	@$(PY) .ci/lab.py $(ARGS)

notebooks: ready ## run lectures again in place: NAMES="21-self-attention ...", all by default
	@$(PY) tests/execute.py $(NAMES)

release: ready   ## make the students' version, and prove that it holds no answer: ASSIGNMENT=name
	@if [ -z "$(ASSIGNMENT)" ] || [ ! -d "assignments/source/$(ASSIGNMENT)" ]; then \
	    echo "Say which assignment: make release ASSIGNMENT=name, with one of:" $$(ls assignments/source) >&2; exit 2; \
	fi; \
	(cd assignments && nbgrader generate_assignment "$(ASSIGNMENT)" --force) && \
	PYTHONPATH="$(CURDIR)" $(PY) -m course_lib.grading.release --course assignments "$(ASSIGNMENT)"

# Grading goes on when one submission fails, so that the others get their feedback; the exit code tells.
grade: ready     ## grade what was handed in: ASSIGNMENT=name
	@if [ -z "$(ASSIGNMENT)" ] || [ ! -d "assignments/source/$(ASSIGNMENT)" ]; then \
	    echo "Say which assignment: make grade ASSIGNMENT=name, with one of:" $$(ls assignments/source) >&2; exit 2; \
	fi; \
	if [ ! -d "assignments/release/$(ASSIGNMENT)" ]; then \
	    (cd assignments && nbgrader generate_assignment "$(ASSIGNMENT)") || exit 1; \
	fi; \
	PYTHONPATH="$(CURDIR)" $(PY) -m course_lib.grading.marking --course assignments "$(ASSIGNMENT)" $(ARGS)

bench: ready     ## time the library against its peers
	@$(PY) tests/benchmarks/run.py $(ARGS)

lint: ready      ## check the style only
	@$(PY) -m ruff check .

clean:           ## remove the built book and caches, never data, notebooks or grades
	@rm -rf _build build dist .ruff_cache .pytest_cache .jupyter_cache
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "Removed the built book and the caches. Kept: .venv, downloaded data, and everything under assignments/."

ready:
	@sh .ci/setup
