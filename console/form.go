package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// formLife is how long a confirmation may be sent after it was shown.
const formLife = 10 * time.Minute

// forms makes the tickets of confirmations, each good for one thing, once, for a while. A ticket is a number, the time of
// its end, and a signature over both and over what it is for. It is safe for concurrent use.
type forms struct {
	secret []byte
	mu     sync.Mutex
	used   map[string]time.Time // tickets, until their end
}

func newForms() *forms {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	return &forms{secret: secret, used: map[string]time.Time{}}
}

const (
	numberSize = 16
	endSize    = 8
)

// ticket returns one for purpose.
func (f *forms) ticket(purpose string) string {
	t := make([]byte, numberSize, numberSize+endSize+sha256.Size)
	_, _ = rand.Read(t)                                                           // never fails
	t = binary.BigEndian.AppendUint64(t, uint64(time.Now().Add(formLife).Unix())) //nolint:gosec // after 1970
	return base64.RawURLEncoding.EncodeToString(append(t, f.sign(t, purpose)...))
}

func (f *forms) sign(t []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, f.secret)
	mac.Write(t)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

var (
	errForged = errors.New("no ticket of this process for that")
	errOld    = errors.New("the ticket is too old")
	errUsed   = errors.New("the ticket was used before")
)

// use reports why a ticket is no good for purpose. After nil, it never is again.
func (f *forms) use(ticket, purpose string) error {
	data, err := base64.RawURLEncoding.Strict().DecodeString(ticket)
	if err != nil || len(data) != numberSize+endSize+sha256.Size {
		return errForged
	}
	t := data[:numberSize+endSize]
	if !hmac.Equal(data[len(t):], f.sign(t, purpose)) {
		return errForged
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(t[numberSize:])), 0) //nolint:gosec // we wrote it
	now := time.Now()
	if now.After(end) {
		return errOld
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for other, until := range f.used {
		if now.After(until) {
			delete(f.used, other)
		}
	}
	if _, ok := f.used[string(t)]; ok {
		return errUsed
	}
	f.used[string(t)] = end
	return nil
}
