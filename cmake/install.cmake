# Program, both libraries, public headers, pkg-config file, man pages, bash
# completion. The pkg-config file finds its prefix itself, so the tree may be
# moved.
include(GNUInstallDirs)
install(TARGETS tollbooth tollbooth_static tollbooth_shared)
install(DIRECTORY include/tollbooth DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH TB_PC_TO_PREFIX /prefix/${pc_dir} /prefix)
string(REGEX REPLACE "/$" "" TB_PC_TO_PREFIX ${TB_PC_TO_PREFIX})
set(TB_PC_REQUIRES jansson)
if(ZLIB_FOUND)
    list(APPEND TB_PC_REQUIRES zlib)
endif()
string(REPLACE ";" ", " TB_PC_REQUIRES "${TB_PC_REQUIRES}")
set(TB_PC_LIBS "-ldl -pthread ${OpenMP_C_FLAGS}")
configure_file(cmake/tollbooth.pc.in tollbooth.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tollbooth.pc DESTINATION ${pc_dir})

find_program(TB_BASH bash)
if(TB_BASH AND NOT TB_SANITIZE)
    set(docs ${CMAKE_BINARY_DIR}/docs)
    add_custom_command(OUTPUT ${docs}/man1/tollbooth.1
        COMMAND ${TB_BASH} ${CMAKE_SOURCE_DIR}/tools/make_man.sh
            $<TARGET_FILE:tollbooth> ${docs}
        DEPENDS tollbooth tools/make_man.sh man/tollbooth.head man/tollbooth.tail
        COMMENT "Man pages and completion"
        VERBATIM)
    add_custom_target(docs ALL DEPENDS ${docs}/man1/tollbooth.1)
    install(DIRECTORY ${docs}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${docs}/completions/tollbooth
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()
