# Short names for the build. The work is CMake's (CMakePresets.json) and the
# scripts' in tools/; every build folder is ignored by git.
.DEFAULT_GOAL := all
.PHONY: all setup check demo debug asan tsan clang bench fmt golden fuzz wasm \
	web install uninstall clean help

all: ## build/tollbooth with the static and the shared library
	@tools/build.sh release

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

setup: ## install what is missing (Debian)
	@tools/setup.sh

check: setup ## build and run every test and check
	@tools/check.sh

demo: setup all ## the main job on real text; writes demo/
	@tools/demo.sh

debug asan tsan clang: ## that build, then its tests
	@tools/check.sh $@

bench: all ## this machine's kernels and step
	@tools/bench.sh

fmt: ## clang-format every C file
	@tools/format.sh

golden: all ## rewrite expected texts and pictures, for review in git diff
	@tools/golden.sh

fuzz: ## libFuzzer, 60 s per target (FUZZ_SECONDS=n)
	@tools/fuzz.sh

wasm: ## build/wasm/tollbooth.wasm
	@$(MAKE) --no-print-directory -f web/wasm.mk

web: wasm ## build/web/tollbooth.html, the walkthrough in one file
	@tools/build.sh release tollbooth
	@python3 web/page.py build/tollbooth build/wasm/tollbooth.wasm \
		build/web/tollbooth.html

install: all ## PREFIX (default /usr/local), DESTDIR
	@cmake --install build $(if $(PREFIX),--prefix $(PREFIX))

uninstall: ## the files of the last install
	@xargs rm -f < build/install_manifest.txt

clean: ## all that was built
	rm -rf build build-* demo
