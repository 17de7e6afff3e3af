# One definition of each chore. `make help` lists them; continuous integration calls `make check` and `make test`.

PYTHON ?= python3
# Where the demo puts its databases, and whether it leaves them there.
DIR ?= ../plimsoll-demo
KEEP ?= 0
SEED ?= 1
# Most tests wait: for a disk, for a second of load to pass, for a browser.
TESTS_AT_ONCE ?= 4
# With SHUFFLE=n the Python tests of each file run in the order n deals them: none may need another to have run.
SHUFFLE ?=

TOOLS := .tools
VENV := .venv
BIN := $(VENV)/bin
UV := $(TOOLS)/bin/uv
export UV_PYTHON_DOWNLOADS := never
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)

.PHONY: help setup demo test test-rust test-python check audit structure release slow simulate isolation crash damage powercuts rogues throttles vmlab fuzz soak planted bench wheel golden papers matrix docs lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'
	@echo "  options: DIR=where the demo works ($(DIR)), KEEP=1 keeps its databases, SEED=n and HOURS=h for simulate, KILLS=n for crash, CUTS=n for powercuts"

setup: $(VENV)/.native ## install what is needed into .tools and .venv, and build the native part

demo: $(VENV)/.native ## qualify the storage under DIR= for about two minutes and print the result
	$(BIN)/plimsoll demo $(DIR) $(if $(filter 1,$(KEEP)),--keep)

test: test-rust test-python ## the fast set of every kind of test

# Without the examples: clippy compiles all of them, and the tests of the Python package build the two they use.
test-rust: export RUST_TEST_THREADS := $(TESTS_AT_ONCE)
test-rust:
	cargo test --workspace --tests --locked --quiet
	cargo test --workspace --doc --locked --quiet

test-python: $(VENV)/.native $(VENV)/.dev
	$(BIN)/pytest -q -m "not slow" --durations=20 --numprocesses $(TESTS_AT_ONCE) --dist worksteal $(if $(SHUFFLE),--shuffle $(SHUFFLE))

check: $(VENV)/.native $(VENV)/.dev ## format, lints, types, layers, tidiness
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --features plimsoll-bench/peers --locked --quiet -- -D warnings
	$(BIN)/ruff check python tests bench tools
	$(BIN)/ruff format --check python tests bench tools
	$(BIN)/mypy
	cd bench && ../$(BIN)/mypy --strict *.py
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/tidy
	@if command -v cargo-deny >/dev/null; then cargo deny --offline check bans licenses sources; \
	else echo "cargo-deny is not installed (cargo install cargo-deny): licences and sources of crates were not checked"; fi

audit: $(VENV)/.dev ## ask the advisory databases about our dependencies: wants a network, cargo-deny and pip-audit
	cargo deny check
	pip-audit --require-hashes --disable-pip -r requirements-dev.txt

structure: $(VENV)/.dev ## measure files, functions, untyped dictionaries and repeated lines, as in ARCHITECTURE.md
	$(BIN)/python -m tools.structure

release: $(VENV)/.native $(VENV)/.dev ## build wheel and sdist of VERSION=x.y.z after checking version, tag and changelog
	$(BIN)/python -m tools.release $(VERSION)
	$(TOOLS)/bin/maturin build --release --locked --sdist --out dist

slow: $(VENV)/.native $(VENV)/.dev ## every test: also what takes long, and the like of what `make test` tries once
	cargo test --workspace --tests --locked -- --include-ignored
	cargo test --workspace --doc --locked
	$(BIN)/pytest -q

