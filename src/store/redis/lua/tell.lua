-- tell.lua - tells a topic a number. Changes nothing.
-- KEYS: channel, which is no key but has a slot
-- ARGV: publish number
--include tell_topic
tell_topic(ARGV[1], KEYS[1], 'changed ' .. ARGV[2])
return 0
