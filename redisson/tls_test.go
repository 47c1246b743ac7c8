package redisson_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// authority makes a certificate for the loopback address that both sides use and trust.
func authority(t *testing.T) (certFile, keyFile string, config *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "latchkey test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	for name, data := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, config := authority(t)
	s, addr := redistest.StartTLS(t, cert, key)
	admin := s.Client(t)
	secure := func(o *redis.Options) { o.Addr, o.TLSConfig = addr, config }
	holder := onClient(t, s.Client(t, secure)).Lock("k")
	waiter := onClient(t, s.Client(t, secure)).Lock("k")
	held := mustLock(t, holder)
	got := lockAsync(waiter)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, admin)) == 1 })
	mustUnlock(t, holder, held)
	expectHeld(t, waiter, got)

	stranger := func(o *redis.Options) {
		secure(o)
		o.DialerRetries, o.MaxRetries, o.TLSConfig = 1, -1, &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if err := ignoring(onClient(t, s.Client(t, stranger)).Lock("k").Lock(t.Context())); err == nil {
		t.Error("Lock at a server with an unknown certificate succeeded")
	}
}

// What the package documentation says that a user needs.
const (
	aclCommands = "+eval +evalsha +exists +hexists +hget +hset +del +pexpire +pttl +publish +subscribe +unsubscribe +ping"
	aclCluster  = "+pubsub|shardnumsub +cluster|slots +command"
	aclSharded  = "+spublish +ssubscribe +sunsubscribe" // unknown before Redis 7.0
	aclChannels = "&redisson_lock__channel:*"
	// And for all of Redisson's family.
	aclFamily = "+@scripting +@hash +@string +@sortedset +@list +time +exists +del +pexpire +pttl +persist" +
		" +publish +subscribe +unsubscribe +ping ~lock:* ~{lock:* ~redisson_* ~latchkey_*" +
		" &redisson_lock__channel:* &redisson_rwlock:* &redisson_sc:* &redisson_countdownlatch__channel__* &latchkey_newest:*"
)

func setUser(t *testing.T, do func(args ...any) error, rules string) {
	t.Helper()
	args := []any{"acl", "setuser", "locker", "reset", "resetchannels", "on", ">secret"} // channels are free to all before Redis 7.0
	for rule := range strings.FieldsSeq(rules) {
		args = append(args, rule)
	}
	if err := do(args...); err != nil {
		t.Fatal(err)
	}
}

func TestACLUser(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	do := func(args ...any) error { return admin.Do(t.Context(), args...).Err() }
	setUser(t, do, aclCommands+" ~lock:* "+aclChannels)
	user := func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }
	holder, waiter := onClient(t, s.Client(t, user)), onClient(t, s.Client(t, user))
	useAsUser(t, holder, waiter, func() int { return len(subscriptions(t, admin)) })
	if err := ignoring(holder.Lock("other").Lock(t.Context())); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("Lock of a key that the user may not touch = %v", err)
	}
}

func TestACLUserOfTheFamily(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, aclFamily)
	c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
	ctx := t.Context()
	for kind := lock.Exclusive; kind <= lock.Permit; kind++ {
		h, err := c.Acquire(ctx, lock.Request{Key: "lock:" + kind.String(), Kind: kind, Limit: 1, Wait: -1})
		if err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		again, err := c.Acquire(h.Context(), lock.Request{Key: "lock:" + kind.String(), Kind: kind, Limit: 1})
		if err := errors.Join(err, again.Release(ctx), h.Release(ctx)); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
	sem, latch, rate, permits := c.Semaphore("lock:sem"), c.CountDownLatch("lock:latch"), c.RateLimiter("lock:rate"), c.PermitExpirableSemaphore("lock:permits")
	_, err := permits.TrySetPermits(ctx, 1)
	id, _, err2 := permits.TryAcquire(ctx, 0, time.Second)
	if err := errors.Join(err, err2, permits.Release(ctx, id)); err != nil {
		t.Errorf("permits: %v", err)
	}
	_, err = sem.TrySetPermits(ctx, 1)
	_, err2 = sem.TryAcquire(ctx, 1, 0)
	if err := errors.Join(err, err2, sem.Release(ctx, 1)); err != nil {
		t.Errorf("semaphore: %v", err)
	}
	_, err = latch.TrySetCount(ctx, 1)
	if err := errors.Join(err, latch.CountDown(ctx), latch.Await(ctx)); err != nil {
		t.Errorf("latch: %v", err)
	}
	_, err = rate.TrySetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Second})
	_, err2 = rate.TryAcquire(ctx, 1, 0)
	if err := errors.Join(err, err2); err != nil {
		t.Errorf("rate limiter: %v", err)
	}
	turn := announce(t, c, "lock:replace")
	listening(t, admin, "lock:replace")
	turn.leave()
	checkNothingDenied(t, admin)
}

// checkNothingDenied looks at what a server has denied its users. CLIENT SETINFO is go-redis' own, which does without it; the log
// of servers before Redis 7.0 has only the first word of a command.
func checkNothingDenied(t *testing.T, admin *redis.Client) {
	t.Helper()
	denied, err := admin.ACLLog(t.Context(), 100).Result()
	check(t, err)
	for _, d := range denied {
		if d.Object != "client" && d.Object != "client|setinfo" {
			t.Errorf("denied: %+v", *d)
		}
	}
}

func testACLUserInACluster(t *testing.T, c *redistest.Cluster) {
	rules := aclCommands + " " + aclCluster + " ~lock:* " + aclChannels
	if c.Sharded {
		rules += " " + aclSharded
	}
	for _, n := range c.Masters {
		do := func(args ...any) error { return n.Admin.Do(t.Context(), args...).Err() }
		setUser(t, do, rules)
	}
	user := func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" }
	holder, waiter := onClient(t, c.Client(t, user)), onClient(t, c.Client(t, user))
	useAsUser(t, holder, waiter, func() int { return channels(t, c) })
	for _, n := range c.Masters {
		checkNothingDenied(t, n.Admin)
	}
}

// useAsUser does all that a client can do with a lock.
func useAsUser(t *testing.T, holder, waiter *redisson.Client, listening func() int) {
	t.Helper()
	l, other := holder.Lock("lock:k"), waiter.Lock("lock:k")
	held := mustLock(t, l)
	if n := l.HoldCount(held); n != 1 {
		t.Errorf("HoldCount = %d", n)
	}
	if ok, err := l.IsLocked(held); !ok || err != nil {
		t.Errorf("IsLocked = %v, %v", ok, err)
	}
	if d, err := l.TTL(held); d <= 0 || err != nil {
		t.Errorf("TTL = %v, %v", d, err)
	}
	got := lockAsync(other)
	eventually(t, "waiter subscribes", func() bool { return listening() == 1 })
	<-time.After(50 * time.Millisecond)
	mustUnlock(t, l, held)
	expectHeld(t, other, got)
	eventually(t, "waiter unsubscribes", func() bool { return listening() == 0 })
	mustLock(t, l)
	if ok, err := l.ForceUnlock(t.Context()); !ok || err != nil {
		t.Errorf("ForceUnlock = %v, %v", ok, err)
	}
}
