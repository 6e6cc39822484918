# What a device gets: bin/htp-server and lib/libhtp-v73.so ... v81, through the vendor's Hexagon SDK.
include(ExternalProject)

if(WIN32)
    message(NOTICE "htp_kernels: the server is for Linux and Android; on Windows only the kernel libraries are built.")
else()
    htp_add_server()
endif()

foreach(arch ${HTP_ARCHS})
    ExternalProject_Add(htp-v${arch}
        SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR}
        BINARY_DIR ${CMAKE_CURRENT_BINARY_DIR}/htp-v${arch}
        BUILD_ALWAYS ON
        CMAKE_ARGS
            -DCMAKE_TOOLCHAIN_FILE=${CMAKE_CURRENT_SOURCE_DIR}/cmake/hexagon-sdk.cmake
            -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
            -DHEXAGON_SDK_ROOT=${HEXAGON_SDK_ROOT}
            -DHEXAGON_TOOLS_ROOT=${HEXAGON_TOOLS_ROOT}
            -DHTP_PARTS=hexagon
            -DHTP_ARCH=${arch}
        INSTALL_COMMAND "")
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/htp-v${arch}/libhtp-v${arch}.so DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
