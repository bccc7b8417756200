# SPDX-License-Identifier: MIT
# The rooms that need no outside library, and their tests, for 64-bit ARM:
# build/aarch64/tests/*. Debian's gcc-aarch64-linux-gnu builds them and
# qemu-user runs them (tools/check.sh does).
ROOMS := base threads kernels equation ops
OUT := build/aarch64
ARM ?= aarch64-linux-gnu-
.DEFAULT_GOAL := all

# Same flags as cmake/warnings.cmake, and its -O3, without which loops stay
# scalar.
FLAGS = -std=c11 -O3 -g1 -Iinclude -Isrc -Itests -D_GNU_SOURCE \
	-DTB_THREADS_PTHREAD=1 -DTB_DNNL_PATH='""' -DTB_OPENBLAS_PATH='""' \
	-DTB_SOURCE_DIR='"$(CURDIR)"' -ffp-contract=off -fno-math-errno \
	-fno-trapping-math -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
	-Wdouble-promotion -Wundef -Wvla -Wswitch-enum -Wno-psabi \
	$(if $(CI),-Werror) -MMD -MP

SOURCES := $(wildcard $(ROOMS:%=src/%/*.c)) tests/tb_test.c
OBJECTS := $(SOURCES:%.c=$(OUT)/%.o) $(OUT)/builtins.o
TESTS := $(foreach r,$(ROOMS),$(wildcard tests/*/test_$(r)_*.c))
PROGRAMS := $(foreach t,$(TESTS),$(OUT)/tests/$(notdir $(t:.c=)))

all: $(PROGRAMS)

list: # what there is to run
	@echo $(PROGRAMS)

$(OUT)/src/kernels/gemm_fma_neon.o: FLAGS += -ffp-contract=fast

$(OUT)/%.o: %.c tools/aarch64.mk
	@mkdir -p $(@D)
	$(ARM)gcc $(FLAGS) -c $(abspath $<) -o $@

$(OUT)/builtins.o: $(OUT)/builtins.c
	$(ARM)gcc $(FLAGS) -c $< -o $@

$(OUT)/builtins.c: $(wildcard blocks/*.block) cmake/embed.cmake
	@mkdir -p $(@D)
	cmake -DDIR=blocks -DOUT=$@ -P cmake/embed.cmake

$(OUT)/rooms.a: $(OBJECTS)
	rm -f $@
	$(ARM)ar crs $@ $^

define PROGRAM
$(OUT)/tests/$(notdir $(1:.c=)): $(OUT)/$(1:.c=.o) $(OUT)/rooms.a
	@mkdir -p $$(@D)
	$(ARM)gcc -o $$@ $$^ -pthread -ldl -lm
endef
$(foreach t,$(TESTS),$(eval $(call PROGRAM,$(t))))

.SECONDARY:
.PHONY: all list
-include $(OBJECTS:.o=.d) $(TESTS:%.c=$(OUT)/%.d)
