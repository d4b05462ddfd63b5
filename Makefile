# The commands of this repository. Each one does its own set-up; see CONTRIBUTING.md.
.PHONY: help run build test quick lint conformance test-agents fuzz bench soak soak-threads install uninstall docs clean

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
MESON ?= meson

help:
	@echo 'make run          install what is missing, build, and serve (Ctrl-C stops)'
	@echo 'make test         the same, then every test that needs no account and no outside service'
	@echo 'make build        leave the program at build/dais'
	@echo 'make quick        the unit tests and scenarios of one build, for work in progress'
	@echo 'make lint         clang-tidy and gcc -fanalyzer'
	@echo 'make conformance  the official MCP conformance program against our protocol library; official clients against dais'
	@echo 'make test-agents  real agents (installed from npm, 2 GB in .cache/agents) against a model server of our own; not in make test'
	@echo 'make fuzz         each fuzz target for SECONDS (default 60)'
	@echo 'make bench        every budget with its baseline, about ten minutes; SIZES=10000,100000,1000000 for growth'
	@echo 'make soak         mixed load with kills for SOAK minutes (default 30): grows, slows down, loses anything?'
	@echo 'make soak-threads  1,000 delegations through 50 kills of the server; SECONDS_OF_SOAK=300 spreads them'
	@echo 'make docs         write the reference pages anew from the tables of the code'
	@echo 'make install      to PREFIX (default /usr/local); make uninstall takes it away again'

build/build.ninja:
	@scripts/setup build
	$(MESON) setup build

build: build/build.ninja
	@scripts/setup build
	ninja -C build -j $(JOBS) src/cli/dais
	@ln -sf src/cli/dais build/dais

run: build
	build/dais serve

test:
	@scripts/test

quick:
	@scripts/test quick

lint:
	@scripts/test lint

conformance:
	@scripts/test conformance

test-agents:
	@scripts/test agents $(AGENTS)

fuzz:
	@scripts/setup test
	scripts/fuzz $(or $(SECONDS_EACH),$(SECONDS),60)

bench: build
	ninja -C build -j $(JOBS) bench/load bench/streams bench/bare bench/fill
	bench/run.py $(if $(SIZES),--sizes $(SIZES)) $(BENCH)

soak: build
	ninja -C build -j $(JOBS) bench/load bench/fill
	bench/soak.py $(or $(SOAK),30)

soak-threads: build
	DAIS_PROGRAM=$(CURDIR)/build/src/cli/dais bench/thread_soak.py --seconds $(or $(SECONDS_OF_SOAK),0)

docs: build
	ninja -C build -j $(JOBS) tests/tools/reference
	tests/tools/write_reference build/tests/tools/reference .

install: build
	install -D -m 755 build/src/cli/dais "$(DESTDIR)$(PREFIX)/bin/dais"
	install -D -m 644 docs/man/dais.1 "$(DESTDIR)$(PREFIX)/share/man/man1/dais.1"
	install -D -m 644 docs/man/dais.yaml.5 "$(DESTDIR)$(PREFIX)/share/man/man5/dais.yaml.5"
	install -D -m 644 packaging/completion/dais.bash "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/dais"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/dais" "$(DESTDIR)$(PREFIX)/share/man/man1/dais.1" \
		"$(DESTDIR)$(PREFIX)/share/man/man5/dais.yaml.5" \
		"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/dais"

clean:
	rm -rf build build-asan build-tsan build-fuzz build-clang build-analyzer
