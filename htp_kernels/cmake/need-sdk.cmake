# What the vendor's presets need of the machine: one clear error for whatever is not there.
set(htp_way_out "Build in the container (hexnpu build), or take an open preset, which needs no SDK "
    "(open-linux-arm64, open-android-arm64, open-hexagon-v79)")
foreach(root HEXAGON_SDK_ROOT HEXAGON_TOOLS_ROOT)
    if(NOT IS_DIRECTORY "${${root}}")
        message(FATAL_ERROR "${root} is '${${root}}', which is no folder. " ${htp_way_out})
    endif()
endforeach()
if(NOT EXISTS "${CMAKE_TOOLCHAIN_FILE}")
    message(FATAL_ERROR "there is no ${CMAKE_TOOLCHAIN_FILE}: is ANDROID_NDK_ROOT set? " ${htp_way_out})
endif()
