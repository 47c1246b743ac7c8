// Package reply reads the answers of scripts, and classifies what go-redis returns instead of one. It looks at the type of an error and, for what a
// server said, at its words; it never looks at the text of anything else.
package reply

import (
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// least is how many integers an answer has for those who read it.
const least = 3

// Ints returns what a script has answered to cmd, a list of integers: at least three, of which those that the script did not
// give are 0. A lone n stands for {1, n}: a list costs Redis half a microsecond more, a fifth of a short script. All else, and an
// empty list, is an error. They are appended to room, which the answers to many commands can share.
func Ints(cmd *redis.Cmd, room *[]int64) ([]int64, error) {
	if n, ok := cmd.Val().(int64); ok && cmd.Err() == nil {
		from := len(*room)
		*room = append(*room, 1, n, 0)
		return slices.Clip((*room)[from:]), nil
	}
	list, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	return ints(list, room)
}

// Mixed returns what a script has answered to cmd, integers as Ints has them, and behind them a list of something else.
func Mixed(cmd *redis.Cmd, room *[]int64) (values []int64, rest []any, err error) {
	list, err := cmd.Slice()
	if err != nil {
		return nil, nil, err
	}
	last := max(0, len(list)-1)
	if len(list) > 0 {
		var ok bool
		if rest, ok = list[last].([]any); !ok {
			return nil, nil, fmt.Errorf("a script answered %T where a list was expected", list[last])
		}
	}
	values, err = ints(list[:last], room)
	return values, rest, err
}

func ints(list []any, room *[]int64) ([]int64, error) {
	if len(list) == 0 {
		return nil, errors.New("a script answered nothing")
	}
	from := len(*room)
	*room = slices.Grow(*room, max(len(list), least))
	for _, v := range list {
		n, ok := v.(int64)
		if !ok {
			return nil, fmt.Errorf("a script answered %T where an integer was expected", v)
		}
		*room = append(*room, n)
	}
	for range least - len(list) {
		*room = append(*room, 0)
	}
	return slices.Clip((*room)[from:]), nil
}
