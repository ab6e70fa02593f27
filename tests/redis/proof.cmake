# The Redis store on real servers, which the tests start and end themselves.
add_library(redis_server STATIC server.c ask.c cluster_world.c setuser.c
            topology.c)
target_include_directories(redis_server PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}
                           PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(redis_server PUBLIC hosting)
target_compile_definitions(redis_server PRIVATE
                           CLOCK_SHIM_LIBRARY="$<TARGET_FILE:clock_shim>")
add_dependencies(redis_server clock_shim)
add_executable(with_redis with_redis.c)
target_link_libraries(with_redis PRIVATE redis_server run_on)

set(redis_acl ${PROJECT_SOURCE_DIR}/docs/redis-acl.md)

# on_redis(NAME LABEL PROGRAM [OPTION...]): a suite, unchanged, on a server.
function(on_redis name label program)
  dibs_test(${name} "${label};redis" with_redis ${ARGN} -- $<TARGET_FILE:${program}>)
endfunction()

on_redis(contract_redis_tcp contract contract)
if(NOT DIBS_SANITIZE)
  # Other ways to the same steps; sanitizers see them in the tests of the link.
  on_redis(contract_redis_unix contract contract --unix)
  on_redis(contract_redis_tls contract contract --tls)
  dibs_long(contract_redis_unix contract_redis_tls)
endif()
if(NOT DIBS_SANITIZE MATCHES thread)
  # As the user that the documents describe, which has every right that a step needs.
  on_redis(contract_redis_acl contract contract --acl ${redis_acl} contract:)
endif()
foreach(part IN LISTS core_parts)
  dibs_test(core_redis_${part} "core;redis" with_redis -- $<TARGET_FILE:test_core> --${part})
endforeach()
# suites_on(TOPOLOGY): the contract and the core on more than one server. Sanitizers
# see these topologies in tests of their own.
function(suites_on topology)
  if(NOT DIBS_SANITIZE)
    on_redis(contract_redis_${topology} contract contract --${topology})
    # The contract has the steps, and the core is the same on every store.
    foreach(part IN LISTS core_parts)
      dibs_test(core_redis_${topology}_${part} "core;redis" with_redis --${topology} --
                $<TARGET_FILE:test_core> --${part})
      dibs_long(core_redis_${topology}_${part})
    endforeach()
  endif()
endfunction()

suites_on(cluster)

# redis_test(NAME LABEL SOURCE...): a program that starts its own servers.
add_library(redis_world STATIC redis_world.c stage.c)
target_include_directories(redis_world PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(redis_world PUBLIC redis_server chaos_proxy world)
function(redis_test name label)
  add_executable(test_${name} test_${name}.c ${ARGN})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_${name} PRIVATE redis_world)
  dibs_test(redis_${name} "${label};redis" test_${name})
endfunction()

redis_test(faults_restart fault)
redis_test(faults_load fault turns.c)
redis_test(faults_refusal fault)
redis_test(faults_cut fault)
redis_test(faults_tls fault)
redis_test(faults_away fault)
redis_test(batches store)
redis_test(groups store)
redis_test(waiters store)
redis_test(keys store)
redis_test(shapes store)
redis_test(shortcuts store)
redis_test(meetings store)
redis_test(hostile store)
redis_test(replica_wait store)
redis_test(log store)
redis_test(audit store)
redis_test(queues store)
redis_test(commits store)
redis_test(rosters store)
redis_test(lists store)
if(NOT DIBS_SANITIZE)
  # It counts what the server does; thousands of threads are slow with a sanitizer.
  redis_test(crowds store)
endif()

add_executable(test_acl test_acl.c)
target_include_directories(test_acl PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(test_acl PRIVATE redis_world)
dibs_test(redis_acl "store;redis" test_acl ${redis_acl})
dibs_test(redis_acl_lines "tree;redis" ${CMAKE_CURRENT_SOURCE_DIR}/test_acl_lines.sh
          ${redis_acl} ${PROJECT_SOURCE_DIR}/src/store/redis/lua)

# In short here; without arguments it is the long form.
add_executable(many_leases many_leases.c)
target_include_directories(many_leases PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(many_leases PRIVATE redis_server)
dibs_test(redis_many_leases "store;redis" many_leases 2000 3000 4)

# A cluster in trouble. In short here; `make chaos` has 10 crashes and 100 moves.
add_executable(cluster_load cluster_load.c)
target_include_directories(cluster_load PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(cluster_load PRIVATE redis_server)
dibs_test(redis_cluster_load "fault;redis" cluster_load 1 5)
foreach(name cluster cluster_doorbells cluster_silent)
  add_executable(test_${name} test_${name}.c cluster_stage.c)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_${name} PRIVATE redis_server world)
  dibs_test(redis_${name} "store;redis" test_${name} ${redis_acl})
endforeach()
