package operations

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/doctest"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// The code in kubernetes.md stands here, and is tested.
func TestKubernetesQuotes(t *testing.T) {
	doctest.Quotes(t, "../..", "../../docs/operations/kubernetes.md")
}

// probes are what the kubelet asks.
func probes(mux *http.ServeMux, client *redisson.Client) {
	mux.HandleFunc("GET /live", func(http.ResponseWriter, *http.Request) {}) // the process answers: no word of Redis
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 500*time.Millisecond)
		defer cancel()
		if err := client.Ping(ctx); err != nil {
			http.Error(w, "the locks' Redis does not answer", http.StatusServiceUnavailable)
		}
	})
}

func TestProbes(t *testing.T) {
	s := redistest.Start(t)
	client := open(t, "redis://"+s.Addr)
	mux := http.NewServeMux()
	probes(mux, client)
	probe := func(path string, want int) {
		t.Helper()
		start, w := time.Now(), httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if took := time.Since(start); w.Code != want || took > time.Second {
			t.Errorf("%s: %d after %v, want %d within the second that the kubelet waits", path, w.Code, took, want)
		}
	}
	probe("/ready", http.StatusOK)
	s.Pause(t)
	probe("/ready", http.StatusServiceUnavailable)
	probe("/live", http.StatusOK)
	s.Resume(t)
	await(t, "it is ready again", func() bool {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
		return w.Code == http.StatusOK
	})
}

func open(t *testing.T, url string, opts ...redisson.Option) *redisson.Client {
	t.Helper()
	client, err := redisson.Open(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Shutdown waits for those who wait for a lock as well, and Drain sends them away.
func TestGracePeriod(t *testing.T) {
	const work = 1500 * time.Millisecond
	for name, tt := range map[string]struct {
		drain       bool
		status      int // of the request in line
		least, most time.Duration
	}{
		"Shutdown":             {false, http.StatusOK, work + work/2, 3 * work},
		"Drain, then Shutdown": {true, http.StatusServiceUnavailable, work / 2, work + work/3},
	} {
		t.Run(name, func(t *testing.T) {
			registry, err := guard.NewRegistry()
			if err != nil {
				t.Fatal(err)
			}
			settle := guard.Must(guard.New(open(t, "redis://"+redistest.Start(t).Addr), guard.In(registry), guard.Name("order.settle"),
				guard.Key("order:#{path.id}"), guard.Wait(10*time.Second)))
			mux, inside := http.NewServeMux(), make(chan bool, 2)
			mux.Handle("POST /orders/{id}", guard.Must(middleware.New(settle))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				inside <- true
				time.Sleep(work)
			})))
			server := httptest.NewServer(mux)
			defer server.Close()
			var calls sync.WaitGroup
			status := make(chan int, 2)
			call := func() {
				answer, err := http.Post(server.URL+"/orders/7", "", nil)
				if err != nil {
					t.Error(err)
					return
				}
				_ = answer.Body.Close()
				status <- answer.StatusCode
			}
			calls.Go(call)
			<-inside
			calls.Go(call)
			time.Sleep(200 * time.Millisecond)
			start := time.Now()
			if tt.drain {
				if _, err := registry.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := server.Config.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			took := time.Since(start)
			calls.Wait()
			if took < tt.least || took > tt.most {
				t.Errorf("it took %v, want %v to %v", took, tt.least, tt.most)
			}
			if one, other := <-status, <-status; one+other != http.StatusOK+tt.status {
				t.Errorf("answers %d and %d, want 200 and %d", one, other, tt.status)
			}
			t.Logf("%s took %v", name, took)
		})
	}
}

// shipment is what the guards of both versions lock by.
type shipment struct{ ID, Tenant string }

const (
	oldKey  = `order:#{req.ID}`
	bothKey = `#{[key("order", req.ID), key("tenant", req.Tenant, "order", req.ID)]}`
	newKey  = `tenant:#{req.Tenant}:order:#{req.ID}`
)

// Old and new keys do not exclude each other, and a version that takes both excludes either.
func TestTwoKeysInARoll(t *testing.T) {
	s := redistest.Start(t)
	for _, tt := range []struct {
		running, coming string
		want            error
	}{
		{oldKey, newKey, nil},
		{oldKey, bothKey, guard.ErrBusy}, {bothKey, oldKey, guard.ErrBusy},
		{bothKey, newKey, guard.ErrBusy}, {newKey, bothKey, guard.ErrBusy},
		{bothKey, bothKey, guard.ErrBusy},
	} {
		in := func(key string, work func(context.Context, shipment) error) func(context.Context, shipment) error {
			g := guard.Must(guard.New(open(t, "redis://"+s.Addr), guard.Name("order.ship"), guard.Key(key)))
			return guard.Must(guard.Action(g, work))
		}
		coming := in(tt.coming, func(context.Context, shipment) error { return nil })
		if err := in(tt.running, func(ctx context.Context, o shipment) error { return coming(lock.NewOwner(ctx), o) })(t.Context(), shipment{"7 {a}", "acme%"}); !errors.Is(err, tt.want) {
			t.Errorf("%s runs, and %s comes: %v, want %v", tt.running, tt.coming, err, tt.want)
		}
	}
}

