-- say.lua - sends a message to a topic, as "said DATA". Keeps nothing.
-- KEYS: channel, which is no key but has a slot
-- ARGV: publish data
redis.call(ARGV[1], KEYS[1], 'said ' .. ARGV[2])
return 0
