package embedded

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// eventFilter lets some events of the whole log through, by stream name or by type.
type eventFilter struct {
	byType   bool
	prefixes []string
	regex    *regexp.Regexp
	// interval is how many events are looked at between two checkpoints.
	interval int
}

// defaultWindow is the search window of a filter that names none.
const defaultWindow = 32

// maxInterval bounds what a client may ask for, so that checkpoints do come.
const maxInterval = 1 << 20

func newEventFilter(o *streams.ReadReq_Options_FilterOptions) (*eventFilter, error) {
	f := &eventFilter{}
	var x *streams.ReadReq_Options_FilterOptions_Expression
	switch {
	case o.GetEventType() != nil:
		f.byType, x = true, o.GetEventType()
	case o.GetStreamIdentifier() != nil:
		x = o.GetStreamIdentifier()
	default:
		return nil, errors.New("the filter names neither streams nor event types")
	}
	if err := f.setExpression(x.GetRegex(), x.GetPrefix()); err != nil {
		return nil, err
	}
	window := int64(defaultWindow)
	if o.GetMax() > 0 {
		window = int64(o.GetMax())
	}
	multiplier := int64(o.GetCheckpointIntervalMultiplier())
	if multiplier == 0 {
		return nil, errors.New("the filter's checkpoint interval must not be 0")
	}
	f.interval = int(min(window*multiplier, maxInterval))
	return f, nil
}

// setExpression takes what events must match: one of the prefixes, or a regular expression.
func (f *eventFilter) setExpression(pattern string, prefixes []string) error {
	f.prefixes = prefixes
	if pattern != "" {
		if len(f.prefixes) > 0 {
			return errors.New("the filter has both a regular expression and prefixes")
		}
		var err error
		if f.regex, err = regexp.Compile(pattern); err != nil {
			return fmt.Errorf("the filter's regular expression is not usable: %w", err)
		}
	}
	if f.regex == nil && len(f.prefixes) == 0 {
		return errors.New("the filter is empty")
	}
	return nil
}

// match tells whether the event passes; a missing filter lets all pass.
func (f *eventFilter) match(e *event) bool {
	if f == nil {
		return true
	}
	subject := e.stream
	if f.byType {
		subject = e.kind
	}
	if f.regex != nil {
		return f.regex.MatchString(subject)
	}
	for _, p := range f.prefixes {
		if strings.HasPrefix(subject, p) {
			return true
		}
	}
	return false
}
