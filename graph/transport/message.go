package transport

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/fault"
)

// Messages without an id.
var (
	ackFrame  = []byte(`{"type":"connection_ack"}`)
	pingFrame = []byte(`{"type":"ping"}`)
	pongFrame = []byte(`{"type":"pong"}`)
)

// receive handles one message. What it returns ends the socket.
func (s *socket) receive(kind websocket.MessageType, data []byte) (end *CloseError) {
	defer func() {
		if v := recover(); v != nil { // of the Authenticator, say
			_ = s.h.panicked(s.ctx, v)
			end = &CloseError{CloseInternal, reasonInternal}
		}
	}()
	if kind != websocket.MessageText {
		return badMessage("Messages must be text")
	}
	members, r := decodeObject(data, s.h.cfg.Limits.Document, "The message")
	if r != nil {
		return badMessage(r.errors[0].Message)
	}
	var kindName, id string
	if json.Unmarshal(members["type"], &kindName) != nil {
		return badMessage("The message has no type")
	}
	switch kindName {
	case "connection_init":
		return s.init(members["payload"])
	case "ping":
		s.out.put(s.ctx, s, pong(members["payload"]))
		return nil
	case "pong":
		return nil
	case "subscribe", "complete":
		if json.Unmarshal(members["id"], &id) != nil || id == "" {
			return badMessage("The message has no id")
		}
		if len(id) > 128 {
			return badMessage("The id is longer than 128 bytes")
		}
		if kindName == "complete" {
			s.complete(id)
			return nil
		}
		return s.subscribe(id, members["payload"])
	}
	return badMessage("The message has a type that clients don't send")
}

func badMessage(reason string) *CloseError {
	return &CloseError{CloseBadRequest, "Invalid message: " + reason}
}

// pong answers a ping, with its payload when that is small.
func pong(payload json.RawMessage) []byte {
	if len(payload) == 0 || len(payload) > 1024 {
		return pongFrame
	}
	return append(append([]byte(`{"type":"pong","payload":`), payload...), '}')
}

// init authenticates the socket.
func (s *socket) init(payload json.RawMessage) *CloseError {
	s.mu.Lock()
	again := s.inited
	s.inited = true
	s.mu.Unlock()
	if again {
		return &CloseError{CloseTooManyInits, reasonTooManyInits}
	}
	header, ok := authorizationIn(payload, s.authorization)
	if !ok {
		return badMessage("The payload of connection_init must be an object, its Authorization a string")
	}
	s.authorization = "" // it was needed once
	actor, refused := s.h.authenticate(s.ctx, header)
	if refused != nil {
		s.h.metrics.refused.Add(1)
		return authenticationClose(refused)
	}
	s.mu.Lock()
	s.actor = actor
	s.timer.Reset(s.h.cfg.Limits.PingInterval)
	s.stopWatch = watch(actor, s)
	s.mu.Unlock()
	s.out.put(s.ctx, s, ackFrame)
	return nil
}

// authorizationIn looks for the token in the payload, where browsers have to
// put it, and otherwise takes the header of the upgrade.
func authorizationIn(payload json.RawMessage, header string) (string, bool) {
	if len(payload) == 0 || string(payload) == "null" {
		return header, true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return "", false
	}
	for name, raw := range members {
		if strings.EqualFold(name, "Authorization") {
			return header, json.Unmarshal(raw, &header) == nil
		}
	}
	return header, true
}

// authenticationClose picks the code that tells a client whether to try again.
func authenticationClose(r *refusal) *CloseError {
	switch codeOf(r.errors[0]) {
	case fault.CodeUnauthenticated, fault.CodeForbidden:
		return &CloseError{CloseForbidden, "Forbidden"}
	case fault.CodeUnavailable, fault.CodeTimeout, fault.CodeLimitExceeded:
		return &CloseError{CloseTryAgainLater, "Try again later"}
	default:
		return &CloseError{CloseInternal, reasonInternal}
	}
}

// opFrame makes a message that is about an operation.
func opFrame(id, kind string, payload []byte) []byte {
	b := opPrefix(id, kind, len(payload))
	if payload != nil {
		b.WriteString(`,"payload":`)
		b.Write(payload)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func opPrefix(id, kind string, size int) *bytes.Buffer {
	b := &bytes.Buffer{}
	b.Grow(len(id) + size + 64)
	b.WriteString(`{"id":`)
	b.Write(marshal(id))
	b.WriteString(`,"type":"` + kind + `"`)
	return b
}

func (h *Handler) nextFrame(id string, response *graphql.Response) []byte {
	b := opPrefix(id, "next", len(response.Data))
	b.WriteString(`,"payload":`)
	h.encode(b, response)
	b.WriteByte('}')
	return b.Bytes()
}

func errorFrame(id string, errs gqlerror.List) []byte {
	return opFrame(id, "error", marshal(errs))
}
