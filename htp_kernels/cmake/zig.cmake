# Cross-compiles with ziglang, which needs no SDK. HTP_ZIG_TARGET and HTP_ZIG_FLAGS come from the preset.
# zig is $ENV{HEXNPU_ZIG}, or the one of the first python3 that can import ziglang.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HTP_ZIG HTP_ZIG_TARGET HTP_ZIG_FLAGS)

if(NOT HTP_ZIG)
    set(HTP_ZIG "$ENV{HEXNPU_ZIG}")
    if(NOT HTP_ZIG)
        execute_process(
            COMMAND python3 -c "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / 'zig')"
            OUTPUT_VARIABLE HTP_ZIG OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    if(NOT HTP_ZIG)
        message(FATAL_ERROR "zig is missing: pip install ziglang, or set HEXNPU_ZIG to the zig program")
    endif()
    set(HTP_ZIG "${HTP_ZIG}" CACHE FILEPATH "the zig program")
endif()

set(CMAKE_SYSTEM_NAME ${HTP_ZIG_SYSTEM})
set(CMAKE_SYSTEM_PROCESSOR ${HTP_ZIG_PROCESSOR})
set(CMAKE_C_COMPILER "${HTP_ZIG}" cc)
set(CMAKE_C_COMPILER_TARGET ${HTP_ZIG_TARGET})
# zig's clang traps on undefined behaviour unless told otherwise.
set(CMAKE_C_FLAGS_INIT "${HTP_ZIG_FLAGS} -fno-sanitize=undefined")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# zig's ar and ranlib are subcommands of the one program.
set(CMAKE_AR "${HTP_ZIG}" CACHE FILEPATH "archiver" FORCE)
set(CMAKE_RANLIB "${HTP_ZIG}" CACHE FILEPATH "archive index" FORCE)
set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_C_ARCHIVE_APPEND "<CMAKE_AR> ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "<CMAKE_RANLIB> ranlib <TARGET>")
