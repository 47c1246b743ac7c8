package setnxlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// answer is a script's answer.
type answer struct {
	code int64
	left time.Duration // to live
	kind string        // type of the key
}

var errAnswer = errors.New("setnxlock: an answer that this package's scripts don't give")

// readAnswer reads the result of cmd.
func readAnswer(cmd *redis.Cmd) (a answer, err error) {
	list, err := cmd.Slice()
	if err != nil {
		return a, err
	}
	if len(list) == 0 {
		return a, errAnswer
	}
	code, ok := list[0].(int64)
	a.code = code
	switch {
	case !ok || code < otherType || code > yes:
		return a, errAnswer
	case len(list) == 1:
		return a, nil
	}
	switch v := list[1].(type) {
	case int64:
		a.left = time.Duration(v) * time.Millisecond
	case string:
		a.kind = v
	}
	return a, nil
}

// otherTypeError says that a key holds no string lock.
func otherTypeError(kind string) error {
	switch kind {
	case "hash":
		return fmt.Errorf("setnxlock: %w: the key holds a hash, as a lock of Redisson does, and no string: share it by package redisson, or take another key", lock.ErrRefused)
	case "":
		return fmt.Errorf("setnxlock: %w: the key holds something else than a string: take another key", lock.ErrRefused)
	}
	return fmt.Errorf("setnxlock: %w: the key holds a %s and no string: take another key", lock.ErrRefused, kind)
}

// classify completes a failure for those who have to decide what to do about it.
func classify(err error) error {
	if reply.Classify(err).Refused {
		return fmt.Errorf("setnxlock: %w: %w", lock.ErrRefused, err)
	}
	return fmt.Errorf("setnxlock: %w", err)
}
