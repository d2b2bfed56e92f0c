# The kernels for a processor: they are C++ then, and nvcc is not needed.
if(SKALD_SANITIZE)
  add_compile_options(-fsanitize=${SKALD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SKALD_SANITIZE})
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  add_compile_options(-march=x86-64-v3) # fma as an instruction
endif()
add_compile_options(-ffp-contract=off)
find_package(Threads REQUIRED)

add_library(emulation OBJECT kernels/emu/fiber.cc kernels/emu/machine.cc kernels/emu/stream.cc kernels/emu/warp.cc)
target_compile_options(emulation PRIVATE -Wall -Wextra)

set_source_files_properties(${kernels} kernels/test/faulty.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS -xc++)
add_library(skald_kernels STATIC ${kernels})
target_include_directories(skald_kernels PUBLIC kernels kernels/emu)
target_compile_definitions(skald_kernels PUBLIC SKALD_EMU)
target_compile_options(skald_kernels PRIVATE -Wall -Wextra -Wno-unknown-pragmas)

# The driver of emulated GPUs. It is one object: the linker must not take a function that
# only says "not supported" out of the archive before it has seen the real one.
file(GLOB driver CONFIGURE_DEPENDS cuda/internal/fake/driver/*.cc cuda/internal/fake/driver/*.c)
if(driver AND SKALD_CUDA_INCLUDE)
  add_library(driver OBJECT ${driver})
  target_include_directories(driver PRIVATE kernels/emu cuda/shim ${SKALD_CUDA_INCLUDE})
  set(driver_objects $<TARGET_OBJECTS:driver>)
else()
  message(STATUS "No emulated driver: only the tests in C++ can be built (SKALD_CUDA_INCLUDE is not set).")
endif()
add_custom_command(OUTPUT cuda_all.o
  COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o cuda_all.o $<TARGET_OBJECTS:emulation> ${driver_objects}
  DEPENDS $<TARGET_OBJECTS:emulation> ${driver_objects} COMMAND_EXPAND_LISTS)
add_library(cuda STATIC cuda_all.o)
set_target_properties(cuda PROPERTIES LINKER_LANGUAGE CXX)

set(cuda_include ${SKALD_CUDA_INCLUDE})
set(cuda_ldflags "")
set(cuda_env "")
set(cuda_goflags "-tags=cudaemu")
if(SKALD_SANITIZE MATCHES undefined)
  set(cuda_ldflags "-lubsan")
endif()

if(EXISTS ${CMAKE_SOURCE_DIR}/kernels/test/main.cc)
  include(cmake/tests.cmake)
endif()
