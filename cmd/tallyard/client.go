package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/urfave/cli/v3"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// clientFlags are where a client finds the API and who it is.
func clientFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "url", Value: "http://127.0.0.1:8080", Sources: env("url"), Usage: "address of the running program"},
		&cli.StringFlag{Name: "token", Sources: env("token"), Usage: "bearer token; better given by the environment than on the command line"},
	}, more...)
}

func graphqlCommand() *cli.Command {
	return &cli.Command{
		Name:      "graphql",
		Usage:     "ask a running program: a query or mutation, or watch a subscription until Ctrl-C",
		ArgsUsage: "DOCUMENT",
		Flags: clientFlags(
			&cli.StringSliceFlag{Name: "var", Usage: "a variable, name=value; the value is JSON or else a string"},
			&cli.StringFlag{Name: "select", Usage: "print only what lies at this path of the data, such as me.projects.0.id"},
			&cli.BoolFlag{Name: "compact", Usage: "print one line"},
		),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			doc := cmd.Args().First()
			if doc == "" || cmd.Args().Len() > 1 {
				return errors.New("give one GraphQL document, in quotes")
			}
			vars, err := variables(cmd.StringSlice("var"))
			if err != nil {
				return err
			}
			c := client{url: strings.TrimRight(cmd.String("url"), "/"), token: cmd.String("token")}
			show := printer{path: cmd.String("select"), compact: cmd.Bool("compact")}
			if subscribes(doc) {
				show.compact = true
				return c.watch(ctx, doc, vars, show)
			}
			return c.ask(ctx, doc, vars, show)
		},
	}
}

// variables reads name=value pairs.
func variables(pairs []string) (map[string]any, error) {
	vars := map[string]any{}
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("--var %q: give name=value", p)
		}
		if json.Unmarshal([]byte(value), new(any)) == nil {
			vars[name] = json.RawMessage(value)
		} else {
			vars[name] = value
		}
	}
	return vars, nil
}

// subscribes tells whether a document is a subscription. One that can't be
// read is sent, so that the server says what is wrong with it.
func subscribes(doc string) bool {
	q, err := parser.ParseQuery(&ast.Source{Input: doc})
	return err == nil && len(q.Operations) == 1 && q.Operations[0].Operation == ast.Subscription
}

type client struct{ url, token string }

type gqlRequest struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables,omitempty"`
}

type gqlResponse struct {
	Data   json.RawMessage `json:"data"`
	Errors json.RawMessage `json:"errors"`
}

func (c client) ask(ctx context.Context, doc string, vars map[string]any, show printer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	body, err := json.Marshal(gqlRequest{doc, vars})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/graphql-response+json")
	c.sign(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w; is the program running, and --url right?", err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer gqlResponse
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
	}
	return show.print(answer)
}

func (c client) sign(req *http.Request) {
	req.Header.Set("User-Agent", "tallyard/"+version)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// message is one of the graphql-transport-ws protocol.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// watch prints each item of a subscription on a line of its own.
func (c client) watch(ctx context.Context, doc string, vars map[string]any, show printer) error {
	dial, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	header := http.Header{"User-Agent": {"tallyard/" + version}}
	conn, _, err := websocket.Dial(dial, "ws"+strings.TrimPrefix(c.url, "http")+"/graphql", &websocket.DialOptions{ //nolint:bodyclose // the library reads the body itself
		Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: header,
	})
	if err != nil {
		return fmt.Errorf("%w; is the program running, and --url right?", err)
	}
	defer conn.CloseNow() //nolint:errcheck // the usual way out closes it with a reason
	conn.SetReadLimit(8 << 20)
	start := []message{
		{Type: "connection_init", Payload: raw(map[string]string{"Authorization": "Bearer " + c.token})},
		{ID: "1", Type: "subscribe", Payload: raw(gqlRequest{doc, vars})},
	}
	if err := wsjson.Write(dial, conn, start[0]); err != nil {
		return err
	}
	for {
		var m message
		if err := wsjson.Read(ctx, conn, &m); err != nil {
			if ctx.Err() != nil {
				return conn.Close(websocket.StatusNormalClosure, "")
			}
			return fmt.Errorf("the server closed the socket: %w", err)
		}
		switch m.Type {
		case "connection_ack":
			err = wsjson.Write(ctx, conn, start[1])
		case "ping":
			err = wsjson.Write(ctx, conn, message{Type: "pong"})
		case "next":
			var answer gqlResponse
			if err = json.Unmarshal(m.Payload, &answer); err == nil {
				err = show.print(answer)
			}
		case "error":
			return fmt.Errorf("refused: %s", m.Payload)
		case "complete":
			return conn.Close(websocket.StatusNormalClosure, "")
		}
		if err != nil {
			return err
		}
	}
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and our own requests always can
	}
	return b
}

// printer prints answers.
type printer struct {
	path    string
	compact bool
}

func (p printer) print(a gqlResponse) error {
	if len(a.Errors) > 0 {
		return fmt.Errorf("refused: %s", a.Errors)
	}
	if p.path != "" {
		var data any
		if err := json.Unmarshal(a.Data, &data); err != nil {
			return err
		}
		v, err := at(data, strings.Split(p.path, "."))
		if err != nil {
			return fmt.Errorf("--select %s: %w; the answer is %s", p.path, err, a.Data)
		}
		if s, ok := v.(string); ok {
			fmt.Println(s)
			return nil
		}
		a.Data = raw(v)
	}
	var b bytes.Buffer
	if p.compact {
		if err := json.Compact(&b, a.Data); err != nil {
			return err
		}
	} else if err := json.Indent(&b, a.Data, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(os.Stdout, b.String())
	return err
}

// at walks down a path of names and indexes.
func at(v any, path []string) (any, error) {
	for _, step := range path {
		switch node := v.(type) {
		case map[string]any:
			v = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil, fmt.Errorf("there is no item %s", step)
			}
			v = node[i]
		default:
			return nil, fmt.Errorf("there is nothing at %s", step)
		}
	}
	if v == nil {
		return nil, errors.New("there is nothing")
	}
	return v, nil
}
