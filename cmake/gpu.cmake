# The kernels for GPUs.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  # Code for each, and PTX of the newest for what comes after it.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 110-real 120)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
find_package(CUDAToolkit REQUIRED)

if(EXISTS ${CMAKE_SOURCE_DIR}/cuda/shim/shim.c)
  add_library(cuda STATIC cuda/shim/shim.c cuda/shim/trampolines.S)
endif()

string(REPLACE ";" " " architectures "${CMAKE_CUDA_ARCHITECTURES}")
add_library(skald_kernels STATIC ${kernels})
target_include_directories(skald_kernels PUBLIC kernels)
target_compile_definitions(skald_kernels PRIVATE "SKALD_BUILD=\"CUDA ${CUDAToolkit_VERSION}, sm ${architectures}\"")
# Products are fused with sums only where a kernel says so. -v is for cmake/report.py.
target_compile_options(skald_kernels PRIVATE -fmad=false -Xptxas=-v,-warn-spills -Xfatbin=-compress-all)
set_target_properties(skald_kernels PROPERTIES CUDA_RUNTIME_LIBRARY Static)

# The CUDA runtime lies beside the rest, for Go's linker.
configure_file(${CUDA_cudart_static_LIBRARY} ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libcudart_static.a COPYONLY)

list(GET CUDAToolkit_INCLUDE_DIRS 0 cuda_include)
set(cuda_ldflags "")
set(cuda_env "")
set(cuda_goflags "")
if(CMAKE_CROSSCOMPILING)
  set(cuda_env "export GOOS=linux GOARCH=arm64 CC=${CMAKE_C_COMPILER} CXX=${CMAKE_CXX_COMPILER}\n")
endif()
