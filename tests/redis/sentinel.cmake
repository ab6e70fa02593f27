# The Redis store behind sentinels: a primary and replicas. Failovers under load
# are in tests/chaos; of these, `make chaos` counts lossy ones.
suites_on(sentinel)
if(NOT DIBS_SANITIZE)
  dibs_long(contract_redis_sentinel)
endif()

redis_test(sentinel store)
redis_test(topology_tls store)

add_executable(failovers failovers.c)
target_include_directories(failovers PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(failovers PRIVATE redis_server)
