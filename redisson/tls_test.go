package redisson_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
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

// startTLS starts a server with a second port, at the address secure, for TLS with the files of the certificate, which it trusts as well,
// and of its key. Where the server was built without TLS, the test is skipped.
func startTLS(t *testing.T, cert, key string) (s *redistest.Server, secure string) {
	t.Helper()
	redistest.NeedServers(t)
	path, err := redistest.Program()
	if err != nil {
		t.Fatal(err)
	}
	port := redistest.FreePort(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "--port", "0", "--tls-port", port, "--dir", t.TempDir()).CombinedOutput()
	switch text := string(said); {
	case strings.Contains(text, "Failed finding TLS support"), strings.Contains(text, "Bad directive"):
		t.Skip("this server was built without TLS")
	case !strings.Contains(text, "No tls-cert-file configured"):
		t.Fatalf("a server without a certificate ended with %v and said %s", err, text)
	}
	s = redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	return s, net.JoinHostPort("127.0.0.1", port)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, config := authority(t)
	s, addr := startTLS(t, cert, key)
	admin := s.Client(t)
	secure := func(o *redis.Options) { o.Addr, o.TLSConfig = addr, config }
	holder := onClient(t, s.Client(t, secure)).Lock("k")
	waiter := onClient(t, s.Client(t, secure)).Lock("k")
	held := mustLock(t, holder)
	got := lockAsync(t, waiter)
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
