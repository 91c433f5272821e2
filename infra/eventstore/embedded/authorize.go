package embedded

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// authorize refuses a call unless who makes it has a kind of access to a stream,
// of which name may be that of its metadata stream or $all. What the lists say
// at this moment counts; who follows a stream is asked again when they change.
func (s *store) authorize(ctx context.Context, set trailerSetter, name string, want access) error {
	ok, err := s.permits(ctx, principalOf(ctx), name, want)
	if err != nil {
		return toStatus(set, name, err)
	}
	if !ok {
		return accessDenied(set)
	}
	return nil
}

// permits tells whether somebody has a kind of access to a stream.
func (s *store) permits(ctx context.Context, who principal, name string, want access) (bool, error) {
	if who.admin() {
		return true, nil
	}
	if base, isMeta := metadataOf(name); isMeta {
		name = base
		if want == accessRead {
			want = accessMetaRead
		} else {
			want = accessMetaWrite
		}
	}
	settings, err := s.lastBody(ctx, settingsStream)
	if err != nil {
		return false, err
	}
	own, err := s.lastBody(ctx, metadataPrefix+name)
	if err != nil {
		return false, err
	}
	return parseSettings(settings).of(name, own).permits(who, want), nil
}

// lastBody reads the body of a stream's last event; nil if there is none to see.
func (s *store) lastBody(ctx context.Context, stream string) ([]byte, error) {
	for range 10 {
		h, err := s.durableHead(ctx, stream)
		if err != nil || h.missing() || h.tombstoned {
			return nil, err
		}
		e, ok, err := s.eventAt(stream, h.last, h.lastPosition)
		if err != nil || ok {
			return e.data, err
		}
		// There is a newer one by now, or none.
	}
	return nil, fmt.Errorf("the last event of %s is never the last one", stream)
}

// accessDenied is the answer to who may not do what a call asks.
func accessDenied(set trailerSetter) error {
	set(metadata.Pairs("exception", exceptionAccessDenied))
	return status.Error(codes.PermissionDenied, "Access Denied.")
}

// operations are calls about the server or about what many share, which no
// stream's list decides.
var operations = map[string]bool{
	"/" + servicePersistent + "/Create":           true,
	"/" + servicePersistent + "/Update":           true,
	"/" + servicePersistent + "/Delete":           true,
	"/" + servicePersistent + "/ReplayParked":     true,
	"/" + servicePersistent + "/RestartSubsystem": true,
}

// checkOperation refuses the operators' calls to others. What else there is of
// persistent subscriptions is for users; that a stream may be read is asked
// where its name is known.
func checkOperation(set trailerSetter, who principal, method string) error {
	switch {
	case operations[method] && !who.operator(),
		serviceOf(method) == servicePersistent && !who.known():
		return accessDenied(set)
	}
	return nil
}

// changesAccess tells whether an event may change who has access to a stream.
func changesAccess(e *event, stream string) bool {
	return e.stream == settingsStream || e.stream == metadataPrefix+stream
}
