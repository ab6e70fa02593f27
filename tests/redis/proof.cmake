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
  add_test(NAME ${name} COMMAND with_redis ${ARGN} -- $<TARGET_FILE:${program}>)
  set_tests_properties(${name} PROPERTIES LABELS "${label};redis" TIMEOUT 180)
endfunction()

on_redis(contract_redis_tcp contract contract)
if(NOT DIBS_SANITIZE)
  # Other ways to the same steps; sanitizers see them in the tests of the link.
  on_redis(contract_redis_unix contract contract --unix)
  on_redis(contract_redis_tls contract contract --tls)
  on_redis(contract_redis_acl contract contract --acl ${redis_acl} contract:)
endif()
on_redis(core_redis core test_core)
# suites_on(TOPOLOGY): the contract and the core on more than one server. Sanitizers
# see these topologies in tests of their own.
function(suites_on topology)
  if(NOT DIBS_SANITIZE)
    add_test(NAME suites_redis_${topology} COMMAND with_redis --${topology} --
             ${CMAKE_CURRENT_SOURCE_DIR}/side_by_side.sh
             $<TARGET_FILE:contract> $<TARGET_FILE:test_core>)
    set_tests_properties(suites_redis_${topology} PROPERTIES
                         LABELS "contract;core;redis" TIMEOUT 240)
  endif()
endfunction()

suites_on(cluster)

# redis_test(NAME LABEL SOURCE...): a program that starts its own servers.
function(redis_test name label)
  add_executable(test_${name} test_${name}.c redis_world.c ${ARGN})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_${name} PRIVATE redis_server chaos_proxy world)
  add_test(NAME redis_${name} COMMAND test_${name})
  set_tests_properties(redis_${name} PROPERTIES LABELS "${label};redis"
                       TIMEOUT 120)
endfunction()

redis_test(faults_restart fault)
redis_test(faults_load fault turns.c)
redis_test(faults_refusal fault)
redis_test(faults_cut fault)
redis_test(faults_tls fault)
redis_test(faults_away fault)
redis_test(groups store)
redis_test(waiters store)
redis_test(keys store)
redis_test(shapes store stage.c)
redis_test(log store stage.c)
redis_test(audit store)

add_executable(test_acl test_acl.c redis_world.c)
target_include_directories(test_acl PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(test_acl PRIVATE redis_server world)
add_test(NAME redis_acl COMMAND test_acl ${redis_acl})
set_tests_properties(redis_acl PROPERTIES LABELS "store;redis" TIMEOUT 120)
add_test(NAME redis_acl_lines COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/test_acl_lines.sh
         ${redis_acl} ${PROJECT_SOURCE_DIR}/src/store/redis/lua)
set_tests_properties(redis_acl_lines PROPERTIES LABELS "tree;redis" TIMEOUT 30)

# In short here; without arguments it is the long form.
add_executable(many_leases many_leases.c)
target_include_directories(many_leases PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(many_leases PRIVATE redis_server)
add_test(NAME redis_many_leases COMMAND many_leases 2000 3000 4)
set_tests_properties(redis_many_leases PROPERTIES LABELS "store;redis"
                     TIMEOUT 60)

# A cluster in trouble. In short here; `make chaos` has 10 crashes and 100 moves.
add_executable(cluster_load cluster_load.c)
target_include_directories(cluster_load PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(cluster_load PRIVATE redis_server)
add_test(NAME redis_cluster_load COMMAND cluster_load 1 5)
set_tests_properties(redis_cluster_load PROPERTIES LABELS "fault;redis"
                     TIMEOUT 120)
foreach(name cluster cluster_bells)
  add_executable(test_${name} test_${name}.c cluster_stage.c)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_${name} PRIVATE redis_server world)
  add_test(NAME redis_${name} COMMAND test_${name} ${redis_acl})
  set_tests_properties(redis_${name} PROPERTIES LABELS "store;redis"
                       TIMEOUT 120)
endforeach()
