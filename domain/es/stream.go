package es

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// PlatformTenant is the tenant of what belongs to no tenant.
var PlatformTenant = uuid.Nil

// StreamID names a stream: "<category>-<tenant>.<key>". The tenant always
// comes from the actor, so another tenant's id is simply a missing stream.
type StreamID struct {
	Category string
	Tenant   uuid.UUID
	Key      string
}

// StreamOf names the stream of an aggregate.
func StreamOf(category string, tenant, id uuid.UUID) StreamID {
	return StreamID{Category: category, Tenant: tenant, Key: id.String()}
}

// String is the stored name.
func (s StreamID) String() string {
	return s.Category + "-" + s.Tenant.String() + "." + s.Key
}

// UUID is the aggregate's id, for streams that belong to one.
func (s StreamID) UUID() (uuid.UUID, error) { return uuid.Parse(s.Key) }

// ParseStream reads a stored name.
func ParseStream(name string) (StreamID, error) {
	category, rest, ok := strings.Cut(name, "-")
	if !ok || category == "" {
		return StreamID{}, fmt.Errorf("stream name %q has no category", name)
	}
	tenant, key, ok := strings.Cut(rest, ".")
	if !ok || key == "" {
		return StreamID{}, fmt.Errorf("stream name %q has no key", name)
	}
	id, err := uuid.Parse(tenant)
	if err != nil || id.String() != tenant { // one stream has one name
		return StreamID{}, fmt.Errorf("stream name %q has no tenant", name)
	}
	return StreamID{Category: category, Tenant: id, Key: key}, nil
}
