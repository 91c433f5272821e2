package oidc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// keyPause is how long an answer of a provider counts: a token with an
	// unknown key asks for the keys again, and anybody can make such tokens.
	keyPause = time.Second
	// maxAnswer bounds an answer of a provider, in bytes.
	maxAnswer = 1 << 20
)

// errKeys says that a provider did not answer.
var errKeys = errors.New("no answer from the identity provider")

// calm asks a provider for the same address once in a while, however often it
// is told to, and gives the last answer in between. It is for addresses that
// say the same to everybody, as those of discovery and keys do.
type calm struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	last map[string]*answer
}

// answer is what a provider said of an address, once done is closed.
type answer struct {
	done   chan struct{}
	at     time.Time
	err    error
	status int
	header http.Header
	body   []byte
}

func newCalm(next http.RoundTripper, now func() time.Time) *calm {
	return &calm{next: next, now: now, last: map[string]*answer{}}
}

// RoundTrip implements http.RoundTripper.
func (c *calm) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return nil, fmt.Errorf("%w: %s is not for the keys", errKeys, r.Method)
	}
	address := r.URL.String()
	c.mu.Lock()
	a := c.last[address]
	mine := a == nil || a.over(c.now())
	if mine {
		// The addresses are the provider's own: discovery and keys.
		a = &answer{done: make(chan struct{}), at: c.now()}
		c.last[address] = a
	}
	c.mu.Unlock()
	if mine {
		a.ask(c.next, r)
		close(a.done)
	}
	select {
	case <-a.done:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

// over tells whether the answer counts no more.
func (a *answer) over(now time.Time) bool {
	select {
	case <-a.done:
		// Also when the clock was set back.
		age := now.Sub(a.at)
		return age >= keyPause || age < 0
	default:
		return false
	}
}

func (a *answer) ask(next http.RoundTripper, r *http.Request) {
	res, err := next.RoundTrip(r)
	if err != nil {
		a.err = fmt.Errorf("%w: %w", errKeys, err)
		return
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	err = errors.Join(err, res.Body.Close())
	switch {
	case err != nil:
		a.err = fmt.Errorf("%w: %w", errKeys, err)
	case len(body) > maxAnswer:
		a.err = fmt.Errorf("%w: more than %d bytes", errKeys, maxAnswer)
	case res.StatusCode >= http.StatusInternalServerError:
		a.err = fmt.Errorf("%w: %s", errKeys, res.Status)
	}
	a.status, a.header, a.body = res.StatusCode, res.Header, body
}
