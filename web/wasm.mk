# build/wasm/tollbooth.wasm: the rooms a page needs, for wasm32 without any
# system. Compiling and linking are two steps: clang 14 calls wasm-opt when it
# links, which refuses some of what it compiled.
ROOMS := base threads kernels equation ops graph plan model flow pictures
OUT := build/wasm
WASM_LD ?= wasm-ld
WASM_CC ?= clang --target=wasm32
# With a stack of less than a megabyte, data's addresses fit into 20 bits.
LINK = $(WASM_LD) --no-entry --gc-sections --strip-all --compress-relocations \
	-z stack-size=917504 --stack-first
# A twentieth less where Debian's binaryen is installed: WASM_OPT= does without.
# Nothing is stored below 1024: there is the end of the stack.
WASM_OPT ?= $(shell command -v wasm-opt)
FEATURES := simd bulk-memory mutable-globals sign-ext nontrapping-float-to-int
SHRINK = $(if $(WASM_OPT),$(WASM_OPT) $(FEATURES:%=--enable-%) -Oz \
	--low-memory-unused $@ -o $@.small && mv $@.small $@ || echo "$@: not shrunk")
.DEFAULT_GOAL := all

# Not on a page: what opens a library of the system.
LEFT_OUT := %_avx2.c %_avx512.c %_neon.c src/pictures/cairo.c

# Same flags as cmake/warnings.cmake; own headers in the place of the system's.
# -Oz: a page waits for every byte. The kernels are worth some more: SIMD (in
# every browser since 2023) and -Os, without which clang's vectoriser stays out
# of all loops; -O2 makes them a third longer and no faster.
FLAGS = -std=c11 -Oz -nostdlibinc -isystem web/libc -Iinclude -Isrc \
	-mbulk-memory -msign-ext -mnontrapping-fptoint -fvisibility=hidden -ffunction-sections -fdata-sections \
	-ffp-contract=off -fno-math-errno -fno-trapping-math \
	-DTB_THREADS_SERIAL=1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
	-Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
	-Wvla -Wswitch-enum $(if $(CI),-Werror) -MMD -MP

SOURCES := $(filter-out $(LEFT_OUT),$(wildcard $(ROOMS:%=src/%/*.c))) \
	web/exports.c web/wasm_platform.c
OBJECTS := $(SOURCES:%.c=$(OUT)/%.o) $(OUT)/builtins.o
# the kernels alone, for tests/web/test_kernels.mjs
KERNELS := $(filter $(OUT)/src/base/% $(OUT)/src/threads/% \
	$(OUT)/src/kernels/% $(OUT)/web/wasm_platform.o,$(OBJECTS)) \
	$(OUT)/tests/web/kernel_exports.o

.PHONY: all
all: $(OUT)/tollbooth.wasm $(OUT)/kernels.wasm

$(OUT)/tollbooth.wasm: $(OBJECTS)
	$(LINK) -o $@ $^
	$(SHRINK)
	@echo "$@: $$(wc -c < $@) bytes"

$(OUT)/kernels.wasm: $(KERNELS)
	$(LINK) -o $@ $^
	$(SHRINK)

$(OUT)/web/wasm_platform.o: FLAGS += -ffreestanding
$(OUT)/src/kernels/kern_ref.o: FLAGS += -Os -msimd128 -DTB_SMALL=1 \
	-Wno-pass-failed # some loops stay loops

$(OUT)/%.o: %.c web/wasm.mk
	@mkdir -p $(@D)
	$(WASM_CC) $(FLAGS) -c $< -o $@

$(OUT)/builtins.o: $(OUT)/builtins.c
	$(WASM_CC) $(FLAGS) -c $< -o $@

$(OUT)/builtins.c: $(wildcard blocks/*.block) cmake/embed.cmake
	@mkdir -p $(@D)
	cmake -DDIR=blocks -DOUT=$@ -P cmake/embed.cmake

-include $(OBJECTS:.o=.d) $(KERNELS:.o=.d)
