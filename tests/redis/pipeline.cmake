# The way to a server: one pipeline, on servers and proxies of the tests' own.
add_library(pipeline_world STATIC pipeline_world.c)
target_include_directories(pipeline_world PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(pipeline_world PUBLIC redis_server chaos_proxy child cmocka)
foreach(name pipeline pipeline_faults pipeline_batches pipeline_posts pipeline_tls
        many)
  add_executable(test_${name} test_${name}.c)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_${name} PRIVATE pipeline_world)
  dibs_test(redis_${name} redis test_${name})
endforeach()
