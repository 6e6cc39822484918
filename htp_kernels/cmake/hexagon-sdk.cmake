# Compiles for Hexagon with the vendor's tools: HEXAGON_TOOLS_ROOT (compiler) and HEXAGON_SDK_ROOT (headers).
foreach(root HEXAGON_SDK_ROOT HEXAGON_TOOLS_ROOT)
    if(NOT ${root})
        set(${root} "$ENV{${root}}")
    endif()
    if(NOT IS_DIRECTORY "${${root}}")
        message(FATAL_ERROR "${root} is '${${root}}', which is no folder: set it, or build in the container")
    endif()
    file(TO_CMAKE_PATH "${${root}}" ${root})
endforeach()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEXAGON_SDK_ROOT HEXAGON_TOOLS_ROOT HTP_ARCH)

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR hexagon)
set(HEXAGON TRUE) # the SDK's own CMake files ask
if(CMAKE_HOST_WIN32)
    set(exe .exe)
endif()
set(CMAKE_C_COMPILER "${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang${exe}")
set(CMAKE_AR "${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-ar${exe}" CACHE FILEPATH "archiver")
set(CMAKE_C_FLAGS_INIT "-mv${HTP_ARCH} -mhvx -mhvx-length=128b -mhmx -G0 -fPIC")
# Only the check of the compiler makes an archive; one step, as any other ranlib on the machine is not for Hexagon.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> qcs <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "")

# A loadable library of the NPU: its symbols of the C library and QuRT are found when it is loaded.
set(CMAKE_SHARED_LIBRARY_CREATE_C_FLAGS "-shared -G0 -fPIC -Wl,-Bsymbolic")
set(CMAKE_SHARED_LIBRARY_SONAME_C_FLAG "-Wl,-soname,")
set(HTP_SHARED ON)
set(qurt "${HEXAGON_SDK_ROOT}/rtos/qurt/computev${HTP_ARCH}/include")
set(HTP_SDK_INCLUDES
    "${HEXAGON_SDK_ROOT}/incs" "${HEXAGON_SDK_ROOT}/incs/stddef" "${HEXAGON_SDK_ROOT}/ipc/fastrpc/incs"
    "${qurt}" "${qurt}/qurt" "${qurt}/posix")
