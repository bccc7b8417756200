# build/wasm/tollbooth.wasm: the rooms a page needs, for wasm32 without any
# system. Compiling and linking are two steps: clang 14 calls wasm-opt when it
# links, which refuses some of what it compiled.
ROOMS := base threads kernels equation ops graph plan model flow pictures
OUT := build/wasm
WASM_LD ?= wasm-ld
WASM_CC ?= clang --target=wasm32
LINK = $(WASM_LD) --no-entry --gc-sections --strip-all -z stack-size=1048576 \
	--stack-first
.DEFAULT_GOAL := all

# Same flags as cmake/warnings.cmake; own headers in the place of the system's.
# -Oz: a page waits for every byte. The kernels are worth more of them: SIMD
# (in every browser since 2023) and -O2, without which clang's vectoriser stays
# out of most loops.
FLAGS = -std=c11 -Oz -nostdlibinc -isystem web/libc -Iinclude -Isrc \
	-mbulk-memory -fvisibility=hidden -ffunction-sections -fdata-sections \
	-ffp-contract=off -fno-math-errno -fno-trapping-math \
	-DTB_THREADS_SERIAL=1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
	-Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
	-Wvla -Wswitch-enum $(if $(CI),-Werror) -MMD -MP

SOURCES := $(filter-out %_avx2.c %_avx512.c %_neon.c,$(wildcard $(ROOMS:%=src/%/*.c))) \
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
	@echo "$@: $$(wc -c < $@) bytes"

$(OUT)/kernels.wasm: $(KERNELS)
	$(LINK) -o $@ $^

$(OUT)/web/wasm_platform.o: FLAGS += -ffreestanding
$(OUT)/src/kernels/kern_ref.o: FLAGS += -O2 -fno-unroll-loops -msimd128

$(OUT)/%.o: %.c web/wasm.mk
	@mkdir -p $(@D)
	$(WASM_CC) $(FLAGS) -c $< -o $@

$(OUT)/builtins.o: $(OUT)/builtins.c
	$(WASM_CC) $(FLAGS) -c $< -o $@

$(OUT)/builtins.c: $(wildcard blocks/*.block) cmake/embed.cmake
	@mkdir -p $(@D)
	cmake -DDIR=blocks -DOUT=$@ -P cmake/embed.cmake

-include $(OBJECTS:.o=.d) $(KERNELS:.o=.d)
