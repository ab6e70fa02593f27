# The quorum store on real servers, which the tests start and end themselves.
add_library(redis_fleet STATIC fleet.c)
target_link_libraries(redis_fleet PUBLIC redis_server)
add_executable(with_redlock with_redlock.c)
target_include_directories(with_redlock PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(with_redlock PRIVATE redis_fleet run_on)

# on_redlock(NAME LABEL PROGRAM NODES): a suite, unchanged, on a quorum.
function(on_redlock name label program nodes)
  dibs_test(${name} "${label};redis" with_redlock ${nodes}
            longest_ttl=1h&node_timeout=2s -- $<TARGET_FILE:${program}>)
endfunction()

if(NOT DIBS_SANITIZE)
  # Sanitizers see a quorum in the tests that follow.
  on_redlock(contract_redlock contract contract 3)
  dibs_test(core_redlock_footprint "core;redis" with_redlock 3
            longest_ttl=1h&node_timeout=2s -- $<TARGET_FILE:test_core>
            *_of_a_client_*)
endif()

# quorum_test(NAME LABEL SOURCE...): a program that starts its own quorum.
add_library(quorum_world STATIC quorum_world.c)
target_include_directories(quorum_world PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(quorum_world PUBLIC redis_world redis_fleet)
function(quorum_test name label)
  redis_test(${name} ${label} ${ARGN})
  target_link_libraries(test_${name} PRIVATE quorum_world)
endfunction()

quorum_test(quorum store)
quorum_test(quorum_slots store)
quorum_test(quorum_again store)
quorum_test(quorum_posts store)
quorum_test(quorum_faults fault)
