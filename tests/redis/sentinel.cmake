# The Redis store behind sentinels: a primary and replicas. Failovers under load
# are in tests/chaos.
on_redis(contract_redis_sentinel contract contract --sentinel)
if(NOT DIBS_SANITIZE)
  on_redis(core_redis_sentinel core test_core --sentinel)
endif()

redis_test(sentinel store)
