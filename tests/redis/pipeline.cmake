# The way to a server: one pipeline, on servers and proxies of the tests' own.
foreach(name pipeline pipeline_faults pipeline_batches pipeline_posts pipeline_tls
        many)
  add_executable(test_${name} test_${name}.c pipeline_world.c)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_${name} PRIVATE redis_server chaos_proxy child cmocka)
  dibs_test(redis_${name} redis test_${name})
endforeach()
