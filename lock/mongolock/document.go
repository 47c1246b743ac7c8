package mongolock

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/latchkey-go/latchkey/lock"
)

// The fields of a document. The first three are ShedLock's; it never touches the last.
const (
	fieldUntil = "lockUntil"
	fieldAt    = "lockedAt"
	fieldBy    = "lockedBy"
	fieldToken = "token"
)

// fields are all fields that questions return.
var fields = bson.D{{Key: fieldUntil, Value: 1}, {Key: fieldBy, Value: 1}, {Key: fieldToken, Value: 1}}

// tokenless matches documents that nobody counts in, so that they may go.
var tokenless = bson.E{Key: fieldToken, Value: bson.D{{Key: "$exists", Value: false}}}

// document is a lock as the server returns it. Its fields may have any type, as anybody can write to the collection.
type document struct {
	ID    bson.RawValue `bson:"_id"`
	Until bson.RawValue `bson:"lockUntil"`
	By    bson.RawValue `bson:"lockedBy"`
	Token bson.RawValue `bson:"token"`
}

var (
	errCollation = errors.New("the server takes another _id for the same: the collection has a collation; make one without")
	errForeign   = errors.New("the document of this _id is no lock: its lockUntil is no date; use a collection of its own for locks")
	errToken     = errors.New("the document of this _id has a token that is no integer: use a collection of its own for locks")
)

// fault returns why d is not the document of a lock.
func (d *document) fault(q question) error {
	id, _ := d.ID.StringValueOK()
	_, isDate := d.Until.DateTimeOK()
	var err error
	switch {
	case id != q.id:
		err = errCollation
	case !isDate:
		err = errForeign
	case q.counted && !d.counts():
		err = errToken
	default:
		return nil
	}
	return fmt.Errorf("mongolock: %w: %w", lock.ErrRefused, err)
}

// counts reports whether the token is one, or still to come.
func (d *document) counts() bool {
	switch d.Token.Type {
	case 0, bson.TypeInt32, bson.TypeInt64:
		return true
	}
	return false
}

func (d *document) until() time.Time {
	ms, _ := d.Until.DateTimeOK()
	return time.UnixMilli(ms)
}

func (d *document) holder() string {
	by, _ := d.By.StringValueOK()
	return by
}

func (d *document) token() int64 {
	n, _ := d.Token.AsInt64OK()
	return n
}
