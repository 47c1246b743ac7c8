package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// certificate is one for the loopback address, in two files. It is its own authority.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "latchkey test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))), file(t, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
}

func file(t *testing.T, text string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// secured starts a server with a second port for TLS, which wants a certificate of its clients if it is asked to.
func secured(t *testing.T, cert, key, clients string) (plain, tls string) {
	t.Helper()
	port := redistest.FreePort(t)
	s := redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", clients)
	return s.Addr, net.JoinHostPort("127.0.0.1", port)
}

// TestPortSaysWhatItIs holds that an address which names the wrong port is told from a Redis that is away.
func TestPortSaysWhatItIs(t *testing.T) {
	t.Parallel()
	redistest.NeedServers(t)
	cert, key := certificate(t)
	plain, open := secured(t, cert, key, "no")
	_, closed := secured(t, cert, key, "yes")
	page := http.NotFoundHandler()
	web, safe := httptest.NewServer(page), httptest.NewUnstartedServer(page)
	safe.Config.ErrorLog = log.New(io.Discard, "", 0)
	safe.StartTLS()
	t.Cleanup(web.Close)
	t.Cleanup(safe.Close)
	sentinels := redistest.StartSentinels(t)
	replica := redistest.Start(t, "--replicaof", strings.ReplaceAll(plain, ":", " "))
	for _, tt := range []struct {
		url, want string
		more      []string
	}{
		{"redis://" + open, "write rediss://", nil},
		{"redis://" + closed, "write rediss://", nil},
		{"rediss://" + plain, "write redis://", nil},
		{"rediss://" + open, "--cacert FILE", nil},
		{"rediss://" + closed, "--cert FILE --cert-key FILE", []string{"--cacert", cert}},
		{"rediss://localhost:" + open[strings.LastIndex(open, ":")+1:], "wanted to match localhost", []string{"--cacert", cert}},
		{"redis://" + web.Listener.Addr().String(), "this is no Redis: it says HTTP/1.1 400", nil},
		{"rediss://" + web.Listener.Addr().String(), "this is no Redis: it says HTTP/1.1 400", nil},
		{"redis://" + safe.Listener.Addr().String(), "write rediss://", nil},
		{"redis://" + sentinels.Addrs[0], "?master_name=NAME", nil},
		{"redis://" + replica.Addr, "this server is a replica", nil},
		{"redis://127.0.0.1:" + redistest.FreePort(t), "connection refused", nil},
	} {
		args := append([]string{"run", "--timeout", "1s"}, tt.more...)
		status, _, err := result(t, tt.url, append(args, "k", "--", "true")...)
		if status != statusNoAnswer && status != statusRefused || !strings.Contains(err, tt.want) {
			t.Errorf("%s %q: status %d, %s, want %s", tt.url, tt.more, status, err, tt.want)
		}
	}
	for _, more := range [][]string{{"--cacert", cert}, {"--cacert", cert, "--cert", cert, "--cert-key", key}} {
		if status, out, err := result(t, "rediss://"+closed, append([]string{"ls", "--timeout", "2s"}, more...)...); (status == 0) != (len(more) > 2) {
			t.Errorf("ls %q = %d, %s, %s", more, status, out, err)
		}
	}
	if status, out, err := result(t, "redis://"+sentinels.Addrs[0], "doctor"); status != statusFound || !strings.Contains(out, "this is a sentinel") || strings.Contains(out, "replicas") {
		t.Errorf("doctor at a sentinel = %d, %s, %s", status, out, err)
	}
}

// TestPasswordFromAFile holds that the password is read with each connection, with the user of the address.
func TestPasswordFromAFile(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	if err := s.Client(t).Do(t.Context(), "acl", "setuser", "ann", "on", ">s3cret", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	url := "redis://ann@" + s.Addr
	for text, want := range map[string]int{"s3cret\n": 0, "wrong": statusRefused} {
		if status, out, err := result(t, url, "run", "--password-file", file(t, text), "k", "--", "true"); status != want || strings.Contains(err+out, strings.TrimSpace(text)) {
			t.Errorf("password %q: status %d, %s", text, status, err)
		}
	}
	for _, args := range [][]string{{"--cacert", file(t, "nothing")}, {"--cert", "x"}, {"--cacert", "/there/is/none"}, {"--password-file", "/there/is/none"}} {
		if status, _, err := result(t, url, append([]string{"ls"}, args...)...); status != statusUsage || !strings.Contains(err, args[0]) {
			t.Errorf("%q: status %d, %s", args, status, err)
		}
	}
	for _, url := range []string{"redis://:@@", "redis://ann:pw@", "redis://@"} {
		if status, _, err := result(t, url, "ls"); status != statusUsage || !strings.Contains(err, "no host behind the @") {
			t.Errorf("%s: status %d, %s", url, status, err)
		}
	}
}

// TestTimeoutIsTheTimeout holds that a server which says nothing costs the timeout once.
func TestTimeoutIsTheTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	const timeout = 3 * time.Second
	for _, args := range [][]string{{"ls"}, {"run", "k", "--", "true"}, {"show", "k"}, {"free", "--yes", "k"}, {"doctor"}} {
		began := time.Now()
		status, _, said := result(t, "redis://"+silent.Addr().String(), append([]string{"--timeout", timeout.String()}, args...)...)
		if took := time.Since(began); status != statusNoAnswer || took > timeout+2*asking+time.Second/2 {
			t.Errorf("%q: status %d after %v, %s", args, status, took, said)
		}
	}
}

// TestRunInRun holds that a run does not wait for a lock which a run around it holds, and that nothing else is refused for it.
func TestRunInRun(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := func(args string) string { return beProgram + `=1 "$LATCHKEY" run ` + args }
	for inner, want := range map[string]int{
		again("--wait forever a -- true"):                                             statusUsage,
		again("b -- sh -c '" + again("--kind fenced --wait forever a -- true") + "'"): statusUsage,
		again("b -- true"): 0,
		"LATCHKEY_HELD='[{\"key\":\"c\",\"kind\":\"exclusive\",\"pid\":1073741824}]' " + again("c -- true"): 0,
	} {
		p := startIn(t, at(s), func(c *exec.Cmd) { c.Env = append(c.Env, "LATCHKEY="+self) }, "run", "a", "--", "sh", "-c", inner)
		_ = p.stdin.Close()
		status, said := p.status(), p.err.rest()
		if status != want || want != 0 && !strings.Contains(said, "a is held by the latchkey run around this one") {
			t.Errorf("%s: status %d, %s, want %d", inner, status, said, want)
		}
	}
}
