package embedded

import (
	"errors"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Values of the trailer "exception" about persistent subscriptions.
const (
	exceptionGroupFailed  = "persistent-subscription-failed"
	exceptionGroupMissing = "persistent-subscription-does-not-exist"
	exceptionGroupExists  = "persistent-subscription-exists"
	exceptionGroupDropped = "persistent-subscription-dropped"
	exceptionGroupFull    = "maximum-subscribers-reached"
)

// Errors about a group, which its name is added to on the way out.
var (
	errGroupMissing = errors.New("the group does not exist")
	errGroupExists  = errors.New("the group exists")
	errGroupDropped = errors.New("the group dropped the consumer")
	errGroupFull    = errors.New("the group takes no more consumers")
)

// groupFailure is why a group can't do what was asked, in words for the client.
type groupFailure struct{ reason string }

func (f groupFailure) Error() string { return f.reason }

// groupStatus gives an error about a group the status that the contract asks for.
func groupStatus(set trailerSetter, name groupName, err error) error {
	answer := func(code codes.Code, exception, text string, more ...string) error {
		set(metadata.Pairs(append([]string{
			"exception", exception, "stream-name", trailerText(name.stream), "group-name", trailerText(name.group),
		}, more...)...))
		return status.Error(code, text)
	}
	who := "Subscription group " + name.group + " on stream " + name.stream
	var failure groupFailure
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errGroupMissing):
		return answer(codes.NotFound, exceptionGroupMissing, who+" does not exist.")
	case errors.Is(err, errGroupExists):
		return answer(codes.AlreadyExists, exceptionGroupExists, who+" exists.")
	case errors.Is(err, errGroupDropped):
		return answer(codes.Canceled, exceptionGroupDropped, who+" was dropped.")
	case errors.Is(err, errGroupFull):
		return answer(codes.FailedPrecondition, exceptionGroupFull, who+" has its maximum of subscribers.")
	case errors.As(err, &failure):
		return answer(codes.Internal, exceptionGroupFailed, who+" failed: "+failure.reason, "reason", trailerText(failure.reason))
	default:
		return toStatus(set, name.stream, err)
	}
}

// trailerText leaves out of a text what a trailer must not carry.
func trailerText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}
