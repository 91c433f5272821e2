package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	caLife = 10 * 365 * 24 * time.Hour
	// leafLife is how long a certificate that the own authority signed holds. It
	// is made anew when half of that is over, also while the program runs.
	leafLife = 90 * 24 * time.Hour
	// clockSlack is how far a client's clock may be behind ours.
	clockSlack = time.Hour
)

// CAFile is the name of the file, in the directory of OwnCertificate, that clients must trust.
const CAFile = "ca.crt"

// OwnCertificate gives TLS settings with a certificate for the given names and
// addresses, signed by an authority of our own. The authority is made in the
// directory when there is none; its certificate is in CAFile.
func OwnCertificate(dir string, hosts []string, now func() time.Time) (*tls.Config, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("a directory for the event store's certificate: %w", err)
	}
	var a authority
	_, err := os.Stat(filepath.Join(dir, CAFile))
	if errors.Is(err, fs.ErrNotExist) {
		a, err = makeAuthority(dir, now())
	} else if err == nil {
		a, err = loadAuthority(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("the event store's certificate: %w", err)
	}
	if now().After(a.cert.NotAfter) {
		return nil, fmt.Errorf("the event store's own authority has run out; remove %s to make a new one, which clients must then trust", dir)
	}
	leaf := &ownLeaf{authority: a, hosts: hosts, now: now}
	if _, err := leaf.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: leaf.get}, nil
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func loadAuthority(dir string) (authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, CAFile), filepath.Join(dir, "ca.key"))
	if err != nil {
		return authority{}, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return authority{}, errors.New("the authority's key is of another kind than ours")
	}
	return authority{cert: pair.Leaf, key: key}, nil
}

// makeAuthority writes the certificate last: where it stands, there are clients
// that trust it, and it is never replaced.
func makeAuthority(dir string, now time.Time) (authority, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Tallyard event store"},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, key, err := issue(template, authority{})
	if err != nil {
		return authority{}, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return authority{}, err
	}
	if err := writePEM(filepath.Join(dir, "ca.key"), "EC PRIVATE KEY", raw, 0o600); err != nil {
		return authority{}, err
	}
	if err := writePEM(filepath.Join(dir, CAFile), "CERTIFICATE", cert.Raw, 0o644); err != nil {
		return authority{}, err
	}
	return authority{cert: cert, key: key}, nil
}

func writePEM(path, kind string, raw []byte, mode fs.FileMode) error {
	// Renamed when it is whole, so that a crash leaves no half of it.
	part := path + ".part"
	if err := os.WriteFile(part, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), mode); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// issue makes a key and has a certificate signed for it; by itself where there is no authority.
func issue(template *x509.Certificate, by authority) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if by.cert == nil {
		by = authority{cert: template, key: key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(raw)
	return cert, key, err
}

// ownLeaf is the server's certificate, kept in memory alone.
type ownLeaf struct {
	authority authority
	hosts     []string
	now       func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
}

// get gives the certificate, a new one when half of its life is over.
func (l *ownLeaf) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.current != nil && now.Before(l.current.Leaf.NotAfter.Add(-leafLife/2)) {
		return l.current, nil
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Tallyard event store node"},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range l.hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	cert, key, err := issue(template, l.authority)
	if err != nil {
		return nil, fmt.Errorf("the event store's certificate: %w", err)
	}
	l.current = &tls.Certificate{Certificate: [][]byte{cert.Raw, l.authority.cert.Raw}, PrivateKey: key, Leaf: cert}
	return l.current, nil
}

// GivenCertificate gives TLS settings with the operator's certificate and key.
// The files are read again when they change, so that renewing them needs no
// restart; one that can't be read leaves the former in use.
func GivenCertificate(certFile, keyFile string) (*tls.Config, error) {
	g := &givenLeaf{certFile: certFile, keyFile: keyFile}
	if err := g.load(); err != nil {
		return nil, fmt.Errorf("the event store's certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: g.get}, nil
}

// givenLeaf is a certificate that the operator keeps in files.
type givenLeaf struct {
	certFile, keyFile string

	mu      sync.Mutex
	current *tls.Certificate
	changed time.Time // when the file was changed that current was read from
}

func (g *givenLeaf) load() error {
	info, err := os.Stat(g.certFile)
	if err != nil {
		return err
	}
	if g.current != nil && info.ModTime().Equal(g.changed) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(g.certFile, g.keyFile)
	if err != nil {
		return err
	}
	g.current, g.changed = &pair, info.ModTime()
	return nil
}

func (g *givenLeaf) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil && g.current == nil {
		return nil, err
	}
	return g.current, nil
}
