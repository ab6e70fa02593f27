-- alone_many.lua - gives up many leases, each as alone does.
-- KEYS: lock...
-- ARGV: owner...
-- Answers for each OK, or BUSY when it is for release to do.
local answers = {}

for i, lock in ipairs(KEYS) do
    answers[i] = 1
    if redis.pcall('HGET', lock, 'owner') == ARGV[i] then
        redis.call('DEL', lock)
        answers[i] = 0
    end
end
return answers
