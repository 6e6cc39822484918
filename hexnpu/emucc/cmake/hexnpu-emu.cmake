# A toolchain file that builds DSP libraries for the emulator:
#   cmake -B build -DCMAKE_TOOLCHAIN_FILE="$(hexnpu emu-cc --sdk-root)/hexnpu-emu.cmake" -DDSP_VERSION=v79
if(HEXNPU_EMU_TOOLCHAIN)
    return()
endif()
set(HEXNPU_EMU_TOOLCHAIN TRUE)

set(HEXAGON TRUE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR Hexagon)
set(HEXAGON_SDK_ROOT "${CMAKE_CURRENT_LIST_DIR}")
set(HEXAGON_TOOLS_ROOT "${CMAKE_CURRENT_LIST_DIR}/tools")
set(HEXAGON_CMAKE_ROOT "${CMAKE_CURRENT_LIST_DIR}/build/cmake")
set(HEXAGON_LIB_DIR "${HEXAGON_TOOLS_ROOT}/Tools/target/hexagon/lib")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DSP_VERSION DSP_ARCH)
include("${HEXAGON_CMAKE_ROOT}/hexagon_arch.cmake")

set(CMAKE_C_COMPILER "${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang")
set(CMAKE_CXX_COMPILER "${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang++")
set(CMAKE_ASM_COMPILER "${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang++")
set(CMAKE_AR "${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-ranlib" CACHE FILEPATH "")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

foreach(_language C CXX)
    set(CMAKE_${_language}_FLAGS_INIT "-m${HEXAGON_ARCH} -mhvx=${HEXAGON_ARCH} -mhmx")
endforeach()
include_directories(SYSTEM
    "${HEXAGON_SDK_ROOT}/incs" "${HEXAGON_SDK_ROOT}/incs/stddef" "${HEXAGON_SDK_ROOT}/ipc/fastrpc/incs")
