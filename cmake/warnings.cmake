# Every target gets the same flags: no warning on gcc or clang, no FMA
# contraction (same bits everywhere), no C++-style fast maths. How vectors are
# passed does not matter: only inlined functions have them (-Wno-psabi).
add_compile_options(
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion
    -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wcast-qual
    -Wcast-align -Wundef -Wvla -Wformat=2 -Wswitch-enum -Wno-psabi
    -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(TB_WERROR)
    add_compile_options(-Werror)
endif()
add_compile_definitions(_GNU_SOURCE)
if(TB_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
elseif(TB_SANITIZE STREQUAL "fuzzer") # clang; tests/ link -fsanitize=fuzzer
    add_compile_options(-fsanitize=fuzzer-no-link,address,undefined
        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
elseif(TB_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
endif()