# Tests are named in full here, and a name that selects nothing is an error: `tests/rust_tests.py`.
SIMULATIONS := power_cut::ten_thousand_simulated_power_cuts_lose_nothing_acknowledged \
	power_cut::five_thousand_cuts_after_other_lives_lose_nothing_acknowledged \
	rows::model::a_swarm_of_sessions_leaves_what_the_model_says_on_small_pages \
	rows::model::every_page_size_and_both_framings_agree_with_the_model \
	verify::engine_leaves::recovery_leaves_sound_files verify::engine_leaves::a_clean_stop_leaves_a_sound_database \
	failures::every_sync_matters::with_every_sync_done_nothing_is_lost_and_every_sync_is_known \
	failures::hard_times::hundreds_of_hard_times \
	schema::worlds::many_worlds_of_changing_schemas_agree_with_their_model \
	schema::redone::many_worlds_of_broken_changes_are_redone_as_they_were_left \
	lives::chains::many_chains_of_lives_and_restores_leave_what_was_committed \
	rows::swarm::a_swarm_of_impolite_transactions_leaves_what_the_model_says \
	lives::jobs::copies::many_copies_are_whole_when_they_were_sealed_and_refused_when_not \
	lives::jobs::backups::backups_beside_each_other_recover_to_what_was_committed \
	failures::abandoned::an_abandoned_operation_has_happened_or_not_and_nobody_hangs \
	failures::torn_pages::with_images_no_tear_loses_anything_even_on_the_largest_pages \
	failures::torn_pages::without_images_a_disk_that_writes_whole_pages_loses_nothing \
	failures::torn_pages::without_images_every_torn_page_is_named_and_no_sound_one_accused
MAIL_SIMULATED := stores::mail::worlds::two_thousand_power_cuts_lose_no_mail_and_double_none
FOR_HOURS := power_cut::power_cuts_for_as_long_as_told failures::hard_times::hard_times_for_as_long_as_told
HISTORIES_JUDGED := rows::histories::histories_for_as_many_as_told_are_isolated
DAMAGES := verify::damage::pages::a_hundred_thousand_damages_are_mended_or_refused \
	verify::damage::files::thousands_of_damages_to_flush_maps_headers_and_checkpoints verify::damage::logs::thousands_of_damaged_logs_have_no_hole \
	verify::corruption::thousands_of_damages_to_files_that_are_read

simulate: ## 10,000 power cuts, 2,000 of a mail store and the other simulations: make simulate SEED=7; HOURS=h of power cuts and hard times, or CUTS=n power cuts, JOBS=n at once
	PLIMSOLL_SEED=$(SEED) PLIMSOLL_HOURS=$(HOURS) PLIMSOLL_CUTS=$(CUTS) PLIMSOLL_JOBS=$(JOBS) \
		$(PYTHON) tests/rust_tests.py plimsoll-engine --release $(if $(HOURS),$(FOR_HOURS),$(if $(CUTS),$(firstword $(FOR_HOURS)),$(SIMULATIONS)))
	$(if $(HOURS)$(CUTS),,PLIMSOLL_SEED=$(SEED) $(PYTHON) tests/rust_tests.py plimsoll-stores --release $(MAIL_SIMULATED))

isolation: ## judge the isolation of simulated histories by an independent checker: HISTORIES=n (10,000), SEED=n, JOBS=n at once
	PLIMSOLL_SEED=$(SEED) PLIMSOLL_HISTORIES=$(HISTORIES) PLIMSOLL_JOBS=$(JOBS) \
		$(PYTHON) tests/rust_tests.py plimsoll-engine --release $(HISTORIES_JUDGED)

crash: $(VENV)/.native $(VENV)/.dev ## kill a real process under load and recover, over and over; after every fifth kill the power of a volatile disk is cut, which wants root: KILLS=n (20), SEED=n
	$(BIN)/python -m tests.powercut.kills $(or $(KILLS),20) $(SEED)

damage: ## 100,000 damages to pages and thousands to every other kind of file, with the counts by kind and outcome
	$(PYTHON) tests/rust_tests.py plimsoll-engine --release $(DAMAGES)

powercuts: $(VENV)/.native $(VENV)/.dev ## cut the power of volatile disks under ext4 and xfs, and audit: CUTS=n (300), SEED=n; wants root
	$(BIN)/python -m tests.powercut.campaign $(or $(CUTS),300) $(SEED)

rogues: $(VENV)/.native $(VENV)/.dev ## run bad and sound storages under the program and write what it concluded into docs/honesty.md; wants root
	$(BIN)/python -m tests.rogues.gather --page docs/honesty.md

throttles: $(VENV)/.native $(VENV)/.dev ## plant throttles on a loop disk and find them, COUNT=n with and n without one (20), a minute for each pair; wants root
	COUNT=$(or $(COUNT),20) $(BIN)/pytest -q -s tests/system/test_planted_throttle.py

