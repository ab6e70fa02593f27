-- queue_set.lua - changes settings of a queue, and makes it.
-- KEYS: those of queue_shelf.lua
-- ARGV: for each setting its name and value; "" for the default
--include queue_step
call('HDEL', META, '') -- a full server lets what follows write too
for i = 1, #ARGV, 2 do
    head[ARGV[i]] = ARGV[i + 1] ~= '' and ARGV[i + 1] or nil
end
if head.keep_done then
    trim_done()
else
    call('DEL', DONE)
end
begin_step()
serve()
end_step()
return OK
