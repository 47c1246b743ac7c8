package idempotency

import (
	"cmp"
	"context"
	_ "embed" // the scripts
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Store keeps the outcomes of requests, by a text for each that reveals nothing of caller and key. It is safe for
// concurrent use, also by several processes. Each of its methods is atomic: it does all or nothing, one after the other
// for one key. Both may be called again by whoever got no answer, and may then run a second time, and late.
type Store interface {
	// Begin writes r if there is no record of key, or none that is younger than its time to live, and returns it: Print and Owner are all it
	// has. It lives for keep. Otherwise it changes nothing and returns the record that is there. So an owner that asks again, as the answer was
	// lost, finds its own.
	//
	// With an r that has no Owner, Begin writes nothing in any case. It returns the record that is there, or none: Record{}.
	Begin(ctx context.Context, key string, r Record, keep time.Duration) (Record, error)
	// Finish writes r over the record that r.Owner has begun, and lets it live for keep from now. If r has no Status, it removes the
	// record, as the request may be repeated, but not one that has its answer.
	//
	// It changes no record of another owner and makes none. It returns an error if it could not write r for that reason; to have nothing to
	// remove is none.
	Finish(ctx context.Context, key string, r Record, keep time.Duration) error
}

// Record is a [Store]'s record of a request.
type Record struct {
	// Print is the fingerprint of the request: a digest.
	Print string
	// Owner is a random text of the attempt that has begun the request.
	Owner string
	// Status is that of the answer, and 0 as long as there is none.
	Status int
	// Header has those headers of the answer that are repeated, and Body its body. A reader must not change them.
	Header http.Header
	Body   []byte
	// TooLarge says that the body was too large to be kept.
	TooLarge bool

	until time.Time // in Memory
}

// errGone is of a Finish that has no record to write in.
var errGone = errors.New("the record has gone, or belongs to another attempt")

// Memory is a [Store] within one process, for a service that is one, and for tests. With it a repeat after a restart runs again.
type Memory struct {
	most int

	mu      sync.Mutex
	records map[string]Record
	swept   time.Time
}

// NewMemory returns a Memory that keeps up to that many records; 0 is 10,000. Each may have an answer of up to 1 MiB. When there are as many
// that live, others can't begin, and their requests are answered with 503: to drop one would let its request run twice.
func NewMemory(most int) *Memory {
	return &Memory{most: cmp.Or(most, 10_000), records: make(map[string]Record)}
}

// Begin implements [Store].
func (m *Memory) Begin(_ context.Context, key string, r Record, keep time.Duration) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if found := m.records[key]; now.Before(found.until) {
		return found, nil
	} else if r.Owner == "" {
		return Record{}, nil
	}
	if delete(m.records, key); now.Sub(m.swept) > time.Second {
		m.swept = now
		maps.DeleteFunc(m.records, func(_ string, r Record) bool { return !now.Before(r.until) })
	}
	if len(m.records) >= m.most {
		return Record{}, errors.New("there are too many records in memory")
	}
	r.until = now.Add(keep)
	m.records[key] = r
	return r, nil
}

// Finish implements [Store].
func (m *Memory) Finish(_ context.Context, key string, r Record, keep time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	found := m.records[key]
	own := now.Before(found.until) && found.Owner == r.Owner
	switch {
	case own && r.Status != 0:
		r.until = now.Add(keep)
		m.records[key] = r
	case r.Status != 0:
		return errGone
	case own && found.Status == 0:
		delete(m.records, key)
	}
	return nil
}

var (
	//go:embed lua/begin.lua
	beginLua string
	//go:embed lua/finish.lua
	finishLua string

	beginScript, finishScript = redis.NewScript(beginLua), redis.NewScript(finishLua)
)

// Redis is a [Store] in Redis, with a hash for each record, so that it works in a Cluster. It needs Redis 6.2 or newer, or Valkey. A Redis that
// loses data loses records, and a repeat runs again.
type Redis struct {
	rdb    redis.UniversalClient
	prefix string
}

// NewRedis returns a Redis that stores by rdb, which the caller closes. Its keys begin with prefix, such as "shop:": services that share a
// Redis need different ones, or one caller could not use a key for both. A redis.Ring is refused, as it moves keys when a server is down.
//
// The timeouts and retries of rdb decide how long a Redis that does not answer holds requests up; set
// ContextTimeoutEnabled, so that they end with their context. A question without an answer may be repeated, so retries
// do no harm. A user of Redis needs these:
//
//	~shop:* +evalsha +eval +hmget +hset +del +pexpire
func NewRedis(rdb redis.UniversalClient, prefix string) (*Redis, error) {
	if _, ring := rdb.(*redis.Ring); ring || rdb == nil || prefix == "" {
		return nil, errors.New("idempotency: NewRedis wants a client that is no Ring, and a prefix for its keys, such as that of the service")
	}
	return &Redis{rdb, prefix}, nil
}

// Begin implements [Store].
func (s *Redis) Begin(ctx context.Context, key string, r Record, keep time.Duration) (Record, error) {
	found, err := beginScript.Run(ctx, s.rdb, []string{s.prefix + key}, r.Owner, r.Print, keep.Milliseconds()).StringSlice()
	if err != nil {
		return Record{}, err
	}
	r = Record{Owner: found[0], Print: found[1]}
	if found[2] != "" {
		err = json.Unmarshal([]byte(found[2]), &r)
	}
	return r, err
}

// Finish implements [Store].
func (s *Redis) Finish(ctx context.Context, key string, r Record, keep time.Duration) error {
	var answer []byte
	if r.Status != 0 {
		answer, _ = json.Marshal(r) // nothing in it can't be written
	}
	done, err := finishScript.Run(ctx, s.rdb, []string{s.prefix + key}, r.Owner, answer, keep.Milliseconds()).Bool()
	if err == nil && !done && r.Status != 0 {
		return errGone
	}
	return err
}
