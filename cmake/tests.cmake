# The tests of the kernels, on the emulation.
foreach(name main check products elements attention convolutions sampling faulty)
  list(APPEND test_sources kernels/test/${name}.cc)
endforeach()
add_executable(kernel_test ${test_sources} kernels/test/faulty.cu $<TARGET_OBJECTS:emulation>)
target_compile_options(kernel_test PRIVATE -Wall -Wextra -Wno-unknown-pragmas)
target_link_libraries(kernel_test PRIVATE skald_kernels Threads::Threads)

add_test(NAME kernels COMMAND kernel_test)
