# The functions of the Hexagon SDK's CMake files that trees call, for the emulator.
include_guard(GLOBAL)
get_filename_component(HEXNPU_SDK_ROOT "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(HEXNPU_COMMAND "${HEXNPU_SDK_ROOT}/bin/hexnpu")
set(HEXNPU_IDL_INCLUDES "${HEXNPU_SDK_ROOT}/incs" "${HEXNPU_SDK_ROOT}/incs/stddef")

# The host's side of a tree, too: what it shares with the DSP names Arm's type for halves.
if(NOT HEXAGON AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm.*|ARM64)$")
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-include ${HEXNPU_SDK_ROOT}/utils/half.h>")
endif()

# build_idl(FILE TARGET [folders of included IDL files ...]): NAME.h, NAME_stub.c and NAME_skel.c in the build folder,
# written before TARGET is built, and again when the IDL file changes.
function(build_idl idl target)
    get_filename_component(_idl "${idl}" ABSOLUTE)
    get_filename_component(_name "${idl}" NAME_WE)
    set(_out "${CMAKE_CURRENT_BINARY_DIR}")
    set(_includes)
    foreach(_folder ${HEXNPU_IDL_INCLUDES} ${ARGN})
        list(APPEND _includes -I "${_folder}")
    endforeach()
    set(_files "${_out}/${_name}.h" "${_out}/${_name}_stub.c" "${_out}/${_name}_skel.c")
    add_custom_command(
        OUTPUT ${_files}
        COMMAND "${HEXNPU_COMMAND}" idl "${_idl}" -o "${_out}" ${_includes}
        DEPENDS "${_idl}"
        COMMENT "hexnpu idl ${_name}.idl"
        VERBATIM)
    set_source_files_properties(${_files} PROPERTIES GENERATED TRUE)
    add_custom_target(${_name}_idl_${target} DEPENDS ${_files})
    add_dependencies(${target} ${_name}_idl_${target})
    target_include_directories(${target} PRIVATE "${_out}")
endfunction()

# choose_dsprpc(DSP VARIABLE): the name of the library that reaches a DSP.
macro(choose_dsprpc dsp variable)
    set(${variable} cdsprpc)
endmacro()

# link_custom_library(TARGET LIBRARY): programs find the stand-in of libcdsprpc.so when they run, under `hexnpu emulate`.
function(link_custom_library target library)
    if(NOT library MATCHES "^(cdsprpc|adsprpc|sdsprpc|mdsprpc|rpcmem)$")
        target_link_libraries(${target} ${library})
    else()
        target_link_options(${target} PUBLIC -Wl,--unresolved-symbols=ignore-all)
    endif()
endfunction()

# copy_binaries(TARGETS ...): into the folder `ship` of the build folder.
function(copy_binaries)
    foreach(_target ${ARGN})
        add_custom_command(TARGET ${_target} POST_BUILD
            COMMAND ${CMAKE_COMMAND} -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/ship"
            COMMAND ${CMAKE_COMMAND} -E copy "$<TARGET_FILE:${_target}>" "${CMAKE_CURRENT_BINARY_DIR}/ship")
    endforeach()
endfunction()

# set_common_compile_and_link_options(TARGET): nothing that this machine needs.
function(set_common_compile_and_link_options target)
endfunction()
