package embedded

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// TestFrame holds the frames that are written by hand to the generated code.
func TestFrame(t *testing.T) {
	events := rapid.Custom(func(t *rapid.T) event {
		text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.Just(strings.Repeat("é", 1000)))
		data := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Just(bytes.Repeat([]byte{7}, 70_000)))
		var id uuid.UUID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "id"))
		return event{
			position: rapid.Uint64Range(1, math.MaxUint64).Draw(t, "position"),
			revision: rapid.Int64Min(0).Draw(t, "revision"),
			id:       id,
			created:  rapid.Int64().Draw(t, "created"),
			stream:   text.Draw(t, "stream"), kind: text.Draw(t, "kind"), contentType: text.Draw(t, "content type"),
			metadata: data.Draw(t, "metadata"), data: data.Draw(t, "data"),
		}
	})
	c := newCodec()
	rapid.Check(t, func(t *rapid.T) {
		e, link := events.Draw(t, "event"), events.Draw(t, "link")
		f := &eventFrame{wire: wireOptions{textIDs: rapid.Bool().Draw(t, "text ids")}, event: &e}
		want := &streams.ReadResp_ReadEvent{
			Event: f.wire.recorded(&e), Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: e.position},
		}
		if rapid.Bool().Draw(t, "linked") {
			f.link, want.Link = &link, f.wire.recorded(&link)
			want.Position = &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: link.position}
		}
		written, err := c.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		defer written.Free()
		raw := written.Materialize()
		if s := f.sizes(); len(raw) != tagged(respEvent, s.read) {
			t.Fatalf("%d bytes instead of %d", len(raw), tagged(respEvent, s.read))
		}
		got := &streams.ReadResp{}
		if err := proto.Unmarshal(raw, got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, &streams.ReadResp{Content: &streams.ReadResp_Event{Event: want}}) {
			t.Fatalf("%v\ninstead of\n%v", got.GetEvent(), want)
		}
	})
}
