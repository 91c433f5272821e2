package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func leafOf(t *testing.T, settings *tls.Config) *x509.Certificate {
	t.Helper()
	c, err := settings.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf
}

// verifies tells whether who trusts the file accepts a certificate for a name.
func verifies(t *testing.T, caFile string, leaf *x509.Certificate, name string, at time.Time) error {
	t.Helper()
	raw, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(raw) {
		t.Fatal("no certificate")
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: at})
	return err
}

// A client that trusts the authority once goes on trusting: over restarts, and
// when the server's certificate is renewed under a running program. What can't
// be used is not replaced: those who trust it would be locked out unawares.
func TestOwnCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	now := time.Now()
	clock := func() time.Time { return now }
	hosts := []string{"localhost", "127.0.0.1", "events.example"}
	settings, err := OwnCertificate(dir, hosts, clock)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, CAFile)
	first := leafOf(t, settings)
	for _, h := range hosts {
		if err := verifies(t, ca, first, h, now); err != nil {
			t.Errorf("%s: %v", h, err)
		}
	}
	if verifies(t, ca, first, "elsewhere.example", now) == nil {
		t.Error("it is good for other names")
	}
	for name, want := range map[string]os.FileMode{CAFile: 0o644, "ca.key": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if again := leafOf(t, settings); !again.Equal(first) {
		t.Error("a new certificate for every connection")
	}
	now = now.Add(leafLife * 2 / 3)
	renewed := leafOf(t, settings)
	if renewed.Equal(first) || verifies(t, ca, renewed, "localhost", now.Add(leafLife/2)) != nil {
		t.Error("not renewed")
	}
	restarted, err := OwnCertificate(dir, hosts, clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifies(t, ca, leafOf(t, restarted), "localhost", now); err != nil {
		t.Error(err)
	}
	key := filepath.Join(dir, "ca.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := OwnCertificate(dir, hosts, clock); err == nil {
		t.Error("an authority without its key was replaced")
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	now = now.Add(caLife)
	if _, err := OwnCertificate(dir, hosts, clock); err == nil || !strings.Contains(err.Error(), "run out") {
		t.Error(err)
	}
	if err := os.WriteFile(ca, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OwnCertificate(dir, hosts, clock); err == nil {
		t.Error("a damaged authority was replaced")
	}
}

// Renewed files are taken up while the program runs; files that can't be read
// leave the former certificate in use.
func TestGivenCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	write := func(changed time.Time) *x509.Certificate {
		t.Helper()
		cert, key, err := issue(&x509.Certificate{NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"x"}}, authority{})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		for path, block := range map[string]*pem.Block{
			certFile: {Type: "CERTIFICATE", Bytes: cert.Raw}, keyFile: {Type: "EC PRIVATE KEY", Bytes: raw},
		} {
			if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, changed, changed); err != nil {
				t.Fatal(err)
			}
		}
		return cert
	}
	if _, err := GivenCertificate(certFile, keyFile); err == nil {
		t.Fatal("no files are enough")
	}
	first := write(time.Now().Add(-time.Hour))
	settings, err := GivenCertificate(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if !leafOf(t, settings).Equal(first) {
		t.Error("another certificate")
	}
	second := write(time.Now())
	if !leafOf(t, settings).Equal(second) {
		t.Error("the renewed one is not taken up")
	}
	if err := os.WriteFile(certFile, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(certFile, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !leafOf(t, settings).Equal(second) {
		t.Error("the former one is gone")
	}
}
