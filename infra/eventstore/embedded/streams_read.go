package embedded

import (
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/status"
)

// reader is one read or subscription of a client.
type reader struct {
	store  *store
	server *Server
	out    streams.Streams_ReadServer
	wire   wireOptions
	links  bool
	filter *eventFilter
	frame  eventFrame // used again for every event; it is written before send comes back
}

// Read serves reads and subscriptions of streams and of the whole log.
func (svc *streamsService) Read(req *streams.ReadReq, out streams.Streams_ReadServer) error {
	o := req.GetOptions()
	if o == nil {
		return invalid("the read has no options")
	}
	r := &reader{store: svc.store, server: svc.server, out: out, links: o.GetResolveLinks()}
	if _, text := o.GetUuidOption().GetContent().(*streams.ReadReq_Options_UUIDOption_String_); text {
		r.wire.textIDs = true
	}
	if f := o.GetFilter(); f != nil {
		var err error
		if r.filter, err = newEventFilter(f); err != nil {
			return invalid(err.Error())
		}
	}
	backward := o.GetReadDirection() == streams.ReadReq_Options_Backwards
	_, subscribe := o.GetCountOption().(*streams.ReadReq_Options_Subscription)
	if _, ok := o.GetCountOption().(*streams.ReadReq_Options_Count); !ok && !subscribe {
		return invalid("the read has neither a count nor is it a subscription")
	}
	if subscribe && backward {
		return invalid("a subscription can't go backward")
	}
	if o.GetAll() != nil {
		if err := r.authorize("$all"); err != nil {
			return err
		}
	}
	switch {
	case o.GetAll() != nil && subscribe:
		return r.subscribeAll(o.GetAll())
	case o.GetAll() != nil:
		return r.readAll(o.GetAll(), backward, o.GetCount())
	case o.GetStream() == nil:
		return invalid("the read names neither a stream nor the whole log")
	case r.filter != nil:
		return invalid("only the whole log can be filtered")
	}
	name, err := streamName(o.GetStream().GetStreamIdentifier())
	if err != nil {
		return err
	}
	if err := r.authorize(name); err != nil {
		return err
	}
	if subscribe {
		err = r.subscribeStream(name, o.GetStream())
	} else {
		err = r.readStream(name, o.GetStream(), backward, o.GetCount())
	}
	return toStatus(streamTrailer(out), name, err)
}

// goesOn is asked between two pages: a read of which nothing passes the filter
// sends nothing, and would not notice otherwise that nobody waits for it.
func (r *reader) goesOn() error {
	if r.server.isStopping() {
		return r.server.stopped()
	}
	if err := r.out.Context().Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// authorize refuses the read to who may not read the stream.
func (r *reader) authorize(name string) error {
	return r.store.authorize(r.out.Context(), streamTrailer(r.out), name, accessRead)
}

// readAll sends up to count events of the whole log: forward from a position
// on, inclusive, backward from the event before it.
func (r *reader) readAll(o *streams.ReadReq_Options_AllOptions, backward bool, count uint64) error {
	from, err := r.allStart(o, backward)
	if err != nil {
		return err
	}
	buf := takePageBuffer()
	defer buf.giveBack()
	for count > 0 {
		if err := r.goesOn(); err != nil {
			return err
		}
		limit := pageEvents
		if r.filter == nil {
			limit = int(min(count, pageEvents))
		}
		p, err := r.store.readAll(r.out.Context(), from, backward, limit, buf)
		if err != nil {
			return toStatus(streamTrailer(r.out), "$all", err)
		}
		for i := range p.events {
			e := &p.events[i]
			if count == 0 || !r.filter.match(e) {
				continue
			}
			if err := r.send(e); err != nil {
				return err
			}
			count--
		}
		if !p.more {
			return nil
		}
		from = p.events[len(p.events)-1].position
		if !backward {
			from++
		}
	}
	return nil
}

// allStart turns the start of a read of the whole log into a position.
func (r *reader) allStart(o *streams.ReadReq_Options_AllOptions, backward bool) (uint64, error) {
	switch x := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Start:
		return 0, nil
	case *streams.ReadReq_Options_AllOptions_End:
		if backward {
			return math.MaxUint64, nil
		}
		return r.store.committed.Load() + 1, nil
	case *streams.ReadReq_Options_AllOptions_Position:
		return x.Position.GetCommitPosition(), nil
	default:
		return 0, invalid("the read names no position")
	}
}

// readStream sends up to count events of a stream from a revision on, inclusive.
func (r *reader) readStream(name string, o *streams.ReadReq_Options_StreamOptions, backward bool, count uint64) error {
	ctx := r.out.Context()
	if o.GetRevisionOption() == nil {
		return invalid("the read names no revision")
	}
	h, err := r.open(name)
	if err != nil {
		return err
	}
	if h.missing() {
		return r.out.Send(notFoundMessage(name))
	}
	var from int64
	switch x := o.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Start:
	case *streams.ReadReq_Options_StreamOptions_End:
		if from = h.last; !backward {
			from = h.last + 1
		}
	case *streams.ReadReq_Options_StreamOptions_Revision:
		from = int64(min(x.Revision, math.MaxInt64))
	}
	for count > 0 {
		if err := r.goesOn(); err != nil {
			return err
		}
		p, next, err := r.store.readStream(ctx, name, &h, from, backward, int(min(count, pageEvents)))
		if err != nil {
			return err
		}
		for i := range p.events {
			if err := r.send(&p.events[i]); err != nil {
				return err
			}
		}
		count -= uint64(len(p.events))
		if !p.more {
			return nil
		}
		from = next
	}
	return nil
}

// open reads the head of a stream, which must not be tombstoned. A metadata
// stream shares the fate of its stream.
func (r *reader) open(name string) (head, error) {
	ctx := r.out.Context()
	h, err := r.store.durableHead(ctx, name)
	if err != nil {
		return head{}, err
	}
	if h.tombstoned {
		return head{}, errStreamDeleted
	}
	if base, ok := metadataOf(name); ok {
		b, err := r.store.durableHead(ctx, base)
		if err != nil {
			return head{}, err
		}
		if b.tombstoned {
			return head{}, errStreamDeleted
		}
	}
	return h, nil
}

// send sends one event, following it to its target if it is a link and links are wanted.
func (r *reader) send(e *event) error {
	if r.links && e.kind == linkType {
		target, ok, err := r.store.resolve(e)
		if err != nil {
			return toStatus(streamTrailer(r.out), e.stream, err)
		}
		if ok {
			// A link is no way around the list of the stream that it points at.
			if ok, err = r.store.permits(r.out.Context(), principalOf(r.out.Context()), target.stream, accessRead); err != nil {
				return toStatus(streamTrailer(r.out), target.stream, err)
			}
		}
		if ok {
			return r.out.SendMsg(&eventFrame{wire: r.wire, event: &target, link: e})
		}
	}
	r.frame = eventFrame{wire: r.wire, event: e}
	return r.out.SendMsg(&r.frame)
}
