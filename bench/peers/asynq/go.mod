module dibs/bench/peers/asynq

go 1.25

require github.com/hibiken/asynq v0.26.0
