package embedded

import (
	"context"
	"fmt"
	"math"

	"github.com/google/uuid"
)

const (
	usersStream = "$users"
	userType    = "$User"
)

// listUsers writes the names of users that the stream $users doesn't have yet.
// Clients look there to see whether a server is ready. The stream is a list of
// who ever was a user; who may come in is in the operator's file alone.
func (s *store) listUsers(ctx context.Context, u *Users) error {
	h, err := s.durableHead(ctx, usersStream)
	if err != nil {
		return fmt.Errorf("read the event store's users: %w", err)
	}
	listed := map[string]bool{}
	for from, more := int64(0), !h.tombstoned; more; {
		p, next, err := s.readStream(ctx, usersStream, &h, from, false, math.MaxInt)
		if err != nil {
			return fmt.Errorf("read the event store's users: %w", err)
		}
		for i := range p.events {
			listed[string(p.events[i].data)] = true
		}
		from, more = next, p.more
	}
	r := &appendRequest{stream: usersStream, expected: expectation{kind: expectAny}}
	for _, name := range u.names() {
		if !listed[name] {
			r.events = append(r.events, proposed{
				id: uuid.NewSHA1(s.id, []byte(usersStream+"/"+name)), kind: userType, contentType: contentBinary, data: []byte(name),
			})
		}
	}
	if len(r.events) == 0 || h.tombstoned {
		return nil
	}
	if _, err := s.append(ctx, r); err != nil {
		return fmt.Errorf("list the event store's users: %w", err)
	}
	return nil
}
