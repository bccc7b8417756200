# cmake -DDIR=blocks -DOUT=builtins.c -P embed.cmake
# Turns every DIR/**/NAME.block into an entry {"NAME", text} of tb_builtins,
# sorted by name. Bytes travel as hex, so any text is safe.
cmake_minimum_required(VERSION 3.22)
file(GLOB_RECURSE paths ${DIR}/*.block)
set(names "")
foreach(path ${paths})
    get_filename_component(name ${path} NAME_WLE)
    if(name IN_LIST names)
        message(FATAL_ERROR "two built-in blocks are called '${name}'")
    endif()
    list(APPEND names ${name})
    set(path_of_${name} ${path})
endforeach()
list(SORT names)

set(texts "")
set(table "")
set(i 0)
foreach(name ${names})
    file(READ ${path_of_${name}} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
    string(REGEX REPLACE "('[^']*','[^']*','[^']*','[^']*','[^']*','[^']*','[^']*','[^']*',)"
        "    \\1\n" bytes "${bytes}")
    string(APPEND texts "static const char text_${i}[] = { /* ${name} */\n${bytes}\n    0};\n")
    string(APPEND table "    {\"${name}\", text_${i}},\n")
    math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "/* Written by cmake/embed.cmake from blocks/. */
#include \"equation/equation.h\"

${texts}
const tb_builtin tb_builtins[] = {
${table}    {0, 0},
};
")
