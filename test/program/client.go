package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Client asks the GraphQL API over HTTP.
type Client struct {
	Base  string
	Token string // such as dev-alice
	HTTP  *http.Client
}

// Client is a client of the program that signs in with a token.
func (p *Program) Client(token string) *Client {
	return &Client{Base: p.Base, Token: token, HTTP: http.DefaultClient}
}

// Problem is an entry of errors or of userErrors.
type Problem struct {
	Message    string
	Code       string // of userErrors
	Extensions struct{ Code string }
}

// Problems are the errors of an answer.
type Problems []Problem

func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, x := range p {
		texts[i] = strings.TrimSpace(x.Code + x.Extensions.Code + " " + x.Message)
	}
	return strings.Join(texts, "; ")
}

// ErrNoAnswer says that nothing is known of what became of a request.
var ErrNoAnswer = errors.New("no answer")

// Do sends an operation and reads its data into the value. Errors of the
// answer are Problems; where there was none the error is ErrNoAnswer.
func (c *Client) Do(ctx context.Context, query string, variables map[string]any, into any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.Token)
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	var answer struct {
		Data   json.RawMessage
		Errors Problems
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%w: status %d, %.200q", ErrNoAnswer, resp.StatusCode, text)
	}
	if len(answer.Errors) > 0 {
		return answer.Errors
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Data, into)
}
