-- del.lua - removes a value.
-- KEYS: value
-- ARGV: expected ("any" or a version) publish
-- Answers OK, NOTFOUND, or STALE and the version found.
--include tell_topic
local found = redis.call('HGET', KEYS[1], 'version')

if not found then
    return {5, '0'}
elseif ARGV[1] ~= 'any' and ARGV[1] ~= found then
    return {4, found}
end
redis.call('DEL', KEYS[1])
tell_topic(ARGV[2], KEYS[1], 'changed 0')
return {0, found}
