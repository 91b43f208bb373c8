# kvbuf: `make run` shows a kernel on the emulator, `make test` runs every test,
# `make wheel` packs what pip installs into dist/, `make fuzz` looks for inputs on
# which a tool dies.
#   BUILD  build directory (default: build)
#   JOBS   parallel jobs (default: all cores)
#   SEED, SECONDS_EACH  of `make fuzz`: what is random, and the time for each of
#          its two parts (default: today's date, 300)
#   MINUTES  of `make nightly` (default: 60)
BUILD ?= build
JOBS ?= $(shell nproc)
SEED ?= $(shell date +%Y%m%d)
SECONDS_EACH ?= 300
MINUTES ?= 60

.PHONY: all deps build run test fuzz nightly tidy wheel bench-emulator docs format clean

all: build

deps:
	@tools/install-deps.sh

$(BUILD)/build.ninja: | deps
	@tools/configure.sh $(BUILD)

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) --quiet

# What it runs alone: neither tests nor the other tools.
run: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) --quiet kvbuf-run KVBufferC
	$(BUILD)/bin/kvbuf-run examples/prefill.mlir --device=emulator --check

test: build
	@ninja -C $(BUILD) -j $(JOBS) --quiet all kvbuf-test-depends
	@tools/run-tests.sh $(BUILD) $(JOBS)

fuzz: build
	@ninja -C $(BUILD) -j $(JOBS) --quiet kvbuf-emu-fuzz
	@tools/fuzz.sh $(BUILD) $(SEED) $(SECONDS_EACH)

# Fuzzers, random schedules and random problems for MINUTES.
nightly: build
	@ninja -C $(BUILD) -j $(JOBS) --quiet kvbuf-emu-fuzz
	@tools/nightly.sh $(BUILD) $(MINUTES) $(SEED)

# clang-tidy, where it is.
tidy: $(BUILD)/build.ninja
	@tools/tidy.sh $(BUILD) $(JOBS)

# dist/kvbuf-*.whl, with the compiler, and dist/kvbuf_runtime-*.whl, without.
wheel: build
	@tools/install-deps.sh patchelf binutils
	@python3 tools/python/wheel.py $(BUILD) dist

# The reference of the dialect and the passes, into $(BUILD)/docs.
docs: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) --quiet kvbuf-docs
	@ls $(BUILD)/docs/*.md

bench-emulator: build
	benchmark/emulator.sh $(BUILD)

format:
	git ls-files --cached --others --exclude-standard '*.cpp' '*.h' | xargs clang-format-22 -i

clean:
	rm -rf $(BUILD)
