package mongolock

import (
	"errors"
	"testing"
	"testing/quick"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/latchkey-go/latchkey/lock"
)

func TestKeysAreTheirOwnIDs(t *testing.T) {
	for _, tt := range []struct{ key, want string }{
		{"order:42", "order:42"},
		{"a\x00b", "a\x00b"},
		{"\xff", "latchkey:base64:_w"},
		{"latchkey:base64:_w", "latchkey:base64:bGF0Y2hrZXk6YmFzZTY0Ol93"},
	} {
		if got := idOf(tt.key); got != tt.want {
			t.Errorf("idOf(%q) = %q, want %q", tt.key, got, tt.want)
		}
	}
	differ := func(a, b []byte) bool { return (string(a) == string(b)) == (idOf(string(a)) == idOf(string(b))) }
	if err := quick.Check(differ, nil); err != nil {
		t.Error(err)
	}
}

// The server's now has lost up to a millisecond, and lockUntil may lose another one.
func TestLeasesAreNeverShorterThanAskedFor(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 1, time.Microsecond: 2, time.Millisecond: 2, time.Millisecond + 1: 3, time.Second: 1001} {
		if got := millis(d); got != want {
			t.Errorf("millis(%v) = %d, want %d", d, got, want)
		}
	}
}

func TestErrorsGoByCode(t *testing.T) {
	raw := func(pattern string) bson.Raw {
		b, err := bson.Marshal(bson.D{{Key: "keyPattern", Value: bson.D{{Key: pattern, Value: 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, tt := range []struct {
		name               string
		err                error
		duplicate, refused bool
	}{
		{"_id is taken", mongo.CommandError{Code: 11000, Raw: raw("_id")}, true, true},
		{"an old server's _id is taken", mongo.CommandError{Code: 11000}, true, true},
		{"another index", mongo.CommandError{Code: 11000, Raw: raw("tenant")}, false, true},
		{"unauthorized", mongo.CommandError{Code: 13}, false, true},
		{"an update that can't be parsed", mongo.CommandError{Code: 9}, false, true},
		{"not implemented", mongo.CommandError{Code: 238}, false, true},
		{"no primary", mongo.CommandError{Code: 10107}, false, false},
		{"words without a code", errors.New("Unauthorized"), false, false},
		{"refused by a validator, on one member only", mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 121}}, false, false},
	} {
		if got := duplicate(tt.err); got != tt.duplicate {
			t.Errorf("%s: duplicate() = %v", tt.name, got)
		}
		err := explain("take", tt.err)
		if got := errors.Is(err, lock.ErrRefused); got != tt.refused {
			t.Errorf("%s: %v, want ErrRefused: %v", tt.name, err, tt.refused)
		}
	}
}

func TestNewRefusesWhatItCantDo(t *testing.T) {
	client, err := mongo.Connect() // asks nothing
	if err != nil {
		t.Fatal(err)
	}
	coll := client.Database("app").Collection(Collection)
	for name, f := range map[string]func() (*Locker, error){
		"no collection":  func() (*Locker, error) { return New(nil) },
		"slack":          func() (*Locker, error) { return New(coll, Slack(-time.Second)) },
		"endless slack":  func() (*Locker, error) { return New(coll, Slack(1<<62)) },
		"watchdog":       func() (*Locker, error) { return New(coll, Watchdog(time.Millisecond)) },
		"poll":           func() (*Locker, error) { return New(coll, Poll(0, 0)) },
		"longer timeout": func() (*Locker, error) { return New(coll, Watchdog(time.Second), Timeout(time.Minute)) },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(coll, nil, HelloClock()); err != nil {
		t.Errorf("New() with an option that is nil = %v", err)
	}
}
