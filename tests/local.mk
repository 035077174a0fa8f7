# Tests. `make check` runs every suite and prints the totals; each suite also runs by itself and speaks TAP.
# The unit tests need neither Python nor a GPU: `make check-unit`.

UNIT_TESTS = tests/unit/test_base tests/unit/test_loop tests/unit/test_facts tests/unit/test_session \
	tests/unit/test_launch tests/unit/test_logscan tests/unit/test_catalog tests/unit/test_verdict
TEST_ENV = srcdir="$(srcdir)" top_builddir="$(abs_top_builddir)" CUWHY="$(abs_top_builddir)/cuwhy" \
	CUWHY_AGENT="$(abs_top_builddir)/agent" AWK="$(AWK)" CMOCKA_MESSAGE_OUTPUT=TAP

if HAVE_CMOCKA
check_PROGRAMS = $(UNIT_TESTS)
endif
tests_unit_test_base_SOURCES = tests/unit/test_base.c
tests_unit_test_base_LDADD = $(LDADD) $(CMOCKA_LIBS)
tests_unit_test_loop_SOURCES = tests/unit/test_loop.c
tests_unit_test_loop_LDADD = $(LDADD) $(CMOCKA_LIBS)
tests_unit_test_facts_SOURCES = tests/unit/test_facts.c
tests_unit_test_facts_LDADD = $(LDADD) $(CMOCKA_LIBS)
tests_unit_test_session_SOURCES = tests/unit/test_session.c
tests_unit_test_session_LDADD = $(LDADD) $(CMOCKA_LIBS)
tests_unit_test_launch_SOURCES = tests/unit/test_launch.c
tests_unit_test_launch_LDADD = $(LDADD) $(CMOCKA_LIBS)
tests_unit_test_logscan_SOURCES = tests/unit/test_logscan.c
tests_unit_test_logscan_LDADD = $(LDADD) $(CMOCKA_LIBS)
tests_unit_test_catalog_SOURCES = tests/unit/test_catalog.c
tests_unit_test_catalog_LDADD = $(LDADD) $(CMOCKA_LIBS)
tests_unit_test_verdict_SOURCES = tests/unit/test_verdict.c
tests_unit_test_verdict_LDADD = $(LDADD) $(CMOCKA_LIBS)

check-cmocka:
if HAVE_CMOCKA
	@:
else
	@echo "the unit tests need cmocka; on Debian: apt-get install libcmocka-dev, then ./configure again" >&2; false
endif

RUN_TESTS = $(AM_V_at)$(TEST_ENV) PYTHON="$(PYTHON)" $(SHELL) $(srcdir)/tests/run
BINARY_SUITES = tests/structure.sh tests/cli_test.py tests/live_test.py tests/explain_test.py
AGENT_SUITES = tests/ways_test.py tests/agent_test.py tests/redirect_test.py tests/demo_test.py
SUITES = $(BINARY_SUITES) $(AGENT_SUITES) tests/case_test.py

check-unit: check-cmocka $(check_PROGRAMS)
	$(RUN_TESTS) $(UNIT_TESTS)

# What runs our own C: the suites for a build with sanitizers.
check-binary: check-cmocka all $(check_PROGRAMS)
	$(RUN_TESTS) $(UNIT_TESTS) $(BINARY_SUITES)

# What depends on the Python and PyTorch at hand: make check-agent PYTHON=/usr/bin/python3
check-agent: all
	$(RUN_TESTS) $(AGENT_SUITES)

check-local: check-cmocka
	$(RUN_TESTS) $(UNIT_TESTS) $(SUITES)

.PHONY: check-cmocka check-unit check-binary check-agent

# Figures, not tests: make bench, make bench BENCH=explain
EXTRA_PROGRAMS = tests/bench/make_log
tests_bench_make_log_SOURCES = tests/bench/make_log.c
bench: all tests/bench/make_log
	$(AM_V_at)CUWHY="$(abs_top_builddir)/cuwhy" MAKE_LOG="$(abs_top_builddir)/tests/bench/make_log" BENCH="$(BENCH)" \
		$(PYTHON) $(srcdir)/tests/bench/bench.py

# make fuzz-logscan SECONDS=600, in a tree configured with CC=clang --enable-fuzzers
if FUZZERS
EXTRA_PROGRAMS += tests/fuzz/fuzz_logscan
tests_fuzz_fuzz_logscan_SOURCES = tests/fuzz/fuzz_logscan.c
tests_fuzz_fuzz_logscan_LDFLAGS = -fsanitize=fuzzer,address,undefined
SECONDS = 600
fuzz-logscan: tests/fuzz/fuzz_logscan
	mkdir -p corpus
	for f in $(srcdir)/tests/cases/*/log.txt; do cp "$$f" corpus/$$(basename $$(dirname $$f)); done
	tests/fuzz/fuzz_logscan -max_total_time=$(SECONDS) -max_len=70000 -timeout=10 corpus
endif
.PHONY: bench fuzz-logscan

TEST_FILES = tests/run tests/structure.sh tests/tap.py tests/score_cases.py tests/cli_test.py tests/live_test.py tests/explain_test.py \
	tests/case_test.py tests/demo_test.py tests/ways_test.py tests/agent_test.py tests/redirect_test.py \
	tests/bench/bench.py 	tests/cases tests/programs scripts .ci/run