vmlab: $(VENV)/.native $(VENV)/.dev ## degrade md, device mapper, multipath and iSCSI disks in a virtual machine with Debian's kernel; wants root, qemu, busybox and apt
	$(BIN)/python -m tests.vm $(BIN)/pytest -q -s -p no:cacheprovider tests/vm

fuzz: $(VENV)/.native $(VENV)/.dev ## look for inputs that harm any reader, engine and Python: SECONDS=n each (60), SEED=n, KEEP=1; wants g++
	$(BIN)/python -m tests.fuzz.guided $(or $(SECONDS),60) $(SEED) $(if $(filter 1,$(KEEP)),--keep)
	$(BIN)/python -m tests.fuzz.fuzzing $(or $(SECONDS),60) $(SEED)

soak: $(VENV)/.native ## a stress run under DIR= whose memory, descriptors and files must stay flat: HOURS=h (1), KEEP=1
	$(BIN)/python -m tests.soak.soaking $(DIR) $(or $(HOURS),1) $(if $(filter 1,$(KEEP)),--keep)

planted: ## plant bugs in a copy of the engine, of stores and of clients: every one must be found; BUGS=word for some
	$(PYTHON) -m tests.planted.run $(BUGS)

bench: ## measure the project's own speed into docs/benchmarks.md (long, wants fio and root); ONLY=section, QUICK=1 only tries it
	$(PYTHON) bench/run.py $(if $(filter 1,$(QUICK)),--quick) $(if $(ONLY),--only $(ONLY))

wheel: $(VENV)/.native ## build an installable wheel into dist/
	$(TOOLS)/bin/maturin build --release --locked --out dist

golden: $(VENV)/.native $(VENV)/.dev ## write the golden files anew; look at the difference before committing
	PLIMSOLL_WRITE_GOLDEN=1 $(BIN)/pytest -q tests/report tests/compare -k golden

papers: $(VENV)/.native ## run the published results on the modelled arrays and write docs/papers.md anew
	$(BIN)/python -m tools.papers_page docs/papers.md

matrix: $(VENV)/.native ## run the four cells of the MD3000i paper twice, to the same bytes, and write them into docs/combined.md: some minutes
	$(BIN)/python -m tools.published_matrix docs/combined.md

docs: $(VENV)/.native ## write the reference pages that are generated from the code
	$(BIN)/python -m tools.reference_docs docs/reference

lock: $(UV) ## resolve dependencies anew
	$(UV) pip compile -q --universal --generate-hashes --no-header --python-version 3.11 requirements-tools.in -o requirements-tools.txt
	$(UV) pip compile -q --universal --generate-hashes --no-header --python-version 3.11 --extra report pyproject.toml -o requirements.txt
	$(UV) pip compile -q --universal --generate-hashes --no-header --python-version 3.11 --all-extras pyproject.toml -o requirements-dev.txt

clean: ## remove what was built and installed; run folders and databases stay
	rm -rf $(TOOLS) $(VENV) target fuzz/target dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -f python/plimsoll/_native*.so

# uv and maturin live outside .venv, so that the environment holds what the product needs and nothing else.
$(UV): requirements-tools.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Plimsoll needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-tools.txt
	touch $(UV)

# Where uv does not run (an unusual platform), plain pip installs the same locked set. Both compile it once, for all programs that may not keep
# what they compile.
define install
	if $(UV) --version >/dev/null 2>&1; then $(UV) pip install --quiet --compile-bytecode --require-hashes -r $(1); \
	else $(BIN)/python -m pip install --quiet --compile --disable-pip-version-check --require-hashes -r $(1); fi
endef

$(VENV)/.core: $(UV) requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install,requirements.txt)
	touch $@

$(VENV)/.dev: $(VENV)/.core requirements-dev.txt
	$(call install,requirements-dev.txt)
	touch $@

$(VENV)/.native: $(VENV)/.core $(RUST_SOURCES) pyproject.toml
	@command -v cargo >/dev/null || { echo "Plimsoll needs a Rust toolchain (cargo) of version 1.90 or later"; exit 1; }
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" $(TOOLS)/bin/maturin develop --release --locked --quiet
	touch $@