// rolled reads the user's password anew for each connection, from a file that a secret is mounted as.
func rolled(url, user, file string) (*redisson.Client, error) {
	return redisson.Open(url, redisson.Credentials(func(context.Context) (string, string, error) {
		password, err := os.ReadFile(file)
		return user, strings.TrimSpace(string(password)), err
	}))
}

// A password is rolled in three steps, of which none costs a lock or a connection that is open.
func TestPasswordIsRolled(t *testing.T) {
	s := redistest.Start(t, "--user", "worker", "on", ">first", "~*", "&*", "+@all")
	admin := s.Client(t)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	client, err := rolled("redis://"+s.Addr, "worker", file)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	take := func(key string) lock.Hold {
		t.Helper()
		h, err := client.Acquire(t.Context(), lock.Request{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	held := take("held")
	do := func(args ...any) {
		t.Helper()
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do("acl", "setuser", "worker", ">second") // both are good
	write("second")
	do("acl", "setuser", "worker", "<first")
	if err := take("after").Release(t.Context()); err != nil { // over what is open
		t.Error(err)
	}
	do("client", "kill", "user", "worker") // over new ones
	if err := take("anew").Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("the lock that was held meanwhile: %v", err)
	}
	if err := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "worker", "first" }).Ping(t.Context()).Err(); err == nil {
		t.Error("the old password is good still")
	}
}

// openPrivate is redisson.Open for a server whose certificate an authority of one's own has signed.
func openPrivate(url, caFile string, opts ...redisson.Option) (client *redisson.Client, done func() error, err error) {
	o, err := redis.ParseURL(url) // rediss://
	if err != nil {
		return nil, nil, err
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, nil, err
	}
	o.TLSConfig.RootCAs = x509.NewCertPool()
	if !o.TLSConfig.RootCAs.AppendCertsFromPEM(ca) {
		return nil, nil, errors.New("no certificate in " + caFile)
	}
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1 // as Open has it
	rdb := redis.NewClient(o)
	if client, err = redisson.New(rdb, opts...); err != nil {
		return nil, nil, err
	}
	return client, func() error { return errors.Join(client.Close(), rdb.Close()) }, nil
}

// A private authority is trusted by a pool of one's own, by SSL_CERT_FILE and by --cacert, and not otherwise.
func TestPrivateAuthority(t *testing.T) {
	ca, url := startTLS(t)
	client, done, err := openPrivate(url, ca)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if err := open(t, url).Ping(t.Context()); err == nil {
		t.Error("an authority that nobody knows is trusted")
	}
	tools := t.TempDir()
	for _, folder := range []string{"hold", "../../cmd/latchkey"} {
		if out, err := exec.Command("go", "build", "-C", folder, "-o", tools, ".").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", folder, err, out)
		}
	}
	for _, tt := range []struct {
		env     string
		command []string
		want    string
	}{
		{"", []string{"hold", "-redis", url, "-for", "1ms", "order:42"}, "not held"},
		{"SSL_CERT_FILE=" + ca, []string{"hold", "-redis", url, "-for", "1ms", "order:42"}, "released"},
		{"", []string{"latchkey", "--redis", url, "ls"}, "--cacert"},
		{"", []string{"latchkey", "--redis", url, "--cacert", ca, "ls"}, "held by"},
		{"SSL_CERT_FILE=" + ca, []string{"latchkey", "--redis", url, "ls"}, "held by"},
	} {
		cmd := exec.Command(filepath.Join(tools, tt.command[0]), tt.command[1:]...)
		cmd.Env = append(os.Environ(), tt.env)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(strings.ToLower(string(out)), tt.want) {
			t.Errorf("%s %v: %s, want %s", tt.env, tt.command, out, tt.want)
		}
	}
}

// startTLS starts a server with TLS, and returns the file of the authority that has signed its certificate.
func startTLS(t *testing.T) (ca, url string) {
	t.Helper()
	redistest.NeedServers(t)
	program, err := redistest.Program()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ca = filepath.Join(dir, "ca.crt")
	for file, block := range map[string]*pem.Block{ca: {Type: "CERTIFICATE", Bytes: der}, filepath.Join(dir, "key"): {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := redistest.FreePort(t)
	server := exec.Command(program, "--port", "0", "--tls-port", port, "--tls-cert-file", ca, "--tls-key-file", filepath.Join(dir, "key"), //nolint:gosec // it is Redis
		"--tls-ca-cert-file", ca, "--tls-auth-clients", "no", "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--logfile", "log")
	server.SysProcAttr = redistest.Apart()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is looked for
		if err == nil {
			_ = conn.Close()
			return ca, fmt.Sprintf("rediss://127.0.0.1:%s", port)
		}
		if log, _ := os.ReadFile(filepath.Join(dir, "log")); time.Now().After(deadline) || strings.Contains(string(log), "Bad directive") {
			t.Skipf("no server with TLS: %v: %s", err, log)
		}
	}
}

var authority = &x509.Certificate{
	SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "private"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
}
