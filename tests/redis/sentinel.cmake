# The Redis store behind sentinels: a primary, replicas, failovers.
suites_on(sentinel)

redis_test(sentinel store)
redis_test(topology_tls store)

# Lossy failovers, in short here.
add_executable(failovers failovers.c)
target_include_directories(failovers PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(failovers PRIVATE redis_server)
foreach(durability async wait:1)
  string(REPLACE ":" "" name ${durability})
  add_test(NAME redis_failovers_${name} COMMAND failovers 1 ${durability})
  set_tests_properties(redis_failovers_${name} PROPERTIES LABELS "fault;redis"
                       TIMEOUT 120)
endforeach()
