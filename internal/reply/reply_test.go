package reply

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// words is an answer of a server.
type words string

func (e words) Error() string { return string(e) }
func (words) RedisError()     {}

func TestClassification(t *testing.T) {
	undialled := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, tt := range []struct {
		err                                     error
		isReply, transient, mayHaveRun, refused bool
	}{
		{nil, false, false, false, false},
		// What was not answered, and may have run.
		{io.EOF, false, true, true, false},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, false, true, true, false},
		// What never left the process.
		{undialled, false, false, false, false},
		{fmt.Errorf("wrapped: %w", undialled), false, false, false, false},
		{redis.ErrPoolTimeout, false, true, false, false},
		{redis.ErrPoolExhausted, false, false, false, false},
		{redis.ErrClosed, false, false, false, false},
		// What was answered.
		{words("LOADING"), true, true, false, false},
		{fmt.Errorf("wrapped: %w", words("MOVED 3999 127.0.0.1:6381")), true, true, false, false},
		{fmt.Errorf("wrapped: %w", words("WRONGPASS invalid username-password pair or user is disabled.")), true, false, false, true},
		{words("BUSYGROUP Consumer Group name already exists"), true, false, false, false},
		{words("ERR READONLY in the midst of something else"), true, false, false, false},
		{errors.New("WRONGTYPE in words of somebody else"), false, true, true, false},
	} {
		if got := IsReply(tt.err); got != tt.isReply {
			t.Errorf("IsReply(%v) = %v, want %v", tt.err, got, tt.isReply)
		}
		if got := Classify(tt.err); got.Repeat != tt.transient || got.Refused != tt.refused {
			t.Errorf("Classify(%v) = %+v, want Repeat %v, Refused %v", tt.err, got, tt.transient, tt.refused)
		}
		if got := MayHaveRun(tt.err); got != tt.mayHaveRun {
			t.Errorf("MayHaveRun(%v) = %v, want %v", tt.err, got, tt.mayHaveRun)
		}
	}
}

func TestInts(t *testing.T) {
	room := make([]int64, 0, 6)
	read := func(answer any, err error) ([]int64, error) {
		cmd := redis.NewCmd(t.Context())
		cmd.SetVal(answer)
		cmd.SetErr(err)
		return Ints(cmd, &room)
	}
	var answers [][]int64
	for _, tt := range []struct {
		answer any
		want   []int64
	}{
		{int64(30000), []int64{1, 30000, 0}}, // the short form
		{int64(0), []int64{1, 0, 0}},
		{[]any{int64(1), int64(30000)}, []int64{1, 30000, 0}},
		{[]any{int64(5)}, []int64{5, 0, 0}},
		{[]any{int64(0), int64(7), int64(8), int64(9)}, []int64{0, 7, 8, 9}}, // does not fit behind the others
		{[]any{int64(2)}, []int64{2, 0, 0}},
	} {
		got, err := read(tt.answer, nil)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("Ints of %v = %v, %v, want %v", tt.answer, got, err, tt.want)
		}
		answers = append(answers, got)
		_, _ = read([]any{int64(6), "half"}, nil) // leaves nothing that others see
	}
	for i, a := range answers { // they share memory, but none of them a place
		for j := range a {
			a[j] = int64(-i)
		}
		_ = append(a, 99)
	}
	for i, a := range answers {
		for _, n := range a {
			if n != int64(-i) {
				t.Errorf("answer %d is %v, want only %d", i, a, -i)
			}
		}
	}
	for _, answer := range []any{[]any{"1"}, []any{int64(1), nil}, []any{[]any{}}, []any{}, nil, "text", true, 1.5} {
		if got, err := read(answer, nil); err == nil {
			t.Errorf("Ints of %v = %v, want an error", answer, got)
		}
	}
	if _, err := read(nil, redis.Nil); !errors.Is(err, redis.Nil) {
		t.Errorf("Ints of an error = %v, want it", err)
	}
}

func TestMixed(t *testing.T) {
	for _, tt := range []struct {
		answer any
		ok     bool
	}{
		{[]any{int64(1), []any{"a", []any{}}}, true},
		{[]any{int64(1), int64(2), int64(3), int64(4), []any{}}, true},
		{[]any{}, false},
		{[]any{[]any{}}, false},
		{[]any{int64(1), "a"}, false},
		{[]any{"a", []any{}}, false},
		{int64(1), false},
	} {
		cmd := redis.NewCmd(t.Context())
		cmd.SetVal(tt.answer)
		values, rest, err := Mixed(cmd, new([]int64))
		if (err == nil) != tt.ok || tt.ok && (values[0] != 1 || len(values) < 3 || rest == nil) {
			t.Errorf("Mixed(%v) = %v, %v, %v", tt.answer, values, rest, err)
		}
	}
}
