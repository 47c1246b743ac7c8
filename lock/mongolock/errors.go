package mongolock

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/latchkey-go/latchkey/lock"
)

var (
	errNoTime = fmt.Errorf("%w: the server's hello has no localTime", lock.ErrRefused)
	errIndex  = errors.New("the collection has a unique index beside that of _id, and another lock has the same value there: drop it")
)

const (
	commandNotFound = 59
	duplicateKey    = 11000
)

// Codes with which a server says that it never will, and what to do about it.
var refusals = []struct {
	codes  []int
	advice string
}{
	{[]int{13, 18, 11, 8000}, "the user needs the privileges find, insert, update and remove on the collection"},
	{[]int{9, 14, 2, 40, commandNotFound, 115, 238, 17276, 168, 31325, 40324}, "it wants MongoDB 4.4 or later; for a server that only speaks its protocol, " +
		"try mongolock.HelloClock"},
	{[]int{121}, "the collection's validator refuses documents with " + fieldUntil + ", " + fieldAt + " and " + fieldBy},
	{[]int{20, 166, 73, 72, 61}, "locks need a collection that is not capped, no view and no time series, and sharded by _id if at all"},
	{[]int{10334, 17280, 17419, 17420}, "the key is too long for a document"},
	{[]int{148}, "the storage engine has no majority"},
}

// explain puts an error of the driver into the words of package lock: an answer with which waiting can't help is an ErrRefused, and
// all else is an outage. It goes by the codes of the server and never by its text.
func explain(step string, err error) error {
	if err == nil {
		return nil
	}
	if written(err) {
		return fmt.Errorf("mongolock: %s: written, but not known to survive: %w", step, err)
	}
	if has(err, duplicateKey) {
		return fmt.Errorf("mongolock: %s: %w: %w", step, lock.ErrRefused, errIndex) // the server's words have a key in them
	}
	for _, r := range refusals {
		if slices.ContainsFunc(r.codes, func(code int) bool { return has(err, code) }) {
			return fmt.Errorf("mongolock: %s: %w: %s: %w", step, lock.ErrRefused, r.advice, err)
		}
	}
	return fmt.Errorf("mongolock: %s: %w", step, err)
}

func has(err error, code int) bool {
	e, ok := errors.AsType[mongo.ServerError](err)
	return ok && e.HasErrorCode(code)
}

// written reports whether a write was done by the server that answered, but perhaps by no majority.
func written(err error) bool {
	e, ok := errors.AsType[mongo.WriteException](err)
	return ok && e.WriteConcernError != nil
}

// duplicate reports whether an upsert found its _id taken. Servers before 4.2 don't say which index it was.
func duplicate(err error) bool {
	if !has(err, duplicateKey) {
		return false
	}
	e, ok := errors.AsType[mongo.CommandError](err)
	if !ok {
		return true
	}
	pattern, err := e.Raw.LookupErr("keyPattern")
	if err != nil {
		return true
	}
	_, err = pattern.Document().LookupErr("_id")
	return err == nil
}
