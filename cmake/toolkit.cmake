# The toolkit that toolkit.sh made, if it did; else the one that is installed.
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/../build/toolkit/bin/nvcc)
  get_filename_component(CUDAToolkit_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/toolkit REALPATH)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_ROOT}/bin/nvcc)
endif()
